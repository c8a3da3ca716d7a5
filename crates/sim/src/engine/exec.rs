//! Executes the program of a running task: it works, sleeps, wakes others, waits.

use super::{Engine, MOST_TASKS};
use crate::core::Cause;
use crate::process::{Burst, Mark, Wait};
use crate::program::{Amount, Op, Start};
use crate::scheduler::{Dequeue, Scheduler};
use crate::stall;
use crate::task::{State, TaskId, tid};
use schedlab_base::{CpuId, Draws, Error, Nanos, Payload, Result};

/// The bytes that `Mem` moves in a ns unless the machine's file says otherwise: about 10 GB/s for one core.
const MEMORY_BYTES_PER_NS: u64 = 10;
/// The base time of a device's write: 100 us, plus 1 ns a byte (the order of magnitude of a SATA SSD).
const IO_LATENCY_NS: Nanos = 100_000;

/// The result of executing an operation.
pub(super) enum Did {
    /// The operation took no time; the next one follows.
    Next,
    /// The task has a burst to run.
    Burst,
    /// The task sleeps until it is woken, and the operation is done.
    Sleep { uninterruptible: bool },
    /// The task sleeps, and repeats the operation when it wakes.
    Retry,
    /// The task yielded its CPU but stays runnable.
    Yield,
    /// The task moved to another CPU.
    Moved,
    /// The task moved to another CPU, and repeats the operation there.
    MovedFirst,
    /// Another operation follows than the next one of the program.
    Elsewhere,
}

impl Did {
    /// Whether the next operation follows.
    fn is_done(&self) -> bool {
        !matches!(self, Self::Retry | Self::MovedFirst | Self::Elsewhere)
    }
}

/// Whether a task that has woken its parent has nothing to do behind that, or wakes it once more.
fn ends(op: Option<&Op>) -> bool {
    matches!(op, None | Some(Op::Synced(_)))
}

