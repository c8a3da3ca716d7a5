//! Looking inside: the state of a scheduler's queues at an instant ([`View`]), and why it decided as it did
//! ([`Decision`]). Both cost nothing unless they were asked for.

use crate::task::TaskId;
use schedlab_base::{CpuId, Nanos};

/// A piece of a scheduler's state, ready to be shown: a value that turns into JSON as it stands.
#[derive(Clone, Debug, PartialEq)]
pub enum View {
    /// Nothing there.
    Nothing,
    /// A whole number.
    Int(i128),
    /// Yes or no.
    Flag(bool),
    /// A name.
    Text(String),
    /// Several, in order.
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

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Which task runs next on a CPU.
    Pick,
    /// A task that became runnable is to take the CPU from the running one.
    Preempt,
    /// A task that became runnable is to wait.
    Wait,
    /// The tick, or the task's own account, ends its turn.
    TurnEnds,
    /// On which CPU a task is queued.
    Place,
    /// A task is moved to another CPU.
    Move,
    /// A task or a group may not run until its budget comes back, or may run again.
    Throttle,
}

/// One decision and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub time: Nanos,
    /// For which CPU.
    pub cpu: CpuId,
    /// What was decided.
    pub choice: Choice,
    /// In whose favour; `None` is idle.
    pub who: Option<TaskId>,
    /// The tasks that were considered and not taken.
    pub over: Vec<TaskId>,
    /// The rule, in the words of its module's documentation.
    pub rule: &'static str,
    /// The numbers that it compared: whose (`None`: the queue's), what, how much.
    pub numbers: Vec<(Option<TaskId>, &'static str, i64)>,
}

impl Decision {
    /// A decision for `cpu` in favour of `who` (`None` is idle) by `rule`. [`Core::explain`](crate::Core::explain) adds
    /// the time.
    #[must_use]
    pub fn new(cpu: CpuId, choice: Choice, who: Option<TaskId>, rule: &'static str) -> Self {
        Self { time: 0, cpu, choice, who, over: Vec::new(), rule, numbers: Vec::new() }
    }

    /// The same with the tasks that were considered and not taken.
    #[must_use]
    pub fn over(mut self, tasks: impl IntoIterator<Item = TaskId>) -> Self {
        self.over.extend(tasks);
        self
    }

    /// The same with the numbers that the rule compared.
    #[must_use]
    pub fn numbers(mut self, numbers: impl IntoIterator<Item = (Option<TaskId>, &'static str, i64)>) -> Self {
        self.numbers.extend(numbers);
        self
    }
}

/// Takes what was asked for: views at given times, and decisions as they are made.
pub trait Inspector {
    /// The state of a CPU's queues at `time`, before anything that happens then.
    fn view(&mut self, time: Nanos, cpu: CpuId, view: View);
    /// A decision.
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
    /// The times at which every CPU's state is wanted, ascending.
    pub at: &'a [Nanos],
    /// From when to when decisions are wanted.
    pub explain: std::ops::Range<Nanos>,
    /// What takes it.
    pub to: Box<dyn Inspector + 'a>,
}
