//! Writes down what each task did, as the tracker tells it: its bursts, its blocks, and whom it woke and forked.

use super::cause::{NO_WAKER, Pairs};
use super::cores::Cores;
use super::costs::Times;
use super::habits::Silence;
use super::handoffs::Handoffs;
use super::identity::Identity;
use super::joins::Families;
use super::life::{Begin, Place, Seat, Task};
use super::past::Past;
use super::rooms::MOST_RUNS;
use super::sequence::{NOBODY, TaskIx, Token, push};
use super::taken::Taken;
use super::unseen::Fed;
use super::yields::Yields;
use schedlab_base::{AffinityRecord, CpuId, Interrupt, NameRecord, Nanos, Sleep, TaskRecord, TaskState, Tid};
use schedlab_track::{Move, Observer, Occupant, Slot, Start, Stop, Wake, row};
use std::sync::Arc;

/// Tasks beyond this number are not modelled.
pub(super) const MOST_TASKS: usize = 1 << 16;

/// What all tasks did along a trace.
#[derive(Debug, Default)]
pub(super) struct Track {
    pub tasks: Vec<Task>,
    pub pairs: Pairs,
    /// Bursts that may have had several messages.
    pub fed: Vec<Fed>,
    /// What these hold.
    pub fed_entries: usize,
    /// How many steps from one wake-up to the next are kept.
    pub steps: usize,
    /// How many stretches of running are.
    pub runs: usize,
    /// Bursts whose messages may not have shown.
    pub silence: Silence,
    pub families: Families,
    pub handoffs: Handoffs,
    pub yields: Yields,
    /// Tokens in all sequences.
    pub tokens: usize,
    /// Sightings of tasks beyond the limit.
    pub beyond: u64,
    /// What interrupts took from each CPU.
    pub taken: Taken,
    /// How many turns have begun.
    pub turns: u64,
    /// The task on each CPU, where known.
    pub on: Vec<Option<Slot>>,
    pub seats: Vec<Seat>,
    pub cores: Cores,
    /// The time between two ticks, where known.
    pub tick: Option<Nanos>,
    start: Nanos,
    lossy: bool,
    /// The trace has the requests for wake-ups, and that they are done.
    pub wakings: bool,
    pub wakeups: bool,
    /// The model has the costs of wake-ups.
    pub has_costs: bool,
    /// How long it took tasks to tell idle CPUs that they wake somebody there.
    pub sent: Times,
    /// The window is over: what is told now only says more of the time before.
    pub closed: bool,
}

impl Track {
    /// `tick`: the time between two ticks, if known. `has_costs` says that the model has the costs of wake-ups.
    pub(super) fn new(cores: Cores, tick: Option<Nanos>, has_costs: bool) -> Self {
        Self { cores, tick, has_costs, ..Self::default() }
    }

    /// The modelled task; made, with this beginning, if there is none or it has ended.
    fn lookup(&mut self, slot: Slot, begin: Begin, place: Place) -> Option<TaskIx> {
        match row(&mut self.seats, slot).ix {
            Some(ix) if self.tasks[ix as usize].place != Place::Dead => Some(ix),
            _ => self.create(slot, begin, place),
        }
    }

    fn create(&mut self, slot: Slot, begin: Begin, place: Place) -> Option<TaskIx> {
        let room = self.tasks.len() < MOST_TASKS;
        let seat = row(&mut self.seats, slot);
        if seat.stopper {
            return None;
        }
        seat.ix = room.then_some(self.tasks.len() as TaskIx);
        if !room {
            self.beyond += 1;
            return None;
        }
        let identity = seat.identity.clone().unwrap_or_default();
        let past = Past::of(self.start, begin);
        self.tasks.push(Task { home: seat.cpu, past, ..Task::new(slot, seat.tid, identity, begin, place) });
        seat.ix
    }

    /// The modelled task, [`NOBODY`] where there is none.
    pub(super) fn index(&self, slot: Option<Slot>) -> TaskIx {
        slot.and_then(|slot| self.seats.get(slot as usize)?.ix).unwrap_or(NOBODY)
    }

    fn task(&mut self, slot: Slot) -> Option<&mut Task> {
        let ix = self.index(Some(slot));
        self.tasks.get_mut(ix as usize)
    }

    pub(super) fn push(&mut self, ix: TaskIx, token: Token) {
        let sequence = &mut self.tasks[ix as usize].sequence;
        let before = sequence.len();
        push(sequence, token);
        self.tokens += sequence.len() - before;
    }

