//! Makes a recording: sets up an instance, drains it in one loop, writes the stream, and removes everything again.

use crate::asked::{self, Asked};
use crate::calls::Calls;
use crate::changes::{self, Change, Changes};
use crate::cpustat::CpuTimes;
use crate::drain::Drain;
use crate::facts;
use crate::frequencies::Frequencies;
use crate::host::places;
use crate::instance::Instance;
use crate::load::{Load, check_processes};
use crate::mask::Mask;
use crate::merge::Merge;
use crate::prepare::{Options, buffer_kib, enable_calls, enable_events, enable_runtimes, follow, meta, page_layout};
use crate::procfs;
use crate::promotion::Promotion;
use crate::recorded::{Ending, Output, Progress, Recorded};
use crate::restore::Restore;
use crate::runnable::online;
use crate::sched_attr::SchedAttr;
use crate::sys::{self, Signals};
use crate::tasks::Tasks;
use crate::tracefs::Tracefs;
use schedlab_base::{CpuId, Error, Meta, Nanos, Result, Sink, Target, Tid};
use schedlab_trace::format::{Decoder, Format};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The fill level of a buffer, in percent, at which the kernel wakes the recorder.
const WAKE_PERCENT: u64 = 25;
/// The shortest and the longest time between two drains.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(250);
/// The longest time between two drains while tasks' files are looked up, since tasks may end soon.
const LOOKING: Duration = Duration::from_millis(20);
/// The longest time between two drains of a quiet recording, and until the first.
const QUIET: Duration = Duration::from_secs(10);
/// The longest time until the head of the file is written.
const FIRST: Duration = Duration::from_millis(40);
/// The longest time from an event until it is in its buffer. Within it, a virtual machine's CPU can be taken away.
const SETTLE: Nanos = 10_000_000;
/// How long the recorder sleeps on each CPU before it begins, so that each has an idle task to be seen or not.
const NAP: Duration = Duration::from_micros(100);
/// The longest time that these naps may take all together: a CPU may be crowded.
const NAPS: Duration = Duration::from_millis(100);
/// How often recorded events are flushed to the file.
const FLUSH: Nanos = 1_000_000_000;
/// How often tasks are looked at again if the kernel does not report the system calls that change them.
const LOOK: Nanos = 200_000_000;

/// A recording that is set up and ready to start.
///
/// Its tracefs instance is removed when it is dropped, or by a guard process if this process is killed.
pub struct Recorder {
    options: Options,
    meta: Meta,
    signals: Signals,
    drain: Drain,
    merge: Merge,
    tasks: Tasks,
    /// Whether /proc uses the same task ids as the events.
    counts_alike: bool,
    /// The threads that the kernel was asked to record alone.
    followed: BTreeSet<Tid>,
    buffer_bytes: usize,
    /// The time of the last event in each buffer.
    last: Vec<Nanos>,
    /// The times that no event reports, if they are recorded.
    times: Option<CpuTimes>,
    /// The frequencies of CPUs, if they are recorded.
    frequencies: Option<Frequencies>,
    instance: Instance,
    /// The instance is in this mount, so it is dropped after the instance.
    _tracefs: Tracefs,
}

