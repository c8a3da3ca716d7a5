//! The execution state of a task's program: its position, the rest of its burst, and what it waits for.

use crate::program::{Load, Op, TaskSpec};
use crate::task::TaskId;
use schedlab_base::Nanos;
use std::collections::VecDeque;

/// The place of a task among those that wait for a mutex: its priority as traces contain it, and a deadline task's
/// deadline. The least is the first.
pub(crate) type Rank = (i16, Nanos);

/// What a blocked task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    /// A timer or a device, which is certain to come.
    Time,
    Mutex(u32),
    Cond(u32),
    Barrier(u32),
    Sem(u32),
    Answer,
    Resume(u32),
    SpinLock(u32),
    SpinBarrier(u32),
}

impl Wait {
    /// Returns whether the waiting task burns CPU time.
    pub fn spins(self) -> bool {
        matches!(self, Self::SpinLock(_) | Self::SpinBarrier(_))
    }

    /// Returns its name in the load.
    pub fn describe(self, load: &Load) -> String {
        let name = |kind: &str, name: &str| format!("{kind} \"{name}\"");
        match self {
            Self::Nothing => "nothing".into(),
            Self::Time => "a timer".into(),
            Self::Mutex(i) | Self::SpinLock(i) => name("lock", &load.mutexes[i as usize]),
            Self::Cond(i) => name("condition", &load.conds[i as usize]),
            Self::Barrier(i) | Self::SpinBarrier(i) => name("barrier", &load.barriers[i as usize].0),
            Self::Sem(i) => name("semaphore", &load.sems[i as usize]),
            Self::Answer => "an answer".into(),
            Self::Resume(i) => name("resume of", &load.suspensions[i as usize]),
        }
    }
}

/// What the current burst is, and so what of it is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Burst {
    /// Work, in ns at speed 1024: the speed of the biggest CPU without any slowdown.
    Work,
    /// CPU time, in ns, on any CPU.
    Time,
    /// Burns CPU time until what it waits for happens.
    Spin,
    /// As `Spin`, but for at most this much CPU time, in ns.
    SpinFor,
    /// CPU time, in ns, in which a forked task sets itself up; then it has attributes of its own.
    SetUp,
}

impl Burst {
    /// Whether the program is not all that follows it.
    #[inline]
    pub fn ends_otherwise(self) -> bool {
        matches!(self, Self::SpinFor | Self::SetUp)
    }
}

/// The number of a task that is no copy.
pub(crate) const NO_COPY: u32 = u32::MAX;

/// The part of a process that few need: kept apart, so that a million tasks take less memory, and the rest of a
/// process fewer cache lines.
#[derive(Debug, Default)]
pub(crate) struct Rare<'a> {
    /// The remaining rounds of the loops around the innermost one.
    around: Vec<u64>,
    /// The deadlines of its own timers, by timer number.
    pub own_timers: Vec<(u32, Nanos)>,
    /// The mutexes that it holds, and its rank among the waiters of the one that it waits for; kept if mutexes lend
    /// priorities.
    pub held: Vec<u32>,
    pub rank: Rank,
    /// The questions that it took and has not answered: at which semaphore, and who asked.
    pub questions: VecDeque<(u32, TaskId)>,
    /// The answers to its own questions that it has not taken.
    pub answers: u64,
    /// The time between two readings of its CPU clock; 0 means that it does not read it.
    pub clock_poll: Nanos,
    /// The job that it does, and how far it is in it.
    job: (&'a [Op], u32),
}

static NOTHING_RARE: Rare<'static> = Rare {
    around: Vec::new(),
    own_timers: Vec::new(),
    held: Vec::new(),
    rank: (0, 0),
    questions: VecDeque::new(),
    answers: 0,
    clock_poll: 0,
    job: (&[], 0),
};

/// What is so of a process now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mark {
    /// Inside `Wait`: the condition has been signalled, and the mutex must still be taken again.
    Relock = 1,
    /// It has waited for the mutex that it is to lock, or at a condition: it counts on others to wait for it too.
    Waited = 2,
    /// Inside `Exec`: a CPU has been chosen.
    Execs = 4,
    /// What its next operation takes in the kernel first, it has done.
    Paid = 8,
    /// It was killed, and ends when it gets a CPU.
    Killed = 16,
    /// It does a job, which several tasks share out.
    InJob = 32,
    /// It was forked.
    Forked = 64,
}

#[derive(Debug)]
pub(crate) struct Process<'a> {
    /// What it is one of. Copies share it, and with it the program, which stays in the cache however many there are.
    pub spec: &'a TaskSpec,
    /// Which of them it is, or [`NO_COPY`].
    copy: u32,
    pub pc: u32,
    /// The remaining rounds of the innermost loop; 0 outside of loops.
    rounds: u64,
    /// The current burst, and what is left of it.
    pub burst: Burst,
    left: Nanos,
    pub wait: Wait,
    marks: u8,
    /// How many amounts its program came to: which number of its sequence the next draw is.
    pub drawn: u32,
    rare: Option<Box<Rare<'a>>>,
}

impl<'a> Process<'a> {
    /// Creates the process of `spec`, or of its copy `copy`.
    pub fn new(spec: &'a TaskSpec, copy: u32) -> Self {
        let clock_poll = spec.initial.clock_poll.filter(|every| *every > 0);
        Self {
            spec,
            copy,
            pc: 0,
            rounds: 0,
            burst: Burst::Work,
            left: 0,
            wait: Wait::Nothing,
            marks: 0,
            drawn: 0,
            rare: clock_poll.map(|clock_poll| Box::new(Rare { clock_poll, ..Rare::default() })),
        }
    }

