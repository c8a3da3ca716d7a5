//! The differences between the releases, as data, so that one implementation serves them all.

use schedlab_base::v2_6;

/// How sleep counts towards the sleep average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Sleep counts for more if the average is lower. A task that is often interactive earns a credit that makes its
    /// bonus lasting; one that never is gets a debt that keeps its bonus small (`interactive_credit`).
    Credited,
    /// Sleep counts for more if the average is lower.
    Multiplied,
    /// Sleep counts for its real length, and a single sleep makes a task just interactive at most.
    Plain,
}

/// What load balancing equalises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// The lengths of runqueues, within a node and between nodes.
    ByLength,
    /// Averages of the lengths of runqueues, in sched domains.
    ByLoad,
    /// Averages of the weights of tasks (smpnice), in sched domains.
    ByWeight,
}

/// The rules of one release of the O(1) scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The release of Linux, from which its sched domains follow.
    pub linux: schedlab_base::Release,
    /// Whether slices decrease linearly from the longest at nice -20 to the shortest at 19. Otherwise there is one line
    /// for the negative levels and another, a quarter as high, for the rest.
    pub linear_slices: bool,
    /// How sleep counts towards the sleep average.
    pub sleep: Sleep,
    /// Whether the bonus from which a nice level is interactive is rounded down; otherwise it is rounded towards nice
    /// 0's.
    pub delta_rounds_down: bool,
    /// Whether a turn within the slice sets the priority from the bonus; otherwise only the end of the slice does.
    pub turn_sets_prio: bool,
    /// Whether a task that is nicer than an expired task expires too, however interactive (`best_expired_prio`).
    pub best_expired_counts: bool,
    /// Whether a new thread runs before its parent, as a new process does; otherwise it runs after all other tasks.
    pub threads_first: bool,
    /// Whether the unused part of a child's first slice returns to a parent on another CPU, too.
    pub slice_returns_from_afar: bool,
    /// Whether an expired task that the load balancer moves stays expired.
    pub moved_stay_expired: bool,
    /// Whether a real-time task's wait counts as sleep too, and its first pick after a wake-up puts it behind its
    /// equals.
    pub real_time_waits: bool,
    /// Whether a task whose wait changed nothing keeps its place at its first pick; otherwise it goes behind its
    /// equals.
    pub keeps_place: bool,
    /// Whether a change of nice level or policy keeps the bonus; otherwise the plain nice level counts until the
    /// priority is next recalculated.
    pub change_keeps_bonus: bool,
    /// Whether `SCHED_BATCH` exists: such tasks get no bonus, and join the expired array whenever they wake.
    pub batch: bool,
    /// What load balancing equalises. By weight, a task's load is its slice relative to that of nice 0; otherwise all
    /// tasks have the same load.
    pub balancing: Balancing,
}

impl Release {
    /// 2.6.0 of December 2003.
    pub const V2_6_0: Self = Self {
        linux: v2_6(0),
        linear_slices: true,
        sleep: Sleep::Credited,
        delta_rounds_down: false,
        turn_sets_prio: true,
        best_expired_counts: false,
        threads_first: true,
        slice_returns_from_afar: true,
        moved_stay_expired: false,
        real_time_waits: true,
        keeps_place: false,
        change_keeps_bonus: false,
        batch: false,
        balancing: Balancing::ByLength,
    };

    /// 2.6.11 of March 2005.
    pub const V2_6_11: Self = Self {
        linux: v2_6(11),
        linear_slices: false,
        sleep: Sleep::Multiplied,
        turn_sets_prio: false,
        best_expired_counts: true,
        threads_first: false,
        moved_stay_expired: true,
        real_time_waits: false,
        balancing: Balancing::ByLoad,
        ..Self::V2_6_0
    };

    /// 2.6.18 of September 2006.
    pub const V2_6_18: Self = Self {
        linux: v2_6(18),
        sleep: Sleep::Plain,
        delta_rounds_down: true,
        slice_returns_from_afar: false,
        keeps_place: true,
        change_keeps_bonus: true,
        batch: true,
        balancing: Balancing::ByWeight,
        ..Self::V2_6_11
    };
}
