//! The rate limit on migrating pages to a node: 128 MiB per 100 ms (`numamigrate_update_ratelimit` in mm/migrate.c,
//! until 4.19).

use schedlab_base::Nanos;

/// The length of a window, in ms (`migrate_interval_millisecs`).
const WINDOW_MS: u64 = 100;
/// No more pages are migrated in a window once their number exceeds this (`ratelimit_pages`).
const MOST: u64 = 128 << 8;

/// The use of a node's current window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limit {
    /// The last tick of the window.
    until: u64,
    pages: u64,
}

/// A clock for consecutive faults, which the simulation handles at a single instant.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The tick at which the first fault happened.
    pub jiffies: u64,
    /// The length of a tick, in ns.
    pub tick: Nanos,
    /// The time that the faults have taken so far, in ns.
    pub spent: Nanos,
}

impl Limit {
    /// Returns how many of `pages`, on which a task faults one after the other, are migrated. Each fault takes `fault`
    /// ns, and `moving` ns more if its page is migrated. Advances `clock` by that time.
    pub fn admit(&mut self, clock: &mut Clock, pages: u64, fault: Nanos, moving: Nanos) -> u64 {
        let (mut left, mut moved) = (pages, 0);
        while left > 0 {
            let now = clock.jiffies + clock.spent / clock.tick;
            if now > self.until {
                *self = Self { until: now + (WINDOW_MS * 1_000_000).div_ceil(clock.tick), pages: 0 };
            }
            let room = (MOST + 1).saturating_sub(self.pages);
            let each = if room > 0 { fault + moving } else { fault };
            // The number of faults before the next window begins.
            let time = (self.until + 1 - clock.jiffies) * clock.tick - clock.spent;
            let fit = time.div_ceil(each.max(1)).max(1);
            let some = left.min(if each > 0 { fit } else { left }).min(if room > 0 { room } else { left });
            if room > 0 {
                self.pages += some;
                moved += some;
            }
            clock.spent += some * each;
            left -= some;
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Nanos = 4_000_000;

    #[test]
    fn what_takes_no_time_is_cut_off_at_the_limit() {
        let (mut limit, mut clock) = (Limit::default(), Clock { jiffies: 250, tick: TICK, spent: 0 });
        assert_eq!(limit.admit(&mut clock, 65_536, 0, 0), MOST + 1, "of 256 MiB 128, and the page that goes beyond");
        assert_eq!(limit.admit(&mut clock, 10, 0, 0), 0);
        clock.jiffies += 25;
        assert_eq!(limit.admit(&mut clock, 10, 0, 0), 0, "the window's last tick");
        clock.jiffies += 1;
        assert_eq!(limit.admit(&mut clock, 10, 0, 0), 10);
    }

    #[test]
    fn who_moves_slowly_never_meets_the_limit() {
        // At 7 us per page, a window of 26 ticks (104 ms) sees 14,858 pages; the limit is 32,769.
        let (mut limit, mut clock) = (Limit::default(), Clock { jiffies: 250, tick: TICK, spent: 0 });
        assert_eq!(limit.admit(&mut clock, 65_536, 600, 6_400), 65_536);
        assert_eq!(clock.spent, 65_536 * 7_000);
    }

    #[test]
    fn faults_that_move_nothing_go_on_until_the_next_window() {
        // A migrated page takes 1 us and any other 0.5 us: the limit is reached after 32.769 ms, and the window ends at
        // 104 ms.
        let (mut limit, mut clock) = (Limit::default(), Clock { jiffies: 250, tick: TICK, spent: 0 });
        let refused = (104_000_000 - 32_769_000) / 500;
        assert_eq!(limit.admit(&mut clock, MOST + 1 + refused + 7, 500, 500), MOST + 1 + 7);
    }
}
