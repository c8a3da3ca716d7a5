//! Writes a sequence down as phases of the workload language: in whole microseconds, which rt-app reads too, and short
//! times to the nanosecond. A burst of 1.4 us that became one of 1 us would change which of two tasks comes first, and
//! so which task finds a semaphore posted and does not sleep.

use super::joins::FAREWELL;
use super::rhythm::Beat;
use super::sequence::{ANSWER, NOBODY, QUEUE, Stretch, TaskIx, Token, push, stretches, total_run};
use super::timeouts::in_ticks;
use crate::write::name_of;
use crate::{Action, Amount, Phase, Props, Step, TimerMode};
use schedlab_base::Nanos;
use std::collections::BTreeSet;

/// The workload language's unit.
const US: Nanos = 1_000;

/// Times under this are written to the nanosecond.
const FINE: Nanos = 100_000;

/// The shortest time that can be written.
const LEAST: Nanos = 100;

/// What the writer of one task must know of it and the others.
pub(super) struct Voice<'a> {
    /// The keys of all tasks; empty for those that are left out.
    pub keys: &'a [String],
    /// The semaphores that they wait on.
    pub semaphores: &'a [String],
    /// The task itself.
    pub own: TaskIx,
    /// Its beat, where its sleeps are a timer's.
    pub beat: Option<Beat>,
    /// The time between two ticks, where it wakes at ticks.
    pub tick: Option<Nanos>,
    /// The queue of the service in which it serves, by the first server.
    pub queue: Option<TaskIx>,
    /// The semaphores that are posted as by a pipe or a socket, and the queues whose clients are answered so.
    pub sync: &'a Synced,
    /// What changes when it is scheduled as this one of its identities says.
    pub changes: &'a [Props],
    /// Its parent, if it came to its end.
    pub parent: Option<TaskIx>,
}

/// The semaphore from which the servers take questions whose first is this one.
pub(super) fn queue(keys: &[String], server: TaskIx) -> String {
    format!("queue-{}", keys[server as usize])
}

/// The key of the jobs that the team shares out whose first worker is this one.
pub(super) fn jobs(keys: &[String], worker: TaskIx) -> String {
    format!("jobs-{}", keys[worker as usize])
}

/// The semaphore of the places in the queue of this task.
fn room(keys: &[String], receiver: TaskIx) -> String {
    format!("room-{}", keys[receiver as usize])
}

/// The mutex whose first member is this task.
fn mutex(keys: &[String], member: TaskIx) -> String {
    format!("lock-{}", keys[member as usize])
}

/// What wakes others as a pipe or a socket does.
#[derive(Debug, Default)]
pub(super) struct Synced {
    /// Posts of these semaphores.
    pub posts: BTreeSet<String>,
    /// Answers to questions from these queues.
    pub answers: BTreeSet<String>,
}

impl Synced {
    fn has(&self, what: &Action) -> bool {
        match what {
            Action::SemPost(name) | Action::Ask(name) => self.posts.contains(name),
            Action::Answer(name) => self.answers.contains(name),
            _ => false,
        }
    }
}

/// The phases that do what the sequence says. Sums of CPU time are kept to the microsecond: what
/// rounding leaves over goes into the next burst, or into some rounds of a loop.
pub(super) fn phases(list: &[Token], voice: &Voice) -> Vec<Phase> {
    let (change, bound) = (Props::default(), None);
    let farewell = voice.parent.and_then(|parent| farewell(list, parent));
    let list = farewell.as_deref().unwrap_or(list);
    let mut writer = Writer { voice, phases: Vec::new(), run_left: 0, sleep_left: 0, change, bound };
    for stretch in stretches(list) {
        if stretch.times == 1 {
            writer.plain(stretch.body);
        } else {
            writer.rounds(&stretch);
        }
    }
    if writer.phases.is_empty() {
        let (ns, _) = rounded(total_run(list), 0);
        writer.phase(1, vec![Action::Run(exact(ns.max(US)))]);
    }
    if voice.parent.is_some_and(|parent| !last_words(list, parent).is_empty()) {
        let steps = writer.phases.last_mut().into_iter().flat_map(|phase| phase.events.iter_mut().rev());
        steps.take_while(|step| matches!(step.what, Action::SemPost(_))).for_each(|step| step.sync = true);
    }
    writer.phases
}

