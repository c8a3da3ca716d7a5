//! The differences between 2.0, 2.2 and 2.4, as data.

use schedlab_base::Nanos;

/// How many ticks a task of a nice level gains in each epoch.
#[derive(Clone, Copy, Debug)]
pub enum Slices {
    /// The given number of ticks at nice 0, twice as many at -20, and one at 19 (`sys_setpriority`).
    Proportional(i32),
    /// `NICE_TO_TICKS` at the given HZ: about 60 ms at nice 0 whatever HZ is, 110 ms at -20, one tick at 19.
    Scaled(u64),
}

impl Slices {
    /// Returns the ticks of a nice level.
    #[must_use]
    pub fn ticks(self, nice: i8) -> i32 {
        let nice = i32::from(nice);
        match self {
            Self::Proportional(default) => {
                let change = (nice.abs() * default + 10) / 20;
                if nice < 0 { default + change } else { (default - change).max(1) }
            }
            Self::Scaled(hz) => {
                let levels = 20 - nice;
                1 + match hz {
                    0..200 => levels >> 2,
                    200..400 => levels >> 1,
                    400..800 => levels,
                    800..1600 => levels << 1,
                    _ => levels << 2,
                }
            }
        }
    }
}

/// What a nice level adds to the goodness of a task that has ticks left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bonus {
    /// Nothing.
    None,
    /// Its slice in ticks.
    Slice,
    /// 20 minus the nice level.
    Nice,
}

/// An end of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum End {
    Head,
    Tail,
}

/// What `sched_yield()` does, besides moving the caller to the tail of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yielding {
    /// The rest of its counter is lost.
    Forfeits,
    /// At the next pick the previous task starts with a goodness of 0 instead of its own.
    Discounts,
    /// Its goodness is -1 at the next pick. If no other task waits, the call has no effect.
    StandsBack,
}

/// Which task a task that becomes runnable preempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// The running task of this CPU, if its counter is smaller by more than 3; the first idle CPU is signalled, too.
    Margin,
    /// The running task of the CPU where the advantage is greatest. No task is preempted if the waking task and its
    /// waker cooperate; they are assumed to if the waker's average run is shorter than `related`.
    Best {
        /// `cacheflush_time`.
        related: Nanos,
    },
    /// None if a CPU is idle: it takes the one that has been idle longest. Otherwise the same task as in `Best`.
    OldestIdle,
}

/// How a parent's counter is divided at a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each gets half, rounded down; an odd tick is lost.
    RoundsDown,
    /// Each gets half, the odd tick goes to the child, and a parent with nothing left reschedules at once.
    Exact,
}

/// The rules of a release.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A task's ticks in each epoch.
    pub slices: Slices,
    /// What the nice level adds to goodness.
    pub bonus: Bonus,
    /// What a task's goodness gains on the CPU where it last ran (`PROC_CHANGE_PENALTY`), on machines with several
    /// CPUs.
    pub penalty: i32,
    /// Where a waking task joins the queue.
    pub joins: End,
    /// Where a change of policy moves a task; `None` if it stays.
    pub policy_moves: Option<End>,
    /// Whether the previous task is considered first, and so wins against its equals.
    pub prev_first: bool,
    /// Whether the CPU picks again after a recalculation; otherwise the task chosen before it runs.
    pub chooses_again: bool,
    /// Whether an idle CPU keeps the address space of the task that ran last.
    pub lazy_mm: bool,
    /// The value of the counter at which a tick ends the slice.
    pub ends_at: i32,
    /// Whether the end of its slice makes a FIFO task reschedule, like other tasks.
    pub fifo_expires: bool,
    /// What yielding does.
    pub yielding: Yielding,
    /// Which task a waking task preempts.
    pub waking: Waking,
    /// Whether a preempted task looks for another CPU at once.
    pub pushes: bool,
    /// How a child shares its parent's counter.
    pub sharing: Sharing,
    /// Up to how many ticks a parent's counter may grow from what its children leave; `None` if nothing returns.
    pub gives_back: Option<i32>,
    /// The counter of the boot task.
    pub boot_counter: i32,
}

impl Rules {
    /// 2.0.40: slices of `def_priority` ticks.
    #[must_use]
    pub fn linux_2_0(def_priority: i32, penalty: i32) -> Self {
        Self {
            slices: Slices::Proportional(def_priority),
            bonus: Bonus::None,
            penalty,
            joins: End::Tail,
            policy_moves: Some(End::Tail),
            prev_first: false,
            chooses_again: false,
            lazy_mm: false,
            ends_at: -1,
            fifo_expires: true,
            yielding: Yielding::Forfeits,
            waking: Waking::Margin,
            pushes: false,
            sharing: Sharing::RoundsDown,
            gives_back: None,
            boot_counter: def_priority,
        }
    }

    /// 2.2.26: slices of `def_priority` ticks. A task whose average run is shorter than `related` is assumed to
    /// cooperate with the task that it wakes.
    #[must_use]
    pub fn linux_2_2(def_priority: i32, penalty: i32, related: Nanos) -> Self {
        Self {
            bonus: Bonus::Slice,
            joins: End::Head,
            policy_moves: Some(End::Head),
            prev_first: true,
            chooses_again: true,
            yielding: Yielding::Discounts,
            waking: Waking::Best { related },
            pushes: true,
            ..Self::linux_2_0(def_priority, penalty)
        }
    }

    /// 2.4.22 at this HZ. What children leave raises their parent's counter to at most `max_counter`.
    #[must_use]
    pub fn linux_2_4(hz: u64, penalty: i32, max_counter: i32) -> Self {
        Self {
            slices: Slices::Scaled(hz),
            bonus: Bonus::Nice,
            penalty,
            joins: End::Tail,
            policy_moves: None,
            prev_first: false,
            chooses_again: true,
            lazy_mm: true,
            ends_at: 0,
            fifo_expires: false,
            yielding: Yielding::StandsBack,
            waking: Waking::OldestIdle,
            pushes: true,
            sharing: Sharing::Exact,
            gives_back: Some(max_counter),
            boot_counter: (10 * hz / 100) as i32,
        }
    }

    /// Returns what the nice level adds to the goodness of a task that has ticks left.
    #[must_use]
    pub fn bonus_of(&self, nice: i8) -> i32 {
        match self.bonus {
            Bonus::None => 0,
            Bonus::Slice => self.slices.ticks(nice),
            Bonus::Nice => 20 - i32::from(nice),
        }
    }

    /// Returns the counters of the child and of the parent after a fork.
    #[must_use]
    pub fn share(&self, parent: i32) -> (i32, i32) {
        match self.sharing {
            Sharing::RoundsDown => (parent >> 1, parent >> 1),
            Sharing::Exact => ((parent + 1) >> 1, parent >> 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Slices;

    #[test]
    fn slices_follow_nice_as_each_release_had_it() {
        let all = |slices: Slices| [-20, -5, 0, 5, 10, 19].map(|nice| slices.ticks(nice));
        assert_eq!(all(Slices::Proportional(20)), [40, 25, 20, 15, 10, 1]);
        assert_eq!(all(Slices::Proportional(205)), [410, 256, 205, 154, 102, 10]);
        assert_eq!(all(Slices::Scaled(100)), [11, 7, 6, 4, 3, 1]);
        assert_eq!(all(Slices::Scaled(1000)), [81, 51, 41, 31, 21, 3]);
        assert_eq!(all(Slices::Scaled(1024)), [81, 51, 41, 31, 21, 3]);
        assert_eq!(all(Slices::Scaled(250)), [21, 13, 11, 8, 6, 1]);
    }
}
