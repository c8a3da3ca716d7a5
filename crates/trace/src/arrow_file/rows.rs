//! Turns the rows of a batch into events and names.

use super::body::{Batch, Column, Inflate};
use super::layout::Layout;
use super::plain::{BLOCK, Plain};
use super::schema::{COLUMNS, CONTEXTS, Col, KINDS, Kind, STATES, Type};
use super::{MAX_NAME, MAX_PROPERTIES, MAX_TID};
use crate::source::ReadReport;
use schedlab_base::{
    AffinityRecord, Context, CpuList, Event, GroupProperties, GroupRecord, Ignored, Interrupt, Looking, NOWHERE,
    NameRecord, Nanos, Payload, Sink, Sleep, TaskProperties, TaskRecord, TaskState, Tid,
};
use serde::de::DeserializeOwned;

/// Events are passed on in portions of about this size, which stay in the cache.
const PORTION: usize = 512;

/// The meanings of the 8-bit indices of a dictionary; `None` for a text that this version does not know.
pub(super) type Dictionary<T> = [Option<T>; 256];

/// The columns that have a dictionary.
pub(super) const DICTIONARIES: [Col; 3] = [Col::Event, Col::State, Col::Context];
/// How many indices of each of them the file has defined.
pub(super) type Defined = [usize; DICTIONARIES.len()];

/// What a dictionary's text stands for; `None` if this version does not know it.
fn meaning<T: Copy>(known: &[(T, &str)], text: &str) -> Option<T> {
    known.iter().find(|(_, name)| *name == text).map(|(meaning, _)| *meaning)
}

/// Decodes batches. Its buffers are reused from batch to batch.
pub(super) struct Rows {
    columns: [Column; COLUMNS.len()],
    inflate: Inflate,
    pub(super) kinds: Dictionary<Kind>,
    pub(super) states: Dictionary<TaskState>,
    pub(super) contexts: Dictionary<Context>,
    /// How many indices of each dictionary the file has defined.
    pub(super) defined: Defined,
    events: Vec<Event>,
    last: Nanos,
    rows: u64,
}

impl Rows {
    pub(super) fn new() -> Self {
        Self {
            columns: Default::default(),
            inflate: Inflate::new(),
            kinds: [None; 256],
            states: [None; 256],
            contexts: [None; 256],
            defined: Defined::default(),
            events: Vec::with_capacity(PORTION + BLOCK),
            last: 0,
            rows: 0,
        }
    }

    /// Takes a batch of texts of a dictionary column.
    pub(super) fn define(&mut self, which: Col, batch: &Batch<'_>, delta: bool) -> Result<(), String> {
        let slot = DICTIONARIES.iter().position(|col| *col == which).ok_or("it is of no column")?;
        let first = if delta { self.defined[slot] } else { 0 };
        if first + batch.rows > 256 {
            return Err(format!("a dictionary has {} texts; the limit is 256", first + batch.rows));
        }
        if !delta {
            match which {
                Col::Event => self.kinds = [None; 256],
                Col::State => self.states = [None; 256],
                _ => self.contexts = [None; 256],
            }
        }
        let mut texts = Column::default();
        texts.load_text(batch, 0, &mut self.inflate)?;
        for row in 0..batch.rows {
            let text = texts.text(row)?.ok_or("a dictionary's text is missing")?;
            let at = first + row;
            match which {
                Col::Event => self.kinds[at] = meaning(&KINDS, text),
                Col::State => self.states[at] = meaning(&STATES, text),
                _ => self.contexts[at] = meaning(&CONTEXTS, text),
            }
        }
        self.defined[slot] = first + batch.rows;
        Ok(())
    }

