//! Changes of a task's identity, as the kernel's events report them.

use crate::asked::Asked;
use schedlab_base::{CpuList, Tid};
use schedlab_trace::format::{Field, Format, Shape};

/// The events about identities, besides the scheduler's own, as system and name. A kernel may lack some of them.
pub(crate) const EVENTS: [(&str, &str); 15] = [
    ("task", "task_newtask"),
    ("task", "task_rename"),
    ("cgroup", "cgroup_attach_task"),
    ("syscalls", "sys_enter_setpriority"),
    ("syscalls", "sys_exit_setpriority"),
    ("syscalls", "sys_enter_sched_setscheduler"),
    ("syscalls", "sys_exit_sched_setscheduler"),
    ("syscalls", "sys_enter_sched_setparam"),
    ("syscalls", "sys_exit_sched_setparam"),
    ("syscalls", "sys_enter_sched_setattr"),
    ("syscalls", "sys_exit_sched_setattr"),
    ("syscalls", "sys_enter_sched_setaffinity"),
    ("syscalls", "sys_exit_sched_setaffinity"),
    ("syscalls", "sys_enter_setsid"),
    ("syscalls", "sys_exit_setsid"),
];

/// A change of a task's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A task was created. The scheduler's fork event follows.
    New { parent: Tid, tid: Tid, comm: String, flags: u64 },
    /// The task has this name now.
    Named { tid: Tid, comm: String },
    /// A process, or a thread, moved to another cgroup of this hierarchy.
    Moved { tgid: Tid, hierarchy: u32, path: String },
    /// The task makes a system call.
    Asks { tid: Tid, call: Call },
    /// The system call of the task returns.
    Answered { tid: Tid, done: bool },
    /// A cgroup has these properties now.
    Group { path: String, properties: schedlab_base::GroupProperties },
}

/// A system call that changes how tasks are scheduled. A thread id of 0 is that of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// `setpriority(PRIO_PROCESS, who, nice)`.
    Nice { who: Tid, nice: i8 },
    /// `setpriority()` of the tasks of a process group or of a user.
    NiceOfMany,
    /// `sched_setscheduler()`, `sched_setparam()` or `sched_setattr()`.
    Policy { who: Tid },
    /// `sched_setaffinity()`, and the CPUs that it is asked for, where known.
    Affinity { who: Tid, cpus: Option<CpuList> },
    /// `setsid()`.
    Session,
}

/// Reads the changes from raw records, using the kernel's formats.
pub(crate) struct Changes {
    formats: Vec<Format>,
    asked: Option<Asked>,
}

impl Changes {
    /// Creates a reader for those of [`EVENTS`] whose formats are given.
    pub(crate) fn new(formats: Vec<Format>) -> Self {
        Self { formats, asked: None }
    }

    /// Also has the CPUs that `sched_setaffinity()` is asked for.
    pub(crate) fn with_asked(self, asked: Option<Asked>) -> Self {
        Self { asked, ..self }
    }

    /// Whether the kernel reports the system calls that change how tasks are scheduled.
    pub(crate) fn has_calls(&self) -> bool {
        self.formats.iter().any(|format| format.name.ends_with("_setsid"))
    }

    /// The change in a record, if it is one of these events.
    #[inline]
    pub(crate) fn read(&self, raw: &[u8]) -> Option<Change> {
        let [low, high, ..] = *raw else { return None };
        let id = u16::from_le_bytes([low, high]);
        let format = self.formats.iter().find(|f| f.id == id)?;
        let mut change = change(format, raw)?;
        if let Change::Asks { tid, call: Call::Affinity { cpus, .. } } = &mut change {
            *cpus = self.asked.as_ref().and_then(|asked| asked.of(*tid));
        }
        Some(change)
    }
}

fn change(format: &Format, raw: &[u8]) -> Option<Change> {
    let number = |name: &str| format.field(name).and_then(|f| load(f, raw));
    let text = |name: &str| format.field(name).and_then(|f| string(f, raw));
    let tid = |name: &str| number(name).and_then(|n| Tid::try_from(n as i32).ok()).filter(|tid| *tid > 0);
    match format.name.as_str() {
        "task_newtask" => Some(Change::New {
            parent: number("common_pid")? as i32,
            tid: tid("pid")?,
            comm: text("comm")?,
            flags: number("clone_flags")?,
        }),
        // Newer kernels leave out "pid", because a task can only rename itself.
        "task_rename" => Some(Change::Named { tid: tid("pid").or_else(|| tid("common_pid"))?, comm: text("newcomm")? }),
        "cgroup_attach_task" => {
            Some(Change::Moved { tgid: tid("pid")?, hierarchy: number("dst_root")? as u32, path: text("dst_path")? })
        }
        name => match name.strip_prefix("sys_enter_") {
            Some(name) => Some(Change::Asks { tid: tid("common_pid")?, call: call(name, number)? }),
            None => Some(Change::Answered { tid: tid("common_pid")?, done: number("ret")? as i64 >= 0 }),
        },
    }
}

