//! A task's program under way: where it stands, what of its burst is left, what it waits for.

use crate::cpuset::CpuSet;
use crate::program::{Amount, Load, Op, TaskSpec};
use schedlab_base::{Nanos, Rng};

/// What a task that cannot go on waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Nothing,
    /// A timer or a device; it will come.
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
    /// Whether the waiter burns CPU meanwhile.
    pub fn spins(self) -> bool {
        matches!(self, Self::SpinLock(_) | Self::SpinBarrier(_))
    }

    /// What it is called in the load.
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

/// The burst in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Burst {
    /// Work left, in ns at speed 1024: that of the biggest CPU when nothing slows it.
    Work(Nanos),
    /// CPU time left, in ns, on whatever CPU.
    Time(Nanos),
    /// Burns CPU until what it waits for comes.
    Spin,
    /// As `Spin`, but for no more CPU time than this.
    SpinFor(Nanos),
}

#[derive(Debug)]
pub(crate) struct Process<'a> {
    program: &'a [Op],
    pub name: String,
    pub pc: usize,
    /// How often the innermost loop is still to be gone through, and those around it; none lies in the heap for one
    /// loop.
    rounds: u64,
    around: Vec<u64>,
    looping: bool,
    pub burst: Burst,
    pub wait: Wait,
    /// Inside `Wait`: the condition has come, the mutex is still to be taken again.
    pub relock: bool,
    /// Deadlines of its own timers, by timer number.
    pub own_timers: Vec<(u32, Nanos)>,
    pub started: Nanos,
    pub clock_poll: Nanos,
    /// Its affinity: the CPUs that the kernel lets it run on while they are online (`cpus_allowed`).
    pub affinity: CpuSet,
}

impl<'a> Process<'a> {
    /// A task that is to do what `spec` says; `kin` is one like it, perhaps. Tasks with equal programs go by the same
    /// copy, which then stays in the cache however many they are.
    pub fn new(spec: &'a TaskSpec, kin: Option<&Self>, name: String, started: Nanos) -> Self {
        let program = kin.map(|kin| kin.program).filter(|program| *program == spec.program);
        Self {
            program: program.unwrap_or(&spec.program),
            name,
            pc: 0,
            rounds: 0,
            around: Vec::new(),
            looping: false,
            burst: Burst::Work(0),
            wait: Wait::Nothing,
            relock: false,
            own_timers: Vec::new(),
            started,
            clock_poll: spec.initial.clock_poll.unwrap_or(0),
            affinity: spec.initial.cpus.as_deref().map_or(CpuSet::ALL, CpuSet::of),
        }
    }

    /// Does the program's jumps up to the next operation that is none; `None` at its end.
    #[inline]
    pub fn fetch(&mut self) -> Option<&'a Op> {
        let program = self.program;
        loop {
            match program.get(self.pc)? {
                Op::LoopStart { times } => {
                    if std::mem::replace(&mut self.looping, true) {
                        self.around.push(self.rounds);
                    }
                    self.rounds = times.unwrap_or(u64::MAX);
                    self.pc += 1;
                }
                Op::LoopEnd { start } => {
                    if self.rounds != u64::MAX {
                        self.rounds -= 1;
                    }
                    if self.rounds == 0 {
                        let around = self.around.pop();
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

    /// How long the burst in hand takes at this speed.
    #[inline]
    pub fn time_left(&self, speed: u32) -> Nanos {
        match self.burst {
            Burst::Work(left) if speed == 1024 => left,
            Burst::Work(left) => (u128::from(left) * 1024).div_ceil(u128::from(speed.max(1))) as Nanos,
            Burst::Time(left) | Burst::SpinFor(left) => left,
            Burst::Spin => Nanos::MAX,
        }
    }

    /// Takes the time that it ran at this speed off its burst.
    #[inline]
    pub fn progress(&mut self, ran: Nanos, speed: u32) {
        match &mut self.burst {
            Burst::Work(left) if speed == 1024 => *left = left.saturating_sub(ran),
            Burst::Work(left) => {
                *left = left.saturating_sub((u128::from(ran) * u128::from(speed) / 1024) as Nanos);
            }
            Burst::Time(left) | Burst::SpinFor(left) => *left = left.saturating_sub(ran),
            Burst::Spin => {}
        }
    }
}

/// An amount, drawn where it varies.
#[inline]
pub(crate) fn draw(amount: Amount, rng: &mut Rng) -> Nanos {
    if amount.sd == 0 { amount.mean } else { rng.about(amount.mean, amount.sd) }
}
