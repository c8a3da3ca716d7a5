//! Parents that wait for their children: a build or `xargs -P`, which keeps at most so many of them alive, or a shell
//! that waits for all of them before it goes on.
//!
//! A trace shows that a task waited only if it slept. A child that ends while its parent is awake, or in the same sleep
//! as others, leaves no trace of the wait that it ended. Without these waits a parent would run ahead of its children
//! on a slower machine, and more and more of them would be alive. So each child of a parent that waits for its children
//! posts, at its end, a semaphore that only this parent waits on, and that only its children post. Before a fork the
//! parent waits once for each end that came before it, if it slept for the end of a child since the fork before.
//! Before the other forks, which it does one after the other, it waits for as many as it takes to have no more children
//! alive than at most in the trace.
//!
//! Which parents wait for their children shows in what they do when one ends. What counts is an end after which the
//! parent slept before it forked again:
//!
//! - It was *answered* if all those sleeps were ended by ends of children or their children, and either the parent
//!   forked when this very child had woken it, or no child was alive when it did.
//! - Else the parent had something other to wait for: a time, a request, or one certain child.
//!
//! A parent waits for its children if it answered [`FEWEST`] ends, and [`PERCENT`] of those that count. Any parent
//! waits for them before it ends if the last of them woke it from its last sleep.
//!
//! A child wakes its parent a little before it has left its CPU for good. The model's child has done all when it does
//! so. If it had not, a parent that preempts it would have one more child that is not yet over, and then more.
//!
//! The replay cannot deadlock (see [`super::unseen`]): at a fork the parent begins a new turn, and the ends that it
//! waits for there are in earlier ones. What a child does after it has woken its parent is put off only if it waits for
//! nothing there. The parent's last wait stands in the turn that follows the sleep that all of them preceded.

use super::added::{Added, At};
use super::life::{Begin, Task};
use super::sequence::{NOBODY, TaskIx, Token, push};
use super::track::Track;
use schedlab_base::{Nanos, TaskState};

/// So many answered ends at least, and so many percent of those that count, show that a parent waits for its children.
const FEWEST: usize = 2;
const PERCENT: usize = 75;

/// A child is over when it wakes its parent, if it does no more than this before it has left its CPU for good.
pub(super) const FAREWELL: Nanos = 200_000;

/// At most so many sleeps of parents are held.
const MOST_HELD: usize = 1 << 20;

/// So many generations above a task are looked at.
const MOST_GENERATIONS: usize = 64;

/// The number of a fork, a wake-up or an end among all, in the order of the trace.
type Moment = u64;

/// Something that a child told: when, and after how much of its work.
#[derive(Clone, Copy, Debug)]
struct Told {
    at: Moment,
    work: Nanos,
}

/// A sleep of a parent.
#[derive(Clone, Copy, Debug)]
struct Slept {
    until: Moment,
    /// Who ended it, if that was a child or a child of one.
    by: TaskIx,
    /// The parent's work by then.
    work: Nanos,
}

/// What a parent did.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Forked { child: TaskIx, at: Moment },
    Slept(Slept),
}

/// What is known of a task as a parent, and as a child.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// What it did since it first forked.
    deeds: Vec<Deed>,
    /// It sleeps, and that will be one of its deeds.
    sleeps: bool,
    awake: Moment,
    /// It woke its parent, or one of its parent's.
    told: Option<Told>,
    end: Option<Told>,
}

/// What all families have in common.
#[derive(Debug, Default)]
pub(super) struct Families {
    moments: Moment,
    /// How many sleeps are held.
    held: usize,
}

impl Track {
    fn moment(&mut self) -> Moment {
        self.families.moments += 1;
        self.families.moments
    }

    /// A task that runs forks another.
    pub(super) fn forks(&mut self, parent: TaskIx, child: TaskIx) {
        self.push(parent, Token::Fork(child));
        let (at, turn) = (self.moment(), self.next_turn());
        let parent = &mut self.tasks[parent as usize];
        parent.turn = turn;
        parent.family.deeds.push(Deed::Forked { child, at });
    }

