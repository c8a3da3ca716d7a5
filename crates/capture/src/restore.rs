//! Switches that idle tasks hide.
//!
//! On some virtual machines the switch from a CPU's idle task to another is not recorded. If that task was woken, the
//! wake-up says when it came. But one that was preempted and gets its CPU back, because its cgroup's quota was filled
//! up or its runtime as a deadline task, is in no event then. The kernel also accounts the CPU time of the task that
//! runs, however, in that task's context, and the first such event of a task on a CPU says since when it has had the
//! CPU.
//!
//! Of a task that was woken nothing is restored: at such a switch the kernel does not read its clock anew
//! (`rq_clock_skip_update()`), so that the time counts from before the wake-up. Whoever reads the trace can tell
//! better, by how long wake-ups take elsewhere.

use schedlab_base::{CpuId, Event, Nanos, Payload, TaskState, Tid};
use schedlab_trace::format::{Format, Shape};

/// The event, as system and name.
pub(crate) const EVENT: (&str, &str) = ("sched", "sched_stat_runtime");

/// How much longer events are held back while switches are restored. The kernel accounts CPU time at least once a tick,
/// and ticks are no further apart than 10 ms.
pub(crate) const HOLD: Nanos = 20_000_000;

/// The shortest CPU time that is of interest. The kernel also accounts it at each switch and each wake-up, and what
/// switches that often was woken. A task that is accounted sooner after it got its CPU seems to get it so much later.
const SHORTEST: Nanos = 50_000;

/// The filter of the event that lets only these times pass.
pub(crate) fn filter() -> String {
    format!("runtime >= {SHORTEST}")
}

/// The priority that events give idle tasks.
const IDLE_PRIO: i16 = 120;

/// Finds out whether idle tasks are hidden, and which switches are missing then.
#[derive(Default)]
pub(crate) struct Restore {
    /// Since when each CPU has been idle, according to its own events; `None` if it is not, or nobody knows.
    idle: Vec<Option<Nanos>>,
    /// Whether a task was seen to leave a CPU that was idle.
    hidden: bool,
    /// The event, once it was asked for; `None` in it if the kernel has no such event.
    runtime: Option<Option<Runtime>>,
    /// What was found in the events of each CPU, and does not count before all CPUs' events have come that far.
    found: Vec<Found>,
    /// What is known of each task, by its id.
    tasks: Vec<Option<Task>>,
    /// The priorities of the tasks that were there before.
    prios: Vec<(Tid, i16)>,
}

/// Where in a record the task that ran, the task that was accounted, and its CPU time are.
struct Runtime {
    event: [u8; 2],
    at: [usize; 3],
}

/// A task that has an idle CPU.
#[derive(Clone, Copy)]
struct Found {
    /// When that was seen.
    time: Nanos,
    /// Since when it has the CPU.
    since: Nanos,
    cpu: CpuId,
    tid: Tid,
}

#[derive(Clone, Copy)]
struct Task {
    prio: i16,
    /// When it left its CPU, if it was not woken since.
    left: Option<Nanos>,
}

impl Restore {
    /// Knows the priorities of tasks that are there already.
    pub(crate) fn new(prios: impl Iterator<Item = (Tid, i16)>) -> Self {
        Self { prios: prios.collect(), ..Self::default() }
    }

    /// Whether it has turned out that idle tasks are hidden, and the event was not asked for yet.
    pub(crate) fn needs_event(&self) -> bool {
        self.hidden && self.runtime.is_none()
    }

    /// From now on switches are restored, by records of this format, if there are any.
    pub(crate) fn begin(&mut self, format: Option<&Format>) {
        let runtime = format.and_then(|format| {
            let at = |name: &str, size: u32| {
                format.field(name).filter(|f| f.shape == Shape::Inline && f.size == size).map(|f| f.offset as usize)
            };
            let at = [at("common_pid", 4)?, at("pid", 4)?, at("runtime", 8)?];
            Some(Runtime { event: format.id.to_le_bytes(), at })
        });
        self.runtime = Some(runtime);
        for (tid, prio) in std::mem::take(&mut self.prios) {
            self.know(tid, Task { prio, left: Some(0) });
        }
    }

    /// Whether switches are restored.
    pub(crate) fn is_on(&self) -> bool {
        matches!(self.runtime, Some(Some(_)))
    }

    /// Takes the next event of its CPU.
    pub(crate) fn see(&mut self, event: &Event) {
        let idle = match event.what {
            Payload::Switch { next: 0, .. } => Some(event.time),
            Payload::Switch { .. } | Payload::Lost { .. } => None,
            _ => return,
        };
        let before = std::mem::replace(row(&mut self.idle, event.cpu as usize), idle);
        self.hidden |= before.is_some() && matches!(event.what, Payload::Switch { prev, .. } if prev != 0);
    }