    /// Counts the CPU time of a running task up to `now`.
    pub(super) fn charge(&mut self, ix: TaskIx, on: CpuId, now: Nanos) {
        let task = &mut self.tasks[ix as usize];
        let Place::Running { cpu, since } = task.place else { return };
        if cpu != on || now <= since {
            return;
        }
        let ns = now - since;
        task.place = Place::Running { cpu, since: now };
        task.run = task.run.saturating_add(ns);
        task.past.runs(since, now);
        task.burst = task.burst.saturating_add(ns);
        if let Some((_, run)) = task.identities.last_mut() {
            *run = run.saturating_add(ns);
        }
        match task.prios.iter().position(|(prio, _)| *prio == task.prio) {
            Some(at) => task.prios[at].1 = task.prios[at].1.saturating_add(ns),
            None if task.prios.len() < 8 => task.prios.push((task.prio, ns)),
            None => {}
        }
        let work = self.cores.count(on, ns, now);
        if !task.owes.is_empty() {
            task.sending += work;
            return;
        }
        self.works(ix, (since, now), work);
    }

    /// A task has done some work.
    pub(super) fn works(&mut self, ix: TaskIx, (since, now): (Nanos, Nanos), work: Nanos) {
        let task = &mut self.tasks[ix as usize];
        let before = task.work;
        task.work = task.work.saturating_add(work);
        if self.runs < MOST_RUNS {
            self.runs += usize::from(task.progress.runs((since, now), (before, task.work)));
        }
        self.push(ix, Token::Run(work));
    }

    /// Counts the CPU time of a task up to `now`, if it runs. Whether it does.
    pub(super) fn charge_up_to(&mut self, ix: TaskIx, now: Nanos) -> bool {
        let Some(&Task { place: Place::Running { cpu, .. }, .. }) = self.tasks.get(ix as usize) else { return false };
        self.charge(ix, cpu, now);
        true
    }

    /// A running task ends.
    fn comes_to_its_end(&mut self, task: Slot, signal: Option<u16>, now: Nanos) {
        let ix = self.index(Some(task));
        if !self.closed && self.charge_up_to(ix, now) {
            self.tasks[ix as usize].exits(signal, self.start, now);
        }
    }

    /// The task is on this CPU or its queue, or was when it fell asleep.
    fn is_at(&mut self, slot: Slot, cpu: CpuId) {
        let seat = row(&mut self.seats, slot);
        seat.cpu = Some(cpu);
        if let Some(ix) = seat.ix {
            self.tasks[ix as usize].home.get_or_insert(cpu);
        }
    }

    fn seen_on(&mut self, ix: TaskIx, cpu: CpuId) {
        self.is_at(self.tasks[ix as usize].slot, cpu);
        let task = &mut self.tasks[ix as usize];
        if task.only_cpu.is_some_and(|only| only != cpu) {
            task.moved = true;
        }
        task.only_cpu = (!task.moved).then_some(cpu);
    }

    /// Puts a task on a CPU; one whose wake-up was missed slept until now.
    fn start_run(&mut self, ix: TaskIx, cpu: CpuId, now: Nanos) {
        self.is_awake(ix, cpu, now);
        let turn = self.next_turn();
        self.receive(ix, |receiver, own, all| receiver.starts(own, turn, all));
        self.cores.begins(cpu, now);
        let task = &mut self.tasks[ix as usize];
        (task.place, task.turn) = (Place::Running { cpu, since: now }, turn);
        self.gets_cpu(ix, now);
    }
}

impl Observer for Track {
    fn begins(&mut self, now: Nanos) {
        self.start = now;
    }

    /// The model begins here: with the tasks that run or wait, which do so from now on.
    fn opens(&mut self, now: Nanos) {
        let before = std::mem::take(&mut self.tasks);
        (self.pairs, self.tokens, self.beyond, self.start, self.lossy) = (Pairs::default(), 0, 0, now, false);
        (self.fed, self.fed_entries, self.taken) = (Vec::new(), 0, Taken::default());
        (self.steps, self.runs) = (0, 0);
        (self.silence, self.families, self.handoffs, self.yields) = Default::default();
        for slot in 0..self.seats.len() as Slot {
            let old = self.seats[slot as usize].ix.take().map(|ix| &before[ix as usize]);
            let Some(old) = old else { continue };
            let place = match old.place {
                Place::Running { cpu, .. } => Place::Running { cpu, since: now },
                Place::Ready => Place::Ready,
                // It begins when it is woken.
                Place::Blocked { .. } | Place::Dead => continue,
            };
            let (prio, cpu) = (old.prio, old.place);
            if let Some(ix) = self.create(slot, Begin::After(0), place) {
                self.tasks[ix as usize].prio = prio;
                if let Place::Running { cpu, .. } = cpu {
                    self.cores.begins(cpu, now);
                    self.seen_on(ix, cpu);
                }
            }
        }
    }