    /// Decodes a batch and passes its events and names to the sink.
    pub(super) fn decode(
        &mut self,
        batch: &Batch<'_>,
        layout: &Layout,
        sink: &mut dyn Sink,
        report: &mut ReadReport,
    ) -> Result<(), String> {
        let ignored = sink.ignores();
        for (at, &(name, column, nullable)) in COLUMNS.iter().enumerate() {
            let Some(place) = layout.places[at].filter(|_| !(ignored.wakers && at == Col::Context as usize)) else {
                self.columns[at].lack(batch.rows);
                continue;
            };
            if let Type::Int { bytes, .. } = column
                && self.may_skip(at, ignored)
            {
                self.columns[at].fill(batch.rows, bytes);
                continue;
            }
            let (buffer, inflate) = (place.buffer, &mut self.inflate);
            let loaded = match column {
                Type::Int { bytes, .. } => self.columns[at].load(batch, buffer, (bytes, nullable), inflate),
                Type::Dictionary => self.columns[at].load(batch, buffer, (1, nullable), inflate),
                Type::Text => self.columns[at].load_text(batch, buffer, inflate),
            };
            loaded.map_err(|what| format!("column {name}: {what}"))?;
            if !nullable && !(0..batch.rows).all(|row| self.columns[at].is_valid(row)) {
                return Err(format!("column {name} has a row without a value"));
            }
        }
        let mut events = std::mem::take(&mut self.events);
        let done = self.rows(batch.rows, &mut events, sink, report);
        // The rows before a damaged row are valid.
        hand_on(&mut events, sink, report);
        self.events = events;
        self.rows += batch.rows as u64;
        done
    }

    /// Whether nobody looks at this column of the present batch, whose kinds are loaded.
    fn may_skip(&self, column: usize, ignored: Ignored) -> bool {
        if column == Col::Prio as usize || column == Col::NextPrio as usize {
            return ignored.priorities;
        }
        // A row of these kinds names another task than a waker.
        let needs = self.kinds.map(|kind| matches!(kind, Some(Kind::Fork | Kind::Exec)));
        let kinds = self.columns[Col::Event as usize].values::<1>();
        column == Col::OtherTid as usize
            && ignored.wakers
            && !kinds.iter().fold(false, |any, [kind]| any | needs[usize::from(*kind)])
    }

    fn rows(
        &mut self,
        rows: usize,
        events: &mut Vec<Event>,
        sink: &mut dyn Sink,
        report: &mut ReadReport,
    ) -> Result<(), String> {
        let view = View::new(&self.columns, &self.states, &self.contexts, self.defined);
        let plain = Plain::new(&self.columns, rows, (&self.kinds, &self.states, &self.contexts));
        let mut last = self.last;
        for first in (0..rows).step_by(BLOCK) {
            let complete = plain.complete(first / BLOCK);
            for row in first..rows.min(first + BLOCK) {
                if let Some(event) = plain.event(&complete, row, last) {
                    last = event.time;
                    events.push(event);
                } else {
                    self.row(&view, row, &mut last, events, sink, report)
                        .map_err(|what| format!("row {}: {what}", self.rows + row as u64 + 1))?;
                }
            }
            if events.len() >= PORTION {
                hand_on(events, sink, report);
            }
        }
        self.last = last;
        Ok(())
    }

    /// Takes any row, or says what is wrong with it.
    #[cold]
    fn row(
        &self,
        view: &View<'_>,
        row: usize,
        last: &mut Nanos,
        events: &mut Vec<Event>,
        sink: &mut dyn Sink,
        report: &mut ReadReport,
    ) -> Result<(), String> {
        let index = view.event[row][0];
        if usize::from(index) >= self.defined[0] {
            return Err(format!("the event's index {index} is not in its dictionary"));
        }
        let Some(kind) = self.kinds[usize::from(index)] else {
            report.skipped += 1;
            return Ok(());
        };
        if matches!(kind, Kind::Name | Kind::Affinity | Kind::Task | Kind::Group) {
            hand_on(events, sink, report);
            match kind {
                Kind::Affinity => sink.affinity(&self.affinity(view, row)?),
                Kind::Task => sink.task(&self.task(view, row)?),
                Kind::Group => sink.group(&self.group(view, row)?),
                _ => {
                    sink.name(&self.name(view, row)?);
                    report.names += 1;
                }
            }
            return Ok(());
        }
        let time = u64::from_le_bytes(view.time[row]);
        if time < *last {
            return Err(format!("time goes back by {} ns, to {time} ns", *last - time));
        }
        *last = time;
        let cpu = u32::from(u16::from_le_bytes(view.cpu[row]));
        match kind {
            Kind::End => {
                hand_on(events, sink, report);
                sink.lasts(time);
            }
            Kind::Considered => match self.considered(view, row)? {
                Some(words) => events.extend(words.into_iter().map(|what| Event { time, cpu, what })),
                None => report.skipped += 1,
            },
            kind => {
                let payload = match kind {
                    Kind::Interrupt => self.interrupt(view, row)?,
                    Kind::Sleeps => self.sleeps(view, row)?,
                    Kind::Killed => Some(killed(view, row)?),
                    kind => view.payload(kind, row)?,
                };
                match payload {
                    Some(what) => events.push(Event { time, cpu, what }),
                    None => report.skipped += 1,
                }
            }
        }
        Ok(())
    }

