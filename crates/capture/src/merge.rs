//! Merges the pages of many CPUs into one stream in time order, in bounded memory.

use crate::calls::Calls;
use crate::changes::{Change, Changes};
use crate::restore::{HOLD, Restore};
use crate::tasks::Tasks;
use schedlab_base::{CpuId, Event, Nanos, Payload, Sink, Tid};
use schedlab_trace::format::{Decoder, Format};
use schedlab_trace::ring_buffer::PageLayout;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Decodes pages and holds their events back until no CPU can have an earlier one.
pub(crate) struct Merge {
    layout: PageLayout,
    decoder: Decoder,
    changes: Changes,
    /// The system calls in which tasks sleep, if they are recorded.
    calls: Option<Calls>,
    /// The switches that idle tasks hide, if they are to be found.
    restore: Option<Restore>,
    events: Vec<Event>,
    named: Vec<(Nanos, Change)>,
    /// Everything before this time has arrived.
    done: Nanos,
    /// Everything before this time has been passed on.
    passed: Nanos,
    /// What is passed on: the events from this time to that.
    kept: RangeInclusive<Nanos>,
    /// The counts so far.
    pub(crate) counts: Counts,
    /// Losses that pages have reported, by CPU.
    pub(crate) lost: BTreeMap<CpuId, u64>,
}

/// Counts of events and losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Events passed on, without loss markers.
    pub(crate) events: u64,
    /// Events that the kernel reports as lost.
    pub(crate) lost: u64,
    /// Places in the trace where events were lost.
    pub(crate) gaps: u64,
    /// Events that arrived after later ones had been passed on. They are recorded at the time reached by then.
    pub(crate) late: u64,
    /// Switches from idle tasks that were not recorded, among the events.
    pub(crate) restored: u64,
}

impl Merge {
    /// Creates a merge without any events.
    pub(crate) fn new(layout: PageLayout, decoder: Decoder, changes: Changes) -> Self {
        Self {
            layout,
            decoder,
            changes,
            calls: None,
            restore: None,
            events: Vec::new(),
            named: Vec::new(),
            done: 0,
            passed: 0,
            kept: 0..=Nanos::MAX,
            counts: Counts::default(),
            lost: BTreeMap::new(),
        }
    }

    /// Also says what tasks sleep for.
    pub(crate) fn with_calls(self, calls: Option<Calls>) -> Self {
        Self { calls, ..self }
    }

    /// Also finds the switches that idle tasks hide.
    pub(crate) fn restore(&mut self, restore: Restore) {
        self.restore = Some(restore);
    }

    /// Whether the event is needed by which switches are restored.
    pub(crate) fn needs_runtimes(&self) -> bool {
        self.restore.as_ref().is_some_and(Restore::needs_event)
    }

    /// From now on switches are restored by the records of this format, if there are any.
    pub(crate) fn use_runtimes(&mut self, format: Option<&Format>) {
        if let Some(restore) = &mut self.restore {
            restore.begin(format);
        }
    }

    /// Whether switches are restored.
    pub(crate) fn restores(&self) -> bool {
        self.restore.as_ref().is_some_and(Restore::is_on)
    }

    /// Takes one page of a CPU, whose last record so far is of the time `last`; returns the time of its last record.
    /// A page that cannot be read counts as a loss of an unknown number of events. What was lost before a page was lost
    /// since that last record: from there on nobody knows what waits on the CPU, and others may take it from there.
    pub(crate) fn page(&mut self, cpu: CpuId, bytes: &[u8], last: Nanos) -> Nanos {
        let Ok(page) = self.layout.page(bytes) else {
            self.lose(cpu, last, 0);
            return last;
        };
        let (before, mut last, mut lost) = (last, last, page.lost);
        for record in page.records() {
            let Ok((time, raw)) = record else {
                self.lose(cpu, last, 0);
                break;
            };
            last = time;
            if let Some(count) = lost.take() {
                let since = before.max(self.passed).max(*self.kept.start()).min(time);
                self.lose(cpu, if before == 0 { time } else { since }, count);
            }
            let named = &mut self.named;
            let on_name = |name: &schedlab_base::NameRecord| {
                named.push((name.time, Change::Named { tid: name.tid, comm: name.comm.clone() }));
            };
            if let Some(event) = self.decoder.decode(cpu, time, raw, on_name) {
                self.push(event);
            } else if self.restore.as_mut().is_some_and(|restore| restore.read(cpu, time, raw)) {
            } else if let Some(change) = self.changes.read(raw) {
                self.named.push((time, change));
            } else if let Some(calls) = &mut self.calls {
                calls.read(time, raw);
            }
        }
        if let Some(count) = lost {
            self.lose(cpu, page.time, count);
        }
        last
    }

