//! Active balancing: after too many failures, the stopper of the busiest CPU pushes away the task that was running
//! there, or another one (`active_load_balance_cpu_stop`; the migration thread before 2.6.35).

use super::load_balance::{Env, Unit, Work};
use super::queues::Queues;
use crate::balance::domains::Flags;
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, Looking, v};
use schedlab_sim::TaskId;

impl<Q: Queues> Work<'_, Q> {
    /// Asks the stopper of the busiest CPU to push a task to the balancing CPU. Returns `false` if a push is already
    /// pending.
    pub fn ask_for_push(&mut self, env: &Env) -> bool {
        let asked = &mut self.b.of_cpu[env.src as usize].push_to;
        let first = asked.is_none();
        if first {
            *asked = Some(env.cpu);
            self.cx.wake_stopper(env.src);
        }
        first
    }

    /// Called when the stopper of `src` runs. The task that it interrupted is waiting.
    pub fn push(&mut self, src: CpuId) {
        let Some(dst) = self.b.of_cpu[src as usize].push_to.take() else { return };
        if self.q.nr_running(src) == 0 || !self.cx.online(dst) || !self.cx.online(src) {
            return;
        }
        let list = self.b.domains.of(dst);
        let spans = |level: &usize| {
            self.b.domains.span(list[*level].span).contains(src)
                && (self.b.rules.release() >= v(5, 8) || list[*level].flags.has(Flags::LOAD_BALANCE))
        };
        let Some(level) = (0..list.len()).find(spans) else { return };
        self.cx.trace_considered(src, Looking::Active, None, [dst]);
        self.q.account(self.cx, dst);
        let to_idle = Env::new(dst, level, Idleness::Idle);
        let mut env = Env { src, imbalance: 1, unit: Unit::Tasks, active: true, ..to_idle };
        let Some(p) = self.first_to_push(&mut env) else { return };
        self.explain_move(p, &env, 1);
        // The change came somewhere between 4.1 and 5.5.
        if self.b.rules.typed() {
            self.b.sd(dst, level).round.failed = 0;
        }
        self.q.detach(self.cx, p, src, dst);
        self.q.attach(self.cx, p, dst);
    }

    /// The first task that may be moved, in the order in which balancing always looks at a CPU's tasks.
    fn first_to_push(&mut self, push: &mut Env) -> Option<TaskId> {
        let mut list = std::mem::take(&mut self.b.scratch.list);
        if self.b.rules.moves_by_queue() {
            let mut lengths = std::mem::take(&mut self.b.scratch.lengths);
            self.q.list_by_queue(push.src, &mut list, &mut lengths);
            self.b.scratch.lengths = lengths;
        } else {
            self.q.list(push.src, self.end(), &mut list);
        }
        let first = list.iter().copied().find(|p| self.can_move(*p, push));
        self.b.scratch.list = list;
        first
    }
}
