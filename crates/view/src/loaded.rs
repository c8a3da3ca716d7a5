//! A trace that is looked at: read once into rows. Requests see what is there so far.

use crate::explain::Again;
use crate::follow::Tail;
use crate::index::{Index, Indexer};
use crate::marks::Marks;
use crate::rows::{By, Rows};
use schedlab_base::{
    AffinityRecord, CpuId, Error, Event, Meta, NameRecord, Nanos, Result, Sink, TaskRecord, counted, grouped,
};
use schedlab_measure::{Bounds, Check, CheckReport, THRESHOLD, Wasted};
use schedlab_trace::{Input, Options, ReadReport, Source};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

/// How far a trace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    /// It is being read.
    Reading,
    /// It is being read while it is recorded.
    Recording,
    /// Nothing follows.
    Over,
}

/// Rows that were given out, and whether they were made of the whole trace.
type Given = Option<(bool, Arc<Rows>)>;

/// A trace.
#[derive(Debug)]
pub struct Loaded {
    /// Its number.
    pub id: usize,
    /// Its file.
    pub path: PathBuf,
    /// What its head says.
    pub meta: Meta,
    /// Violations last longer than this, where the user says so.
    threshold: Option<Nanos>,
    indexer: RwLock<Indexer>,
    /// Whether rows can be shown, or why not.
    ready: OnceLock<std::result::Result<(), String>>,
    phase: AtomicU8,
    read: OnceLock<ReadReport>,
    /// Why its reading ended early.
    damage: OnceLock<String>,
    checked: OnceLock<Option<(CheckReport, Wasted)>>,
    /// The violations as marks.
    pub(crate) violations: OnceLock<Arc<Marks>>,
    rows: Mutex<[Given; 2]>,
    /// What was simulated again.
    pub(crate) again: Mutex<Again>,
}

/// Where no CPU was idle beside waiting tasks for as long as usually counts, these short times are listed.
const SHORT: Nanos = 1_000_000;

/// Opens a trace: its head is read, and nothing else yet. Violations last longer than `threshold`; without one, longer
/// than [`THRESHOLD`], or if there are none, longer than a millisecond.
///
/// # Errors
/// When it cannot be read, or is no trace.
pub fn open(id: usize, path: &Path, threshold: Option<Nanos>) -> Result<Loaded> {
    let meta = schedlab_trace::open(path)?.meta().clone();
    let indexer = RwLock::new(Indexer::new(&meta));
    Ok(Loaded {
        id,
        path: path.to_owned(),
        meta,
        threshold,
        indexer,
        ready: OnceLock::new(),
        phase: AtomicU8::new(Phase::Reading as u8),
        read: OnceLock::new(),
        damage: OnceLock::new(),
        checked: OnceLock::new(),
        violations: OnceLock::new(),
        rows: Mutex::default(),
        again: Mutex::default(),
    })
}

/// Takes a trace portion by portion, so that it can be looked at meanwhile.
struct Growing<'a> {
    loaded: &'a Loaded,
    grown: &'a dyn Fn(),
}