    fn closes(&mut self, now: Nanos) {
        self.ends(now);
        self.closed = true;
    }

    fn ends(&mut self, end: Nanos) {
        if self.closed {
            return;
        }
        for ix in 0..self.tasks.len() {
            self.charge_up_to(ix as TaskIx, end);
            self.is_at_its_end(ix as TaskIx, end);
            self.tasks[ix].leaves(self.start, end);
        }
    }

    fn appears(&mut self, task: Slot, tid: Tid, _: bool) {
        let seat = row(&mut self.seats, task);
        seat.tid = tid;
        if let Some(ix) = seat.ix {
            self.tasks[ix as usize].tid = tid;
        }
    }

    fn named(&mut self, task: Slot, record: &NameRecord) {
        row(&mut self.seats, task).is_named(record);
        if let Some(path) = &record.cgroup {
            self.identify(task, record.time, |identity| {
                if identity.cgroup.as_deref() != Some(path) {
                    identity.cgroup = Some(Arc::from(path.as_str()));
                }
            });
        }
    }

    fn allowed(&mut self, task: Slot, record: &AffinityRecord) {
        self.identify(task, record.time, |identity| identity.allowed = Some(record.cpus.clone()));
    }

    fn described(&mut self, task: Slot, record: &TaskRecord) {
        self.identify(task, record.time, |identity| identity.properties = record.properties.clone());
    }

    fn killed(&mut self, task: Slot, signal: u16, now: Nanos) {
        self.comes_to_its_end(task, Some(signal), now);
    }

    fn exits(&mut self, task: Slot, now: Nanos) {
        self.comes_to_its_end(task, None, now);
    }

    fn lost(&mut self, _: CpuId, _: Nanos) {
        self.lossy = true;
    }

    /// Who is on a CPU when the trace begins, was there already; all others are seen to start.
    fn occupied(&mut self, cpu: CpuId, who: Occupant, now: Nanos) {
        let on = if let Occupant::Task(task) = who { Some(task) } else { None };
        self.cores.occupied(cpu, on.is_some(), now);
        *row(&mut self.on, cpu) = on;
        if let Occupant::Task(task) = who
            && !self.closed
            && self.index(Some(task)) == NOBODY
            && self.tasks.len() < MOST_TASKS
            && let Some(ix) = self.create(task, Begin::After(now - self.start), Place::Running { cpu, since: now })
        {
            self.cores.begins(cpu, now);
            self.seen_on(ix, cpu);
        }
    }