impl Recorder {
    /// Sets everything up: the instance, its events, clock and buffers. Nothing is recorded yet.
    ///
    /// # Errors
    /// When a right is missing (the error names it), a process does not exist, or the buffer size is out of range.
    pub fn new(options: Options) -> Result<Self> {
        let proc = Path::new("/proc");
        let counts_alike = procfs::counts_as_the_kernel(proc);
        if !counts_alike && !options.processes.is_empty() {
            let mend = match &options.label {
                Some(_) => "run it outside of the container, or without recording (--no-record)",
                None => "choose processes from outside, or record everything",
            };
            return Err(Error::not_permitted("this is a container: its process ids are not the kernel's").mend(mend));
        }
        check_processes(proc, &options.processes)?;
        let frequencies = options.freq.then(|| Frequencies::new(Path::new("/sys"))).transpose()?;
        let tracefs = Tracefs::open()?;
        crate::instance::remove_stale(&tracefs);
        let signals = Signals::take().map_err(|e| Error::system("cannot take signals", &e))?;
        let instance = Instance::new(&tracefs)?;
        let (places, distances) = places();
        let buffer_kib = buffer_kib(options.buffer_kib, places.len() as u64)?;
        instance.drop_saved_names(&tracefs);
        instance.write("trace_clock", "mono")?;
        instance.write("buffer_size_kb", &buffer_kib.to_string())?;
        if instance.has("buffer_percent") {
            instance.write("buffer_percent", &WAKE_PERCENT.to_string())?;
        }
        let followed = if options.only { follow(&instance, proc, &options.processes)? } else { BTreeSet::new() };
        let formats = enable_events(&instance, &options)?;
        let calls = if options.why { Calls::new(&enable_calls(&instance)?, proc) } else { None };
        let traced = formats.iter().any(|f| f.name == "irq_handler_exit");
        let layout = page_layout(&tracefs, &instance)?;
        let drain = Drain::new(instance.buffers()?, layout.page_bytes())?;
        let (ours, sched): (Vec<Format>, Vec<Format>) =
            formats.into_iter().partition(|f| changes::EVENTS.iter().any(|(_, name)| *name == f.name));
        let asked = ours.iter().find(|format| format.name == asked::EVENT && !options.quiet);
        // Where it is refused, only what lives until it is looked at is known to be bound.
        let asked = asked.and_then(|event| Asked::new(event, online()).ok());
        let meta = Meta { distances, ..meta(&options, places, buffer_kib) };
        options.realtime.map_or(Ok(()), come_first)?;
        Ok(Self {
            merge: Merge::new(layout, Decoder::new(sched)?, Changes::new(ours).with_asked(asked)).with_calls(calls),
            tasks: Tasks::new(counts_alike.then(|| proc.to_path_buf())),
            counts_alike,
            followed,
            buffer_bytes: (buffer_kib << 10) as usize,
            last: vec![0; drain.len()],
            frequencies,
            times: options.irq.then(|| CpuTimes::new(proc, traced)),
            meta,
            signals,
            drain,
            instance,
            _tracefs: tracefs,
            options,
        })
    }

    /// Records until something ends the recording. `open` creates the output when the metadata is known, a moment after
    /// the start. `progress` is called a few times a second.
    ///
    /// # Errors
    /// When the command cannot be started, the output fails, or the kernel refuses an operation during the recording.
    pub fn record<O: Output>(
        self,
        open: impl FnOnce(&Meta) -> Result<O>,
        progress: impl FnMut(Progress),
    ) -> Result<(O::Done, Recorded)> {
        self.record_from(|| Ok(None), open, progress)
    }

    /// As [`Recorder::record`]. When recording is on, `begin` starts what is to be recorded and says when that began,
    /// by the monotonic clock. The recording then has nothing from before that time, and nothing from after the
    /// duration, if there is one.
    ///
    /// # Errors
    /// As for [`Recorder::record`], and when `begin` fails.
    pub fn record_from<O: Output>(
        mut self,
        begin: impl FnOnce() -> Result<Option<Nanos>>,
        open: impl FnOnce(&Meta) -> Result<O>,
        mut progress: impl FnMut(Progress),
    ) -> Result<(O::Done, Recorded)> {
        let promotion = Promotion::watch(&self.drain, &self.instance)?;
        let (mut start, found) = self.turn_on()?;
        if let Some(begun) = begin()? {
            start = begun;
            let last = self.options.duration.map_or(Nanos::MAX, |duration| start.saturating_add(duration));
            self.merge.keep(start..=last);
        }
        self.meta.span = Some((start, start));
        let mut load = match self.options.command.as_slice() {
            [] => None,
            command => Some(Load::start(command, self.options.command_to_stderr, &self.signals)?),
        };
        self.wait(start, FIRST)?;
        let first = self.drain()?;
        self.merge.order(first);
        self.meta.target = self.target(&found, load.as_ref());
        self.meta.running = self.running(&found);
        let mut output = open(&self.meta)?;
        self.tasks.begin(&found, &mut output);
        self.pass_on(&mut output);
        let (mut flushed, mut looked) = (start, start);
        let ending = loop {
            let now = sys::monotonic();
            if now - looked >= self.looks() {
                self.tasks.look_again(self.merge.reached(), &mut output);
                looked = now;
            }
            if now - flushed >= FLUSH && !self.options.quiet {
                output.flush()?;
                flushed = now;
            }
            let counts = self.merge.counts;
            progress(Progress { events: counts.events, lost: counts.lost });
            if let Some(ending) = self.ending(now - start, load.as_mut()) {
                break ending;
            }
            self.wait(start, LONGEST)?;
            let until = self.drain()?;
            self.merge.order(until);
            self.pass_on(&mut output);
        };
        let end = self.finish(&mut output)?;
        let [promoted_ns, highest_ns] = promotion.since().map(|at| Some(at?.saturating_sub(start)));
        drop(promotion);
        let done = output.finish()?;
        let Self { instance, drain, signals, merge, .. } = self;
        drop(drain);
        drop(instance);
        let command = load.as_mut().map(|load| {
            if ending == Ending::Duration {
                load.signal(libc::SIGTERM);
            }
            load.wait(&signals)
        });
        let crate::merge::Counts { events, lost, gaps, late, restored } = merge.counts;
        let duration_ns = end.saturating_sub(start);
        let recorded =
            Recorded { events, lost, gaps, late, restored, promoted_ns, highest_ns, duration_ns, ending, command };
        Ok((done, recorded))
    }

