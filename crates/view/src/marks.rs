//! What happens at an instant, or is drawn as an arrow: wake-ups, migrations, losses, interrupts.

use schedlab_base::{CpuId, Nanos};

/// No task, or no CPU.
pub const NOBODY: u32 = u32::MAX;

/// The kinds of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A wake-up: from the waker and its CPU to the task and the CPU on whose queue it waits.
    Wake = 0,
    /// A migration.
    Migrate = 1,
    /// A CPU that was idle for too long while tasks waited that may run there.
    Violation = 2,
    /// Lost events of a CPU.
    Loss = 3,
    /// An interrupt; its number stands for the task.
    Interrupt = 4,
}

impl Kind {
    /// Every kind with its name.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Wake, "wake"),
        (Self::Migrate, "migrate"),
        (Self::Violation, "violation"),
        (Self::Loss, "loss"),
        (Self::Interrupt, "interrupt"),
    ];
}

/// A mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When it begins.
    pub time: Nanos,
    /// How long it lasts; 0 for most kinds.
    pub duration: Nanos,
    /// From this CPU, or [`NOBODY`].
    pub from_cpu: CpuId,
    /// To this CPU.
    pub to_cpu: CpuId,
    /// From this task, or [`NOBODY`].
    pub from_task: u32,
    /// To this task.
    pub to_task: u32,
}

impl Mark {
    /// Whether this CPU or this task takes part in it, where one is given.
    #[must_use]
    pub fn concerns(&self, cpu: Option<CpuId>, task: Option<u32>) -> bool {
        cpu.is_none_or(|cpu| self.from_cpu == cpu || self.to_cpu == cpu)
            && task.is_none_or(|task| self.from_task == task || self.to_task == task)
    }
}

/// Marks of one kind, by time: 20 bytes each, and 8 more if they last.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    times: Vec<Nanos>,
    durations: Option<Vec<Nanos>>,
    cpus: Vec<[u16; 2]>,
    tasks: Vec<[u32; 2]>,
}

impl Marks {
    /// Marks that last.
    #[must_use]
    pub fn lasting() -> Self {
        Self { durations: Some(Vec::new()), ..Self::default() }
    }

    /// Whether they last.
    #[must_use]
    pub fn last(&self) -> bool {
        self.durations.is_some()
    }

    /// Adds a mark and returns its number.
    pub fn push(&mut self, mark: Mark) -> usize {
        let cpu = |cpu: CpuId| u16::try_from(cpu).unwrap_or(u16::MAX);
        // Marks that are told late keep the order of time, by which they are found.
        let time = mark.time.max(self.times.last().copied().unwrap_or(0));
        self.times.push(if self.durations.is_some() { mark.time } else { time });
        self.cpus.push([cpu(mark.from_cpu), cpu(mark.to_cpu)]);
        self.tasks.push([mark.from_task, mark.to_task]);
        if let Some(durations) = &mut self.durations {
            durations.push(mark.duration);
        }
        self.times.len() - 1
    }

    /// The CPU that a mark goes to turns out to be another.
    pub fn redirect(&mut self, at: usize, to: CpuId) {
        self.cpus[at][1] = u16::try_from(to).unwrap_or(u16::MAX);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// When the first one begins.
    #[must_use]
    pub fn earliest(&self) -> Option<Nanos> {
        self.times.iter().min().copied()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// One of them.
    #[must_use]
    pub fn get(&self, at: usize) -> Mark {
        let cpu = |cpu: u16| if cpu == u16::MAX { NOBODY } else { cpu.into() };
        Mark {
            time: self.times[at],
            duration: self.durations.as_ref().map_or(0, |durations| durations[at]),
            from_cpu: cpu(self.cpus[at][0]),
            to_cpu: cpu(self.cpus[at][1]),
            from_task: self.tasks[at][0],
            to_task: self.tasks[at][1],
        }
    }

    /// The numbers of those from `from` until before `to`; of marks that last, those that touch that time are among
    /// them.
    #[must_use]
    pub fn within(&self, from: Nanos, to: Nanos) -> std::ops::Range<usize> {
        if self.durations.is_some() {
            return 0..self.times.len();
        }
        self.times.partition_point(|time| *time < from)..self.times.partition_point(|time| *time < to)
    }

    /// The bytes that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let durations = self.durations.as_ref().map_or(0, Vec::capacity);
        (self.times.capacity() + durations) * 8 + self.cpus.capacity() * 4 + self.tasks.capacity() * 8
    }

    /// Gives back memory that is not needed when nothing follows any more.
    pub fn close(&mut self) {
        self.times.shrink_to_fit();
        self.cpus.shrink_to_fit();
        self.tasks.shrink_to_fit();
    }
}