    /// Takes the next record of a CPU, if it is about CPU time; whether it is.
    pub(crate) fn read(&mut self, cpu: CpuId, time: Nanos, raw: &[u8]) -> bool {
        let Some(Some(Runtime { event, at })) = &self.runtime else { return false };
        if raw.get(..2) != Some(event) {
            return false;
        }
        let number = |at: usize| raw.get(at..)?.first_chunk().map(|four| Tid::from_le_bytes(*four));
        let took = raw.get(at[2]..).and_then(|bytes| bytes.first_chunk()).map(|eight| u64::from_le_bytes(*eight));
        // An interrupt that wakes a task for another CPU accounts the task that runs there.
        if let (Some(current), Some(tid), Some(took)) = (number(at[0]), number(at[1]), took)
            && current == tid
            && let Some(idle) = row(&mut self.idle, cpu as usize).take()
        {
            self.found.push(Found { time, since: time.saturating_sub(took).max(idle), cpu, tid });
        }
        true
    }

    /// The switches that are missing among these events, which are in order and the next ones of all CPUs until then.
    pub(crate) fn missing(&mut self, events: &[Event], until: Nanos) -> Vec<Event> {
        self.found.sort_by_key(|found| found.time);
        let rest = self.found.split_off(self.found.partition_point(|found| found.time < until));
        let found = std::mem::replace(&mut self.found, rest);
        let mut found = found.into_iter().peekable();
        let mut missing = Vec::new();
        for event in events {
            while let Some(found) = found.next_if(|found| found.time <= event.time) {
                missing.extend(self.switch(found));
            }
            self.follow(event);
        }
        missing.extend(found.filter_map(|found| self.switch(found)));
        missing
    }

    /// Takes what an event says of tasks.
    fn follow(&mut self, event: &Event) {
        match event.what {
            Payload::Switch { prev, prev_prio, next, next_prio, .. } => {
                self.know(prev, Task { prio: prev_prio, left: Some(event.time) });
                self.know(next, Task { prio: next_prio, left: None });
            }
            Payload::Waking { tid, prio, .. }
            | Payload::Wakeup { tid, prio, .. }
            | Payload::WakeupNew { tid, prio, .. } => {
                self.know(tid, Task { prio, left: None });
            }
            _ => {}
        }
    }

    fn know(&mut self, tid: Tid, task: Task) {
        *row(&mut self.tasks, tid as usize) = Some(task);
    }

    /// The switch to a task that was not woken.
    fn switch(&mut self, found: Found) -> Option<Event> {
        let task = self.tasks.get_mut(found.tid as usize)?.as_mut()?;
        let time = found.since.max(task.left.take()?);
        let what = Payload::Switch {
            prev: 0,
            prev_prio: IDLE_PRIO,
            prev_state: TaskState::Runnable,
            next: found.tid,
            next_prio: task.prio,
        };
        Some(Event { time, cpu: found.cpu, what })
    }
}