    fn cpus(&self, row: usize) -> Result<CpuList, String> {
        let text = self.columns[Col::Cpus as usize].text(row)?.ok_or("a value that its event needs is missing")?;
        text.parse().map_err(|e: schedlab_base::Error| e.to_string())
    }

    fn affinity(&self, view: &View<'_>, row: usize) -> Result<AffinityRecord, String> {
        let time = u64::from_le_bytes(view.time[row]);
        Ok(AffinityRecord { time, tid: view.tid(Col::Tid, row)?, cpus: self.cpus(row)? })
    }

    fn task(&self, view: &View<'_>, row: usize) -> Result<TaskRecord, String> {
        let properties: TaskProperties = self.properties(row)?;
        properties.check().map_err(|what| format!("the properties: {what}"))?;
        let time = u64::from_le_bytes(view.time[row]);
        Ok(TaskRecord { time, tid: view.tid(Col::Tid, row)?, properties })
    }

    fn group(&self, view: &View<'_>, row: usize) -> Result<GroupRecord, String> {
        let properties: GroupProperties = self.properties(row)?;
        properties.check().map_err(|what| format!("the properties: {what}"))?;
        let path = self.columns[Col::Cgroup as usize].text(row)?.ok_or("a cgroup without a path")?;
        if path.len() > MAX_NAME {
            return Err(format!("a text has more than {MAX_NAME} bytes"));
        }
        Ok(GroupRecord { time: u64::from_le_bytes(view.time[row]), path: path.to_owned(), properties })
    }

    fn properties<T: DeserializeOwned>(&self, row: usize) -> Result<T, String> {
        let text = self.columns[Col::Properties as usize].text(row)?.ok_or("a row without properties")?;
        if text.len() > MAX_PROPERTIES {
            return Err(format!("the properties have more than {MAX_PROPERTIES} bytes"));
        }
        if !text.starts_with('{') {
            return Err("the properties are no JSON object".to_owned());
        }
        serde_json::from_str(text).map_err(|e| format!("the properties: {e}"))
    }

    /// The examined CPUs, as one event for each 64 of them; `None` if this version does not know the reason.
    fn considered(&self, view: &View<'_>, row: usize) -> Result<Option<Vec<Payload>>, String> {
        let why = self.columns[Col::Why as usize].text(row)?.ok_or("a value that its event needs is missing")?;
        let Some(why) = Looking::from_name(why) else { return Ok(None) };
        let tid = view.tid(Col::Tid, row)?;
        let mut words: Vec<(u16, u64)> = Vec::new();
        for cpu in self.cpus(row)?.iter() {
            let word = (cpu / 64) as u16;
            if words.last().is_none_or(|(last, _)| *last != word) {
                words.push((word, 0));
            }
            if let Some((_, mask)) = words.last_mut() {
                *mask |= 1 << (cpu % 64);
            }
        }
        Ok(Some(words.into_iter().map(|(word, mask)| Payload::Considered { why, tid, word, mask }).collect()))
    }

