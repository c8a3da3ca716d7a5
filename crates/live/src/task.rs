//! Executes a task's program on a thread of its own: the programs that the engine simulates, with real effects.

mod birth;

pub(crate) use birth::{begin, spawn};

use crate::attributes::Attributes;
use crate::computing::Computation;
use crate::memory::{self, Block, Buffer, Touched};
use crate::region::{CLASSES, MOST_QUESTIONS, Slot, add};
use crate::sync::{self, AtBarrier};
use crate::sys;
use crate::work::{Burst, Worker};
use crate::world::World;
use schedlab_base::{Draws, Error, Nanos, Result, Tid};
use schedlab_sim::program::{Amount, Op, Setting, TaskSpec};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

/// How much a task computes, in ns of CPU time, until it looks whether its life is over.
const PIECE: Nanos = 1_000_000;

/// A task, ready to run.
pub(crate) struct Task {
    world: &'static World,
    /// Which slot it has.
    at: usize,
    slot: &'static Slot,
    spec: &'static TaskSpec,
    tid: Tid,
    attributes: Attributes,
    worker: Worker<'static>,
    draws: Draws,
    /// The sequence that is its own, and how many amounts its program came to.
    sequence: u32,
    drawn: u32,
    started: Nanos,
    /// When it is killed; never if that is the largest time.
    dies_at: Nanos,
    /// The mutexes that it holds.
    held: Vec<u32>,
    /// The next expiry of each of its own timers, by the timer's number.
    timers: Vec<(u32, Nanos)>,
    /// The questions that it took and has not answered: at which semaphore, and the slot of who asked.
    questions: VecDeque<(u32, usize)>,
    memories: Vec<(u32, Block)>,
    working_set: Option<Block>,
    /// The memory and the working set that it uses now.
    uses: (Option<u32>, u64),
    buffer: Option<Buffer>,
    device: Option<File>,
}

impl Task {
    /// Makes this thread the task of a slot: its name, user, attributes and memory. `group`: the group that it is in.
    pub(crate) fn prepare(world: &'static World, at: usize, group: u32) -> Result<Self> {
        let (slot, spec) = (world.slot(at), world.spec(at));
        let tid = sys::tid();
        let name = world.name(at);
        let in_task = |error: Error| error.key(format!("tasks.{name}"));
        sys::set_name(&name);
        slot.tid.store(tid, Ordering::Release);
        let mut task = Self {
            world,
            at,
            slot,
            spec,
            tid,
            attributes: Attributes::inherited(group),
            worker: Worker::new(world.calibration, &world.capacities, world.over()),
            draws: Draws::new(world.options.seed),
            sequence: at as u32,
            drawn: 0,
            started: 0,
            dies_at: Nanos::MAX,
            held: Vec::with_capacity(8),
            timers: Vec::with_capacity(world.load().timers.len()),
            questions: VecDeque::new(),
            memories: Vec::new(),
            working_set: None,
            uses: (None, 0),
            buffer: None,
            device: None,
        };
        if at >= world.load().tasks.len() {
            let (template, number) = (slot.template.load(Ordering::Acquire), slot.number.load(Ordering::Acquire));
            (task.sequence, task.drawn) = (Draws::FORKED, Draws::first_of(template, number));
            task.worker.is_one_of_many(number);
        }
        task.attributes.apply(&spec.initial, &world.groups).map_err(in_task)?;
        if let Some(user) = spec.user.filter(|user| *user != 0) {
            sys::become_user(user).map_err(|e| {
                in_task(Error::not_permitted(format!("cannot act for user {user}: {e}")).mend("run it with sudo"))
            })?;
        }
        task.provide(at).map_err(in_task)?;
        task.use_memory(&spec.initial);
        let (memory, bytes) = task.uses;
        let block = memory.and_then(|number| task.block(number));
        if let Some(computation) = Computation::new(spec.computing, block, bytes, slot).map_err(in_task)? {
            task.worker.compute(computation);
        }
        Ok(task)
    }