/// The entry of a table that grows as far as it is asked for.
fn row<T: Clone + Default>(table: &mut Vec<T>, at: usize) -> &mut T {
    if at >= table.len() {
        table.resize(at + 1, T::default());
    }
    &mut table[at]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: sched_stat_runtime\nID: 21\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:u64 runtime;\toffset:12;\tsize:8;\tsigned:0;\n";

    fn record(current: Tid, tid: Tid, took: u64) -> Vec<u8> {
        let mut raw = vec![21, 0, 0, 0];
        raw.extend(current.to_le_bytes());
        raw.extend(tid.to_le_bytes());
        raw.extend(took.to_le_bytes());
        raw
    }

    fn switch(time: Nanos, cpu: CpuId, prev: Tid, next: Tid) -> Event {
        let what =
            Payload::Switch { prev, prev_prio: 110, prev_state: TaskState::Runnable, next, next_prio: IDLE_PRIO };
        Event { time, cpu, what }
    }

    fn woken(time: Nanos, tid: Tid) -> Event {
        Event { time, cpu: 0, what: Payload::Wakeup { tid, prio: 110, target: 1 } }
    }

    /// One that restores switches; task 9 was there before.
    fn restore() -> Restore {
        let mut restore = Restore::new([(9, 98)].into_iter());
        restore.begin(Some(&Format::parse(FORMAT).unwrap()));
        restore
    }

    /// Takes these events, as the next ones of their CPU, and then this record.
    fn see(restore: &mut Restore, events: &[Event], (cpu, time, raw): (CpuId, Nanos, Vec<u8>)) {
        events.iter().filter(|event| event.cpu == cpu).for_each(|event| restore.see(event));
        assert!(restore.read(cpu, time, &raw));
    }

    /// The missing switches: when, on which CPU, to which task and its priority.
    fn missing(restore: &mut Restore, events: &[Event], until: Nanos) -> Vec<(Nanos, CpuId, Tid, i16)> {
        let told = |event: Event| match event.what {
            Payload::Switch { prev: 0, next, next_prio, .. } => (event.time, event.cpu, next, next_prio),
            other => panic!("{other:?}"),
        };
        restore.missing(events, until).into_iter().map(told).collect()
    }

    #[test]
    fn a_task_that_leaves_an_idle_cpu_shows_that_idle_tasks_are_hidden() {
        let mut restore = Restore::default();
        for event in [switch(1, 0, 7, 0), switch(2, 1, 7, 8), switch(3, 0, 0, 7), switch(4, 0, 7, 0)] {
            restore.see(&event);
        }
        assert!(!restore.needs_event());
        let lost = Event { time: 5, cpu: 0, what: Payload::Lost { count: 1 } };
        [lost, switch(6, 0, 8, 0)].iter().for_each(|event| restore.see(event));
        assert!(!restore.needs_event(), "nobody knows what was lost");
        restore.see(&switch(7, 0, 8, 9));
        assert!(restore.needs_event());
        restore.begin(None);
        assert!(!restore.needs_event() && !restore.is_on(), "this kernel has no such event");
    }

    #[test]
    fn a_task_has_had_its_cpu_for_the_time_that_was_accounted_first() {
        let mut restore = restore();
        let events = [switch(10, 1, 7, 0)];
        see(&mut restore, &events, (1, 50, record(7, 7, 15)));
        see(&mut restore, &[], (1, 60, record(7, 7, 10)));
        assert_eq!(missing(&mut restore, &events, 50), [], "another CPU may still have something before 50");
        assert_eq!(missing(&mut restore, &[], 100), [(35, 1, 7, 110)]);
        // It leaves again, and has the CPU no earlier than that; nor than it left another.
        let events = [switch(110, 1, 7, 0)];
        see(&mut restore, &events, (1, 130, record(7, 7, 90)));
        assert_eq!(missing(&mut restore, &events, 140), [(110, 1, 7, 110)]);
        let events = [switch(150, 1, 7, 0), switch(170, 0, 8, 0)];
        see(&mut restore, &events, (1, 180, record(8, 8, 25)));
        assert_eq!(missing(&mut restore, &events, 190), [(170, 1, 8, 110)]);
    }

    #[test]
    fn what_was_there_before_is_known_by_its_priority() {
        let mut restore = restore();
        let events = [switch(10, 1, 7, 0)];
        see(&mut restore, &events, (1, 50, record(9, 9, 15)));
        assert_eq!(missing(&mut restore, &events, 100), [(35, 1, 9, 98)]);
        let events = [switch(110, 1, 9, 0)];
        see(&mut restore, &events, (1, 150, record(6, 6, 15)));
        assert_eq!(missing(&mut restore, &events, 200), [], "6 is unknown");
    }

    #[test]
    fn nothing_is_restored_of_woken_tasks_busy_cpus_and_tasks_elsewhere() {
        let mut restore = restore();
        let events = [switch(10, 1, 7, 0), woken(20, 7)];
        see(&mut restore, &events, (1, 50, record(7, 7, 35)));
        assert_eq!(missing(&mut restore, &events, 100), []);
        let events = [switch(110, 1, 7, 8)];
        see(&mut restore, &events, (1, 120, record(8, 8, 5)));
        assert_eq!(missing(&mut restore, &events, 200), []);
        // The interrupted CPU is idle, and task 9 runs elsewhere.
        let events = [switch(210, 1, 8, 0)];
        see(&mut restore, &events, (1, 220, record(0, 9, 5)));
        assert_eq!(missing(&mut restore, &events, 300), []);
    }

    #[test]
    fn records_of_any_length_are_read() {
        let mut restore = restore();
        restore.see(&switch(10, 1, 7, 0));
        let whole = record(7, 7, 5);
        for length in 0..whole.len() {
            assert_eq!(restore.read(1, 20, &whole[..length]), length >= 2);
        }
        assert!(!restore.read(1, 20, &[22, 0, 0]), "another event");
        assert_eq!(missing(&mut restore, &[], 100), []);
    }
}
