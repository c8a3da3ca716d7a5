//! The rules that debug builds check after each event: a correct scheduler keeps them, and each planted fault is
//! caught.

use crate::support::{Accounts, MS, bare, forever, hog, once, pinned, run, sleep};
use schedlab_base::CpuId;
use schedlab_sim::program::{Load, Op, Setting};
use schedlab_sim::{Core, Dequeue, Enqueue, Options, QueueList, Scheduler, State, Stranded, TaskId};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The fault of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// A wake-up does not make an idle CPU reschedule.
    CallsNoIdleCpu,
    /// The task that leaves a CPU is put back if its state is runnable, although it was dequeued to run elsewhere.
    PutsBackByState,
    /// A waking task is not queued.
    Forgets,
    /// A waking task is queued twice.
    QueuesTwice,
    /// A sleeping task stays on the queue of CPU 0, where another task runs.
    KeepsSleepers,
    /// A sleeping task stays on the queue of CPU 1, where it is picked.
    RunsSleepers,
    /// A waiting task joins the queue of another CPU, and the engine is not informed.
    MovesInSecret,
    /// A running task is moved.
    MovesRunning,
}

/// First come, first served, with a queue for each CPU; the running task is not on it. It implements only the required
/// methods, and turns that end with each tick.
struct Fifo {
    fault: Fault,
    queues: Vec<VecDeque<TaskId>>,
}

impl Scheduler for Fifo {
    fn enqueue_task(&mut self, _cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        if self.fault == Fault::Forgets && how == Enqueue::Wakeup {
            return;
        }
        let at = if self.fault == Fault::MovesInSecret { 0 } else { cpu };
        self.queues[at as usize].push_back(p);
        if self.fault == Fault::QueuesTwice && how == Enqueue::Wakeup {
            self.queues[at as usize].push_back(p);
        }
    }

    fn dequeue_task(&mut self, _cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) {
        self.queues[cpu as usize].retain(|q| *q != p);
        let keeps = [Fault::KeepsSleepers, Fault::RunsSleepers][cpu as usize];
        if self.fault == keeps && how == Dequeue::Sleep {
            self.queues[cpu as usize].push_back(p);
        }
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let by_state = self.fault == Fault::PutsBackByState;
        let goes_on = |p: &TaskId| if by_state { cx.task(*p).state == State::Runnable } else { cx.task(*p).on_rq };
        self.queues[cpu as usize].extend(prev.filter(goes_on));
        let next = self.queues[cpu as usize].pop_front();
        if let Some(p) = next
            && self.fault == Fault::MovesRunning
            && cx.now() > 5 * MS
        {
            cx.touch(cpu);
            return cx.curr(cpu).inspect(|p| cx.set_task_cpu(*p, 1 - cpu)).or(Some(p));
        }
        next
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, _p: TaskId, how: Enqueue) {
        if cx.curr(cpu).is_none() && (self.fault != Fault::CallsNoIdleCpu || how == Enqueue::New) {
            cx.resched(cpu);
        }
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        cx.resched(cpu);
    }

    fn queued(&self, _cx: &Core, cpu: CpuId, list: &mut QueueList) {
        self.queues[cpu as usize].iter().for_each(|p| list.ready(*p));
    }
}

/// A hog and a sleeper on CPU 0, a sleeper on CPU 1, and a task that moves from CPU 0 to CPU 1.
fn load() -> Load {
    let moves = once("moves", vec![run(2), Op::Set(0), run(1)]);
    let dozes = |name| forever(name, 0, vec![run(1), sleep(3)]);
    let tasks = vec![moves, pinned(hog("stays", 0), 0), pinned(dozes("dozes"), 0), pinned(dozes("elsewhere"), 1)];
    Load { tasks, settings: vec![Setting { cpus: Some(vec![1]), ..Setting::default() }], ..Load::default() }
}

/// Returns the engine's message about a run under a scheduler with this fault.
fn message(fault: Fault) -> Option<String> {
    let machine = bare("2");
    let options = Options {
        duration: Some(50 * MS),
        seed: 1,
        skip_ticks: true,
        tick_period: MS,
        tick_first: MS,
        stranded: Stranded::default(),
        lazy: false,
        inheritance: None,
        stopper: false,
        new_migrate: true,
    };
    let load = load();
    let run = || {
        let fifo = Fifo { fault, queues: vec![VecDeque::new(); 2] };
        schedlab_sim::run(fifo, &machine, &load, &options, &mut Accounts::default(), None).expect("a run");
    };
    let panic = catch_unwind(AssertUnwindSafe(run)).err()?;
    Some(panic.downcast::<String>().map_or_else(|_| "a panic without a text".into(), |text| *text))
}

#[test]
fn a_scheduler_of_three_methods_keeps_every_rule() {
    assert_eq!(message(Fault::Nothing), None);
}

#[test]
fn each_fault_is_named_with_its_task_its_cpu_and_the_time() {
    for (fault, text) in [
        (Fault::CallsNoIdleCpu, "waits on the queue of a CPU that is idle and was not asked to reschedule"),
        (Fault::PutsBackByState, "on CPU 0: task moves (tid 1) is on the queue of another CPU than its own"),
        (Fault::Forgets, "is runnable, does not run, and is on no queue"),
        (Fault::QueuesTwice, "is on the queue twice"),
        (Fault::KeepsSleepers, "is on the queue, but is not runnable"),
        (Fault::RunsSleepers, "runs, but is not runnable"),
        (Fault::MovesInSecret, "on CPU 1: task elsewhere (tid 4) is runnable, does not run, and is on no queue"),
        (Fault::MovesRunning, "was moved to another CPU"),
    ] {
        let message = message(fault).unwrap_or_else(|| panic!("{fault:?} was not caught"));
        assert!(message.contains(text), "{fault:?}: {message}");
        assert!(message.starts_with("the scheduler broke a rule at 0.0"), "{fault:?}: {message}");
    }
}