    /// Maps and touches all memory that the program will use.
    fn provide(&mut self, at: usize) -> Result<()> {
        let settings = memory::settings(self.world.load(), self.spec);
        for memory in settings.iter().filter_map(|setting| setting.memory) {
            if !self.memories.iter().any(|(known, _)| *known == memory) {
                self.memories.push((memory, self.world.memory(memory, at)?));
            }
        }
        let largest = settings.iter().filter_map(|setting| setting.working_set).max().filter(|bytes| *bytes > 0);
        if let Some(bytes) = largest {
            let block = Block::new(bytes, false)?;
            block.first_touch(0, 1);
            self.working_set = Some(block);
        }
        let has = |is: fn(&Op) -> bool| self.world.load().ops_of(self.spec).any(is);
        let writes_to = has(|op| matches!(op, Op::Io(_)));
        if writes_to || has(|op| matches!(op, Op::Mem { .. })) {
            self.buffer = Some(Buffer::new()?);
        }
        if let (Some(path), true) = (&self.world.options.io_device, writes_to) {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
            self.device =
                Some(file.map_err(|e| {
                    Error::input(format!("cannot write to it: {e}")).key("global.io_device").file(path)
                })?);
        }
        Ok(())
    }

    fn block(&self, memory: u32) -> Option<Block> {
        self.memories.iter().find(|(known, _)| *known == memory).map(|(_, block)| *block)
    }

    /// Touches from now on what a setting says.
    fn use_memory(&mut self, setting: &Setting) {
        self.worker.clock_poll = setting.clock_poll.or(self.worker.clock_poll);
        let (memory, bytes) = self.uses;
        let uses = (setting.memory.or(memory), setting.working_set.unwrap_or(bytes));
        if uses == self.uses {
            return;
        }
        self.uses = uses;
        let bound = |number: u32| self.world.load().memories[number as usize].bound_percent;
        let memory = uses.0.filter(|number| bound(*number) > 0);
        self.worker.touched = match (memory.and_then(|n| Some((self.block(n)?, bound(n)))), self.working_set) {
            (Some((block, bound)), _) => Touched::memory(block, bound),
            (None, Some(block)) if uses.1 > 0 => Touched::working_set(block.first(uses.1)),
            _ => Touched::default(),
        };
    }

    /// Executes the program; `started` is when it was to start.
    pub(crate) fn run(mut self, started: Nanos) {
        self.started = started;
        self.dies_at = self.spec.lifetime.map_or(Nanos::MAX, |lifetime| started.saturating_add(lifetime));
        self.worker.ends_at(self.world.over());
        self.slot.cpu_before.store(sys::thread_cpu(), Ordering::Relaxed);
        let program = &self.spec.program;
        let depth = program.iter().filter(|op| matches!(op, Op::LoopStart { .. })).count();
        let mut rounds: Vec<u64> = Vec::with_capacity(depth);
        let mut pc = 0;
        let mut killed = false;
        while let Some(op) = program.get(pc) {
            pc += 1;
            killed = killed || self.is_of_age();
            match op {
                Op::LoopStart { times } => rounds.push(times.unwrap_or(u64::MAX)),
                Op::LoopEnd { start } => {
                    self.worker.check_over();
                    let left = rounds.last_mut().expect("a loop's end has its start");
                    if killed && *left == u64::MAX {
                        *left = 0;
                    } else if *left != u64::MAX {
                        *left -= 1;
                    }
                    if *left == 0 {
                        rounds.pop();
                    } else {
                        pc = *start as usize + 1;
                    }
                }
                // What it would have been asked there is answered. A mere post is left to others.
                Op::SemWait(s) if killed && self.world.region.questions(*s).is_some() => {
                    if sync::take(&self.world.region.sems()[*s as usize]) {
                        self.take_question(*s);
                    }
                }
                Op::Unlock(m) if killed && !self.held.contains(m) => {}
                op if killed && !op.serves_others() => {}
                op => self.execute(op),
            }
        }
        self.slot.cpu_after.store(sys::thread_cpu(), Ordering::Relaxed);
        self.slot.ended.store(1, Ordering::Release);
    }

    /// Whether the task has lived for as long as it may.
    fn is_of_age(&self) -> bool {
        self.dies_at < Nanos::MAX && sys::monotonic() >= self.dies_at
    }

    fn sleep(&mut self, amount: Amount) {
        let length = self.draw(amount);
        if length > 0 {
            sys::sleep_until(sys::monotonic().saturating_add(length).min(self.dies_at));
        }
    }

