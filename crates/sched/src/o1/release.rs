//! What differs from release to release: data, so that one implementation serves them all.

use schedlab_base::v2_6;

/// How sleep counts towards the sleep average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// The more the lower the average is; who is often interactive earns a credit that makes its bonus lasting, who
    /// never is owes one that keeps its bonus small (`interactive_credit`).
    Credited,
    /// The more the lower the average is.
    Multiplied,
    /// As long as it was; one sleep alone lifts nobody past just interactive.
    Plain,
}

/// By what CPUs are evened out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// The lengths of queues, on a node and between nodes.
    ByLength,
    /// Averages of the lengths of queues, in scheduling domains.
    ByLoad,
    /// Averages of the weights of tasks (smpnice), in scheduling domains.
    ByWeight,
}

/// A release of the O(1) scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Which release of Linux it is, by which its scheduling domains are built.
    pub linux: schedlab_base::Release,
    /// Slices fall in a line from the longest at nice -20 to the shortest at 19; else there is one line for the
    /// negative levels and one, a quarter as high, for the others.
    pub linear_slices: bool,
    /// How sleep counts.
    pub sleep: Sleep,
    /// The bonus from which a nice level is interactive is rounded down; else towards that of nice 0.
    pub delta_rounds_down: bool,
    /// A turn within the slice sets the priority by the bonus; else only the end of the slice does.
    pub turn_sets_prio: bool,
    /// Whoever is nicer than an expired task expires too, however interactive (`best_expired_prio`).
    pub best_expired_counts: bool,
    /// A new thread runs before its parent, as a new process does; else after everybody.
    pub threads_first: bool,
    /// What a child leaves of its first slice goes back to a parent on another CPU too.
    pub slice_returns_from_afar: bool,
    /// A task that the balancer moves stays expired if it was.
    pub moved_stay_expired: bool,
    /// A real-time task's wait counts as sleep too, and its first pick after a wake-up puts it behind its equals.
    pub real_time_waits: bool,
    /// A task whose wait changed nothing keeps its place when it is first picked; else it goes behind its equals.
    pub keeps_place: bool,
    /// A change of nice level or policy keeps the bonus; else the bare nice level counts until it next changes.
    pub change_keeps_bonus: bool,
    /// There is `SCHED_BATCH`: no bonus, and into the expired array whenever it wakes.
    pub batch: bool,
    /// By what CPUs are evened out. By weight, a task's load is its slice against that of nice 0; else all weigh the
    /// same.
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
