//! Turns a tracepoint's raw record into a scheduling event.

use super::Format;
use super::interrupts::Interrupts;
use super::names::{Names, TID_END, packed};
use super::plan::{Plan, Task, Wake, What};
use schedlab_base::{Context, CpuId, Error, Event, NameRecord, Nanos, Payload, Result, Tid};

/// No kernel is built for this many CPUs; a CPU number from here on means damage.
const CPU_END: i64 = 1 << 16;

/// How many records were decoded, ignored or damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Records decoded into an event.
    pub(crate) decoded: u64,
    /// Records of events that are not of interest, or whose id is in no format.
    pub(crate) other: u64,
    /// Records that are too short for their format, or have a thread id or CPU that no kernel has.
    pub(crate) malformed: u64,
}

/// Decodes the records of one kernel, which are little-endian.
///
/// ```
/// # use schedlab_trace::format::{Decoder, Format};
/// let text = "name: sched_process_exec\nID: 9\nformat:\n\
///     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
///     \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
///     \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n";
/// let mut decoder = Decoder::new([Format::parse(text)?])?;
/// let event = decoder.decode(3, 1000, &[9, 0, 0, 0, 42, 0, 0, 0, 42, 0, 0, 0], |_| {});
/// assert_eq!(event.map(|e| e.time), Some(1000));
/// # Ok::<(), schedlab_base::Error>(())
/// ```
pub struct Decoder {
    /// Indexed by the event's id.
    plans: Vec<Option<Box<Plan>>>,
    names: Names,
    interrupts: Interrupts,
    counts: Counts,
}

impl Decoder {
    /// The events that are decoded.
    pub const EVENTS: [&'static str; 8] = [
        "sched_switch",
        "sched_waking",
        "sched_wakeup",
        "sched_wakeup_new",
        "sched_migrate_task",
        "sched_process_fork",
        "sched_process_exec",
        "sched_process_exit",
    ];

    /// The events at the beginning and the end of interrupts, as system and name, which are decoded where they are
    /// recorded. The last two are those of x86.
    pub const INTERRUPTS: [(&'static str, &'static str); 6] = [
        ("irq", "irq_handler_entry"),
        ("irq", "irq_handler_exit"),
        ("irq", "softirq_entry"),
        ("irq", "softirq_exit"),
        ("irq_vectors", "local_timer_entry"),
        ("irq_vectors", "local_timer_exit"),
    ];

    /// Creates a decoder for the kernel that has these formats. Formats of other events are ignored.
    ///
    /// # Errors
    /// When the format of a scheduling event lacks a required field.
    pub fn new(formats: impl IntoIterator<Item = Format>) -> Result<Self> {
        let mut decoder = Self {
            plans: Vec::new(),
            names: Names::default(),
            interrupts: Interrupts::default(),
            counts: Counts::default(),
        };
        for format in formats {
            let Some(plan) = Plan::of(&format)? else { continue };
            if format.field("common_type").is_none_or(|f| f.offset != 0 || f.size != 2) {
                let what = "the record does not begin with the 16-bit field \"common_type\"";
                return Err(Error::input(what).key(format.name));
            }
            let id = usize::from(format.id);
            if decoder.plans.len() <= id {
                decoder.plans.resize_with(id + 1, || None);
            }
            decoder.plans[id] = Some(Box::new(plan));
        }
        Ok(decoder)
    }

    /// Whether events with this system and name are decoded, on any kernel.
    #[must_use]
    pub(crate) fn wants(system: &str, event: &str) -> bool {
        system == "sched" && Self::EVENTS.contains(&event) || Self::INTERRUPTS.contains(&(system, event))
    }

    /// Whether records with this id are decoded.
    #[must_use]
    #[inline]
    pub(crate) fn knows(&self, id: u64) -> bool {
        self.plans.get(id as usize).is_some_and(Option::is_some)
    }

    /// The task that was running when the record was written, as the record itself states (`common_pid`); `None` for
    /// records that are not decoded.
    #[must_use]
    pub(crate) fn current(&self, raw: &[u8]) -> Option<Tid> {
        let id = u16::from_le_bytes(*raw.first_chunk()?);
        let plan = self.plans.get(usize::from(id))?.as_ref()?;
        (raw.len() >= plan.need).then(|| plan.current.get(raw) as Tid)
    }

    /// The counts of all records so far.
    #[must_use]
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes a name that the recorder learned in another way (from `/proc`, or from a record of its own). Reports it to
    /// `on_name` if it is new, and compares the names in later events with it.
    pub(crate) fn named(&mut self, time: Nanos, tid: Tid, comm: &[u8], mut on_name: impl FnMut(&NameRecord)) {
        self.names.see(time, tid, packed(comm), &mut on_name);
    }

    /// Takes the process that a thread belongs to. If that is new and the thread's name is known, the name is reported
    /// again.
    #[inline(always)]
    pub(crate) fn belongs(&mut self, time: Nanos, tid: Tid, tgid: Tid, mut on_name: impl FnMut(&NameRecord)) {
        self.names.belongs(time, tid, tgid, &mut on_name);
    }