    /// Turns recording on. Returns when it began, and the tasks that were there.
    fn turn_on(&mut self) -> Result<(Nanos, Vec<procfs::Task>)> {
        // Most of /proc is read before, so that reading it is not part of the recording.
        let proc = Path::new("/proc");
        let before = if self.counts_alike { procfs::tasks(proc, &[]) } else { Vec::new() };
        self.meta.system = Some(facts::of(Path::new("/"), procfs::base_slice(&before), sys::tick()));
        self.instance.switch(true)?;
        if !self.options.only && !self.options.at_once {
            self.look_for_idle_tasks(&before)?;
        }
        if self.merge.restores() {
            let note = "hidden; switches from them are restored by sched_stat_runtime";
            self.meta.notes.insert("idle_tasks".to_owned(), note.to_owned());
        }
        let start = sys::monotonic();
        self.merge.keep(start..=Nanos::MAX);
        let found = if self.counts_alike { procfs::tasks(proc, &before) } else { Vec::new() };
        self.tasks.read_groups(&found);
        Ok((start, found))
    }

    /// Finds out whether this machine hides idle tasks, by a nap on each CPU: the first brings one there, and when the
    /// second begins, it shows who was seen to come back.
    fn look_for_idle_tasks(&mut self, tasks: &[procfs::Task]) -> Result<()> {
        let prios = tasks.iter().filter_map(|task| Some((task.tid, task.properties.prio()?)));
        self.merge.restore(Restore::new(prios));
        nap_on_each_cpu();
        self.take_pages()?;
        self.account_if_hidden()
    }

    /// Has the kernel account CPU time once it is known that idle tasks are hidden.
    fn account_if_hidden(&mut self) -> Result<()> {
        if self.merge.needs_runtimes() {
            let format = enable_runtimes(&self.instance)?;
            self.merge.use_runtimes(format.as_ref());
        }
        Ok(())
    }

    /// How often tasks are looked at again. Where the calls that change tasks are events, a quiet recording never does.
    fn looks(&self) -> Nanos {
        match (self.merge.has_calls(), self.options.quiet) {
            (true, true) => Nanos::MAX,
            (true, false) => FLUSH,
            (false, _) => LOOK,
        }
    }

    /// The longest time until the next drain, which is `usual` unless the recording is quiet. One that ends with its
    /// processes looks for their end.
    fn pause(&self, usual: Duration) -> Duration {
        match (self.options.quiet, self.options.duration) {
            (true, Some(_)) => QUIET,
            (true, None) => LONGEST,
            (false, _) if self.options.why => usual.min(LOOKING),
            (false, _) => usual,
        }
    }

    /// Waits until the buffers are to be drained. A quiet recording that ends with its processes only looks for their
    /// end until then.
    fn wait(&mut self, start: Nanos, usual: Duration) -> Result<()> {
        let begun = sys::monotonic();
        loop {
            let woken = self.sleep(start, self.pause(usual))?;
            let goes_on = self.options.quiet && self.options.duration.is_none() && self.load_runs();
            if woken || !goes_on || Duration::from_nanos(sys::monotonic() - begun) > QUIET {
                return Ok(());
            }
        }
    }

