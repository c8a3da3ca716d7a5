//! Tasks that sleep until a tick. The kernel's own threads sleep by `schedule_timeout()`, whose timers expire in the
//! soft interrupt of a tick. A wake-up between two ticks makes a CPU account the running task and can end its turn
//! there; one at a tick comes when that happens anyway.

use schedlab_base::{Context, Nanos};
use std::f64::consts::TAU;

/// So many wake-ups at least make a pattern.
const FEWEST: u64 = 8;

/// How closely they have to follow the ticks: the length of the mean of their phases as unit vectors. Even phases have
/// a length of 0; those that begin up to a quarter of a tick late have one of 0.9.
const CLOSELY: f64 = 0.85;

/// How much later than its tick a wake-up may be, as a part of the time between two.
const LATE: f64 = 0.125;

/// When in the time between two ticks soft interrupts woke a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Phases {
    /// The time between two ticks.
    tick: Nanos,
    seen: u64,
    cos: f64,
    sin: f64,
}

impl Phases {
    /// Counts a wake-up, if a soft interrupt asked for it and the time between two ticks is known.
    pub(super) fn add(&mut self, now: Nanos, context: Context, tick: Option<Nanos>) {
        let Some(tick) = tick.filter(|_| context == Context::SoftIrq) else { return };
        let (sin, cos) = ((now % tick) as f64 / tick as f64 * TAU).sin_cos();
        (self.tick, self.seen) = (tick, self.seen + 1);
        self.sin += sin;
        self.cos += cos;
    }

    /// The time between two ticks, if the task, which was woken `all` times, wakes at ticks.
    pub(super) fn tick(&self, all: u64) -> Option<Nanos> {
        let mostly = self.seen >= FEWEST && self.seen * 10 >= all * 8;
        (mostly && self.cos.hypot(self.sin) >= CLOSELY * self.seen as f64).then_some(self.tick)
    }
}

/// The whole ticks that a task slept for: it fell asleep some time after a tick and woke a little after another one.
pub(super) fn in_ticks(length: Nanos, tick: Nanos) -> Nanos {
    let ticks = (length as f64 / tick as f64 - LATE).ceil().max(1.0);
    (ticks as Nanos).saturating_mul(tick)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Nanos = 4_000_000;

    fn follow(phase: impl Fn(u64) -> Nanos, n: u64, all: u64) -> bool {
        let mut phases = Phases::default();
        (0..n).for_each(|i| phases.add(1_000_000 + i * 3 * TICK + phase(i), Context::SoftIrq, Some(TICK)));
        phases.tick(all) == Some(TICK)
    }

    #[test]
    fn wake_ups_follow_ticks_if_they_come_soon_after_them() {
        assert!(follow(|i| i * 97_000 % 800_000, 20, 22));
        assert!(!follow(|i| i * 97_000 % 800_000, 20, 40), "others wake it as often");
        assert!(!follow(|i| i * 1_297_000 % TICK, 20, 20));
        assert!(!follow(|_| 0, 7, 7), "too few");
    }

    #[test]
    fn a_sleep_has_the_ticks_that_came_in_it() {
        // From 0.7 ms after a tick until 0.3 ms after the second one; from just after one until just after the next.
        assert_eq!(in_ticks(2 * TICK + 300_000 - 700_000, TICK), 2 * TICK);
        assert_eq!(in_ticks(TICK + 100_000, TICK), TICK);
        assert_eq!(in_ticks(1_000, TICK), TICK);
    }
}