impl Growing<'_> {
    fn with(&self, act: impl FnOnce(&mut Indexer)) {
        act(&mut self.loaded.indexer.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Sink for Growing<'_> {
    fn events(&mut self, batch: &[Event]) {
        self.with(|indexer| indexer.events(batch));
        let _ = self.loaded.ready.set(Ok(()));
        (self.grown)();
    }

    fn name(&mut self, record: &NameRecord) {
        self.with(|indexer| indexer.name(record));
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.with(|indexer| indexer.affinity(record));
    }

    fn task(&mut self, record: &TaskRecord) {
        self.with(|indexer| indexer.task(record));
    }

    fn lasts(&mut self, until: Nanos) {
        self.with(|indexer| indexer.lasts(until));
    }
}

impl Loaded {
    /// Reads the whole trace, and calls `grown` after each portion of it.
    ///
    /// # Errors
    /// When it is damaged. What was read before stays.
    pub fn read(&self, grown: &dyn Fn()) -> Result<()> {
        self.fill(schedlab_trace::open(&self.path), grown)
    }

    /// Reads the trace as it grows, until its end mark or for ever, and calls `grown` after each portion.
    ///
    /// # Errors
    /// When it is damaged. What was read before stays.
    pub fn follow(&self, grown: &dyn Fn()) -> Result<()> {
        self.phase.store(Phase::Recording as u8, Ordering::Release);
        let source = Tail::open(&self.path)
            .and_then(|tail| schedlab_trace::open_input(Input::pipe(Box::new(tail), &self.path)?, &Options::default()));
        if source.is_ok() {
            // The first events may be minutes away: until then the picture is empty.
            let _ = self.ready.set(Ok(()));
        }
        self.fill(source, grown)
    }

    fn fill(&self, source: Result<Box<dyn Source>>, grown: &dyn Fn()) -> Result<()> {
        let read = source.and_then(|mut source| source.run(&mut Growing { loaded: self, grown }));
        let mut indexer = self.indexer.write().unwrap_or_else(PoisonError::into_inner);
        if read.is_ok() {
            indexer.finish()
        } else {
            indexer.stop()
        }
        drop(indexer);
        self.phase.store(Phase::Over as u8, Ordering::Release);
        let read = read.inspect_err(|error| {
            let _ = self.damage.set(error.to_string());
            let _ = self.ready.set(Err(error.to_string()));
        })?;
        let _ = self.read.set(read);
        let _ = self.ready.set(Ok(()));
        Ok(())
    }

    /// Refuses a trace that has nothing to show: without events and without time.
    ///
    /// # Errors
    /// When it is, and of one that was cut with the reason.
    pub fn refuse_empty(&self) -> Result<()> {
        if let Some(read) = self.read.get() {
            read.refuse_if_nothing_is_left(&self.path)?;
        }
        let indexer = self.indexer();
        if indexer.index.end == 0 && indexer.counts().0 == 0 {
            return Err(Error::input("the trace has nothing to show: it has no events").file(&self.path));
        }
        Ok(())
    }

    /// Looks for violations of work conservation, which takes another reading.
    ///
    /// # Errors
    /// When the trace is damaged.
    pub fn check(&self) -> Result<()> {
        if self.meta.partial.is_some() {
            let _ = self.checked.set(None);
            return Ok(());
        }
        let mut found = self.idle_beside_waiting(self.threshold())?;
        if self.threshold.is_none() && found.0.violations.is_empty() && found.0.wasted_cpu_us > 0.0 {
            found = self.idle_beside_waiting(SHORT)?;
        }
        let _ = self.checked.set(Some(found));
        Ok(())
    }

    fn idle_beside_waiting(&self, threshold: Nanos) -> Result<(CheckReport, Wasted)> {
        let mut source = schedlab_trace::open(&self.path)?;
        let mut check = Check::new(source.meta(), Bounds { threshold, ..Bounds::default() }).over_time();
        source.run(&mut check)?;
        Ok(check.finish_over_time(None))
    }

    /// How long a CPU must be idle beside waiting tasks to count.
    #[must_use]
    pub fn threshold(&self) -> Nanos {
        self.threshold.unwrap_or(THRESHOLD)
    }

    /// Waits until it can be shown.
    ///
    /// # Errors
    /// With what is wrong with the trace.
    pub fn wait(&self) -> std::result::Result<(), String> {
        self.ready.wait().clone()
    }

    fn is(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Acquire) == phase as u8
    }

    /// Its rows, as far as they are there.
    pub fn indexer(&self) -> RwLockReadGuard<'_, Indexer> {
        self.indexer.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the trace cannot be read to its end.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.damage.get().is_some()
    }

    /// What was found, if the check is over; nothing in a partial recording.
    #[must_use]
    pub fn checked(&self) -> Option<Option<&(CheckReport, Wasted)>> {
        self.checked.get().map(Option::as_ref)
    }

    /// The rows as they were last given out, so that their numbers mean the same; `anew`: as they are now.
    #[must_use]
    pub fn rows(&self, by: By, indexer: &Indexer, anew: bool) -> Arc<Rows> {
        let mut kept = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut kept[by as usize];
        if let Some((whole, rows)) = kept.as_ref().filter(|(whole, _)| *whole || !anew) {
            debug_assert!(!whole || indexer.index.complete);
            return Arc::clone(rows);
        }
        let rows = Arc::new(match by {
            By::Cpu => Rows::of_cpus(&self.meta, &indexer.cpus()),
            By::Task => Rows::of_tasks(&indexer.index),
        });
        *kept = Some((indexer.index.complete, Arc::clone(&rows)));
        rows
    }

    /// Whether the run behind it can be made again.
    #[must_use]
    pub fn explainable(&self) -> bool {
        self.meta.source == "sim" && schedlab_experiment::backend::again::remark(&self.meta).is_none()
    }

    /// What the page must know of it.
    #[must_use]
    pub fn facts(&self) -> Value {
        let indexer = self.indexer();
        let (events, losses, contradictions) = indexer.counts();
        let Index { end, considered, memory, .. } = indexer.index;
        let cpus = indexer.cpus();
        let kind = match self.meta.source.as_str() {
            "sim" => "simulated",
            source if source.starts_with("import") => "imported",
            _ => "recorded",
        };
        // Where the trace will end, if it says so itself.
        let until = self.meta.span.and_then(|(from, to)| to.checked_sub(from)).filter(|length| *length > end);
        let until = until.filter(|_| self.is(Phase::Reading));
        let tunables = self.meta.system.as_ref().map(|system| &system.tunables);
        let name = self.path.file_name().unwrap_or(self.path.as_os_str()).to_string_lossy();
        json!({
            "id": self.id, "name": name, "kind": kind, "kernel": self.meta.kernel, "machine": self.meta.machine,
            "tunables": tunables,
            "end": end, "events": events, "tasks": indexer.index.tasks.len(),
            "growing": self.is(Phase::Recording), "reading": self.is(Phase::Reading), "until": until,
            "checked": self.checked().is_some() || self.is_damaged(), "explainable": self.explainable(),
            "memory": memory, "considered": considered, "load": !indexer.index.loads.is_empty(),
            "frequency": !indexer.index.frequencies.is_empty(), "losses": losses,
            "lost_from": indexer.index.losses.earliest(),
            "partial": self.meta.partial.as_ref().map(schedlab_base::Partial::reason),
            "remarks": self.remarks((events, losses, contradictions), end),
            "nodes": self.places(&cpus), "cpus": cpus,
        })
    }

    fn remarks(&self, (events, losses, contradictions): (u64, u64, u64), end: Nanos) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(partial) = &self.meta.partial {
            remarks.push(format!("{}; {}", partial.reason(), partial.remedy()));
        }
        if let Some(damage) = self.damage.get() {
            remarks.push(format!("from here on the trace cannot be read: {damage}"));
        }
        if !self.is(Phase::Over) {
            // What is missing may follow.
        } else if events == 0 {
            remarks.push("the trace has no events".to_owned());
        } else if end == 0 {
            remarks.push("no time passes in the trace".to_owned());
        }
        if losses > 0 {
            remarks.push(format!("events were lost at {}: what happened there is not known", counted(losses, "place")));
        }
        if contradictions > 0 {
            remarks.push(format!("contradictory events: {} (the recording misses some)", grouped(contradictions)));
        }
        if let Some(read) = self.read.get() {
            remarks.extend(read.cut.as_ref().map(|cut| format!("the file was cut: {}", cut.what)));
            if read.skipped > 0 {
                let records = counted(read.skipped, "record");
                remarks.push(format!("left out: {records} of kinds that this version does not know"));
            }
        }
        remarks
    }

    /// The CPUs by node, package and core.
    fn places(&self, cpus: &[CpuId]) -> Value {
        let mut nodes: Vec<Value> = Vec::new();
        let mut places: Vec<(u32, u32, u32, CpuId)> = cpus
            .iter()
            .map(|&cpu| match self.meta.cpus.iter().find(|place| place.cpu == cpu) {
                Some(place) => (place.node, place.package, place.core, cpu),
                None => (0, 0, cpu, cpu),
            })
            .collect();
        places.sort_unstable();
        for of_node in places.chunk_by(|a, b| a.0 == b.0) {
            let mut packages: Vec<Value> = Vec::new();
            for of_package in of_node.chunk_by(|a, b| a.1 == b.1) {
                let cores: Vec<Value> = of_package
                    .chunk_by(|a, b| a.2 == b.2)
                    .map(|core| json!({ "core": core[0].2, "cpus": core.iter().map(|p| p.3).collect::<Vec<_>>() }))
                    .collect();
                packages.push(json!({ "package": of_package[0].1, "cores": cores }));
            }
            nodes.push(json!({ "node": of_node[0].0, "packages": packages }));
        }
        nodes.into()
    }
}
