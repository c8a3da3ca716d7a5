//! What goes on over time: each task's and each CPU's running time by window, when tasks start and end, and how long
//! they wait from wake-up to running.

use crate::energy::Energy;
use crate::idle::Idle;
use schedlab_base::{Event, NameRecord, Nanos, Payload, Sink, TaskState, Tid};
use schedlab_measure::Places;
use std::collections::HashMap;

/// Windows are doubled in width when there would be more of them than this, where their width is free.
const MOST_FREE: usize = 240;
/// The most windows of a width that was asked for.
pub const MOST_FIXED: u64 = 10_000;
/// The most window values kept in all; beyond, windows are no more recorded.
const MOST_VALUES: usize = 32 << 20;
/// The first width where it is free, in ns.
const FIRST_WIDTH: Nanos = 1_000_000;

/// Latencies by powers of two: bucket `k` holds those of 2^k up to 2^(k+1) ns (bucket 0 from 0).
pub type Histogram = [u64; 48];

/// One task's or CPU's time.
#[derive(Clone, Debug, Default)]
pub struct Track {
    /// Its name; a CPU's is empty.
    pub name: String,
    /// Its thread id.
    pub tid: Tid,
    /// When it first became runnable.
    pub start: Option<Nanos>,
    /// When it ended.
    pub end: Option<Nanos>,
    /// How long it ran.
    pub run: Nanos,
    /// How long it ran in each window.
    pub windows: Vec<Nanos>,
    /// A task's time by the part of its memory that was on its CPU's node, in all and in each window; none where the
    /// trace tells of no memory.
    pub local: Nanos,
    /// See `local`.
    pub local_windows: Vec<Nanos>,
    process: Tid,
    running_since: Option<Nanos>,
    woken_at: Option<Nanos>,
}

/// Takes a run's events and keeps its series.
#[derive(Clone, Debug)]
pub struct Series {
    /// The windows' width.
    pub width: Nanos,
    /// The tasks, in the order in which they were named or seen.
    pub tasks: Vec<Track>,
    /// The CPUs by number.
    pub cpus: Vec<Track>,
    /// From wake-up to running, over all tasks.
    pub latency: Box<Histogram>,
    /// The CPUs' idleness.
    pub idle: Idle,
    /// What it takes, where the machine has an energy model.
    pub energy: Option<Energy>,
    /// The time of the end.
    pub end: Nanos,
    /// Some windows are missing: there were too many.
    pub cut: bool,
    fixed: bool,
    values: usize,
    slots: HashMap<Tid, usize>,
    current: Vec<Option<usize>>,
    /// The node of each CPU, and where the memory is.
    nodes: Vec<u32>,
    places: Places,
}

impl Series {
    /// An empty one over `cpus` CPUs; `width` fixes the windows.
    #[must_use]
    pub fn new(cpus: usize, width: Option<Nanos>) -> Self {
        Self {
            width: width.unwrap_or(FIRST_WIDTH).max(1),
            tasks: Vec::new(),
            cpus: vec![Track::default(); cpus],
            latency: Box::new([0; 48]),
            idle: Idle::new(cpus, None),
            energy: None,
            end: 0,
            cut: false,
            fixed: width.is_some(),
            values: 0,
            slots: HashMap::new(),
            current: vec![None; cpus],
            nodes: vec![0; cpus],
            places: Places::default(),
        }
    }

    /// The node of each CPU; they are all on one otherwise.
    #[must_use]
    pub fn with_nodes(mut self, nodes: impl Iterator<Item = u32>) -> Self {
        self.nodes.iter_mut().zip(nodes).for_each(|(node, of)| *node = of);
        self
    }

    /// The tick comes to idle CPUs too: when first, and how far apart.
    #[must_use]
    pub fn with_idle_ticks(mut self, tick: Option<(Nanos, Nanos)>) -> Self {
        self.idle = Idle::new(self.cpus.len(), tick);
        self
    }

    /// Closes what is running at `end`.
    pub fn finish(&mut self, end: Nanos) {
        self.end = self.end.max(end);
        for cpu in 0..self.current.len() {
            self.stop(cpu, self.end);
        }
        self.idle.finish(self.end);
        if let Some(energy) = &mut self.energy {
            energy.finish(self.end);
        }
    }

