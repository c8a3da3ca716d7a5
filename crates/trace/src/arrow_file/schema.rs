//! The columns of the file and the names in its dictionaries.

use schedlab_base::{Context, TaskState};

/// The kinds of row, in the order of the `event` dictionary that the writer writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Switch,
    Waking,
    Wakeup,
    WakeupNew,
    Migrate,
    Fork,
    Exec,
    Exit,
    Lost,
    Name,
    Affinity,
    Queue,
    Considered,
    Pages,
    Task,
    Group,
    End,
    Interrupt,
    Sleeps,
    Frequency,
    Killed,
}

/// Every kind of row with its name in the file, in the order of [`Kind`].
pub(super) const KINDS: [(Kind, &str); 21] = [
    (Kind::Switch, "switch"),
    (Kind::Waking, "waking"),
    (Kind::Wakeup, "wakeup"),
    (Kind::WakeupNew, "wakeup_new"),
    (Kind::Migrate, "migrate"),
    (Kind::Fork, "fork"),
    (Kind::Exec, "exec"),
    (Kind::Exit, "exit"),
    (Kind::Lost, "lost"),
    (Kind::Name, "name"),
    (Kind::Affinity, "affinity"),
    (Kind::Queue, "queue"),
    (Kind::Considered, "considered"),
    (Kind::Pages, "pages"),
    (Kind::Task, "task"),
    (Kind::Group, "group"),
    (Kind::End, "end"),
    (Kind::Interrupt, "interrupt"),
    (Kind::Sleeps, "sleeps"),
    (Kind::Frequency, "frequency"),
    (Kind::Killed, "killed"),
];

/// Every task state with its letter in the file.
pub(super) const STATES: [(TaskState, &str); 9] = [
    (TaskState::Runnable, "R"),
    (TaskState::Sleeping, "S"),
    (TaskState::Uninterruptible, "D"),
    (TaskState::Stopped, "T"),
    (TaskState::Traced, "t"),
    (TaskState::Dead, "X"),
    (TaskState::Zombie, "Z"),
    (TaskState::Parked, "P"),
    (TaskState::Idle, "I"),
];

/// Every known context of a waking with its name in the file.
pub(super) const CONTEXTS: [(Context, &str); 3] = Context::ALL;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// An integer of this many bytes.
    Int { bytes: usize, signed: bool },
    /// Text with 32-bit offsets.
    Text,
    /// Text through an 8-bit unsigned index into a dictionary.
    Dictionary,
}

/// A column, by its index in [`COLUMNS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Col {
    Time,
    Cpu,
    Event,
    Tid,
    Prio,
    State,
    NextTid,
    NextPrio,
    OtherTid,
    OrigCpu,
    TargetCpu,
    Count,
    Tgid,
    Comm,
    Cgroup,
    Cpus,
    Why,
    Length,
    Load,
    OrigNode,
    TargetNode,
    Pages,
    Context,
    Properties,
    Number,
    Took,
}

const fn unsigned(bytes: usize) -> Type {
    Type::Int { bytes, signed: false }
}

const fn signed(bytes: usize) -> Type {
    Type::Int { bytes, signed: true }
}

/// Every column in the order of [`Col`]: its name, its type, and whether it may be null.
pub(super) const COLUMNS: [(&str, Type, bool); 26] = [
    ("time_ns", unsigned(8), false),
    ("cpu", unsigned(2), false),
    ("event", Type::Dictionary, false),
    ("tid", signed(4), true),
    ("prio", signed(2), true),
    ("state", Type::Dictionary, true),
    ("next_tid", signed(4), true),
    ("next_prio", signed(2), true),
    ("other_tid", signed(4), true),
    ("orig_cpu", unsigned(2), true),
    ("target_cpu", unsigned(2), true),
    ("count", unsigned(8), true),
    ("tgid", signed(4), true),
    ("comm", Type::Text, true),
    ("cgroup", Type::Text, true),
    ("cpus", Type::Text, true),
    ("why", Type::Text, true),
    ("length", signed(4), true),
    ("load", unsigned(8), true),
    ("orig_node", unsigned(2), true),
    ("target_node", unsigned(2), true),
    ("pages", unsigned(8), true),
    ("context", Type::Dictionary, true),
    ("properties", Type::Text, true),
    ("number", unsigned(2), true),
    ("took_ns", unsigned(8), true),
];

/// The number of columns of version 1.0. A file may lack the later ones.
pub(super) const FIRST_COLUMNS: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_in_the_order_of_their_enums() {
        assert!(KINDS.iter().enumerate().all(|(i, (kind, _))| *kind as usize == i));
        assert_eq!(COLUMNS[Col::Cgroup as usize].0, "cgroup");
        assert_eq!(COLUMNS[Col::Load as usize].0, "load");
        assert_eq!(COLUMNS[Col::Context as usize].0, "context");
        assert_eq!(COLUMNS[Col::Properties as usize].0, "properties");
        assert_eq!(COLUMNS[Col::Took as usize].0, "took_ns");
        assert!(COLUMNS[FIRST_COLUMNS..].iter().all(|(.., nullable)| *nullable));
        assert_eq!(COLUMNS[Col::OtherTid as usize].0, "other_tid");
        assert!(STATES.iter().all(|(state, letter)| state.letter().to_string() == *letter));
    }
}