fn call(name: &str, number: impl Fn(&str) -> Option<u64>) -> Option<Call> {
    const PRIO_PROCESS: i32 = 0;
    let who = |field: &str| Some(number(field)? as i32).filter(|tid| *tid >= 0);
    Some(match name {
        "setpriority" if number("which")? as i32 != PRIO_PROCESS => Call::NiceOfMany,
        // The kernel takes what is out of range for the nearest nice level.
        "setpriority" => Call::Nice { who: who("who")?, nice: (number("niceval")? as i32).clamp(-20, 19) as i8 },
        "sched_setaffinity" => Call::Affinity { who: who("pid")?, cpus: None },
        "setsid" => Call::Session,
        _ => Call::Policy { who: who("pid")? },
    })
}

/// A little-endian number of 1 to 8 bytes.
fn load(field: &Field, raw: &[u8]) -> Option<u64> {
    let bytes = raw.get(field.offset as usize..)?.get(..field.size as usize).filter(|b| b.len() <= 8)?;
    Some(bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

/// A string, stored in place or through a `__data_loc` word.
fn string(field: &Field, raw: &[u8]) -> Option<String> {
    let (at, size) = match field.shape {
        Shape::Array | Shape::Inline => (field.offset as usize, field.size as usize),
        Shape::DataLoc | Shape::RelLoc => {
            let word = load(field, raw)?;
            let base = if field.shape == Shape::RelLoc { (field.offset + field.size) as usize } else { 0 };
            ((word & 0xffff) as usize + base, (word >> 16 & 0xffff) as usize)
        }
    };
    let bytes = raw.get(at..)?.get(..size)?;
    let bytes = bytes.split(|b| *b == 0).next()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_by_their_format() {
        let text = "name: cgroup_attach_task\nID: 7\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:int dst_root;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:__data_loc char[] dst_path;\toffset:12;\tsize:4;\tsigned:0;\n\
            \tfield:int pid;\toffset:16;\tsize:4;\tsigned:1;\n";
        let changes = Changes::new(vec![Format::parse(text).unwrap()]);
        let mut raw = vec![7, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 20, 0, 3, 0, 42, 0, 0, 0, b'/', b'x', 0];
        let moved = Change::Moved { tgid: 42, hierarchy: 3, path: "/x".into() };
        assert_eq!(changes.read(&raw), Some(moved));
        for cut in 0..raw.len() {
            let _ = changes.read(&raw[..cut]);
        }
        raw[12] = 0xff;
        assert_eq!(changes.read(&raw), None, "a string outside the record");
    }

    #[test]
    fn system_calls_are_read_with_their_arguments() {
        let head = "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n";
        let fields = |names: &[&str]| {
            let field = |(n, name): (usize, &&str)| {
                let signed = u8::from(*name == "ret");
                format!("\tfield:long {name};\toffset:{};\tsize:8;\tsigned:{signed};\n", 16 + 8 * n)
            };
            names.iter().enumerate().map(field).collect::<String>()
        };
        let parse = |id: u16, name: &str, names: &[&str]| {
            Format::parse(&format!("name: {name}\nID: {id}\n{head}{}", fields(names))).unwrap()
        };
        let changes = Changes::new(vec![
            parse(1, "sys_enter_setpriority", &["which", "who", "niceval"]),
            parse(2, "sys_exit_setpriority", &["ret"]),
            parse(3, "sys_enter_sched_setaffinity", &["pid", "len"]),
            parse(4, "sys_enter_sched_setattr", &["pid", "uattr"]),
            parse(5, "sys_enter_setsid", &[]),
        ]);
        assert!(changes.has_calls());
        let read = |id: u8, arguments: &[i64]| {
            let mut raw = vec![id, 0, 0, 0, 42, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0];
            arguments.iter().for_each(|n| raw.extend(n.to_le_bytes()));
            changes.read(&raw)
        };
        let asks = |call| Some(Change::Asks { tid: 42, call });
        assert_eq!(read(1, &[0, 0, 5]), asks(Call::Nice { who: 0, nice: 5 }));
        assert_eq!(read(1, &[0, 7, -100]), asks(Call::Nice { who: 7, nice: -20 }));
        assert_eq!(read(1, &[1, 7, 3]), asks(Call::NiceOfMany));
        assert_eq!(read(2, &[-13]), Some(Change::Answered { tid: 42, done: false }));
        assert_eq!(read(2, &[0]), Some(Change::Answered { tid: 42, done: true }));
        assert_eq!(read(3, &[-1, 8]), None, "a negative thread id");
        assert_eq!(read(3, &[7, 8]), asks(Call::Affinity { who: 7, cpus: None }));
        assert_eq!(read(4, &[0, 1]), asks(Call::Policy { who: 0 }));
        assert_eq!(read(5, &[]), asks(Call::Session));
        assert_eq!(read(1, &[0]), None, "cut off");
    }
}
