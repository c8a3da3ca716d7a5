//! What to load from the records of each event, worked out once from its format.

use super::names::packed;
use super::states::StateTable;
use super::{Field, Format, Shape};
use schedlab_base::{Error, Interrupt, Result};

/// How to load one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// A signed one of four bytes, as nearly all are.
    Int(u16),
    /// Another: of the eight bytes that begin with it, without those beyond it.
    Any { at: u16, beyond: u8, signed: bool },
}

impl Number {
    fn of(field: &Field, event: &str) -> Result<Self> {
        let beyond = match (field.shape, field.size) {
            (Shape::Inline, size @ (1 | 2 | 4 | 8)) => 64 - 8 * size as u8,
            _ => {
                let what = format!("the field \"{}\" of {} bytes is no number", field.name, field.size);
                return Err(Error::input(what).key(event));
            }
        };
        let at = u16::try_from(field.offset).map_err(|_| Error::input("a field lies outside any record").key(event))?;
        Ok(match (field.size, field.signed) {
            (4, true) => Self::Int(at),
            (_, signed) => Self::Any { at, beyond, signed },
        })
    }

    /// The number. The caller has checked that the record has [`Plan::need`] bytes.
    #[inline(always)]
    pub(super) fn get(self, raw: &[u8]) -> i64 {
        match self {
            Self::Int(at) => {
                let four = raw[usize::from(at)..].first_chunk().expect("the record has all of the field");
                i64::from(i32::from_le_bytes(*four))
            }
            Self::Any { at, beyond, signed } => {
                let tail = &raw[usize::from(at)..];
                let eight = tail.first_chunk().map_or_else(|| at_the_end(tail), |eight| u64::from_le_bytes(*eight));
                let high = eight << beyond;
                if signed { high.cast_signed() >> beyond } else { (high >> beyond).cast_signed() }
            }
        }
    }
}

/// The number that fewer than eight bytes stand for.
#[cold]
fn at_the_end(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Where the bytes of a name are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// The event has no such field.
    Absent,
    /// Sixteen bytes in place. This is the common case and takes one load.
    Sixteen(u16),
    /// An array of another length.
    Array(u16, u16),
    /// Through the `__data_loc` word at `at`, whose offsets count from `base`.
    Loc { at: u16, base: u16 },
}

impl Text {
    fn of(format: &Format, name: &str) -> Result<Self> {
        let Some(field) = format.field(name) else { return Ok(Self::Absent) };
        let outside = || Error::input(format!("the field \"{name}\" lies outside any record")).key(&format.name);
        let at = u16::try_from(field.offset).map_err(|_| outside())?;
        let end = u16::try_from(field.offset + field.size).map_err(|_| outside())?;
        Ok(match field.shape {
            Shape::DataLoc => Self::Loc { at, base: 0 },
            Shape::RelLoc => Self::Loc { at, base: end },
            Shape::Array if field.size == 16 => Self::Sixteen(at),
            Shape::Array => Self::Array(at, end - at),
            Shape::Inline => {
                return Err(Error::input(format!("the field \"{name}\" is no string")).key(&format.name));
            }
        })
    }

    /// The bytes of the name, including those after its end, as one number that compares quickly; `None` if the event
    /// has no name or its name lies outside the record.
    #[inline(always)]
    pub(super) fn get(self, raw: &[u8]) -> Option<u128> {
        let bytes = match self {
            Self::Absent => return None,
            Self::Sixteen(at) => {
                let name = raw[usize::from(at)..].first_chunk().expect("the record has all of the field");
                return Some(u128::from_le_bytes(*name));
            }
            Self::Array(at, size) => &raw[usize::from(at)..][..usize::from(size)],
            Self::Loc { at, base } => {
                let word = &raw[usize::from(at)..];
                let start = usize::from(u16::from_le_bytes([word[0], word[1]])) + usize::from(base);
                let length = usize::from(u16::from_le_bytes([word[2], word[3]]));
                raw.get(start..start + length)?
            }
        };
        Some(packed(bytes))
    }
}

/// A task as an event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Task {
    pub(super) tid: Number,
    pub(super) comm: Text,
}

/// The fields of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Switch {
    pub(super) prev: Task,
    pub(super) prev_prio: Number,
    pub(super) state: Number,
    pub(super) next: Task,
    pub(super) next_prio: Number,
}

/// The fields of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waking {
    pub(super) task: Task,
    pub(super) prio: Number,
    pub(super) target: Option<Number>,
    pub(super) success: Option<Number>,
    /// `common_pid`: the task that was running.
    pub(super) current: Number,
    /// `common_flags`: among others, whether an interrupt was being handled.
    pub(super) flags: Option<Number>,
}

/// Fields of events that are most of a recording, where most kernels have them. What is loaded from places that are
/// known when this is compiled is loaded much faster.
pub(super) trait Usual: PartialEq + Sized + 'static {
    /// Where they are.
    const FIELDS: Self;
    /// As many bytes hold them.
    const SIZE: usize;
}