    fn slot(&mut self, tid: Tid) -> usize {
        *self.slots.entry(tid).or_insert_with(|| {
            self.tasks.push(Track { name: format!("tid {tid}"), tid, ..Track::default() });
            self.tasks.len() - 1
        })
    }

    /// Charges what ran on `cpu` up to `now`.
    fn stop(&mut self, cpu: usize, now: Nanos) {
        let Some(slot) = self.current[cpu].take() else { return };
        let Some(since) = self.tasks[slot].running_since.take() else { return };
        if now <= since {
            return;
        }
        if !self.fixed {
            while (now - 1) / self.width >= MOST_FREE as u64 {
                self.widen();
            }
        }
        let room = MOST_VALUES.saturating_sub(self.values);
        for track in [&mut self.tasks[slot], &mut self.cpus[cpu]] {
            track.run += now - since;
            let before = track.windows.len();
            self.cut |= !charge(&mut track.windows, (self.width, before + room / 2), since, now, (1, 1));
            self.values += track.windows.len() - before;
        }
        let track = &mut self.tasks[slot];
        if let Some(part) = self.places.part(track.process, self.nodes[cpu]) {
            track.local += part_of(now - since, part);
            let before = track.local_windows.len();
            charge(&mut track.local_windows, (self.width, before + room / 2), since, now, part);
            self.values += track.local_windows.len() - before;
        }
    }

    /// Memory of a process moves: what its tasks ran so far they ran with the memory as it was.
    fn pages(&mut self, event: &Event, tgid: Tid) {
        for cpu in 0..self.current.len() {
            let Some(slot) = self.current[cpu].filter(|slot| self.tasks[*slot].process == tgid) else { continue };
            self.stop(cpu, event.time);
            self.current[cpu] = Some(slot);
            self.tasks[slot].running_since = Some(event.time);
        }
        self.places.event(event.time, &event.what);
    }

    fn widen(&mut self) {
        self.width *= 2;
        for track in self.tasks.iter_mut().chain(&mut self.cpus) {
            for windows in [&mut track.windows, &mut track.local_windows] {
                *windows = windows.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
    }

    fn switch(&mut self, cpu: usize, event: &Event, prev_state: TaskState, next: Tid) {
        if let Some(slot) = self.current[cpu]
            && prev_state == TaskState::Dead
        {
            self.tasks[slot].end.get_or_insert(event.time);
        }
        self.stop(cpu, event.time);
        if let Some(energy) = &mut self.energy {
            energy.run(cpu, event.time, next != 0);
        }
        if next == 0 {
            self.idle.begins(event.cpu, event.time);
            return;
        }
        self.idle.ends(event.cpu, event.time);
        let slot = self.slot(next);
        let task = &mut self.tasks[slot];
        task.running_since = Some(event.time);
        task.start.get_or_insert(event.time);
        if let Some(woken) = task.woken_at.take() {
            let waited = event.time.saturating_sub(woken);
            self.latency[waited.max(1).ilog2().min(47) as usize] += 1;
        }
        self.current[cpu] = Some(slot);
    }

    fn one(&mut self, event: &Event) {
        let cpu = event.cpu as usize;
        if cpu >= self.current.len() {
            return;
        }
        self.end = self.end.max(event.time);
        match event.what {
            Payload::Switch { prev_state, next, .. } => self.switch(cpu, event, prev_state, next),
            // As in the statistics, the first run of a new task is no wake-up.
            Payload::WakeupNew { tid, .. } => {
                let slot = self.slot(tid);
                self.tasks[slot].start.get_or_insert(event.time);
            }
            Payload::Wakeup { tid, .. } => {
                let slot = self.slot(tid);
                let task = &mut self.tasks[slot];
                task.start.get_or_insert(event.time);
                task.woken_at = task.running_since.is_none().then_some(event.time);
            }
            Payload::Exit { tid, .. } => {
                let slot = self.slot(tid);
                self.tasks[slot].end = Some(event.time);
            }
            Payload::Pages { tgid, .. } => self.pages(event, tgid),
            Payload::Waking { .. }
            | Payload::Migrate { .. }
            | Payload::Fork { .. }
            | Payload::Exec { .. }
            | Payload::Queue { .. }
            | Payload::Considered { .. }
            | Payload::Lost { .. } => {}
        }
    }
}

/// So many parts of a time, of so many.
fn part_of(time: Nanos, (some, all): (u64, u64)) -> Nanos {
    (u128::from(time) * u128::from(some) / u128::from(all)) as Nanos
}

/// Adds this part of the span to the windows of a width that it touches; false when there would be too many windows.
fn charge(windows: &mut Vec<Nanos>, (width, most): (Nanos, usize), since: Nanos, now: Nanos, part: (u64, u64)) -> bool {
    let last = (now - 1) / width;
    if last >= MOST_FIXED || last as usize >= most {
        return false;
    }
    if windows.len() <= last as usize {
        windows.resize(last as usize + 1, 0);
    }
    let mut from = since;
    while from < now {
        let window = from / width;
        let to = now.min((window + 1) * width);
        windows[window as usize] += part_of(to - from, part);
        from = to;
    }
    true
}

impl Sink for Series {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            self.one(event);
        }
    }