    /// Whether one of the processes runs that the recording is about.
    fn load_runs(&self) -> bool {
        self.options.processes.iter().any(|pid| procfs::runs(Path::new("/proc"), *pid))
    }

    /// Waits until a buffer fills, a signal arrives or the time is over; whether it was not the time. At first it
    /// ignores the buffers for a moment, because some kernels report a buffer as readable at its first event.
    fn sleep(&mut self, start: Nanos, longest: Duration) -> Result<bool> {
        let failed = |e: std::io::Error| Error::system("cannot wait for events", &e);
        let left = |now: Nanos| match self.options.duration {
            Some(duration) => Duration::from_nanos((start + duration).saturating_sub(now)),
            None => longest,
        };
        let signal = self.signals.raw_fd();
        let pause = SHORTEST.min(left(sys::monotonic()));
        sys::wait_readable(std::iter::once(signal), pause).map_err(failed)?;
        let rest = longest.saturating_sub(SHORTEST).min(left(sys::monotonic()));
        let changes = self.tasks.cgroups().descriptor();
        let descriptors = std::iter::once(signal).chain(changes).chain(self.drain.descriptors());
        sys::wait_readable(descriptors, rest).map_err(failed)
    }

    /// Takes the time that was stolen from CPUs, which no event reports.
    fn look_at_times(&mut self) {
        if let Some(times) = &mut self.times {
            let events = times.look(Path::new("/proc"), sys::monotonic());
            events.into_iter().for_each(|event| self.merge.add(event));
        }
    }

    /// Takes the frequencies that CPUs have now, which not every driver reports by an event.
    fn look_at_frequencies(&mut self) {
        if let Some(frequencies) = &mut self.frequencies {
            frequencies.look(sys::monotonic()).into_iter().for_each(|event| self.merge.add(event));
        }
    }

    /// Takes the changes of cgroups, which no event reports.
    fn look_at_cgroups(&mut self) {
        let now = sys::monotonic();
        for (path, properties) in self.tasks.cgroups().changed() {
            self.merge.change(now, Change::Group { path, properties });
        }
    }

    /// Takes what no event reports.
    fn look_around(&mut self) {
        self.tasks.renew();
        self.look_at_cgroups();
        self.look_at_times();
        self.look_at_frequencies();
    }

    /// Empties the buffers into the merge. All events before the returned time have now arrived.
    fn drain(&mut self) -> Result<Nanos> {
        self.look_around();
        let until = self.take_pages()?;
        self.account_if_hidden()?;
        Ok(until)
    }

    /// Empties the buffers into the merge, as [`Recorder::drain`] does.
    fn take_pages(&mut self) -> Result<Nanos> {
        let mut until = sys::monotonic().saturating_sub(SETTLE);
        for index in 0..self.drain.len() {
            let (cpu, merge, last) = (self.drain.cpu(index), &mut self.merge, &mut self.last[index]);
            let emptied = self.drain.drain(index, self.buffer_bytes, |page| *last = merge.page(cpu, page, *last))?;
            if !emptied {
                until = until.min(*last);
            }
        }
        Ok(until)
    }

    /// Passes on what is in order, and then what is known of tasks that were in doubt.
    fn pass_on(&mut self, output: &mut dyn Sink) {
        self.merge.pass_on(&mut self.tasks, output);
        self.tasks.settle(self.merge.reached(), output);
    }

    /// Stops the kernel's recording and passes on the rest, with a marker for losses that no page has reported.
    fn finish(&mut self, output: &mut dyn Sink) -> Result<Nanos> {
        self.instance.switch(false)?;
        let end = sys::monotonic().min(self.merge.last());
        self.look_around();
        for index in 0..self.drain.len() {
            let (cpu, merge, last) = (self.drain.cpu(index), &mut self.merge, &mut self.last[index]);
            self.drain.drain_rest(index, |page| *last = merge.page(cpu, page, *last))?;
            let reported = self.merge.lost.get(&cpu).copied().unwrap_or(0);
            let unreported = self.instance.lost(cpu).saturating_sub(reported);
            if unreported > 0 {
                self.merge.lose(cpu, end, unreported);
            }
        }
        self.merge.order(Nanos::MAX);
        self.merge.pass_on(&mut self.tasks, output);
        self.tasks.settle(end, output);
        output.lasts(end);
        Ok(end)
    }