    fn started(&mut self, task: Slot, cpu: CpuId, start: Start) {
        if self.closed {
            return;
        }
        // A task that nobody woke since the start was waiting from the start.
        let waited = !self.lossy && !start.unseen;
        let after = if waited { 0 } else { start.now - self.start };
        let Some(ix) = self.lookup(task, Begin::After(after), Place::Ready) else { return };
        self.charge_up_to(ix, start.now);
        self.seen_on(ix, cpu);
        self.start_run(ix, cpu, start.now);
        (self.tasks[ix as usize].prio, self.tasks[ix as usize].doubted) = (start.prio, start.unseen);
        self.has_prio(task, start.prio);
        self.took_over(cpu, start.prio);
    }

    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        // After the window, only a task that nobody had seen so far can have run in it.
        if self.closed && (row(&mut self.seats, task).ix.is_some() || stop.since.is_none_or(|since| since >= stop.now))
        {
            return;
        }
        let since = stop.since.unwrap_or(stop.now);
        let Some(ix) = self.lookup(task, Begin::After(since - self.start), Place::Running { cpu, since }) else {
            return;
        };
        self.seen_on(ix, cpu);
        if stop.late {
            return;
        }
        if !matches!(self.tasks[ix as usize].place, Place::Running { .. }) {
            self.start_run(ix, cpu, since);
        }
        self.tasks[ix as usize].prio = stop.prio;
        self.has_prio(task, stop.prio);
        self.charge(ix, cpu, stop.now);
        match stop.state {
            TaskState::Runnable => self.gives_up(ix, cpu, &stop),
            state => {
                self.is_at_its_end(ix, stop.now);
                self.leaves(ix, state, stop.now);
            }
        }
        self.tasks[ix as usize].place = match stop.state {
            TaskState::Runnable => Place::Ready,
            TaskState::Dead | TaskState::Zombie => Place::Dead,
            _ => Place::Blocked { since: stop.now, sure: true },
        };
    }

    /// What was thought to run does not: since it was last counted nobody knows where it is.
    fn vanished(&mut self, task: Slot, cpu: CpuId, since: Nanos) {
        let ix = self.index(Some(task));
        if self.closed || ix == NOBODY {
            return;
        }
        self.charge(ix, cpu, since);
        self.is_at_its_end(ix, since);
        let task = &mut self.tasks[ix as usize];
        if let Place::Running { since, .. } = task.place {
            task.place = Place::Blocked { since, sure: false };
            task.past.rests(since);
            task.receiver.vanishes();
        }
    }

    fn waking(&mut self, task: Slot, wake: Wake) {
        self.wakings = true;
        if self.closed {
            return;
        }
        let asleep_until = Begin::After(wake.now - self.start);
        let fresh = self.index(Some(task)) == NOBODY;
        if let Some(ix) = self.lookup(task, asleep_until, Place::Ready) {
            if fresh && wake.by.is_some() {
                // It has slept since the start, until this one woke it.
                let (asleep, task) = (Place::Blocked { since: self.start, sure: true }, &mut self.tasks[ix as usize]);
                (task.begin, task.place, task.past) = (Begin::After(0), asleep, Past::asleep(self.start));
            }
            self.is_at(task, wake.target);
            self.asked(ix, wake);
        }
    }

    fn woken(&mut self, task: Slot, wake: Wake) {
        if self.closed {
            return;
        }
        let asleep_until = Begin::After(wake.now - self.start);
        let Some(ix) = self.lookup(task, asleep_until, Place::Ready) else { return };
        self.is_at(task, wake.target);
        self.yields.joins(wake.target, wake.now);
        if wake.new {
            self.tasks[ix as usize].prio = wake.prio;
            self.wake(ix, wake.now, NO_WAKER, false);
        } else {
            self.wakeup(ix, wake);
        }
    }

    fn migrated(&mut self, task: Slot, moved: Move) {
        self.yields.joins(moved.to, moved.now);
        if !self.closed {
            [moved.from, moved.to].into_iter().for_each(|cpu| self.is_at(task, cpu));
        }
    }

    fn execs(&mut self, task: Slot, now: Nanos) {
        let ix = self.index(Some(task));
        if !self.closed && self.charge_up_to(ix, now) {
            self.push(ix, Token::Exec);
        }
    }

    fn sleeps(&mut self, task: Slot, why: Sleep) {
        self.task(task).into_iter().for_each(|task| task.sleeps = Some(why));
    }

    fn doubted(&mut self, task: Slot, _: Nanos) {
        self.task(task).into_iter().for_each(|task| task.doubted = true);
    }

    /// The task on the CPU did not run meanwhile.
    fn interrupted(&mut self, cpu: CpuId, what: (Interrupt, u16), took: Nanos, now: Nanos) {
        let task = *row(&mut self.on, cpu);
        let softirqd = task.is_some_and(|task| row(&mut self.seats, task).softirqd);
        if self.closed || !self.taken.add(cpu, what, took, now, softirqd) {
            return;
        }
        let ix = self.index(task);
        let Some(Task { place: Place::Running { cpu: on, since }, .. }) = self.tasks.get(ix as usize) else { return };
        if *on == cpu {
            let began = now.saturating_sub(took).max(*since);
            self.charge(ix, cpu, began);
            self.tasks[ix as usize].place = Place::Running { cpu, since: now };
            self.cores.begins(cpu, now);
        }
    }

    fn forked(&mut self, parent: Option<Slot>, child: Slot, sure: bool, now: Nanos) {
        let of = |slot: Slot| self.seats.get(slot as usize).and_then(|seat| seat.identity.as_deref());
        if let Some(inherited) = parent.and_then(of) {
            let born = Identity::of_child(inherited, of(child).unwrap_or(&Identity::default()));
            row(&mut self.seats, child).identity = Some(Arc::new(born));
        }
        if self.closed {
            return;
        }
        let by = if sure { self.still_running(self.index(parent)) } else { NOBODY };
        let after = now - self.start;
        let begin = if by == NOBODY { Begin::After(after) } else { Begin::Forked { by, after } };
        let Some(ix) = self.create(child, begin, Place::Ready) else { return };
        self.tasks[ix as usize].past.is_born();
        if self.charge_up_to(by, now) {
            self.forks(by, ix);
        }
    }
}
