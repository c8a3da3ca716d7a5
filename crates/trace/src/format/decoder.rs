//! Turns a tracepoint's raw record into a scheduling event.

use super::Format;
use super::interrupts::Interrupts;
use super::names::{Names, TID_END, packed};
use super::plan::{Plan, Switch, Task, Usual, Wake, Waking, What};
use super::states::StateTable;
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
    signals: Signals,
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

    /// The event of a CPU's new frequency, as system and name, which is decoded where it is recorded.
    pub const FREQUENCY: (&'static str, &'static str) = ("power", "cpu_frequency");

    /// The events of signals, as system and name, which are decoded where they are recorded and the signal ends a task.
    pub const SIGNALS: [(&'static str, &'static str); 2] =
        [("signal", "signal_generate"), ("signal", "signal_deliver")];

    /// Creates a decoder for the kernel that has these formats. Formats of other events are ignored.
    ///
    /// # Errors
    /// When the format of a scheduling event lacks a required field.
    pub fn new(formats: impl IntoIterator<Item = Format>) -> Result<Self> {
        let mut decoder = Self {
            plans: Vec::new(),
            names: Names::default(),
            interrupts: Interrupts::default(),
            signals: Signals::default(),
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
        system == "sched" && Self::EVENTS.contains(&event)
            || Self::INTERRUPTS.contains(&(system, event))
            || Self::SIGNALS.contains(&(system, event))
            || Self::FREQUENCY == (system, event)
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
            What::Sent { number, to } => {
                self.signals.sent(cpu, plan.current.get(raw), to.get(raw), number.get(raw));
                return None;
            }
            What::Signal { number, handler } if handler.get(raw) == 0 => {
                self.signals.reaches(cpu, plan.current.get(raw), number.get(raw))
            }
            _ => payload(plan, raw, cpu, &mut Seeing { names: &mut self.names, time, on_name: &mut on_name }),
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

/// Takes the names that a record holds.
struct Seeing<'a, F> {
    names: &'a mut Names,
    time: Nanos,
    on_name: &'a mut F,
}

impl<F: FnMut(&NameRecord)> Seeing<'_, F> {
    /// The task that a record names, whose name is seen.
    #[inline(always)]
    fn task(&mut self, task: &Task, raw: &[u8]) -> Result<Tid, Damaged> {
        let tid = tid(task.tid.get(raw))?;
        if let Some(name) = task.comm.get(raw) {
            self.names.see(self.time, tid, name, self.on_name);
        }
        Ok(tid)
    }

    #[inline(always)]
    fn switch(&mut self, fields: &Switch, states: &StateTable, raw: &[u8]) -> Result<Option<Payload>, Damaged> {
        Ok(Some(Payload::Switch {
            prev: self.task(&fields.prev, raw)?,
            prev_prio: prio(fields.prev_prio.get(raw)),
            prev_state: states.state(fields.state.get(raw) as u64),
            next: self.task(&fields.next, raw)?,
            next_prio: prio(fields.next_prio.get(raw)),
        }))
    }

    /// A wake-up; `None` if it woke no task.
    #[inline(always)]
    fn waking(&mut self, fields: &Waking, kind: Wake, raw: &[u8], here: CpuId) -> Result<Option<Payload>, Damaged> {
        if fields.success.is_some_and(|success| success.get(raw) == 0) {
            return Ok(None);
        }
        let (woken, prio) = (self.task(&fields.task, raw)?, prio(fields.prio.get(raw)));
        let target = fields.target.map_or(Ok(here), |t| cpu(t.get(raw)))?;
        Ok(Some(match kind {
            Wake::Waking => {
                let context = fields.flags.map_or(Context::Unknown, |flags| Context::of_flags(flags.get(raw) as u8));
                Payload::Waking { tid: woken, prio, target, waker: tid(fields.current.get(raw))?, context }
            }
            Wake::Wakeup => Payload::Wakeup { tid: woken, prio, target },
            Wake::New => Payload::WakeupNew { tid: woken, prio, target },
        }))
    }
}

