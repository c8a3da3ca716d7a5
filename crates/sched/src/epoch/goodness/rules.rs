//! What differs between 2.0, 2.2 and 2.4, as data.

use schedlab_base::Nanos;

/// How many ticks a nice level is worth in each epoch.
#[derive(Clone, Copy, Debug)]
pub enum Slices {
    /// So many at nice 0, twice as many at -20, one at 19 (`sys_setpriority`).
    Proportional(i32),
    /// `NICE_TO_TICKS` at this HZ: some 60 ms at nice 0 whatever HZ is, 110 ms at -20, a tick at 19.
    Scaled(u64),
}

impl Slices {
    /// The ticks of a nice level.
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
    /// 20 less nice.
    Nice,
}

/// An end of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum End {
    Head,
    Tail,
}

/// What `sched_yield()` does beside moving the caller to the end of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yielding {
    /// What is left of its counter is lost.
    Forfeits,
    /// In the choice that follows, who ran begins with a goodness of 0 instead of its own.
    Discounts,
    /// Its goodness is -1 in the choice that follows; nothing at all happens where nobody else waits.
    StandsBack,
}

/// Whom a task that becomes runnable preempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waking {
    /// Who runs on this very CPU, if it has 3 ticks less; the first idle CPU is told too.
    Margin,
    /// Who runs on the CPU where it is better by most; nobody if it works hand in hand with the task that wakes it,
    /// which means one that runs for less than this on average.
    Best {
        /// `cacheflush_time`.
        related: Nanos,
    },
    /// The CPU that has been idle for longest, or else as `Best`.
    OldestIdle,
}

/// What a child gets of its parent's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Half each, rounded down: an odd tick is lost.
    RoundsDown,
    /// Half each; the odd tick is the child's, and a parent that has none left gives way at once.
    Exact,
}

/// The rules of a release.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// A task's ticks in each epoch.
    pub slices: Slices,
    /// What nice levels count in goodness.
    pub bonus: Bonus,
    /// What it adds to goodness to be on the CPU where one last ran (`PROC_CHANGE_PENALTY`); machines of several CPUs.
    pub penalty: i32,
    /// Where a task joins the queue.
    pub joins: End,
    /// Where a change of policy moves it.
    pub policy_moves: Option<End>,
    /// Who runs is considered first, and so wins against its equals.
    pub prev_first: bool,
    /// After a recalculation the choice is made anew; else who was chosen for want of a better runs.
    pub chooses_again: bool,
    /// While a CPU is idle it keeps the address space of who ran last.
    pub lazy_mm: bool,
    /// A slice ends when the tick brings the counter to this: 0, or below it.
    pub ends_at: i32,
    /// The end of its slice makes a FIFO task reschedule like the others.
    pub fifo_expires: bool,
    /// What yielding does.
    pub yielding: Yielding,
    /// Whom a task that becomes runnable preempts.
    pub waking: Waking,
    /// Who is preempted looks for another CPU at once.
    pub pushes: bool,
    /// What a child gets.
    pub sharing: Sharing,
    /// What a child has left when it ends goes back to its parent, up to this many ticks.
    pub gives_back: Option<i32>,
    /// The counter of the task that boots.
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

    /// 2.2.26: slices of `def_priority` ticks; tasks that run for less than `related` on average are taken for a gang.
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

    /// 2.4.22 at this HZ; no child's gift brings its parent's counter over `max_counter`.
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

    /// What nice adds to the goodness of a task that has ticks left.
    #[must_use]
    pub fn bonus_of(&self, nice: i8) -> i32 {
        match self.bonus {
            Bonus::None => 0,
            Bonus::Slice => self.slices.ticks(nice),
            Bonus::Nice => 20 - i32::from(nice),
        }
    }

    /// The counters of a child and of its parent after the fork.
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