impl Usual for Switch {
    const FIELDS: Self = Self {
        prev: Task { tid: Number::Int(24), comm: Text::Sixteen(8) },
        prev_prio: Number::Int(28),
        state: Number::Any { at: 32, beyond: 0, signed: true },
        next: Task { tid: Number::Int(56), comm: Text::Sixteen(40) },
        next_prio: Number::Int(60),
    };
    const SIZE: usize = 64;
}

impl Usual for Waking {
    const FIELDS: Self = Self {
        task: Task { tid: Number::Int(24), comm: Text::Sixteen(8) },
        prio: Number::Int(28),
        target: Some(Number::Int(32)),
        success: None,
        current: Number::Int(4),
        flags: Some(Number::Any { at: 2, beyond: 56, signed: false }),
    };
    const SIZE: usize = 36;
}

/// What to load for each kind of event.
#[derive(Clone, Debug)]
pub(super) enum What {
    Switch(Switch, Box<StateTable>),
    Waking(Waking, Wake),
    Migrate { task: Task, prio: Number, from: Number, to: Number },
    Fork { parent: Task, child: Task },
    Exec { tid: Number, old: Option<Number> },
    Exit { task: Task, prio: Number },
    Interrupt { kind: Interrupt, number: Option<Number>, begins: bool },
    Frequency { target: Number, khz: Number },
    Signal { number: Number, handler: Number },
    Sent { number: Number, to: Number },
}

/// Which of the three wake-up events it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    Waking,
    Wakeup,
    New,
}

/// How to read one event's records.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) what: What,
    /// Whether the fields are where [`Usual`] has them.
    pub(super) usual: bool,
    /// `common_pid`: the task that was running.
    pub(super) current: Number,
    /// The length of the shortest record that holds every fixed field.
    pub(super) need: usize,
}

impl Plan {
    /// The plan for an event, or `None` for an event that is not of interest.
    pub(super) fn of(format: &Format) -> Result<Option<Self>> {
        let number = |name: &str| Number::of(format.need(name)?, &format.name);
        let maybe = |name: &str| format.field(name).map(|f| Number::of(f, &format.name)).transpose();
        let task = |tid: &str, comm: &str| Ok::<_, Error>(Task { tid: number(tid)?, comm: Text::of(format, comm)? });
        let current = number("common_pid")?;
        let what = match format.name.as_str() {
            "sched_switch" => {
                let fields = Switch {
                    prev: task("prev_pid", "prev_comm")?,
                    prev_prio: number("prev_prio")?,
                    state: number("prev_state")?,
                    next: task("next_pid", "next_comm")?,
                    next_prio: number("next_prio")?,
                };
                What::Switch(fields, Box::new(StateTable::of_print_fmt(&format.print_fmt)))
            }
            name @ ("sched_waking" | "sched_wakeup" | "sched_wakeup_new") => {
                let fields = Waking {
                    task: task("pid", "comm")?,
                    prio: number("prio")?,
                    target: maybe("target_cpu")?,
                    success: maybe("success")?,
                    current,
                    flags: maybe("common_flags")?,
                };
                let kind = match name {
                    "sched_waking" => Wake::Waking,
                    "sched_wakeup" => Wake::Wakeup,
                    _ => Wake::New,
                };
                What::Waking(fields, kind)
            }
            "sched_migrate_task" => What::Migrate {
                task: task("pid", "comm")?,
                prio: number("prio")?,
                from: number("orig_cpu")?,
                to: number("dest_cpu")?,
            },
            "sched_process_fork" => {
                What::Fork { parent: task("parent_pid", "parent_comm")?, child: task("child_pid", "child_comm")? }
            }
            "sched_process_exec" => What::Exec { tid: number("pid")?, old: maybe("old_pid")? },
            "sched_process_exit" => What::Exit { task: task("pid", "comm")?, prio: number("prio")? },
            "signal_generate" => What::Sent { number: number("sig")?, to: number("pid")? },
            "signal_deliver" => What::Signal { number: number("sig")?, handler: number("sa_handler")? },
            "cpu_frequency" => What::Frequency { target: number("cpu_id")?, khz: number("state")? },
            name => match interrupt(name) {
                Some((kind, field, begins)) => What::Interrupt { kind, number: field.map(number).transpose()?, begins },
                None => return Ok(None),
            },
        };
        let need = format.fields.iter().map(|f| (f.offset + f.size) as usize).max().unwrap_or(0);
        let usual = match &what {
            What::Switch(fields, _) => *fields == Usual::FIELDS,
            What::Waking(fields, _) => *fields == Usual::FIELDS,
            _ => false,
        };
        Ok(Some(Self { what, usual, current, need }))
    }
}

/// The kind of interrupt that a tracepoint belongs to, the field with its number, and whether it begins there.
fn interrupt(name: &str) -> Option<(Interrupt, Option<&'static str>, bool)> {
    Some(match name {
        "irq_handler_entry" => (Interrupt::Irq, Some("irq"), true),
        "irq_handler_exit" => (Interrupt::Irq, Some("irq"), false),
        "softirq_entry" => (Interrupt::SoftIrq, Some("vec"), true),
        "softirq_exit" => (Interrupt::SoftIrq, Some("vec"), false),
        "local_timer_entry" => (Interrupt::Timer, None, true),
        "local_timer_exit" => (Interrupt::Timer, None, false),
        _ => return None,
    })
}