    /// A task leaves its CPU in this state, not to come back by itself.
    pub(super) fn leaves(&mut self, ix: TaskIx, state: TaskState, now: Nanos) {
        self.burst_ends(ix, now);
        let at = self.moment();
        let Task { family, work, past, .. } = &mut self.tasks[ix as usize];
        past.rests(now);
        match state {
            TaskState::Dead | TaskState::Zombie => {
                let last = family.told.filter(|told| told.at > family.awake && *work - told.work <= FAREWELL);
                family.end = Some(last.unwrap_or(Told { at, work: *work }));
            }
            TaskState::Sleeping => family.sleeps = !family.deeds.is_empty() && self.families.held < MOST_HELD,
            _ => {}
        }
    }

    /// A task wakes, by another one or by [`NOBODY`].
    pub(super) fn awakes(&mut self, ix: TaskIx, by: TaskIx) {
        let until = self.moment();
        let Task { family, work, .. } = &mut self.tasks[ix as usize];
        family.awake = until;
        if !std::mem::take(&mut family.sleeps) {
            return;
        }
        let work = *work;
        let by = if is_below(&self.tasks, by, ix) { by } else { NOBODY };
        if by != NOBODY {
            let child = &mut self.tasks[by as usize];
            child.family.told = Some(Told { at: until, work: child.work });
        }
        let deeds = &mut self.tasks[ix as usize].family.deeds;
        let slept = Slept { until, by, work };
        match deeds.last_mut() {
            // What the child told before was not its end; and of other things that it waited for, one says enough.
            Some(Deed::Slept(last)) if last.by == by => *last = slept,
            _ => {
                deeds.push(Deed::Slept(slept));
                self.families.held += 1;
            }
        }
    }
}

/// Whether the task is a child of this one, or a child of a child.
fn is_below(tasks: &[Task], mut ix: TaskIx, above: TaskIx) -> bool {
    for _ in 0..MOST_GENERATIONS {
        match tasks.get(ix as usize).map(|task| task.begin) {
            Some(Begin::Forked { by, .. }) if by == above => return true,
            Some(Begin::Forked { by, .. }) => ix = by,
            _ => return false,
        }
    }
    false
}

/// Lets a child that ends wake its parent when it has done all, if it waits for nothing after that.
pub(super) fn told_at_last(mut list: Vec<Token>) -> Vec<Token> {
    let end = list.iter().enumerate().rev().find_map(|(at, token)| match token {
        Token::End(parent) => Some((at, *parent)),
        _ => None,
    });
    let Some((at, parent)) = end else { return list };
    if list[at..].iter().any(|token| matches!(token, Token::Block { .. } | Token::Join)) {
        return list;
    }
    let tells = |token: &Token| *token == Token::End(parent) || *token == Token::Post(parent);
    let (told, rest): (Vec<Token>, Vec<Token>) = list.split_off(at).into_iter().partition(tells);
    rest.into_iter().for_each(|token| push(&mut list, token));
    list.extend(told);
    list
}

/// A fork, and what was before it.
struct Chapter {
    /// The parent's sleeps since the fork before: until when, and the task whose end woke it, if one did.
    slept: Vec<(Moment, Option<TaskIx>)>,
    child: TaskIx,
    /// How many children had ended.
    ended: usize,
}

/// What a parent did, and what became of its children.
struct Story<'a> {
    tasks: &'a [Task],
    chapters: Vec<Chapter>,
    /// When which child ended.
    ends: Vec<(Moment, TaskIx)>,
    /// The last sleep after the last fork, and the task whose end woke it, if one did.
    last: Option<(Slept, Option<TaskIx>)>,
}

impl<'a> Story<'a> {
    fn of(parent: &Task, tasks: &'a [Task], kept: &[bool]) -> Self {
        let deeds = &parent.family.deeds;
        let children = deeds.iter().filter_map(|deed| match deed {
            Deed::Forked { child, .. } if kept[*child as usize] => Some(*child),
            _ => None,
        });
        let end = |child: TaskIx| Some((tasks[child as usize].family.end?.at, child));
        let mut ends: Vec<_> = children.filter_map(end).collect();
        ends.sort_unstable();
        let (mut slept, mut chapters, mut last) = (Vec::new(), Vec::new(), None);
        for deed in deeds {
            match *deed {
                Deed::Slept(sleep) => {
                    let by = tasks.get(sleep.by as usize);
                    let ended = by.is_some_and(|task| task.family.end.is_some_and(|end| end.at == sleep.until));
                    // What a child tells while it goes on is nothing that it was asked to end for.
                    if ended || sleep.by == NOBODY {
                        let by = ended.then_some(sleep.by);
                        slept.push((sleep.until, by));
                        last = Some((sleep, by));
                    }
                }
                Deed::Forked { child, at } if kept[child as usize] => {
                    let ended = ends.partition_point(|(end, _)| *end < at);
                    chapters.push(Chapter { slept: std::mem::take(&mut slept), child, ended });
                    last = None;
                }
                Deed::Forked { .. } => {}
            }
        }
        Self { tasks, chapters, ends, last }
    }