/// The wake-ups with which the sequence of a task ends, if its parent's is among them.
fn last_words(list: &[Token], parent: TaskIx) -> &[Token] {
    let wakes = |token: &&Token| matches!(token, Token::Post(_) | Token::End(_));
    let told = list.iter().rev().take_while(wakes).count();
    let words = &list[list.len() - told..];
    let to_parent = |token: &Token| *token == Token::Post(parent) || *token == Token::End(parent);
    if stretches(list).last().is_some_and(|last| last.times == 1) && words.iter().any(to_parent) { words } else { &[] }
}

/// A task that ends wakes its parent in the kernel, as one that is about to sleep, and is not preempted any more. So
/// what it does after that is done before; none if it does nothing.
fn farewell(list: &[Token], parent: TaskIx) -> Option<Vec<Token>> {
    let (Token::Run(rest), before) = list.split_last()? else { return None };
    let words = last_words(before, parent);
    if words.is_empty() || *rest > FAREWELL {
        return None;
    }
    let mut all = before[..before.len() - words.len()].to_vec();
    push(&mut all, Token::Run(*rest));
    all.extend_from_slice(words);
    Some(all)
}

struct Writer<'a> {
    voice: &'a Voice<'a>,
    phases: Vec<Phase>,
    /// Nanoseconds of CPU time that rounding has left over (or taken too much).
    run_left: i64,
    /// The same of sleep.
    sleep_left: i64,
    /// What the next phase changes.
    change: Props,
    /// Where the task may run since a change; a phase without that has the task's own CPUs.
    bound: Option<Vec<u32>>,
}

/// The unit in which a time of this length is written.
fn unit(ns: Nanos) -> Nanos {
    if ns < FINE { 1 } else { US }
}

/// The nearest time that is written, in ns, and what is left over.
fn rounded(ns: Nanos, left: i64) -> (Nanos, i64) {
    let sum = i64::try_from(ns).unwrap_or(i64::MAX / 2).saturating_add(left).max(0);
    let unit = if (sum as u64) < LEAST { LEAST } else { unit(sum as u64) };
    let written = (sum as u64 + unit / 2) / unit * unit;
    (written, sum - written as i64)
}

fn exact(ns: Nanos) -> Amount {
    Amount { mean: ns, sd: 0 }
}

