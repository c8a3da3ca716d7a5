//! The registry of measures: whose figures stand in every row of the report, and in which order.

use crate::measure::Measure;
use crate::noted::Noted;
use crate::run_time::Off;
use schedlab_base::{CpuId, Nanos, TaskState};
use schedlab_track::{Delay, Move, Observer, Occupant, Slot, Start, Stop, row};
use serde::Serialize;

/// Makes of each line (a field, the measure, its figures, both out of the measure's file) a field of what is kept, and
/// one of the report whose keys stand in the JSON.
macro_rules! measures {
    ($($(#[$doc:meta])* $name:ident: $module:ident::$measure:ident => $figures:ident;)*) => {
        /// All measures of a task or of a CPU: one cache line, since an event concerns several of them.
        #[derive(Debug, Default)]
        #[repr(align(64))]
        struct All {
            $($name: crate::$module::$measure,)*
        }

        impl Measure for All {
            type Figures = Sums;

            #[inline]
            fn ran(&mut self, time: Nanos) {
                $(self.$name.ran(time);)*
            }

            #[inline]
            fn waited(&mut self, time: Nanos, finished: bool) {
                $(self.$name.waited(time, finished);)*
            }

            #[inline]
            fn served(&mut self, delay: &Noted) {
                $(self.$name.served(delay);)*
            }

            #[inline]
            fn started(&mut self) {
                $(self.$name.started();)*
            }

            #[inline]
            fn stopped(&mut self, state: TaskState) {
                $(self.$name.stopped(state);)*
            }

            #[inline]
            fn moved(&mut self) {
                $(self.$name.moved();)*
            }

            fn add(&mut self, other: &Self) {
                $(self.$name.add(&other.$name);)*
            }

            fn figures(&self) -> Sums {
                Sums { $($name: self.$name.figures(),)* }
            }
        }

        /// What tasks, CPUs, nodes, groups and the whole have in common.
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        pub struct Sums {
            $($(#[$doc])* #[serde(flatten)] pub $name: crate::$module::$figures,)*
        }
    };
}

measures! {
    /// CPU time.
    run: run_time::Run => RunFigures;
    /// Time runnable, but not running.
    wait: wait_time::Wait => WaitFigures;
    /// Switches in and out.
    switches: switches::SwitchFigures => SwitchFigures;
    /// Moves between CPUs.
    moves: migrations::MigrationFigures => MigrationFigures;
    /// From wake-ups, and from becoming runnable, to running.
    latency: latency::Waits => LatencyFigures;
}

const _: () = assert!(size_of::<All>() == 64);

/// What is kept of a CPU alone.
#[derive(Debug, Default)]
struct OfCpu {
    all: All,
    off: Off,
    departures: u64,
}

/// The measures of all tasks and CPUs.
#[derive(Debug, Default)]
pub(crate) struct Measures {
    tasks: Vec<All>,
    cpus: Vec<OfCpu>,
    /// Of the waits that ended only those after a wake-up are noted.
    pub(crate) wakeups_alone: bool,
}

impl Measures {
    /// The figures of these tasks together.
    pub(crate) fn of_tasks(&self, tasks: &[Slot]) -> Sums {
        sum(tasks.iter().filter_map(|task| self.tasks.get(*task as usize)))
    }

    /// The figures of these CPUs together.
    pub(crate) fn of_cpus(&self, cpus: &[CpuId]) -> Sums {
        sum(self.cpus(cpus).map(|cpu| &cpu.all))
    }

    /// The time in which these CPUs ran no known task.
    pub(crate) fn off(&self, cpus: &[CpuId]) -> Off {
        self.cpus(cpus).fold(Off::default(), |sum, cpu| sum.and(cpu.off))
    }

    /// How many tasks were moved away from a CPU.
    pub(crate) fn departures(&self, cpu: CpuId) -> u64 {
        self.cpus(&[cpu]).map(|cpu| cpu.departures).sum()
    }

    fn cpus(&self, cpus: &[CpuId]) -> impl Iterator<Item = &OfCpu> {
        cpus.iter().filter_map(|cpu| self.cpus.get(*cpu as usize))
    }

    #[inline]
    fn both(&mut self, task: Slot, cpu: CpuId) -> (&mut All, &mut All) {
        (row(&mut self.tasks, task), &mut row(&mut self.cpus, cpu).all)
    }

    /// What is noted of a delay, if anything is.
    #[inline]
    fn noted(&self, delay: &Delay) -> Option<Noted> {
        (!self.wakeups_alone || delay.wakeup.is_some()).then(|| Noted::from(delay))
    }
}

fn sum<'a>(mut all: impl Iterator<Item = &'a All>) -> Sums {
    match (all.next(), all.next()) {
        (Some(one), None) => one.figures(),
        (first, second) => {
            let mut sum = All::default();
            first.into_iter().chain(second).chain(all).for_each(|one| sum.add(one));
            sum.figures()
        }
    }
}

impl Observer for Measures {
    #[inline]
    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        let time = to.saturating_sub(from);
        let of_cpu = row(&mut self.cpus, cpu);
        match who {
            Occupant::Unknown => of_cpu.off.unknown += time,
            Occupant::Idle => of_cpu.off.idle += time,
            Occupant::Task(task) => {
                of_cpu.all.ran(time);
                row(&mut self.tasks, task).ran(time);
            }
        }
    }

    #[inline]
    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, finished: bool) {
        let time = to.saturating_sub(from);
        let (of_task, of_cpu) = self.both(task, cpu);
        of_task.waited(time, finished);
        of_cpu.waited(time, finished);
    }

    #[inline]
    fn served(&mut self, task: Slot, cpu: CpuId, delay: Delay) {
        let Some(delay) = self.noted(&delay) else { return };
        let (of_task, of_cpu) = self.both(task, cpu);
        of_task.served(&delay);
        of_cpu.served(&delay);
    }

    #[inline]
    fn started(&mut self, task: Slot, cpu: CpuId, _: Start) {
        let (of_task, of_cpu) = self.both(task, cpu);
        of_task.started();
        of_cpu.started();
    }

    #[inline]
    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        let (of_task, of_cpu) = self.both(task, cpu);
        of_task.stopped(stop.state);
        of_cpu.stopped(stop.state);
    }

    #[inline]
    fn takes(&mut self, task: Slot, cpu: CpuId, since: Nanos, delay: Delay, start: Start) {
        let time = start.now.saturating_sub(since);
        let delay = self.noted(&delay);
        let (of_task, of_cpu) = self.both(task, cpu);
        for all in [of_task, of_cpu] {
            all.waited(time, true);
            all.started();
            if let Some(delay) = &delay {
                all.served(delay);
            }
        }
    }

    #[inline]
    fn leaves(&mut self, task: Slot, cpu: CpuId, since: Nanos, stop: Stop) {
        let time = stop.now.saturating_sub(since);
        let (of_task, of_cpu) = self.both(task, cpu);
        for all in [of_task, of_cpu] {
            all.ran(time);
            all.stopped(stop.state);
        }
    }

    #[inline]
    fn migrated(&mut self, task: Slot, moved: Move) {
        let (of_task, of_cpu) = self.both(task, moved.to);
        of_task.moved();
        of_cpu.moved();
        row(&mut self.cpus, moved.from).departures += 1;
    }
}
