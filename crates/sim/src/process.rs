//! The execution state of a task's program: its position, the rest of its burst, and what it waits for.

use crate::cpuset::CpuSet;
use crate::program::{Amount, Load, Op, TaskSpec};
use schedlab_base::{Nanos, Rng};
use std::borrow::Cow;

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
            Self::Resume(i) => name("resume of", &load.suspensions[i as usize]),
        }
    }
}

/// The current burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Burst {
    /// The remaining work, in ns at speed 1024: the speed of the biggest CPU without any slowdown.
    Work(Nanos),
    /// The remaining CPU time, in ns, on any CPU.
    Time(Nanos),
    /// Burns CPU time until what it waits for happens.
    Spin,
    /// As `Spin`, but for at most this much CPU time.
    SpinFor(Nanos),
}

/// The part of a process that few need: kept apart, so that a million tasks take less memory, and the rest of a
/// process fewer cache lines.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// The remaining rounds of the loops around the innermost one.
    around: Vec<u64>,
    /// The deadlines of its own timers, by timer number.
    pub own_timers: Vec<(u32, Nanos)>,
    /// The mutexes that it holds, and its rank among the waiters of the one that it waits for; kept if mutexes lend
    /// priorities.
    pub held: Vec<u32>,
    pub rank: Rank,
}

static NOTHING_RARE: Rare = Rare { around: Vec::new(), own_timers: Vec::new(), held: Vec::new(), rank: (0, 0) };

#[derive(Debug)]
pub(crate) struct Process<'a> {
    program: &'a [Op],
    pub name: Cow<'a, str>,
    pub pc: usize,
    /// The remaining rounds of the innermost loop.
    rounds: u64,
    looping: bool,
    pub burst: Burst,
    pub wait: Wait,
    /// Inside `Wait`: the condition has been signalled, and the mutex must still be taken again.
    pub relock: bool,
    /// Inside `Exec`: a CPU has been chosen.
    pub execs: bool,
    rare: Option<Box<Rare>>,
    pub started: Nanos,
    pub clock_poll: Nanos,
    /// Its affinity: the CPUs that the kernel lets it run on while they are online (`cpus_allowed`).
    pub affinity: CpuSet,
}

impl<'a> Process<'a> {
    /// Creates the process of `spec`; `kin` is an existing process that may be alike. Tasks with equal programs share
    /// one copy of it, which then stays in the cache however many tasks there are.
    pub fn new(spec: &'a TaskSpec, kin: Option<&Self>, name: Cow<'a, str>, started: Nanos) -> Self {
        let program = kin.map(|kin| kin.program).filter(|program| *program == spec.program);
        Self {
            program: program.unwrap_or(&spec.program),
            name,
            pc: 0,
            rounds: 0,
            looping: false,
            burst: Burst::Work(0),
            wait: Wait::Nothing,
            relock: false,
            execs: false,
            rare: None,
            started,
            clock_poll: spec.initial.clock_poll.unwrap_or(0),
            affinity: spec.initial.cpus.as_deref().map_or(CpuSet::ALL, CpuSet::of),
        }
    }

    /// What it has of what few need.
    pub fn rare(&self) -> &Rare {
        self.rare.as_deref().unwrap_or(&NOTHING_RARE)
    }

    /// The same, for changing it.
    pub fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Executes the program's jumps up to the next other operation and returns that, or `None` at the end.
    #[inline]
    pub fn fetch(&mut self) -> Option<&'a Op> {
        let program = self.program;
        loop {
            match program.get(self.pc)? {
                Op::LoopStart { times } => {
                    if std::mem::replace(&mut self.looping, true) {
                        let rounds = self.rounds;
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
                        let around = self.rare.as_mut().and_then(|rare| rare.around.pop());
                        (self.looping, self.rounds) = (around.is_some(), around.unwrap_or(0));
                        self.pc += 1;
                    } else {
                        self.pc = *start as usize + 1;
                    }
                }
                op => return Some(op),
            }
        }
    }

    /// Returns how long the current burst takes at this speed.
    #[inline]
    pub fn time_left(&self, speed: u32) -> Nanos {
        match self.burst {
            Burst::Work(left) if speed == 1024 => left,
            Burst::Work(left) => slowed(left, speed),
            Burst::Time(left) | Burst::SpinFor(left) => left,
            Burst::Spin => Nanos::MAX,
        }
    }

    /// Subtracts what was done in `ran` at this speed from the burst.
    #[inline]
    pub fn progress(&mut self, ran: Nanos, speed: u32) {
        match &mut self.burst {
            Burst::Work(left) if speed == 1024 => *left = left.saturating_sub(ran),
            Burst::Work(left) => *left = left.saturating_sub(done(ran, speed)),
            Burst::Time(left) | Burst::SpinFor(left) => *left = left.saturating_sub(ran),
            Burst::Spin => {}
        }
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

/// Returns an amount, drawn at random if it varies.
#[inline]
pub(crate) fn draw(amount: Amount, rng: &mut Rng) -> Nanos {
    if amount.sd == 0 { amount.mean } else { rng.about(amount.mean, amount.sd) }
}