impl Writer<'_> {
    fn plain(&mut self, body: &[Token]) {
        let mut actions = Vec::with_capacity(body.len());
        for token in body {
            match *token {
                Token::Run(ns) => {
                    let (ns, left) = rounded(ns, self.run_left);
                    self.run_left = left;
                    if ns > 0 {
                        actions.push(Action::Run(exact(ns)));
                    }
                }
                Token::Block { length, waker: NOBODY } => {
                    let (ns, left) = rounded(length, self.sleep_left);
                    self.sleep_left = left.clamp(-(US as i64), US as i64);
                    actions.push(self.sleep(length, ns));
                }
                Token::Set(identity) => {
                    self.phase(1, std::mem::take(&mut actions));
                    self.set(identity);
                }
                other => actions.extend(self.others(&other)),
            }
        }
        self.phase(1, actions);
    }

    /// The next phase begins with a change. If none came in between, it has two changes in one.
    fn set(&mut self, identity: u32) {
        let Some(change) = self.voice.changes.get(identity as usize) else { return };
        self.bound.clone_from(&change.cpus);
        let old = std::mem::take(&mut self.change);
        self.change = if change.policy.is_some() { Props { cpus: None, ..change.clone() } } else { old.clone() };
        self.change.taskgroup = change.taskgroup.clone().or(old.taskgroup);
        self.change.util_min = change.util_min.or(old.util_min);
        self.change.util_max = change.util_max.or(old.util_max);
    }

    /// A loop: all rounds alike, but that some are a unit longer where rounding would else cost more than a thousandth.
    fn rounds(&mut self, stretch: &Stretch) {
        let times = u64::from(stretch.times);
        let (total, left) = rounded(total_run(stretch.body), self.run_left);
        self.run_left = left;
        let unit = unit(total / times);
        let total = total / unit;
        let nearest = (total + times / 2) / times;
        if total.abs_diff(nearest * times) * 1000 <= total {
            let round = self.round(stretch, nearest * unit);
            self.phase(times, round);
        } else {
            let short = total / times * unit;
            let (long, short) = (self.round(stretch, short + unit), self.round(stretch, short));
            self.phase(total % times, long);
            self.phase(times - total % times, short);
        }
    }

    /// One round of a loop with `cycle` ns of CPU time, spread over its bursts as recorded.
    fn round(&self, stretch: &Stretch, cycle: u64) -> Vec<Action> {
        let whole = u128::from(total_run(stretch.body)).max(1);
        let unit = u128::from(unit(cycle));
        let (mut recorded, mut given) = (0u128, 0u64);
        let mut actions = Vec::with_capacity(stretch.body.len());
        for token in stretch.body {
            match *token {
                Token::Run(ns) => {
                    recorded += u128::from(ns);
                    let units = (recorded * (u128::from(cycle) / unit) + whole / 2) / whole;
                    let until = (units * unit) as u64;
                    if until >= given + LEAST {
                        actions.push(Action::Run(exact(until - given)));
                        given = until;
                    }
                }
                Token::Block { length, waker: NOBODY } => {
                    let mean = length / Nanos::from(stretch.times);
                    actions.push(self.sleep(mean, rounded(mean, 0).0));
                }
                other => actions.extend(self.others(&other)),
            }
        }
        actions
    }

    /// A sleep that no task ended: until a tick or the next beat for tasks that have those, else for so long.
    fn sleep(&self, length: Nanos, written: Nanos) -> Action {
        if let Some(tick) = self.voice.tick {
            return Action::Timeout(in_ticks(length, tick) / US * US);
        }
        let expiry = self.voice.beat.and_then(|beat| Some((beat, beat.until_woken(length)?)));
        match expiry {
            Some((beat, after)) => Action::Timer {
                name: "unique".to_owned(),
                unique: true,
                period: exact((after + US / 2) / US * US),
                mode: if beat.keeps_grid { TimerMode::Absolute } else { TimerMode::Relative },
            },
            // A sleep of no time would not block.
            None => Action::Sleep(exact(written.max(LEAST))),
        }
    }

    fn others(&self, token: &Token) -> Option<Action> {
        let semaphore = |ix: TaskIx| self.voice.semaphores[ix as usize].clone();
        Some(match *token {
            Token::Block { waker: QUEUE, .. } => Action::SemWait(queue(self.voice.keys, self.voice.queue?)),
            Token::Block { waker: ANSWER, .. } => Action::Await,
            Token::Block { .. } => Action::SemWait(semaphore(self.voice.own)),
            Token::Post(sleeper) => Action::SemPost(semaphore(sleeper)),
            Token::Ask(server) => Action::Ask(queue(self.voice.keys, server)),
            Token::Answer => Action::Answer(queue(self.voice.keys, self.voice.queue?)),
            Token::Lock(name) => Action::Lock(mutex(self.voice.keys, name)),
            Token::Unlock(name) => Action::Unlock(mutex(self.voice.keys, name)),
            Token::Take(receiver) => Action::SemWait(room(self.voice.keys, receiver)),
            Token::Give => Action::SemPost(room(self.voice.keys, self.voice.own)),
            Token::Jobs(worker) => Action::Jobs(jobs(self.voice.keys, worker)),
            Token::Fork(child) => Action::Fork(self.voice.keys[child as usize].clone()),
            Token::End(parent) => Action::SemPost(self.ends(parent)),
            Token::Join => Action::SemWait(self.ends(self.voice.own)),
            Token::Yield => Action::Yield,
            Token::Exec => Action::Exec,
            Token::Run(_) | Token::Set(_) | Token::Loop { .. } => return None,
        })
    }

    /// The semaphore that a task's children post when they end.
    fn ends(&self, parent: TaskIx) -> String {
        format!("join-{}", self.voice.keys[parent as usize])
    }

    fn phase(&mut self, times: u64, actions: Vec<Action>) {
        if actions.is_empty() || times == 0 {
            return;
        }
        let step = |(n, what)| {
            let sync = self.voice.sync.has(&what);
            Step { key: format!("{}{n}", name_of(&what)), line: 0, what, sync }
        };
        let events = actions.into_iter().enumerate().map(step).collect();
        let name = format!("p{}", self.phases.len());
        let props = Props { cpus: self.bound.clone(), ..std::mem::take(&mut self.change) };
        self.phases.push(Phase { name, loops: Some(times), events, props });
    }
}

