//! What goes on over time: each task's and each CPU's running time by window, when tasks start and end, and how long
//! they wait from wake-up to running.

use crate::energy::Energy;
use crate::idle::Idle;
use crate::memory::Places;
use schedlab_base::{CpuId, NameRecord, Nanos, TaskState, Tid};
use schedlab_track::{Delay, Observer, Occupant, Slot, Start, Stop, row};

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
}

/// Keeps the series of a run.
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
    /// The window in which time was last charged: its number, and when it begins.
    latest: (u64, Nanos),
    /// The task on each CPU, and since when its time is not yet charged.
    current: Vec<Option<(Slot, Nanos)>>,
    /// The node of each CPU, and where the memory is.
    nodes: Vec<u32>,
    places: Places,
}

impl Series {
    /// An empty one over `cpus` CPUs; `width` fixes the windows.
    #[must_use]
    pub fn new(cpus: usize, width: Option<Nanos>) -> Self {
        let width = width.map(|width| width.max(1));
        Self {
            width: width.unwrap_or(FIRST_WIDTH),
            tasks: Vec::new(),
            cpus: vec![Track::default(); cpus],
            latency: Box::new([0; 48]),
            idle: Idle::new(width.map(|width| (width, width.saturating_mul(MOST_FIXED)))),
            energy: None,
            end: 0,
            cut: false,
            fixed: width.is_some(),
            values: 0,
            latest: (0, 0),
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
        self.idle.tick = tick;
        self
    }

    /// Charges what the task ran on the CPU.
    fn charge(&mut self, task: Slot, cpu: CpuId, since: Nanos, now: Nanos) {
        if now <= since {
            return;
        }
        while !self.fixed && now > self.width.saturating_mul(MOST_FREE as u64) {
            self.widen();
        }
        let room = MOST_VALUES.saturating_sub(self.values) / 2;
        let span = self.span_of(since, now);
        for track in [row(&mut self.tasks, task), row(&mut self.cpus, cpu)] {
            track.run += now - since;
            let before = track.windows.len();
            self.cut |= !span.charge(&mut track.windows, before + room, (1, 1));
            self.values += track.windows.len() - before;
        }
        if self.places.are_unknown() {
            return;
        }
        let track = &mut self.tasks[task as usize];
        if let Some(part) = self.places.part(track.process, *row(&mut self.nodes, cpu)) {
            track.local += part_of(now - since, part);
            let before = track.local_windows.len();
            span.charge(&mut track.local_windows, before + room, part);
            self.values += track.local_windows.len() - before;
        }
    }

    /// The span with the window that it begins in, which is most often the latest: divisions are slow.
    fn span_of(&mut self, since: Nanos, now: Nanos) -> Span {
        if since.wrapping_sub(self.latest.1) >= self.width {
            let number = since / self.width;
            self.latest = (number, number * self.width);
        }
        Span { since, now, width: self.width, first: self.latest }
    }

    fn widen(&mut self) {
        self.width *= 2;
        self.latest = (0, 0);
        for track in self.tasks.iter_mut().chain(&mut self.cpus) {
            for windows in [&mut track.windows, &mut track.local_windows] {
                *windows = windows.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
    }
}

impl Observer for Series {
    fn clock(&mut self, now: Nanos) {
        self.end = now;
    }

    fn ends(&mut self, end: Nanos) {
        self.end = end;
        self.energy.ends(end);
    }

    fn appears(&mut self, task: Slot, tid: Tid, _: bool) {
        let track = row(&mut self.tasks, task);
        track.tid = tid;
        if track.name.is_empty() {
            track.name = format!("tid {tid}");
        }
    }

    fn named(&mut self, task: Slot, record: &NameRecord) {
        let track = row(&mut self.tasks, task);
        track.name.clone_from(&record.comm);
        track.process = record.tgid.unwrap_or(record.tid);
    }

    fn queued(&mut self, task: Slot, _: CpuId, now: Nanos) {
        row(&mut self.tasks, task).start.get_or_insert(now);
    }

    fn started(&mut self, task: Slot, _: CpuId, start: Start) {
        row(&mut self.tasks, task).start.get_or_insert(start.now);
    }

    fn served(&mut self, _: Slot, _: CpuId, delay: Delay) {
        // As in the statistics, the first run of a new task is no wake-up.
        if let Some(waited) = delay.wakeup {
            self.latency[waited.max(1).ilog2().min(47) as usize] += 1;
        }
    }

    fn stopped(&mut self, task: Slot, _: CpuId, stop: Stop) {
        if matches!(stop.state, TaskState::Dead | TaskState::Zombie) && !stop.late {
            row(&mut self.tasks, task).end.get_or_insert(stop.now);
        }
    }

    fn exits(&mut self, task: Slot, now: Nanos) {
        row(&mut self.tasks, task).end = Some(now);
    }

    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        self.idle.span(cpu, who, from, to);
        if let Occupant::Task(task) = who {
            let charged = (*row(&mut self.current, cpu)).filter(|(running, _)| *running == task);
            self.charge(task, cpu, charged.map_or(from, |(_, since)| since.max(from)), to);
        }
    }

    fn occupied(&mut self, cpu: CpuId, who: Occupant, now: Nanos) {
        self.idle.occupied(cpu, who, now);
        self.energy.occupied(cpu, who, now);
        *row(&mut self.current, cpu) = if let Occupant::Task(task) = who { Some((task, now)) } else { None };
    }

    /// Memory of a process moves: what its tasks ran so far they ran with the memory as it was.
    fn pages(&mut self, tgid: Tid, from: u16, to: u16, pages: u32, now: Nanos) {
        for cpu in 0..self.current.len() {
            if let Some((task, since)) = self.current[cpu]
                && self.tasks[task as usize].process == tgid
            {
                self.charge(task, cpu as CpuId, since, now);
                self.current[cpu] = Some((task, now));
            }
        }
        self.places.pages(tgid, from, to, pages, now);
    }
}

/// So many parts of a time, of so many.
fn part_of(time: Nanos, (some, all): (u64, u64)) -> Nanos {
    if some == all {
        return time;
    }
    (u128::from(time) * u128::from(some) / u128::from(all)) as Nanos
}

/// A time that a task ran, and the windows' width.
struct Span {
    since: Nanos,
    now: Nanos,
    width: Nanos,
    /// The window that it begins in: its number, and when it begins.
    first: (u64, Nanos),
}

impl Span {
    /// Adds this part of the span to the windows that it touches; false when there would be more than `most`.
    #[inline]
    fn charge(&self, windows: &mut Vec<Nanos>, most: usize, part: (u64, u64)) -> bool {
        let (first, start) = self.first;
        if self.now - start > self.width {
            return self.spread(windows, most, part);
        }
        if first >= MOST_FIXED || first as usize >= most {
            return false;
        }
        *row(windows, first as u32) += part_of(self.now - self.since, part);
        true
    }

    /// The same where it touches several.
    #[cold]
    fn spread(&self, windows: &mut Vec<Nanos>, most: usize, part: (u64, u64)) -> bool {
        let &Self { since, now, width, first: (first, _) } = self;
        let last = (now - 1) / width;
        if last >= MOST_FIXED || last as usize >= most {
            return false;
        }
        row(windows, last as u32);
        let mut from = since;
        for window in first..=last {
            let to = now.min((window + 1) * width);
            windows[window as usize] += part_of(to - from, part);
            from = to;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use schedlab_base::{Event, Meta, Payload, Sink};
    use schedlab_track::Replay;

    fn replay(series: Series) -> Replay<Series> {
        Replay::new(&Meta { span: Some((0, 0)), ..Meta::default() }, series)
    }

    fn switch(time: Nanos, prev: Tid, prev_state: TaskState, next: Tid) -> Event {
        Event { time, cpu: 0, what: Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 } }
    }

    #[test]
    fn running_time_falls_into_its_windows() {
        let mut series = replay(Series::new(1, Some(10)));
        let wake = Payload::Wakeup { tid: 1, prio: 120, target: 0 };
        series.events(&[Event { time: 1, cpu: 0, what: wake }, switch(5, 0, TaskState::Runnable, 1)]);
        series.events(&[switch(25, 1, TaskState::Dead, 2)]);
        series.finish(Some(30));
        let series = series.observer;
        assert_eq!(series.tasks[0].windows, [5, 10, 5]);
        assert_eq!(series.tasks[1].windows, [0, 0, 5]);
        assert_eq!(series.cpus[0].windows, [5, 10, 10]);
        assert_eq!((series.tasks[0].start, series.tasks[0].end), (Some(1), Some(25)));
        assert_eq!(series.latency[2], 1, "4 ns lie in [4, 8)");
    }

    #[test]
    fn local_time_follows_the_memory() {
        let mut series = replay(Series::new(2, Some(10)).with_nodes([0, 1].into_iter()));
        series.name(&NameRecord { time: 0, tid: 1, tgid: Some(7), comm: "a".into(), cgroup: None });
        let pages = |time, from, to, pages| Event { time, cpu: 0, what: Payload::Pages { tgid: 7, from, to, pages } };
        series.events(&[switch(0, 0, TaskState::Runnable, 1), pages(0, schedlab_base::NOWHERE, 0, 3)]);
        series.events(&[pages(0, schedlab_base::NOWHERE, 1, 7), pages(15, 1, 0, 7)]);
        series.finish(Some(20));
        let series = series.observer;
        let task = &series.tasks[0];
        assert_eq!((&task.windows[..], &task.local_windows[..]), (&[10, 10][..], &[3, 1 + 5][..]), "3/10 until 15");
        assert_eq!((task.run, task.local), (20, 4 + 5));
    }

    #[test]
    fn what_ran_across_a_loss_is_not_known() {
        let mut series = replay(Series::new(1, Some(10)));
        let lost = |time| Event { time, cpu: 0, what: Payload::Lost { count: 1 } };
        series.events(&[switch(2, 0, TaskState::Runnable, 1), switch(5, 1, TaskState::Sleeping, 0)]);
        series.events(&[switch(6, 0, TaskState::Runnable, 1), lost(20), switch(25, 3, TaskState::Sleeping, 0)]);
        series.finish(Some(30));
        let series = series.observer;
        // Nothing was seen of task 1 after 6; nobody knows since when task 3 had the CPU.
        assert_eq!((series.tasks[0].run, series.tasks[1].run, series.cpus[0].run), (3, 0, 3));
        assert_eq!(series.idle.all.at_least(0), 2 + 1 + 5, "0 to 2, 5 to 6 and 25 to 30");
    }

    #[test]
    fn free_windows_widen_and_lose_nothing() {
        let mut series = replay(Series::new(1, None));
        let second = 1_000_000_000;
        for k in 0..1000 {
            let (prev, next) = if k % 2 == 0 { (2, 1) } else { (1, 2) };
            series.events(&[switch(k * second / 10, prev, TaskState::Runnable, next)]);
        }
        series.finish(Some(100 * second));
        let series = series.observer;
        assert!(series.cpus[0].windows.len() <= MOST_FREE);
        assert_eq!(series.cpus[0].windows.iter().sum::<u64>(), 100 * second);
        assert_eq!(series.tasks[0].windows.iter().sum::<u64>(), series.tasks[0].run);
    }

    #[test]
    fn far_windows_are_cut_not_allocated() {
        let mut series = replay(Series::new(1, Some(1)));
        series.events(&[switch(0, 0, TaskState::Runnable, 1)]);
        series.finish(Some(u64::MAX / 2));
        let series = series.observer;
        assert!(series.cut);
        assert!(series.tasks[0].windows.is_empty());
    }
}