    /// Whether it forks when children have ended, and for no other reason.
    fn waits(&self) -> bool {
        let (mut answered, mut counted, mut before) = (0, 0, 0);
        for (forks, Chapter { slept, ended, .. }) in self.chapters.iter().enumerate() {
            let other = slept.iter().rposition(|(_, by)| by.is_none());
            for (end, child) in &self.ends[std::mem::replace(&mut before, *ended)..*ended] {
                let first = slept.partition_point(|(until, _)| until < end);
                let Some((_, by)) = slept.get(first) else { continue };
                let by_it = by.is_some_and(|by| by == *child || is_below(self.tasks, by, *child));
                let at_once = by_it && first + 1 == slept.len();
                counted += 1;
                answered += usize::from(other.is_none_or(|other| other < first) && (at_once || forks == *ended));
            }
        }
        answered >= FEWEST && answered * 100 >= counted * PERCENT
    }

    /// How many more ends it waits for before each fork.
    fn at_forks(&self) -> impl Iterator<Item = (TaskIx, usize)> + '_ {
        let alive = |(forks, chapter): (usize, &Chapter)| forks + 1 - chapter.ended;
        let most = self.chapters.iter().enumerate().map(alive).max().unwrap_or(0);
        let mut joined = 0;
        self.chapters.iter().enumerate().map(move |(forks, Chapter { slept, child, ended })| {
            let waited = slept.iter().any(|(_, by)| by.is_some());
            let more = if waited { ended - joined } else { (forks + 1 - joined).saturating_sub(most) };
            joined += more;
            (*child, more)
        })
    }

    /// After which sleep it waits for all that were left, if it does: when the end of the last one woke it.
    fn at_last(&self, left: usize) -> Option<Slept> {
        let (sleep, by) = self.last?;
        let all = self.ends.len() == self.chapters.len() && self.ends.last()?.0 <= sleep.until;
        // Of one end it is known that it was waited for.
        (all && by.is_some() && left > 1).then_some(sleep)
    }
}

/// Who waits for whose end, and when.
#[derive(Debug, Default)]
pub(super) struct Joins {
    /// Children that end, after so much work, and their parents.
    ends: Vec<(TaskIx, Nanos, TaskIx)>,
    /// The parents that wait, where, and how often.
    waits: Vec<(TaskIx, At, usize)>,
}

impl Joins {
    pub(super) fn of(tasks: &[Task], kept: &[bool]) -> Self {
        let mut joins = Self::default();
        let parents = (0..).zip(tasks).filter(|(ix, task): &(TaskIx, &Task)| kept[*ix as usize] && !task.cut);
        for (ix, parent) in parents.filter(|(_, task)| !task.family.deeds.is_empty()) {
            let story = Story::of(parent, tasks, kept);
            let before = joins.waits.len();
            let mut left = story.ends.len();
            if story.waits() {
                let forks = story.at_forks().filter(|(_, more)| *more > 0);
                joins.waits.extend(forks.map(|(child, more)| (ix, At::Fork(child), more)));
                left -= joins.waits[before..].iter().map(|(_, _, more)| more).sum::<usize>();
            }
            if let Some(sleep) = parent.family.end.and_then(|_| story.at_last(left)) {
                joins.waits.push((ix, At::Work(sleep.work), left));
            }
            if joins.waits.len() > before {
                let end = |(_, child): &(Moment, TaskIx)| Some((*child, tasks[*child as usize].family.end?.work, ix));
                joins.ends.extend(story.ends.iter().filter_map(end));
            }
        }
        joins
    }

    pub(super) fn add_to(&self, added: &mut Added) {
        self.ends.iter().for_each(|(child, work, parent)| added.end(*child, *work, *parent));
        self.waits.iter().for_each(|(parent, at, times)| added.joins(*parent, *at, *times));
    }
}