    /// An interrupt; `None` if this version does not know its kind.
    fn interrupt(&self, view: &View<'_>, row: usize) -> Result<Option<Payload>, &'static str> {
        let kind = self.columns[Col::Why as usize].text(row).map_err(|_| "the interrupt's kind cannot be read")?;
        let kind = Interrupt::from_name(kind.ok_or("an interrupt without a kind")?);
        let number = u16::from_le_bytes(view.value(Col::Number, row)?);
        let took = u64::from_le_bytes(view.value(Col::Took, row)?);
        Ok(kind.map(|kind| Payload::Interrupt { kind, number, took }))
    }

    /// What a task sleeps for; `None` if this version does not know it.
    fn sleeps(&self, view: &View<'_>, row: usize) -> Result<Option<Payload>, &'static str> {
        let why = self.columns[Col::Why as usize].text(row).map_err(|_| "the reason of a sleep cannot be read")?;
        let (why, tid) = (Sleep::from_name(why.ok_or("a sleep without a reason")?), view.tid(Col::Tid, row)?);
        Ok(why.map(|why| Payload::Sleeps { tid, why }))
    }

    fn name(&self, view: &View<'_>, row: usize) -> Result<NameRecord, String> {
        let text = |col: Col| -> Result<Option<String>, String> {
            match self.columns[col as usize].text(row)? {
                Some(text) if text.len() > MAX_NAME => Err(format!("a text has more than {MAX_NAME} bytes")),
                text => Ok(text.map(str::to_owned)),
            }
        };
        let tgid = &self.columns[Col::Tgid as usize];
        Ok(NameRecord {
            time: u64::from_le_bytes(view.time[row]),
            tid: view.tid(Col::Tid, row)?,
            tgid: tgid.is_valid(row).then(|| i32::from_le_bytes(tgid.values::<4>()[row])),
            comm: text(Col::Comm)?.ok_or("a name without a comm")?,
            cgroup: text(Col::Cgroup)?,
        })
    }
}

fn hand_on(events: &mut Vec<Event>, sink: &mut dyn Sink, report: &mut ReadReport) {
    if !events.is_empty() {
        report.events += events.len() as u64;
        sink.events(events);
        events.clear();
    }
}

/// The columns of a batch as slices, each as long as the batch.
struct View<'a> {
    columns: &'a [Column; COLUMNS.len()],
    states: &'a Dictionary<TaskState>,
    contexts: &'a Dictionary<Context>,
    defined: Defined,
    time: &'a [[u8; 8]],
    cpu: &'a [[u8; 2]],
    event: &'a [[u8; 1]],
}

impl<'a> View<'a> {
    fn new(
        columns: &'a [Column; COLUMNS.len()],
        states: &'a Dictionary<TaskState>,
        contexts: &'a Dictionary<Context>,
        defined: Defined,
    ) -> Self {
        Self {
            columns,
            states,
            contexts,
            defined,
            time: columns[Col::Time as usize].values(),
            cpu: columns[Col::Cpu as usize].values(),
            event: columns[Col::Event as usize].values(),
        }
    }

    #[inline]
    fn value<const N: usize>(&self, col: Col, row: usize) -> Result<[u8; N], &'static str> {
        let column = &self.columns[col as usize];
        if !column.is_valid(row) {
            return Err("a value that its event needs is missing");
        }
        Ok(column.values::<N>()[row])
    }

