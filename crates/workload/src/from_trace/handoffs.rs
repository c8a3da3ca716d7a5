//! Records which task woke which one, and when tasks were preempted. That tells of mutexes ([`super::locks`]), and of
//! consumers that take from one queue ([`super::consumers`]).

use super::sequence::TaskIx;
use super::track::Track;
use schedlab_base::Nanos;
use std::collections::VecDeque;

/// At most so many of each are held.
const MOST: usize = 1 << 20;

/// One that gets a CPU this soon after it was woken may have preempted somebody because it was woken.
const AT_ONCE: Nanos = 50_000;

/// How those who wait at the same time are woken shows if one is woken so many times at least while another waits. They
/// are woken in order if so many percent at least are, and one at a time if so many percent at most are woken together
/// with another one: within this time, by the same task.
pub(super) const FEWEST_QUEUED: usize = 16;
pub(super) const PERCENT_IN_ORDER: usize = 90;
pub(super) const PERCENT_TOGETHER: usize = 20;
pub(super) const TOGETHER: Nanos = 5_000;

/// A task that another one woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handoff {
    pub sleeper: TaskIx,
    pub waker: TaskIx,
    /// From when until when it slept.
    pub since: Nanos,
    pub now: Nanos,
    /// The work that it had done by then.
    pub work: Nanos,
    /// When it got a CPU then; the same if it did not.
    pub started: Nanos,
    /// Since when the waker had been on its CPU.
    pub turn: Nanos,
}

/// A task that was preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preempted {
    pub task: TaskIx,
    /// From when until when it had no CPU.
    pub from: Nanos,
    pub to: Nanos,
}

/// All of a trace, in order.
#[derive(Debug, Default)]
pub(super) struct Handoffs {
    woken: Vec<Handoff>,
    preempted: Vec<Preempted>,
    /// Who was preempted last.
    last: Option<(TaskIx, Nanos)>,
}

impl Handoffs {
    /// The tasks that others woke. Of a trace with too many of them none is known.
    pub fn woken(&self) -> &[Handoff] {
        if self.woken.len() > MOST { &[] } else { &self.woken }
    }

    /// The tasks that were preempted, but not by one that another one had just woken.
    pub fn preempted(&self) -> &[Preempted] {
        &self.preempted
    }
}

/// The waits of tasks, each of which one of these wake-ups ends, of those that are not over yet.
pub(super) struct Waits<'a> {
    members: &'a [TaskIx],
    /// When the waits of each began, in order.
    since: Vec<VecDeque<Nanos>>,
}

impl<'a> Waits<'a> {
    /// Before the first of these wake-ups, which are in order. `members`, in ascending order, are who is woken.
    pub fn of<'h>(members: &'a [TaskIx], woken: impl Iterator<Item = &'h Handoff>) -> Self {
        let mut waits = Self { members, since: vec![VecDeque::new(); members.len()] };
        for handoff in woken {
            let place = waits.place(handoff.sleeper);
            waits.since[place].push_back(handoff.since);
        }
        waits
    }

    fn place(&self, task: TaskIx) -> usize {
        self.members.binary_search(&task).expect("it is a member")
    }

    /// The first wait of a task is over.
    pub fn end(&mut self, task: TaskIx) {
        let place = self.place(task);
        self.since[place].pop_front();
    }

    /// When the next wait of a task begins.
    pub fn next_of(&self, task: TaskIx) -> Option<Nanos> {
        self.since[self.place(task)].front().copied()
    }

    /// When the waits began that are under way at this time.
    pub fn under_way(&self, now: Nanos) -> impl Iterator<Item = Nanos> + '_ {
        self.since.iter().filter_map(VecDeque::front).copied().filter(move |since| *since < now)
    }
}

/// A task's latest wake-up and its latest time on a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Turn {
    /// Since when it is on a CPU.
    since: Nanos,
    /// The number of its wake-up by another one, until it gets a CPU.
    woken: Option<usize>,
    /// When it was preempted, until it gets a CPU again.
    left: Option<Nanos>,
}

impl Track {
    /// A running task wakes one that has slept since then.
    pub(super) fn hands_over(&mut self, waker: TaskIx, sleeper: TaskIx, since: Nanos, now: Nanos) {
        if self.handoffs.woken.len() <= MOST {
            let work = self.tasks[sleeper as usize].work;
            let turn = self.tasks[waker as usize].shown.since;
            self.tasks[sleeper as usize].shown.woken = Some(self.handoffs.woken.len());
            self.handoffs.woken.push(Handoff { sleeper, waker, since, now, work, started: now, turn });
        }
    }

    /// A task is preempted.
    pub(super) fn is_preempted(&mut self, ix: TaskIx, now: Nanos) {
        self.tasks[ix as usize].shown.left = Some(now);
        self.handoffs.last = Some((ix, now));
    }

    /// A task gets a CPU.
    pub(super) fn gets_cpu(&mut self, ix: TaskIx, now: Nanos) {
        let Turn { woken, left, .. } = std::mem::take(&mut self.tasks[ix as usize].shown);
        self.tasks[ix as usize].shown.since = now;
        if let Some(handoff) = woken.map(|number| &mut self.handoffs.woken[number]) {
            handoff.started = now;
            if let Some((last, _)) =
                self.handoffs.last.filter(|(_, at)| *at == now && now.saturating_sub(handoff.now) < AT_ONCE)
            {
                self.tasks[last as usize].shown.left = None;
            }
        }
        if let Some(left) = left.filter(|_| self.handoffs.preempted.len() < MOST) {
            self.handoffs.preempted.push(Preempted { task: ix, from: left, to: now });
        }
    }
}