    /// Decodes one record, which begins with `common_type` and which `cpu` wrote at `time`. A name that is new for its
    /// task goes to `on_name` first. Returns `None` for a record that yields no event. Bytes after the
    /// last field are ignored, because recorders pad records.
    #[inline(always)]
    pub fn decode(
        &mut self,
        cpu: CpuId,
        time: Nanos,
        raw: &[u8],
        mut on_name: impl FnMut(&NameRecord),
    ) -> Option<Event> {
        let [low, high, ..] = *raw else {
            self.counts.malformed += 1;
            return None;
        };
        let id = u16::from_le_bytes([low, high]);
        let Some(Some(plan)) = self.plans.get(usize::from(id)) else {
            self.counts.other += 1;
            return None;
        };
        if raw.len() < plan.need {
            self.counts.malformed += 1;
            return None;
        }
        let decoded = match &plan.what {
            What::Interrupt { kind, number, begins } => {
                let what = (*kind, number.map_or(0, |number| number.get(raw).clamp(0, 0xffff) as u16));
                if *begins {
                    self.interrupts.begins(cpu, what, time);
                    return None;
                }
                Ok(self.interrupts.ends(cpu, what, time))
            }
            _ => payload(plan, raw, cpu, |tid, name| self.names.see(time, tid, name, &mut on_name)),
        };
        match decoded {
            Ok(Some(what)) => {
                self.counts.decoded += 1;
                Some(Event { time, cpu, what })
            }
            Ok(None) => {
                self.counts.other += 1;
                None
            }
            Err(Damaged) => {
                self.counts.malformed += 1;
                None
            }
        }
    }
}

/// A field has a value that no kernel writes.
struct Damaged;

/// The payload of a record; `None` for a wake-up that woke no task.
#[inline(always)]
fn payload(plan: &Plan, raw: &[u8], here: CpuId, mut see: impl FnMut(Tid, u128)) -> Result<Option<Payload>, Damaged> {
    Ok(Some(match &plan.what {
        What::Switch { prev, prev_prio, state, next, next_prio, states } => Payload::Switch {
            prev: seen(prev, raw, &mut see)?,
            prev_prio: prio(prev_prio.get(raw)),
            prev_state: states.state(state.get(raw) as u64),
            next: seen(next, raw, &mut see)?,
            next_prio: prio(next_prio.get(raw)),
        },
        What::Waking { success: Some(success), .. } if success.get(raw) == 0 => return Ok(None),
        What::Waking { task: woken, prio: p, target, kind, .. } => {
            let (tid_, prio) = (seen(woken, raw, &mut see)?, prio(p.get(raw)));
            let target = target.map_or(Ok(here), |t| cpu(t.get(raw)))?;
            match kind {
                Wake::Waking => {
                    let context = plan.flags.map_or(Context::Unknown, |flags| Context::of_flags(flags.get(raw) as u8));
                    Payload::Waking { tid: tid_, prio, target, waker: tid(plan.current.get(raw))?, context }
                }
                Wake::Wakeup => Payload::Wakeup { tid: tid_, prio, target },
                Wake::New => Payload::WakeupNew { tid: tid_, prio, target },
            }
        }
        What::Migrate { task: moved, prio: p, from, to } => Payload::Migrate {
            tid: seen(moved, raw, &mut see)?,
            prio: prio(p.get(raw)),
            from: cpu(from.get(raw))?,
            to: cpu(to.get(raw))?,
        },
        What::Fork { parent, child } => {
            Payload::Fork { parent: seen(parent, raw, &mut see)?, child: seen(child, raw, &mut see)? }
        }
        What::Exec { tid: t, old } => {
            let tid_ = tid(t.get(raw))?;
            Payload::Exec { tid: tid_, old: old.map_or(Ok(tid_), |o| tid(o.get(raw)))? }
        }
        What::Exit { task: ended, prio: p } => {
            Payload::Exit { tid: seen(ended, raw, &mut see)?, prio: prio(p.get(raw)) }
        }
        What::Interrupt { .. } => return Ok(None),
    }))
}

/// The task that a record names, whose name is seen.
#[inline(always)]
fn seen(task: &Task, raw: &[u8], see: &mut impl FnMut(Tid, u128)) -> Result<Tid, Damaged> {
    let tid = tid(task.tid.get(raw))?;
    if let Some(name) = task.comm.get(raw) {
        see(tid, name);
    }
    Ok(tid)
}

#[inline(always)]
fn tid(value: i64) -> Result<Tid, Damaged> {
    if (0..TID_END).contains(&value) { Ok(value as Tid) } else { Err(Damaged) }
}

#[inline(always)]
fn cpu(value: i64) -> Result<CpuId, Damaged> {
    if (0..CPU_END).contains(&value) { Ok(value as CpuId) } else { Err(Damaged) }
}

#[inline(always)]
fn prio(value: i64) -> i16 {
    value.clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