    #[inline]
    fn tid(&self, col: Col, row: usize) -> Result<Tid, &'static str> {
        match i32::from_le_bytes(self.value(col, row)?) {
            tid @ 0..=MAX_TID => Ok(tid),
            _ => Err("a thread id is out of range (0 to 4194304)"),
        }
    }

    #[inline]
    fn prio(&self, col: Col, row: usize) -> Result<i16, &'static str> {
        self.value(col, row).map(i16::from_le_bytes)
    }

    /// A node, or [`NOWHERE`] where the row has none.
    fn node(&self, col: Col, row: usize) -> u16 {
        self.value(col, row).map_or(NOWHERE, u16::from_le_bytes)
    }

    #[inline]
    fn cpu(&self, col: Col, row: usize) -> Result<u32, &'static str> {
        self.value(col, row).map(|bytes| u32::from(u16::from_le_bytes(bytes)))
    }

    /// A number of eight bytes that must fit into four; `beyond` says that it does not.
    fn four_bytes(&self, col: Col, row: usize, beyond: &'static str) -> Result<u32, &'static str> {
        u64::from_le_bytes(self.value(col, row)?).try_into().map_err(|_| beyond)
    }

    /// The context of a waking; unknown where the row has none, or one that this version does not know.
    #[inline]
    fn context(&self, row: usize) -> Result<Context, &'static str> {
        let column = &self.columns[Col::Context as usize];
        if !column.is_valid(row) {
            return Ok(Context::Unknown);
        }
        let index = usize::from(column.values::<1>()[row][0]);
        if index >= self.defined[2] {
            return Err("the context's index is not in its dictionary");
        }
        Ok(self.contexts[index].unwrap_or_default())
    }

    /// The event of a row; `None` if this version does not know the task state.
    #[inline]
    fn payload(&self, kind: Kind, row: usize) -> Result<Option<Payload>, &'static str> {
        let tid = |col| self.tid(col, row);
        let prio = |col| self.prio(col, row);
        let cpu = |col| self.cpu(col, row);
        Ok(Some(match kind {
            Kind::Switch => {
                let [state] = self.value(Col::State, row)?;
                let Some(prev_state) = self.states[usize::from(state)] else {
                    let known = usize::from(state) < self.defined[1];
                    return if known { Ok(None) } else { Err("the state's index is not in its dictionary") };
                };
                Payload::Switch {
                    prev: tid(Col::Tid)?,
                    prev_prio: prio(Col::Prio)?,
                    prev_state,
                    next: tid(Col::NextTid)?,
                    next_prio: prio(Col::NextPrio)?,
                }
            }
            Kind::Waking => Payload::Waking {
                tid: tid(Col::Tid)?,
                prio: prio(Col::Prio)?,
                target: cpu(Col::TargetCpu)?,
                waker: tid(Col::OtherTid)?,
                context: self.context(row)?,
            },
            Kind::Wakeup => {
                Payload::Wakeup { tid: tid(Col::Tid)?, prio: prio(Col::Prio)?, target: cpu(Col::TargetCpu)? }
            }
            Kind::WakeupNew => {
                Payload::WakeupNew { tid: tid(Col::Tid)?, prio: prio(Col::Prio)?, target: cpu(Col::TargetCpu)? }
            }
            Kind::Migrate => Payload::Migrate {
                tid: tid(Col::Tid)?,
                prio: prio(Col::Prio)?,
                from: cpu(Col::OrigCpu)?,
                to: cpu(Col::TargetCpu)?,
            },
            Kind::Fork => Payload::Fork { parent: tid(Col::OtherTid)?, child: tid(Col::Tid)? },
            Kind::Exec => Payload::Exec { tid: tid(Col::Tid)?, old: tid(Col::OtherTid)? },
            Kind::Exit => Payload::Exit { tid: tid(Col::Tid)?, prio: prio(Col::Prio)? },
            Kind::Lost => Payload::Lost { count: u64::from_le_bytes(self.value(Col::Count, row)?) },
            Kind::Frequency => Payload::Frequency {
                target: cpu(Col::TargetCpu)?,
                khz: self.four_bytes(Col::Count, row, "a frequency beyond 4294967295 kHz")?,
            },
            Kind::Queue => Payload::Queue {
                length: u32::from_le_bytes(self.value(Col::Length, row)?),
                load: u64::from_le_bytes(self.value(Col::Load, row)?),
            },
            Kind::Pages => Payload::Pages {
                tgid: tid(Col::Tgid)?,
                from: self.node(Col::OrigNode, row),
                to: self.node(Col::TargetNode, row),
                pages: self.four_bytes(Col::Pages, row, "more pages than 4294967295")?,
            },
            Kind::Name | Kind::Affinity | Kind::Task | Kind::Group => unreachable!("they are no events"),
            Kind::Considered | Kind::End | Kind::Interrupt | Kind::Sleeps | Kind::Killed => {
                unreachable!("their rows were handled before")
            }
        }))
    }
}

/// The end of a task by a signal.
fn killed(view: &View<'_>, row: usize) -> Result<Payload, &'static str> {
    Ok(Payload::Killed { tid: view.tid(Col::Tid, row)?, signal: u16::from_le_bytes(view.value(Col::Number, row)?) })
}