/// The bytes of the fields, if these are where [`Usual`] has them.
#[inline(always)]
fn usual<'a, F: Usual, const SIZE: usize>(plan: &Plan, _: &F, raw: &'a [u8]) -> Option<&'a [u8; SIZE]> {
    const { assert!(SIZE == F::SIZE) };
    if plan.usual { raw.first_chunk() } else { None }
}

/// The payload of a record; `None` for a wake-up that woke no task.
#[inline(always)]
fn payload<F: FnMut(&NameRecord)>(
    plan: &Plan,
    raw: &[u8],
    here: CpuId,
    seeing: &mut Seeing<F>,
) -> Result<Option<Payload>, Damaged> {
    Ok(Some(match &plan.what {
        What::Switch(fields, states) => {
            return match usual::<_, { Switch::SIZE }>(plan, fields, raw) {
                Some(raw) => seeing.switch(&Usual::FIELDS, states, raw),
                None => seeing.switch(fields, states, raw),
            };
        }
        What::Waking(fields, kind) => {
            return match usual::<_, { Waking::SIZE }>(plan, fields, raw) {
                Some(raw) => seeing.waking(&Usual::FIELDS, *kind, raw, here),
                None => seeing.waking(fields, *kind, raw, here),
            };
        }
        What::Migrate { task, prio: p, from, to } => Payload::Migrate {
            tid: seeing.task(task, raw)?,
            prio: prio(p.get(raw)),
            from: cpu(from.get(raw))?,
            to: cpu(to.get(raw))?,
        },
        What::Fork { parent, child } => {
            Payload::Fork { parent: seeing.task(parent, raw)?, child: seeing.task(child, raw)? }
        }
        What::Exec { tid: t, old } => {
            let tid_ = tid(t.get(raw))?;
            Payload::Exec { tid: tid_, old: old.map_or(Ok(tid_), |o| tid(o.get(raw)))? }
        }
        What::Exit { task, prio: p } => Payload::Exit { tid: seeing.task(task, raw)?, prio: prio(p.get(raw)) },
        What::Frequency { target, khz } => {
            let khz = u32::try_from(khz.get(raw)).map_err(|_| Damaged)?;
            Payload::Frequency { target: cpu(target.get(raw))?, khz }
        }
        What::Interrupt { .. } | What::Signal { .. } | What::Sent { .. } => return Ok(None),
    }))
}

/// The signals that tasks bring upon themselves.
#[derive(Debug, Default)]
struct Signals {
    /// The last one that was sent on each CPU to the task that was running: the task and its number.
    own: Vec<(i64, i64)>,
}

impl Signals {
    /// A signal was sent to a task while `current` was running.
    fn sent(&mut self, cpu: CpuId, current: i64, to: i64, number: i64) {
        if current == to && i64::from(cpu) < CPU_END {
            if self.own.len() <= cpu as usize {
                self.own.resize(cpu as usize + 1, (0, 0));
            }
            self.own[cpu as usize] = (to, number);
        }
    }

    /// A signal reaches a task that does not handle it. It ends the task unless it is SIGCHLD, SIGCONT, one that stops
    /// it (SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU), SIGURG or SIGWINCH. SIGKILL stands for every signal that ends a process
    /// without a core dump, since its threads end by that one.
    fn reaches(&mut self, cpu: CpuId, current: i64, number: i64) -> Result<Option<Payload>, Damaged> {
        const SIGKILL: i64 = 9;
        let own = self.own.get(cpu as usize).filter(|(task, _)| number == SIGKILL && *task == current);
        let number = own.map_or(number, |(_, sent)| *sent);
        let signal = u16::try_from(number).map_err(|_| Damaged)?;
        let what = Payload::Killed { tid: tid(current)?, signal };
        Ok(Some(what).filter(|_| !matches!(signal, 17..=23 | 28)))
    }
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