    fn execute(&mut self, op: &Op) {
        let region = &self.world.region;
        match *op {
            Op::Run(amount) => self.burst(amount, true),
            Op::Runtime(amount) => self.burst(amount, false),
            Op::Mem { bytes, random } => {
                let worker = &self.worker;
                self.buffer.iter_mut().for_each(|buffer| buffer.traffic(bytes, random, || worker.check_over()));
            }
            Op::Io(bytes) => self.write(bytes),
            Op::Sleep(amount) => self.sleep(amount),
            Op::Timeout(length) => sys::sleep_until(sys::tick_after(length)),
            Op::Timer { timer, period, absolute } => self.timer(timer, period, absolute),
            Op::Lock(m) => self.lock(m, sync::lock),
            Op::Unlock(m) => self.unlock(m),
            Op::SpinLock(m) => sync::spin_lock(&region.mutexes()[m as usize], || self.worker.check_over()),
            Op::SpinUnlock(m) => sync::unlock(&region.mutexes()[m as usize]),
            Op::Wait { cond, mutex } => {
                sync::wait(&region.conds()[cond as usize], || self.unlock(mutex));
                self.lock(mutex, sync::lock_wanted);
            }
            Op::Signal(c) => sync::signal(&region.conds()[c as usize], 1),
            Op::Broadcast(c) => sync::signal(&region.conds()[c as usize], u32::MAX),
            Op::Suspend(s) => sync::wait(&region.suspensions()[s as usize], || {}),
            Op::Resume(s) => sync::signal(&region.suspensions()[s as usize], u32::MAX),
            Op::Barrier(b) => self.barrier(b, AtBarrier::Sleep),
            Op::SpinBarrier(b) => {
                let mut tired = || {
                    self.worker.check_over();
                    false
                };
                self.barrier(b, AtBarrier::Spin(&mut tired));
            }
            Op::HybridBarrier { barrier, spin } => {
                let start = sys::thread_cpu();
                // It has not spun for longer than has passed: until then its clock need not be read.
                let mut next = sys::monotonic() + spin;
                let mut tired = || {
                    self.worker.check_over();
                    let now = sys::monotonic();
                    if now < next {
                        return false;
                    }
                    let left = (start + spin).saturating_sub(sys::thread_cpu());
                    next = now + left;
                    left == 0
                };
                self.barrier(barrier, AtBarrier::Spin(&mut tired));
            }
            Op::SemPost(_) | Op::SemWait(_) | Op::Ask(_) | Op::Answer(_) | Op::Await => self.semaphore(op),
            // Real threads wake each other by futexes, which know no synchronous wake-up.
            Op::Synced(ref op) => self.execute(op),
            Op::Yield => sys::sched_yield(),
            // It would replace this program; a remark says so.
            Op::Exec => {}
            Op::Fork(template) => birth::fork(self.world, template, self.attributes.group()),
            Op::Jobs(list) => self.jobs(list as usize),
            Op::Set(i) => self.set(&self.world.load().settings[i as usize]),
            Op::LoopStart { .. } | Op::LoopEnd { .. } => unreachable!("`run` does the jumps"),
        }
    }

    /// Does the jobs of a list that nobody has taken yet.
    fn jobs(&mut self, list: usize) {
        let (taken, list) = (&self.world.region.jobs()[list], &self.world.load().jobs[list]);
        while let Some(job) = list.job(taken.fetch_add(1, Ordering::Relaxed)) {
            self.worker.check_over();
            job.iter().for_each(|op| self.execute(op));
        }
    }

    fn semaphore(&mut self, op: &Op) {
        let region = &self.world.region;
        match *op {
            Op::SemPost(s) => sync::post(&region.sems()[s as usize]),
            Op::SemWait(s) => {
                sync::wait_sem(&region.sems()[s as usize]);
                self.take_question(s);
            }
            Op::Ask(s) => {
                if !region.questions(s).is_some_and(|questions| sync::ask(questions, self.at)) {
                    let name = &self.world.load().sems[s as usize];
                    let what = format!("{MOST_QUESTIONS} questions at \"{name}\" wait already");
                    self.fail(&Error::input(what).mend("let more tasks take them, or await the answers"));
                }
                sync::post(&region.sems()[s as usize]);
            }
            Op::Answer(s) => {
                let taken = self.questions.iter().position(|(sem, _)| *sem == s);
                if let Some((_, asker)) = taken.and_then(|at| self.questions.remove(at)) {
                    sync::post(&self.world.slot(asker).answers);
                }
            }
            Op::Await => sync::wait_sem(&self.slot.answers),
            _ => unreachable!("only operations on semaphores come here"),
        }
    }