/// What goes on without end behind these phases: these rounds, or work.
pub(super) fn on_and_on(before: &[Phase], rounds: Option<&[Token]>, voice: &Voice) -> Option<Phase> {
    let work = || Step { key: "run".to_owned(), line: 0, what: Action::Run(exact(US * 1_000_000)), sync: false };
    let events = match rounds {
        Some(rounds) => phases(rounds, voice).swap_remove(0).events,
        None => vec![work()],
    };
    // Rounds without work would go on for ever within an instant.
    let works = events.iter().any(|step| matches!(step.what, Action::Run(_)));
    let cpus = before.last().and_then(|phase| phase.props.cpus.clone());
    let props = Props { cpus, ..Props::default() };
    works.then(|| Phase { name: format!("p{}", before.len()), loops: None, events, props })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(list: &[Token]) -> Vec<Phase> {
        let [keys, semaphores] = [["a", "b"], ["wake-a", "wake-b"]].map(|names| names.map(str::to_owned));
        let (sync, changes) = (&Synced { posts: ["wake-a".to_owned()].into(), ..Synced::default() }, &[]);
        phases(
            list,
            &Voice {
                keys: &keys,
                semaphores: &semaphores,
                own: 0,
                beat: None,
                tick: None,
                sync,
                changes,
                parent: None,
                queue: None,
            },
        )
    }

    fn cpu_ns(phases: &[Phase]) -> Nanos {
        let run = |s: &Step| if let Action::Run(a) = s.what { a.mean } else { 0 };
        phases.iter().map(|p| p.loops.unwrap() * p.events.iter().map(run).sum::<Nanos>()).sum()
    }

    #[test]
    fn short_bursts_keep_their_lengths_and_long_ones_their_sum() {
        let block = Token::Block { length: 50_400, waker: NOBODY };
        let plain: Vec<Token> = (0..1000).flat_map(|_| [Token::Run(1_400), block]).collect();
        let phases = written(&plain);
        assert_eq!(cpu_ns(&phases), 1_400_000);
        assert_eq!(phases[0].events[0].what, Action::Run(exact(1_400)));
        assert_eq!(phases[0].events[1].what, Action::Sleep(exact(50_400)));
        let total = Token::Block { length: 50_400_000, waker: NOBODY };
        let folded = written(&[Token::Loop { times: 1000, len: 2 }, Token::Run(1_400_000), total]);
        assert_eq!((cpu_ns(&folded), folded.len()), (1_400_000, 1));
        let long: Vec<Token> = (0..1000).flat_map(|_| [Token::Run(200_400), block]).collect();
        assert_eq!(cpu_ns(&written(&long)), 200_400_000);
        let total = Token::Block { length: 50_400_000, waker: NOBODY };
        let folded = written(&[Token::Loop { times: 1000, len: 2 }, Token::Run(200_400_000), total]);
        assert_eq!((cpu_ns(&folded), folded.len()), (200_400_000, 2));
    }

    #[test]
    fn a_round_spreads_its_time_as_recorded() {
        let body = [Token::Run(300_000), Token::Post(1), Token::Run(600_000), Token::Block { length: 1, waker: 1 }];
        let mut list = vec![Token::Loop { times: 100, len: 4 }];
        list.extend(body);
        let written = written(&list);
        let what: Vec<_> = written[0].events.iter().map(|s| (s.key.as_str(), &s.what)).collect();
        assert_eq!(
            what,
            [
                ("run0", &Action::Run(exact(3_000))),
                ("sem_post1", &Action::SemPost("wake-b".into())),
                ("run2", &Action::Run(exact(6_000))),
                ("sem_wait3", &Action::SemWait("wake-a".into())),
            ]
        );
        assert_eq!(written[0].loops, Some(100));
    }
}