    /// Takes the next event of its CPU.
    #[inline]
    fn push(&mut self, event: Event) {
        if let Some(restore) = &mut self.restore {
            restore.see(&event);
        }
        self.events.push(event);
    }

    /// Takes a change that no record reports.
    pub(crate) fn change(&mut self, time: Nanos, change: Change) {
        self.named.push((time, change));
    }

    /// Takes an event that no record reports.
    pub(crate) fn add(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Whether the kernel reports the system calls that change how tasks are scheduled.
    pub(crate) fn has_calls(&self) -> bool {
        self.changes.has_calls()
    }

    /// Marks a loss on a CPU before this time.
    pub(crate) fn lose(&mut self, cpu: CpuId, time: Nanos, count: u64) {
        *self.lost.entry(cpu).or_default() += count;
        self.counts.lost += count;
        self.counts.gaps += 1;
        self.push(Event { time, cpu, what: Payload::Lost { count } });
    }

    /// Sorts the held events, all of which have arrived from before `until`, and restores switches among these. Call it
    /// before [`Merge::at_start`] and [`Merge::pass_on`].
    pub(crate) fn order(&mut self, until: Nanos) {
        let until = until.max(self.done);
        let late = self.events.iter_mut().filter(|e| e.time < self.passed);
        self.counts.late += late.map(|event| event.time = self.passed).count() as u64;
        // The sort is stable, and quick because each CPU's events are already in order.
        self.events.sort_by_key(|event| event.time);
        self.add_missing(until);
        for (time, _) in &mut self.named {
            *time = (*time).max(self.passed);
        }
        self.named.sort_by_key(|(time, _)| *time);
        if let Some(calls) = &mut self.calls {
            calls.order();
        }
        self.done = until;
    }

    /// Adds the switches that are missing before `until`.
    fn add_missing(&mut self, until: Nanos) {
        let Some(restore) = self.restore.as_mut().filter(|restore| restore.is_on()) else { return };
        let place = |time| self.events.partition_point(|event| event.time < time);
        let mut missing = restore.missing(&self.events[place(self.done)..place(until)], until);
        for event in &mut missing {
            self.counts.late += u64::from(event.time < self.passed);
            event.time = event.time.max(self.passed);
            self.counts.restored += u64::from(self.kept.contains(&event.time));
        }
        if !missing.is_empty() {
            self.events.append(&mut missing);
            self.events.sort_by_key(|event| event.time);
        }
    }

    /// Passes on only the events of this time from now on.
    pub(crate) fn keep(&mut self, time: RangeInclusive<Nanos>) {
        self.kept = time;
    }

    /// The last time of which events are passed on.
    pub(crate) fn last(&self) -> Nanos {
        *self.kept.end()
    }

    /// The task that was on each CPU when the kept time began, by the last switch before it or the first one after it;
    /// `None` if a loss came between, or if that task cannot have been there, as it was forked or elsewhere meanwhile:
    /// the switch to it was not recorded.
    pub(crate) fn at_start(&self) -> BTreeMap<CpuId, Option<Tid>> {
        let (before, after) = self.events.split_at(self.events.partition_point(|e| e.time < *self.kept.start()));
        let mut known = BTreeMap::new();
        for event in before {
            match event.what {
                Payload::Switch { next, .. } => known.insert(event.cpu, Some(next)),
                Payload::Lost { .. } => known.remove(&event.cpu),
                _ => continue,
            };
        }
        let mut came = BTreeSet::new();
        for event in after {
            match event.what {
                Payload::Switch { prev, next, .. } => {
                    known.entry(event.cpu).or_insert(Some(prev).filter(|prev| *prev == 0 || !came.contains(prev)));
                    came.extend([prev, next]);
                }
                Payload::Fork { child: tid, .. } | Payload::Migrate { tid, .. } => _ = came.insert(tid),
                Payload::Lost { .. } => _ = known.entry(event.cpu).or_insert(None),
                _ => {}
            }
        }
        known
    }

    /// Everything before this time has been passed on.
    pub(crate) fn reached(&self) -> Nanos {
        self.passed
    }

    /// Passes on what has arrived, up to the time before which switches may yet be restored. Names come before the
    /// events that need them.
    pub(crate) fn pass_on(&mut self, tasks: &mut Tasks, sink: &mut dyn Sink) {
        let held = self.restores() && self.done < Nanos::MAX;
        let until = if held { self.done.saturating_sub(HOLD) } else { self.done };
        let ready = self.events.partition_point(|event| event.time < until);
        let named = self.named.partition_point(|(time, _)| *time < until);
        let (first, last) = self.kept.clone().into_inner();
        let early = self.events.partition_point(|event| event.time < first).min(ready);
        let late = self.events.partition_point(|event| event.time <= last).clamp(early, ready);
        let mut rest = &self.events[early..late];
        let explained = self.calls.as_mut().map(|calls| calls.explain(rest));
        rest = explained.as_deref().unwrap_or(rest);
        self.counts.events += rest.iter().filter(|e| !matches!(e.what, Payload::Lost { .. })).count() as u64;
        for (time, change) in self.named.drain(..named).take_while(|(time, _)| *time <= last) {
            let time = time.max(first);
            let (before, after) = rest.split_at(rest.partition_point(|event| event.time < time));
            if !before.is_empty() {
                sink.events(before);
            }
            rest = after;
            tasks.change(time, change, sink);
        }
        if !rest.is_empty() {
            sink.events(rest);
        }
        self.events.drain(..ready);
        self.passed = self.passed.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::NameRecord;
    use schedlab_trace::format::Format;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    const EXIT: &str = "name: sched_process_exit\nID: 9\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n";

    /// Collects the times of events.
    #[derive(Default)]
    struct Times(Vec<Nanos>);

    impl Sink for Times {
        fn events(&mut self, batch: &[Event]) {
            self.0.extend(batch.iter().map(|event| event.time));
        }

        fn name(&mut self, _: &NameRecord) {}
    }

    #[test]
    fn only_the_kept_time_is_passed_on() {
        let mut merge = merge();
        merge.page(0, &page(&[100, 200, 300, 400, 500], 5, 0), 0);
        merge.keep(200..=400);
        let mut times = Times::default();
        for until in [301, Nanos::MAX] {
            merge.order(until);
            merge.pass_on(&mut Tasks::new(None), &mut times);
        }
        assert_eq!(times.0, [200, 300, 400]);
    }

    #[test]
    fn the_last_switch_before_the_kept_time_says_what_runs() {
        let mut merge = merge();
        let switch = |time, cpu, prev, next| {
            let what = Payload::Switch {
                prev,
                next,
                prev_state: schedlab_base::TaskState::Runnable,
                prev_prio: 120,
                next_prio: 120,
            };
            Event { time, cpu, what }
        };
        merge.events = vec![switch(1, 0, 7, 8), switch(2, 0, 8, 9), switch(5, 0, 9, 0), switch(6, 1, 4, 5)];
        merge.keep(3..=Nanos::MAX);
        assert_eq!(merge.at_start(), BTreeMap::from([(0, Some(9)), (1, Some(4))]));
        // 8 ran elsewhere and 6 was forked before the first switch of these CPUs: switches to them were not recorded.
        let fork = Event { time: 4, cpu: 0, what: Payload::Fork { parent: 9, child: 6 } };
        merge.events = vec![switch(3, 0, 8, 9), fork, switch(5, 1, 6, 0), switch(6, 2, 8, 0), switch(7, 3, 0, 1)];
        assert_eq!(merge.at_start(), BTreeMap::from([(0, Some(8)), (1, None), (2, None), (3, Some(0))]));
    }

    #[test]
    fn a_switch_that_an_idle_task_hides_is_in_its_place() {
        use schedlab_base::TaskState::Runnable;
        const FORMAT: &str = "name: sched_stat_runtime\nID: 21\nformat:\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:u64 runtime;\toffset:16;\tsize:8;\tsigned:0;\n";
        const MS: Nanos = 1_000_000;
        let mut merge = merge();
        merge.restore(Restore::default());
        merge.use_runtimes(Some(&Format::parse(FORMAT).unwrap()));
        let left = Payload::Switch { prev: 5, prev_prio: 110, prev_state: Runnable, next: 0, next_prio: 120 };
        merge.push(Event { time: 10 * MS, cpu: 1, what: left });
        let mut raw = [21, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0].to_vec();
        raw.extend([0; 4]);
        raw.extend((9 * MS).to_le_bytes());
        merge.restore.as_mut().unwrap().read(1, 40 * MS, &raw);
        merge.page(0, &page(&[20 * MS, 35 * MS], 5, 0), 0);
        let at = |cpu: CpuId, ms: Nanos| format!("{} cpu{cpu}", ms * MS);
        assert_eq!(pass(&mut merge, 38 * MS), [at(1, 10)], "the rest is held back");
        assert_eq!(pass(&mut merge, 5 * MS), [""; 0], "a buffer was not emptied");
        let name = format!("{} name 5", 20 * MS);
        assert_eq!(pass(&mut merge, 100 * MS), [name, at(0, 20), at(1, 31), at(0, 35)]);
        assert_eq!((merge.counts.events, merge.counts.restored, merge.counts.late), (4, 1, 0));
    }

    fn merge() -> Merge {
        let decoder = Decoder::new([Format::parse(EXIT).unwrap()]).unwrap();
        Merge::new(PageLayout::parse(HEADER, false).unwrap(), decoder, Changes::new(Vec::new()))
    }

    /// A page with an exit of task `tid` at each of these times, and with `flags` in its commit word.
    fn page(times: &[u64], tid: i32, flags: u64) -> Vec<u8> {
        let mut bytes = times[0].to_le_bytes().to_vec();
        bytes.extend(((times.len() as u64 * 36) | flags).to_le_bytes());
        let mut before = times[0];
        for time in times {
            bytes.extend((((time - before) as u32) << 5 | 8).to_le_bytes());
            bytes.extend([9, 0, 0, 0, 1, 0, 0, 0]);
            bytes.extend(*b"task\0\0\0\0\0\0\0\0\0\0\0\0");
            bytes.extend(tid.to_le_bytes());
            bytes.extend(120i32.to_le_bytes());
            before = *time;
        }
        bytes.extend(77u64.to_le_bytes());
        bytes
    }

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Sink for Seen {
        fn events(&mut self, batch: &[Event]) {
            for e in batch {
                self.0.push(match e.what {
                    Payload::Lost { count } => format!("{} cpu{} lost {count}", e.time, e.cpu),
                    _ => format!("{} cpu{}", e.time, e.cpu),
                });
            }
        }
        fn name(&mut self, record: &NameRecord) {
            self.0.push(format!("{} name {}", record.time, record.tid));
        }
    }

    fn pass(merge: &mut Merge, until: u64) -> Vec<String> {
        let mut tasks = Tasks::new(None);
        let mut seen = Seen::default();
        merge.order(until);
        merge.pass_on(&mut tasks, &mut seen);
        seen.0
    }

    #[test]
    fn events_are_sorted_and_names_precede_them() {
        let mut m = merge();
        assert_eq!(m.page(0, &page(&[10, 30, 50], 5, 0), 0), 50);
        m.page(1, &page(&[20, 40], 6, 0), 0);
        assert_eq!(pass(&mut m, 40), ["10 name 5", "10 cpu0", "20 name 6", "20 cpu1", "30 cpu0"]);
        assert_eq!(pass(&mut m, 100), ["40 cpu1", "50 cpu0"]);
        assert_eq!((m.counts.events, m.counts.late), (5, 0));
    }

    #[test]
    fn an_event_that_comes_late_is_counted_and_keeps_the_order() {
        let mut m = merge();
        m.page(0, &page(&[50], 5, 0), 0);
        pass(&mut m, 60);
        m.page(1, &page(&[40, 70], 5, 0), 0);
        assert_eq!(pass(&mut m, 100), ["60 cpu1", "70 cpu1"]);
        assert_eq!(m.counts.late, 1);
    }

    #[test]
    fn a_loss_is_marked_where_it_happened() {
        let mut m = merge();
        m.page(3, &page(&[10], 5, 3 << 30), 0);
        m.page(3, &[1, 2, 3], 10);
        assert_eq!(pass(&mut m, 100), ["10 name 5", "10 cpu3 lost 77", "10 cpu3", "10 cpu3 lost 0"]);
        assert_eq!((m.counts.lost, m.counts.gaps, m.counts.events, m.lost[&3]), (77, 2, 1, 77));
    }

    #[test]
    fn a_loss_begins_with_the_last_event_before_it() {
        let mut m = merge();
        m.page(3, &page(&[10], 5, 0), 0);
        m.page(1, &page(&[50], 5, 0), 0);
        m.page(3, &page(&[90], 5, 3 << 30), 10);
        assert_eq!(pass(&mut m, 60), ["10 name 5", "10 cpu3", "10 cpu3 lost 77", "50 cpu1"]);
        // What was passed on already is not taken back.
        m.page(3, &page(&[95], 5, 3 << 30), 20);
        assert_eq!(pass(&mut m, 100), ["60 cpu3 lost 77", "90 cpu3", "95 cpu3"]);
    }
}
