//! Inspection: the state of a scheduler's queues at an instant ([`View`]), and the reasons for its decisions
//! ([`Decision`]). Both cost nothing unless requested.

use crate::task::TaskId;
use schedlab_base::{CpuId, Nanos};

/// A part of a scheduler's state, ready to be shown: a value that converts directly to JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum View {
    /// No value.
    Nothing,
    /// A whole number.
    Int(i128),
    /// True or false.
    Flag(bool),
    /// A name.
    Text(String),
    /// A list, in order.
    List(Vec<View>),
    /// Named parts, in order.
    Map(Vec<(&'static str, View)>),
    /// A task, by number; the [`Inspector`] knows its name.
    Task(TaskId),
}

impl From<u64> for View {
    fn from(n: u64) -> Self {
        Self::Int(n.into())
    }
}

impl From<i64> for View {
    fn from(n: i64) -> Self {
        Self::Int(n.into())
    }
}

impl From<u32> for View {
    fn from(n: u32) -> Self {
        Self::Int(n.into())
    }
}

impl From<bool> for View {
    fn from(yes: bool) -> Self {
        Self::Flag(yes)
    }
}

impl From<&str> for View {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<View>> From<Option<T>> for View {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

impl<T: Into<View>> FromIterator<T> for View {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        Self::List(all.into_iter().map(Into::into).collect())
    }
}

/// The kind of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Which task runs next on a CPU.
    Pick,
    /// A task that became runnable preempts the running one.
    Preempt,
    /// A task that became runnable waits.
    Wait,
    /// The running task's turn ends, by the tick or by its own account.
    TurnEnds,
    /// The CPU on which a task is queued.
    Place,
    /// A task is moved to another CPU.
    Move,
    /// A task or a group is throttled until its budget is renewed, or is unthrottled.
    Throttle,
}

/// One decision and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The time of the decision.
    pub time: Nanos,
    /// The CPU that it is for.
    pub cpu: CpuId,
    /// The kind of decision.
    pub choice: Choice,
    /// The task in whose favour it was made; `None` is the idle task.
    pub who: Option<TaskId>,
    /// The tasks that were considered and rejected.
    pub over: Vec<TaskId>,
    /// The rule, in the words of its module's documentation.
    pub rule: &'static str,
    /// The numbers that were compared: the task (`None` for the queue), the quantity and the value.
    pub numbers: Vec<(Option<TaskId>, &'static str, i64)>,
}

impl Decision {
    /// Creates a decision for `cpu` in favour of `who` (`None` is the idle task) by `rule`.
    /// [`Core::explain`](crate::Core::explain) adds the time.
    #[must_use]
    pub fn new(cpu: CpuId, choice: Choice, who: Option<TaskId>, rule: &'static str) -> Self {
        Self { time: 0, cpu, choice, who, over: Vec::new(), rule, numbers: Vec::new() }
    }

    /// Adds the tasks that were considered and rejected.
    #[must_use]
    pub fn over(mut self, tasks: impl IntoIterator<Item = TaskId>) -> Self {
        self.over.extend(tasks);
        self
    }

    /// Adds the numbers that the rule compared.
    #[must_use]
    pub fn numbers(mut self, numbers: impl IntoIterator<Item = (Option<TaskId>, &'static str, i64)>) -> Self {
        self.numbers.extend(numbers);
        self
    }
}

/// Receives what was requested: views at given times, and decisions as they are made.
pub trait Inspector {
    /// Receives the state of a CPU's queues at `time`, before anything happens then.
    fn view(&mut self, time: Nanos, cpu: CpuId, view: View);
    /// Receives a decision.
    fn decision(&mut self, decision: &Decision);
}

impl<I: Inspector + ?Sized> Inspector for &mut I {
    fn view(&mut self, time: Nanos, cpu: CpuId, view: View) {
        (**self).view(time, cpu, view);
    }

    fn decision(&mut self, decision: &Decision) {
        (**self).decision(decision);
    }
}

/// What to inspect during a run.
pub struct Inspect<'a> {
    /// The times at which every CPU's state is wanted, in ascending order.
    pub at: &'a [Nanos],
    /// The time range in which decisions are wanted.
    pub explain: std::ops::Range<Nanos>,
    /// The receiver.
    pub to: Box<dyn Inspector + 'a>,
}