    /// Returns why the recording is over, or `None` if it goes on.
    fn ending(&mut self, elapsed: Nanos, load: Option<&mut Load>) -> Option<Ending> {
        let mut load = load;
        while let Some(signal) = self.signals.next() {
            if signal.number == libc::SIGCHLD {
                continue;
            }
            // A terminal sends Ctrl-C to the command as well.
            if let (Some(load), false) = (&mut load, signal.from_kernel) {
                load.signal(signal.number);
            }
            return Some(Ending::Signal);
        }
        if load.as_mut().is_some_and(|load| load.poll().is_some()) {
            Some(Ending::Command)
        } else if self.options.duration.is_some_and(|duration| elapsed >= duration) {
            Some(Ending::Duration)
        } else if !self.options.processes.is_empty() && !self.load_runs() {
            Some(Ending::Processes)
        } else {
            None
        }
    }

    /// The tasks that the recording is about: the command, or the processes with their threads and descendants. None in
    /// a container, where the command's id is not the one in the events.
    fn target(&self, found: &[procfs::Task], load: Option<&Load>) -> Option<Target> {
        let command = load.map(|load| (load.pid(), self.meta.notes.get("command").cloned()));
        match command {
            Some((pid, command)) if self.counts_alike => {
                Some(Target { command, processes: vec![pid], threads: vec![pid] })
            }
            None if !self.options.processes.is_empty() => {
                let processes = self.options.processes.clone();
                let threads = procfs::family(found, &processes).union(&self.followed).copied().collect();
                Some(Target { command: self.options.label.clone(), processes, threads })
            }
            _ => None,
        }
    }

    /// The task on each CPU at the start: the task that left the CPU at its first switch, or, if there was no switch
    /// yet, its only runnable task. If some processes are recorded alone, only their tasks are known.
    fn running(&self, found: &[procfs::Task]) -> Vec<(CpuId, Tid)> {
        let mut known: BTreeMap<CpuId, Option<Tid>> = BTreeMap::new();
        if !found.is_empty() {
            let cpus = self.meta.cpus.iter().map(|place| place.cpu);
            known.extend(procfs::running(found, cpus).into_iter().map(|(cpu, tid)| (cpu, Some(tid))));
        }
        known.extend(self.merge.at_start());
        let mut running: Vec<_> = known.into_iter().filter_map(|(cpu, tid)| Some((cpu, tid?))).collect();
        if let (true, Some(target)) = (self.options.only, &self.meta.target) {
            running.retain(|(_, tid)| target.threads.contains(tid));
        }
        running
    }
}

/// Lets a thread sleep twice on each CPU that this one may use, in turn. Whoever keeps it from a CPU for long, such as
/// a real-time task that never sleeps, does not keep the recorder: the thread then ends once it gets there.
fn nap_on_each_cpu() {
    let Ok(allowed) = Mask::present() else { return };
    let (goes_on, next) = mpsc::channel();
    let naps = move || {
        for cpu in allowed.iter() {
            if goes_on.send(()).is_err() {
                return;
            }
            Mask::only(cpu).set();
            std::thread::sleep(NAP);
            std::thread::sleep(NAP);
        }
    };
    let until = Instant::now() + NAPS;
    let Ok(thread) = std::thread::Builder::new().spawn(naps) else { return };
    let over = loop {
        if let Err(over) = next.recv_timeout(until.saturating_duration_since(Instant::now())) {
            break over;
        }
    };
    if over == mpsc::RecvTimeoutError::Disconnected {
        let _ = thread.join();
    }
}

/// Gives this thread a real-time priority, which neither the command nor anything else that it starts inherits.
fn come_first(priority: u32) -> Result<()> {
    SchedAttr::fifo(priority).set().map_err(|e| match e.raw_os_error() {
        Some(libc::EPERM) => {
            Error::not_permitted(format!("the kernel refuses the recorder real-time priority {priority} (EPERM)"))
                .mend("give the process CAP_SYS_NICE and its cgroup a real-time budget, or leave --realtime out")
        }
        _ => Error::system(format!("cannot give the recorder real-time priority {priority}"), &e),
    })
}
