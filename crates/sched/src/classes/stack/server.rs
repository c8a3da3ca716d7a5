//! Charging the fair servers for the run time of fair tasks, while there are tasks in higher classes.

use super::Stack;
use crate::classes::{Class, ClassId};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::Core;

impl<F: Class> Stack<F> {
    /// Counts a task that joins a class above fair. With the first one, the servers start to be charged, and a tick
    /// that ends a fair task's turn no longer does that alone.
    pub(super) fn count(&mut self, cx: &mut Core, class: ClassId) {
        if class != ClassId::Fair {
            if self.above == 0 {
                self.since.clear();
                self.since.resize(cx.nr_cpus() as usize, cx.now());
                (0..cx.nr_cpus()).for_each(|cpu| cx.touch(cpu));
            }
            self.above += 1;
        }
    }

    /// Counts a task that leaves a class above fair. With the last one, the servers stop.
    pub(super) fn uncount(&mut self, cx: &mut Core, class: ClassId) {
        if class != ClassId::Fair {
            self.above -= 1;
            if self.above == 0 {
                (0..cx.nr_cpus()).for_each(|cpu| self.fair.others(cx, cpu, 0, 0));
            }
            if self.above == 0
                && let Some(dl) = &mut self.dl
            {
                (0..cx.nr_cpus()).for_each(|cpu| dl.stop_server(cx, cpu));
            }
        }
    }

    /// Charges the fair server of `cpu` for the fair task or the idle time since the last call, and starts the server
    /// if there are fair tasks.
    #[inline]
    pub(super) fn serve(&mut self, cx: &mut Core, cpu: CpuId) {
        if self.above == 0 {
            return;
        }
        let Some(dl) = &mut self.dl else { return };
        let since = &mut self.since[cpu as usize];
        let passed = cx.now() - std::mem::replace(since, cx.now());
        if self.fair.is_running(cpu) {
            dl.charge_server(cx, cpu, passed);
        } else if cx.curr(cpu).is_none() {
            dl.charge_idle(cpu, passed);
        }
        if dl.wants_start(cpu) && self.fair.has_runnable(cpu) {
            dl.start_server(cx, cpu);
        }
    }

    /// Charges a fair server without budget for the time that its fair task keeps running until the CPU has switched.
    pub(super) fn switch_takes_time(&mut self, cx: &mut Core, cpu: CpuId) {
        if let Some(dl) = &mut self.dl
            && self.fair.is_running(cpu)
            && dl.server_spent(cpu)
        {
            dl.charge_server(cx, cpu, 1);
        }
    }

    /// When the fair server of `cpu` next needs attention while the running task continues: its budget is used up, or
    /// it must be started.
    pub(super) fn server_decision(&self, cpu: CpuId) -> Nanos {
        match &self.dl {
            Some(dl) if self.above > 0 => {
                let starts = dl.wants_start(cpu) && self.fair.has_runnable(cpu);
                let spent = || dl.server_spent_at(cpu, self.since[cpu as usize]);
                if starts {
                    0
                } else if self.fair.is_running(cpu) {
                    spent()
                } else {
                    Nanos::MAX
                }
            }
            _ => Nanos::MAX,
        }
    }
}