impl<S: Scheduler> Engine<'_, S> {
    /// Ends the burst of the task on `cpu`, and executes its program until an operation takes time again.
    pub(super) fn proceed(&mut self, cpu: CpuId) -> Result<()> {
        let p = self.cx.curr(cpu).expect("only a running task has a burst");
        (self.cx.cause, self.cx.acting) = (Cause::Task, cpu);
        let slot = &mut self.cx.cpus[cpu as usize];
        // The rest of a context switch's cost does not count as progress, but the burst's time does.
        slot.run_from = slot.run_from.max(self.cx.now);
        let process = &mut self.processes[p as usize];
        let done = process.burst;
        process.begin(Burst::Work, 0);
        if done.ends_otherwise() || process.is(Mark::Killed) {
            return self.goes_on_otherwise(cpu, p, done);
        }
        if self.cx.cpus[cpu as usize].turn_ends <= self.cx.now {
            self.catch_up(cpu);
        }
        let mut leaves = false;
        loop {
            let op = self.processes[p as usize].next_op();
            if self.stays_in_kernel(cpu, p, op, leaves) {
                return self.go_on(cpu, p);
            }
            let Some(op) = op else {
                self.exit(cpu, p);
                return Ok(());
            };
            self.woken = 0;
            let did = self.execute(cpu, p, op)?;
            if did.is_done() && !self.processes[p as usize].is(Mark::Relock) {
                self.processes[p as usize].advance();
            }
            // One that wakes its parent as it ends, perhaps by several posts, is not preempted any more.
            leaves = matches!(op, Op::Synced(_)) && ends(self.processes[p as usize].next_op());
            match did {
                Did::Next => {
                    // A spinlock is released in user mode.
                    if !matches!(op, Op::SpinUnlock(_)) {
                        self.cx.return_to_user(cpu);
                    }
                    let call = Nanos::from(self.woken) * self.cx.machine().costs.waking_call_ns;
                    if call > 0 {
                        return self.finish_call(cpu, p, call);
                    }
                    if !leaves && self.cx.cpus[cpu as usize].resched_at <= self.cx.now {
                        // Preempted on return from the kernel, before its next operation.
                        return self.go_on(cpu, p);
                    }
                }
                Did::Burst => return self.go_on(cpu, p),
                Did::Sleep { uninterruptible } => return self.block(cpu, p, uninterruptible),
                Did::Retry if self.processes[p as usize].wait.spins() => {
                    self.active -= 1;
                    self.go_on(cpu, p)?;
                    return self.check_cycle(p);
                }
                Did::Retry => return self.block(cpu, p, false),
                Did::Yield => {
                    self.catch_up(cpu);
                    self.sched.yield_task(&mut self.cx, cpu);
                    self.schedule(cpu);
                    return Ok(());
                }
                Did::Moved | Did::MovedFirst => return Ok(()),
                Did::Elsewhere => {}
            }
        }
    }

    /// The task takes the next job that there is, or goes on behind all of them.
    #[cold]
    fn take_job(&mut self, p: TaskId, list: u32) -> Did {
        let taken = &mut self.resources.taken[list as usize];
        match self.load.jobs[list as usize].job(*taken) {
            Some(job) => {
                *taken += 1;
                self.processes[p as usize].begin_job(job);
            }
            None => self.processes[p as usize].advance(),
        }
        Did::Elsewhere
    }

    /// Lets the running task work.
    pub(super) fn go_on(&mut self, cpu: CpuId, p: TaskId) -> Result<()> {
        self.start_burst(cpu, p);
        self.cx.touch(cpu);
        Ok(())
    }

    #[inline]
    pub(super) fn execute(&mut self, cpu: CpuId, p: TaskId, op: &Op) -> Result<Did> {
        Ok(match *op {
            Op::Run(amount) => self.burst(p, amount, Burst::Work),
            Op::Runtime(amount) => self.burst(p, amount, Burst::Time),
            Op::Mem { bytes, random } => {
                let slower = if random { 4 } else { 1 };
                let mean = self.cx.stream(cpu, p, bytes / MEMORY_BYTES_PER_NS * slower);
                self.burst(p, Amount { mean, sd: 0 }, Burst::Work)
            }
            Op::Sleep(amount) => {
                let length = self.draw(p, amount);
                self.sleep_until(p, self.cx.now.saturating_add(length), false)
            }
            Op::Timeout(length) => self.sleep_until(p, self.cx.tick_after(length), false),
            Op::Io(bytes) => self.sleep_until(p, self.cx.now.saturating_add(IO_LATENCY_NS + bytes), true),
            Op::Timer { timer, period, absolute } => self.timer_wait(p, timer, period, absolute),
            Op::Lock(m) => self.lock(p, m, false),
            Op::SpinLock(m) => self.lock(p, m, true),
            Op::Unlock(m) | Op::SpinUnlock(m) => {
                self.unlock(p, m);
                Did::Next
            }
            Op::Wait { cond, mutex } => self.wait_cond(p, cond, mutex),
            Op::Signal(c) => {
                let first = self.resources.conds[c as usize].pop_front();
                self.wake_all(first, p)
            }
            Op::Broadcast(c) => {
                let all = std::mem::take(&mut self.resources.conds[c as usize]);
                self.wake_all(all, p)
            }
            Op::Barrier(b) => self.barrier(p, b, None),
            Op::SpinBarrier(b) => self.barrier(p, b, Some((Burst::Spin, 0))),
            Op::HybridBarrier { barrier, spin } => self.barrier(p, barrier, Some((Burst::SpinFor, spin))),
            Op::Suspend(s) => {
                self.resources.suspensions[s as usize].push(p);
                self.wait_for(p, Wait::Resume(s))
            }
            Op::Resume(s) => {
                let all = std::mem::take(&mut self.resources.suspensions[s as usize]);
                self.wake_all(all, p)
            }
            Op::SemPost(_) | Op::SemWait(_) | Op::Ask(_) | Op::Answer(_) | Op::Await => self.semaphore(p, op),
            Op::Synced(ref op) => return self.execute_synced(cpu, p, op),
            Op::Yield => Did::Yield,
            Op::Exec => self.exec(cpu, p),
            Op::Fork(template) => {
                self.fork(p, template)?;
                Did::Next
            }
            Op::Set(i) => return self.set(cpu, p, i),
            Op::Jobs(list) => self.take_job(p, list),
            Op::LoopStart { .. } | Op::LoopEnd { .. } => unreachable!("fetch does the jumps"),
        })
    }

    /// Executes an operation whose wake-ups are synchronous. Apart, so that [`Self::execute`] does not call itself.
    #[inline(never)]
    fn execute_synced(&mut self, cpu: CpuId, p: TaskId, op: &Op) -> Result<Did> {
        self.cx.sync = true;
        let did = self.execute(cpu, p, op);
        self.cx.sync = false;
        did
    }

    /// Wakes these tasks on behalf of the running task `p`.
    pub(super) fn wake_all(&mut self, all: impl IntoIterator<Item = TaskId>, p: TaskId) -> Did {
        for q in all {
            self.wake(q, Some(p));
        }
        Did::Next
    }

    /// A task that was there before the load begins, and first sleeps or waits for a semaphore, is asleep from the
    /// start: it need not run to fall asleep.
    pub(super) fn is_asleep_from_the_start(&mut self, p: TaskId, start: Nanos) -> Result<bool> {
        if self.processes[p as usize].spec.cpu.is_none() || start > 0 || self.load.start != Start::Wake {
            return Ok(false);
        }
        let op = match self.processes[p as usize].fetch() {
            Some(op @ (Op::SemWait(_) | Op::Await | Op::Sleep(_) | Op::Timeout(_))) => op,
            _ => return Ok(false),
        };
        let did = self.execute(self.cx.task(p).cpu, p, op)?;
        if matches!(did, Did::Sleep { .. }) {
            self.processes[p as usize].advance();
        }
        Ok(matches!(did, Did::Retry | Did::Sleep { .. }))
    }

    /// What an amount of the task's program comes to this time: the next draw of the task's own sequence. Forked tasks,
    /// whose numbers depend on the schedule, share a sequence, and begin at places in it that do not.
    #[inline]
    fn draw(&mut self, p: TaskId, amount: Amount) -> Nanos {
        let process = &mut self.processes[p as usize];
        let sequence = if process.is(Mark::Forked) { Draws::FORKED } else { p };
        self.draws.next(sequence, &mut process.drawn, amount.mean, amount.sd)
    }

    fn burst(&mut self, p: TaskId, amount: Amount, kind: Burst) -> Did {
        let length = self.draw(p, amount);
        if length == 0 {
            return Did::Next;
        }
        self.processes[p as usize].begin(kind, length);
        Did::Burst
    }

    fn wait_for(&mut self, p: TaskId, wait: Wait) -> Did {
        self.processes[p as usize].wait = wait;
        Did::Sleep { uninterruptible: false }
    }

    fn sleep_until(&mut self, p: TaskId, time: Nanos, uninterruptible: bool) -> Did {
        if time <= self.cx.now {
            return Did::Next;
        }
        self.timers.add(time, p);
        self.processes[p as usize].wait = Wait::Time;
        Did::Sleep { uninterruptible }
    }

    /// Waits on one of rt-app's timers: sleeps until the next expiry. A missed expiry is made up for (absolute) or
    /// dropped (relative). The first period begins with the task.
    fn timer_wait(&mut self, p: TaskId, timer: u32, period: Amount, absolute: bool) -> Did {
        let period = self.draw(p, period);
        let now = self.cx.now;
        let own = self.load.timers[timer as usize].1;
        let started = self.started(p);
        let expiry = if own {
            let timers = &mut self.processes[p as usize].rare_mut().own_timers;
            let at = timers.iter().position(|t| t.0 == timer).unwrap_or_else(|| {
                timers.push((timer, started));
                timers.len() - 1
            });
            &mut timers[at].1
        } else {
            self.resources.timers[timer as usize].get_or_insert(started)
        };
        *expiry = expiry.saturating_add(period);
        let next = *expiry;
        if next <= now && !absolute {
            *expiry = now;
        }
        self.sleep_until(p, next, false)
    }

    fn lock(&mut self, p: TaskId, m: u32, spin: bool) -> Did {
        if let Some(how) = self.inheritance.filter(|_| !spin) {
            return self.lock_lending(how, p, m);
        }
        let process = &mut self.processes[p as usize];
        let mutex = &mut self.resources.mutexes[m as usize];
        mutex.wanted |= process.mark(Mark::Waited, false) || mutex.owner.is_some();
        if mutex.owner.is_none() {
            mutex.owner = Some(p);
            return Did::Next;
        }
        if spin {
            mutex.spinners.push_back(p);
            process.wait = Wait::SpinLock(m);
            process.begin(Burst::Spin, 0);
        } else {
            mutex.waiters.push_back(p);
            process.wait = Wait::Mutex(m);
            process.mark(Mark::Waited, true);
        }
        Did::Retry
    }

    fn unlock(&mut self, p: TaskId, m: u32) {
        let mutex = &mut self.resources.mutexes[m as usize];
        let owner = mutex.owner.take();
        // The longest-waiting spinner that is on a CPU sees it first; the others try again when they run.
        let running = mutex.spinners.iter().position(|q| self.cx.curr(self.cx.task(*q).cpu) == Some(*q));
        let spinner = running.or((!mutex.spinners.is_empty()).then_some(0));
        if let Some(at) = spinner {
            let q = mutex.spinners.remove(at).expect("the position is in the queue");
            self.stop_spinning(q);
        } else {
            self.wake_waiter(p, m, owner);
        }
    }

    /// Handles that a mutex which `owner` held is free: `p` wakes the first waiter, if there is one to wake.
    pub(super) fn wake_waiter(&mut self, p: TaskId, m: u32, owner: Option<TaskId>) {
        let mutex = &mut self.resources.mutexes[m as usize];
        if let Some(how) = self.inheritance {
            self.unlock_lending(how, p, m, owner);
        } else if std::mem::take(&mut mutex.wanted)
            && let Some(q) = mutex.waiters.pop_front()
        {
            self.wake(q, Some(p));
        }
    }

    /// Retries the lock for a spinning task that gets a CPU: it may have become free in the meantime.
    #[cold]
    pub(super) fn try_lock_again(&mut self, p: TaskId) {
        let Wait::SpinLock(m) = self.processes[p as usize].wait else { return };
        let mutex = &mut self.resources.mutexes[m as usize];
        if mutex.owner.is_none() {
            mutex.spinners.retain(|q| *q != p);
            self.stop_spinning(p);
        }
    }

    /// Ends a task's spinning, as the event that it waited for has happened.
    fn stop_spinning(&mut self, q: TaskId) {
        let process = &mut self.processes[q as usize];
        process.begin(Burst::Work, 0);
        process.wait = Wait::Nothing;
        self.active += 1;
        let cpu = self.cx.task(q).cpu;
        if self.cx.curr(cpu) == Some(q) {
            self.cx.cpus[cpu as usize].burst_end = self.cx.now;
            self.cx.touch(cpu);
        }
    }

    fn wait_cond(&mut self, p: TaskId, cond: u32, mutex: u32) -> Did {
        if self.processes[p as usize].is(Mark::Relock) {
            let did = self.lock(p, mutex, false);
            if matches!(did, Did::Next) {
                self.processes[p as usize].mark(Mark::Relock, false);
            }
            return did;
        }
        self.unlock(p, mutex);
        self.resources.conds[cond as usize].push_back(p);
        let process = &mut self.processes[p as usize];
        process.mark(Mark::Relock, true);
        process.mark(Mark::Waited, true);
        self.wait_for(p, Wait::Cond(cond))
    }

    /// Blocks or spins at a barrier until all participants have arrived.
    fn barrier(&mut self, p: TaskId, b: u32, spin: Option<(Burst, Nanos)>) -> Did {
        let barrier = &mut self.resources.barriers[b as usize];
        let here = (barrier.waiters.len() + barrier.spinners.len()) as u32;
        if here + 1 >= barrier.participants {
            let (waiters, spinners) = (std::mem::take(&mut barrier.waiters), std::mem::take(&mut barrier.spinners));
            for q in waiters {
                self.wake(q, Some(p));
            }
            for q in spinners {
                self.stop_spinning(q);
            }
            return Did::Next;
        }
        let Some((burst, left)) = spin.filter(|spin| *spin != (Burst::SpinFor, 0)) else {
            barrier.waiters.push(p);
            return self.wait_for(p, Wait::Barrier(b));
        };
        barrier.spinners.push(p);
        self.processes[p as usize].wait = Wait::SpinBarrier(b);
        self.processes[p as usize].begin(burst, left);
        self.active -= 1;
        Did::Burst
    }

    /// Ends the burst of a task that does not just go on with its program.
    #[cold]
    fn goes_on_otherwise(&mut self, cpu: CpuId, p: TaskId, done: Burst) -> Result<()> {
        match done {
            _ if self.processes[p as usize].is(Mark::Killed) => self.wind_up(cpu, p),
            Burst::SetUp => self.sets_itself_up(cpu, p),
            _ => self.stop_waiting_awake(cpu, p),
        }
    }

    /// Puts a task to sleep that has spun at a barrier for long enough.
    #[cold]
    fn stop_waiting_awake(&mut self, cpu: CpuId, p: TaskId) -> Result<()> {
        let Wait::SpinBarrier(b) = self.processes[p as usize].wait else {
            unreachable!("only at a barrier does one spin for a while")
        };
        let barrier = &mut self.resources.barriers[b as usize];
        barrier.spinners.retain(|q| *q != p);
        barrier.waiters.push(p);
        self.processes[p as usize].wait = Wait::Barrier(b);
        self.active += 1;
        self.block(cpu, p, false)
    }

    fn fork(&mut self, p: TaskId, template: u32) -> Result<()> {
        if self.cx.nr_tasks() >= MOST_TASKS {
            let text = format!("the workload has made {MOST_TASKS} tasks by {:.6} s", self.cx.now as f64 / 1e9);
            return Err(Error::input(text).mend("let it fork less often, or run it for a shorter time"));
        }
        let spec = &self.load.templates[template as usize];
        let n = self.forked[template as usize];
        self.forked[template as usize] += 1;
        let child = self.create(spec, n, Some(p))?;
        let process = &mut self.processes[child as usize];
        process.mark(Mark::Forked, true);
        process.drawn = Draws::first_of(template, n);
        process.begin(Burst::SetUp, self.cx.machine.costs.forked_task_ns);
        self.wake_up_new(child, Some(p));
        Ok(())
    }

    fn block(&mut self, cpu: CpuId, p: TaskId, uninterruptible: bool) -> Result<()> {
        self.cx.tasks[p as usize].state = State::Sleeping { uninterruptible };
        self.active -= 1;
        self.catch_up(cpu);
        self.cx.set_on_rq(p, false);
        self.sched.dequeue_task(&mut self.cx, cpu, p, Dequeue::Sleep);
        self.schedule(cpu);
        self.check_cycle(p)
    }

    pub(super) fn exit(&mut self, cpu: CpuId, p: TaskId) {
        let prio = self.cx.task(p).attributes.prio();
        self.cx.emit(cpu, Payload::Exit { tid: tid(p), prio });
        self.cx.tasks[p as usize].state = State::Dead;
        self.active -= 1;
        self.ended += 1;
        self.catch_up(cpu);
        self.cx.set_on_rq(p, false);
        self.sched.dequeue_task(&mut self.cx, cpu, p, Dequeue::Dead);
        self.schedule(cpu);
        self.sched.task_dead(&mut self.cx, p);
        if self.processes[p as usize].spec.awaited {
            self.awaited -= 1;
            if self.awaited == 0 {
                (self.over, self.end) = (true, self.cx.now + 1);
            }
        }
    }

    fn check_cycle(&self, p: TaskId) -> Result<()> {
        match stall::cycle(p, &self.processes, &self.resources) {
            None => Ok(()),
            Some(circle) => {
                let text = stall::describe(&circle, &self.processes, &self.resources, self.load);
                Err(stall::deadlock(self.cx.now, &text))
            }
        }
    }
}