    /// Whether this is so.
    #[inline]
    pub fn is(&self, mark: Mark) -> bool {
        self.marks & mark as u8 != 0
    }

    /// Says whether this is so from now on. Returns whether it was.
    #[inline]
    pub fn mark(&mut self, mark: Mark, is_so: bool) -> bool {
        let was = self.is(mark);
        self.marks = if is_so { self.marks | mark as u8 } else { self.marks & !(mark as u8) };
        was
    }

    /// Its name in traces.
    pub fn name(&self) -> String {
        if self.copy == NO_COPY { self.spec.name.clone() } else { self.spec.name_of(self.copy) }
    }

    /// What it has of what few need.
    pub fn rare(&self) -> &Rare<'a> {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }

    /// The same, for changing it.
    pub fn rare_mut(&mut self) -> &mut Rare<'a> {
        self.rare.get_or_insert_default()
    }

    /// The next operation: that of the job while there is one.
    #[inline]
    pub fn next_op(&mut self) -> Option<&'a Op> {
        if self.is(Mark::InJob) { self.fetch_in_job() } else { self.fetch() }
    }

    /// Executes the program's jumps up to the next other operation and returns that, or `None` at the end.
    #[inline]
    pub fn fetch(&mut self) -> Option<&'a Op> {
        loop {
            let op = self.spec.program.get(self.pc as usize)?;
            if !self.jumps(op) {
                return Some(op);
            }
        }
    }

    /// The next operation of the job, or the one that took it when it is done.
    #[cold]
    fn fetch_in_job(&mut self) -> Option<&'a Op> {
        let (ops, at) = self.rare().job;
        let op = ops.get(at as usize);
        self.mark(Mark::InJob, op.is_some());
        op.or_else(|| self.spec.program.get(self.pc as usize))
    }

    /// Begins a job; the operation [`Op::Jobs`] follows again when that is done.
    #[cold]
    pub fn begin_job(&mut self, ops: &'a [Op]) {
        self.rare_mut().job = (ops, 0);
        self.mark(Mark::InJob, true);
    }

    /// The operation is done: the next one follows.
    #[inline]
    pub fn advance(&mut self) {
        if self.is(Mark::InJob) {
            self.advance_in_job();
        } else {
            self.pc += 1;
        }
    }

    #[cold]
    fn advance_in_job(&mut self) {
        self.rare_mut().job.1 += 1;
    }

    /// As [`Self::fetch`], but what is repeated for ever is not repeated any more.
    pub fn fetch_last(&mut self) -> Option<&'a Op> {
        loop {
            let op = self.spec.program.get(self.pc as usize)?;
            if matches!(op, Op::LoopEnd { .. }) && self.rounds == u64::MAX {
                self.rounds = 1;
            }
            if !self.jumps(op) {
                return Some(op);
            }
        }
    }

    /// Executes the operation if it is one that jumps.
    #[inline]
    fn jumps(&mut self, op: &Op) -> bool {
        match op {
            Op::LoopStart { times } => {
                let rounds = self.rounds;
                if rounds > 0 {
                    self.rare_mut().around.push(rounds);
                }
                self.rounds = times.unwrap_or(u64::MAX);
                self.pc += 1;
            }
            Op::LoopEnd { start } => {
                if self.rounds != u64::MAX {
                    self.rounds -= 1;
                }
                if self.rounds == 0 {
                    self.rounds = self.rare.as_mut().and_then(|rare| rare.around.pop()).unwrap_or(0);
                    self.pc += 1;
                } else {
                    self.pc = *start + 1;
                }
            }
            _ => return false,
        }
        true
    }

    /// Begins a burst of this length.
    #[inline]
    pub fn begin(&mut self, burst: Burst, left: Nanos) {
        (self.burst, self.left) = (burst, left);
    }

    /// Returns how long the current burst takes at this speed.
    #[inline]
    pub fn time_left(&self, speed: u32) -> Nanos {
        match self.burst {
            Burst::Work if speed != 1024 => slowed(self.left, speed),
            Burst::Work | Burst::Time | Burst::SpinFor | Burst::SetUp => self.left,
            Burst::Spin => Nanos::MAX,
        }
    }

    /// Subtracts what was done in `ran` at this speed from the burst.
    #[inline]
    pub fn progress(&mut self, ran: Nanos, speed: u32) {
        let gone = if self.burst == Burst::Work && speed != 1024 { done(ran, speed) } else { ran };
        self.left = self.left.saturating_sub(gone);
    }
}

/// How long this work takes at a speed.
#[inline(never)]
fn slowed(work: Nanos, speed: u32) -> Nanos {
    (u128::from(work) * 1024).div_ceil(u128::from(speed.max(1))) as Nanos
}

/// How much work is done in a time at a speed.
#[inline(never)]
fn done(time: Nanos, speed: u32) -> Nanos {
    (u128::from(time) * u128::from(speed) / 1024) as Nanos
}

#[cfg(test)]
mod tests {
    use super::Process;

    /// A load may have a million of them.
    #[test]
    fn a_process_takes_less_than_a_cache_line() {
        assert_eq!(size_of::<Process>(), 56);
    }
}