    fn name(&mut self, record: &NameRecord) {
        if record.tid != 0 {
            let slot = self.slot(record.tid);
            self.tasks[slot].name.clone_from(&record.comm);
            self.tasks[slot].process = record.tgid.unwrap_or(record.tid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(time: Nanos, prev: Tid, prev_state: TaskState, next: Tid) -> Event {
        Event { time, cpu: 0, what: Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 } }
    }

    #[test]
    fn running_time_falls_into_its_windows() {
        let mut series = Series::new(1, Some(10));
        let wake = Payload::Wakeup { tid: 1, prio: 120, target: 0 };
        series.events(&[Event { time: 1, cpu: 0, what: wake }, switch(5, 0, TaskState::Runnable, 1)]);
        series.events(&[switch(25, 1, TaskState::Dead, 2)]);
        series.finish(30);
        assert_eq!(series.tasks[0].windows, [5, 10, 5]);
        assert_eq!(series.tasks[1].windows, [0, 0, 5]);
        assert_eq!(series.cpus[0].windows, [5, 10, 10]);
        assert_eq!((series.tasks[0].start, series.tasks[0].end), (Some(1), Some(25)));
        assert_eq!(series.latency[2], 1, "4 ns lie in [4, 8)");
    }

    #[test]
    fn local_time_follows_the_memory() {
        let mut series = Series::new(2, Some(10)).with_nodes([0, 1].into_iter());
        series.name(&NameRecord { time: 0, tid: 1, tgid: Some(7), comm: "a".into(), cgroup: None });
        let pages = |time, from, to, pages| Event { time, cpu: 0, what: Payload::Pages { tgid: 7, from, to, pages } };
        series.events(&[switch(0, 0, TaskState::Runnable, 1), pages(0, schedlab_base::NOWHERE, 0, 3)]);
        series.events(&[pages(0, schedlab_base::NOWHERE, 1, 7), pages(15, 1, 0, 7)]);
        series.finish(20);
        let task = &series.tasks[0];
        assert_eq!((&task.windows[..], &task.local_windows[..]), (&[10, 10][..], &[3, 1 + 5][..]), "3/10 until 15");
        assert_eq!((task.run, task.local), (20, 4 + 5));
    }

    #[test]
    fn free_windows_widen_and_lose_nothing() {
        let mut series = Series::new(1, None);
        let second = 1_000_000_000;
        for k in 0..1000 {
            let (prev, next) = if k % 2 == 0 { (2, 1) } else { (1, 2) };
            series.events(&[switch(k * second / 10, prev, TaskState::Runnable, next)]);
        }
        series.finish(100 * second);
        assert!(series.cpus[0].windows.len() <= MOST_FREE);
        assert_eq!(series.cpus[0].windows.iter().sum::<u64>(), 100 * second);
        assert_eq!(series.tasks[0].windows.iter().sum::<u64>(), series.tasks[0].run);
    }

    #[test]
    fn far_windows_are_cut_not_allocated() {
        let mut series = Series::new(1, Some(1));
        series.events(&[switch(0, 0, TaskState::Runnable, 1)]);
        series.finish(u64::MAX / 2);
        assert!(series.cut);
        assert!(series.tasks[0].windows.is_empty());
    }
}