    /// With a post of a semaphore, the oldest question there is taken.
    fn take_question(&mut self, sem: u32) {
        let question = self.world.region.questions(sem).and_then(sync::take_question);
        self.questions.extend(question.map(|asker| (sem, asker)));
    }

    /// What an amount comes to this time: the same as in a simulation with this seed.
    fn draw(&mut self, amount: Amount) -> Nanos {
        self.draws.next(self.sequence, &mut self.drawn, amount.mean, amount.sd)
    }

    fn burst(&mut self, amount: Amount, scaled: bool) {
        // One that may be killed looks whether it is, now and then.
        let most = if self.dies_at == Nanos::MAX { Nanos::MAX } else { PIECE };
        let mut left = self.draw(amount);
        while left > 0 && !self.is_of_age() {
            let piece = left.min(most);
            self.burst_of(piece, scaled);
            left -= piece;
        }
    }

    fn burst_of(&mut self, amount: Nanos, scaled: bool) {
        let slot = self.slot;
        let Burst { wanted, took } = self.worker.burst(amount, scaled);
        add(&slot.bursts, 1);
        add(&slot.wanted, wanted);
        let Some(took) = took else { return };
        let error = wanted.abs_diff(took);
        add(&slot.timed, 1);
        add(&slot.error_sum, error);
        slot.error_max.fetch_max(error, Ordering::Relaxed);
        let class = (64 - error.leading_zeros() as usize).min(CLASSES - 1);
        slot.errors[class].fetch_add(1, Ordering::Relaxed);
    }

    /// Writes to the device, as much at a time as the buffer has.
    fn write(&mut self, bytes: u64) {
        let (Some(buffer), Some(device)) = (&self.buffer, &mut self.device) else { return };
        let mut left = bytes;
        while left > 0 {
            let part = buffer.bytes(left);
            if let Err(e) = device.write_all(part) {
                self.fail(&Error::input(format!("cannot write to io_device: {e}")));
            }
            left -= part.len() as u64;
            self.worker.check_over();
        }
    }

    /// Waits for the timer's next expiry. One that was missed is made up for (absolute) or dropped (relative). The
    /// first period begins with the task.
    fn timer(&mut self, timer: u32, period: Amount, absolute: bool) {
        let period = self.draw(period);
        let now = sys::monotonic();
        // The expiry, and what the next period counts from.
        let after = |expiry: Nanos| {
            let next = expiry.saturating_add(period);
            (next, if next <= now && !absolute { now } else { next })
        };
        let next = if self.world.load().timers[timer as usize].1 {
            let at = self.timers.iter().position(|(known, _)| *known == timer).unwrap_or_else(|| {
                self.timers.push((timer, self.started));
                self.timers.len() - 1
            });
            let (next, expiry) = after(self.timers[at].1);
            self.timers[at].1 = expiry;
            next
        } else {
            let shared = &self.world.region.timers()[timer as usize];
            let begun = |expiry: Nanos| if expiry == 0 { self.started } else { expiry };
            let was = shared.fetch_update(Ordering::AcqRel, Ordering::Acquire, |expiry| Some(after(begun(expiry)).1));
            after(begun(was.unwrap_or(0))).0
        };
        add(&self.slot.periods, 1);
        if next <= now {
            add(&self.slot.missed, 1);
        } else {
            sys::sleep_until(next);
        }
    }

    fn lock(&mut self, mutex: u32, take: fn(&AtomicU32)) {
        self.held.push(mutex);
        let word = &self.world.region.mutexes()[mutex as usize];
        if self.world.options.priority_inheritance { sync::lock_pi(word, self.tid) } else { take(word) }
    }

    fn unlock(&mut self, mutex: u32) {
        self.held.retain(|held| *held != mutex);
        let word = &self.world.region.mutexes()[mutex as usize];
        if self.world.options.priority_inheritance { sync::unlock_pi(word, self.tid) } else { sync::unlock(word) }
    }

    fn barrier(&self, number: u32, how: AtBarrier<'_>) {
        let participants = self.world.load().barriers[number as usize].1;
        sync::barrier(&self.world.region.barriers()[number as usize], participants, how);
    }

    fn set(&mut self, setting: &'static Setting) {
        if let Err(error) = self.attributes.apply(setting, &self.world.groups) {
            self.fail(&error);
        }
        self.use_memory(setting);
    }

    fn fail(&self, error: &Error) -> ! {
        self.world.fail(&error.clone().key(format!("tasks.{}", self.spec.name)))
    }
}
