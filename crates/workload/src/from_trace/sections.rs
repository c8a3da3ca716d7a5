//! The sections of a mutex: where the tasks that share it lock and unlock it.
//!
//! A section shows at its beginning if its task had to wait, and at its end if somebody waited. The rest is estimated:
//!
//! - How long sections last tell those that show whole: of tasks that were woken while others waited on.
//! - How many there are tells how often a task that came to the mutex met one that held it and was on a CPU: while one
//!   is in a section, the others come to theirs as often as at other times. (Waits for a holder that was preempted,
//!   which last and are many, are left out.) Where hardly two of the tasks ever run at the same time, preemptions tell:
//!   they hit a task in a section as often as it is in one, and it shows, as others come and wait. (One that preempts
//!   because the mutex was released to it never hits a section.)
//!
//! Between the sections that show there are so many more, evenly, that they are as far apart as that says.
//!
//! The replay cannot deadlock by that: in a section, nobody waits for anything else.

use super::sequence::{TaskIx, Token, push, total_run};
use schedlab_base::Nanos;

/// So many sections at least must show whole.
const FEWEST: usize = 8;

/// Of the tasks that were woken while others waited, so many percent at least go on to wake one.
const PERCENT_WAKE_ON: usize = 60;

/// One that was woken and sleeps again after no more work than such a part of a section found the mutex taken by
/// another one. That work is the rest of one system call and a second one: so it is at least and at most so long.
const PART_IN_VAIN: Nanos = 4;
const LEAST_IN_VAIN: Nanos = 20_000;
const MOST_IN_VAIN: Nanos = 100_000;

/// So many percent of the sections that seem to show whole are no longer than that, and no section is longer than so
/// many percent of it: where one seems to be, it was two.
const PERCENT_USUAL: usize = 90;
const PERCENT_LONGEST: Nanos = 150;

/// So many meetings are enough to count sections by, if so many of the tasks run at the same time.
const FEWEST_MET: usize = 16;
const AT_A_TIME: f64 = 1.2;

/// A shorter section is none that others wait for. For each that shows, there are at most so many: of those that are
/// very short, hardly any is waited for.
const SHORTEST: Nanos = 500;
const MOST_FOR_EACH: f64 = 32.0;

/// Sections are no closer to each other than such a part of their length; that distance is found by so many halvings.
const CLOSEST: f64 = 4.0;
const HALVINGS: u32 = 40;

/// What tells how many sections there were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signs {
    /// How many that were preempted held the mutex while others waited, and how many did not.
    pub inside: usize,
    pub outside: usize,
    /// How many came to the mutex while its holder was on a CPU, and waited.
    pub met: usize,
    /// In how much time.
    pub span: Nanos,
}

impl Signs {
    /// How many sections there were, given how long one is and how much CPU time all tasks had.
    fn sections(&self, length: f64, run: f64) -> f64 {
        let (met, at_a_time) = (self.met as f64, run / self.span as f64);
        if self.met >= FEWEST_MET && at_a_time >= AT_A_TIME {
            // For each ns outside of sections as many begin as for each that others compute outside while one is in
            // one: sections / (run - sections * length) = met / (sections * length * (at_a_time - 1))
            let half = met / (2.0 * (at_a_time - 1.0));
            (half * half + met * run / (length * (at_a_time - 1.0))).sqrt() - half
        } else if self.inside >= FEWEST {
            let inside = self.inside as f64 / (self.inside + self.outside) as f64;
            run * inside / length
        } else {
            0.0
        }
    }
}

/// What the wake-ups between a task and the others say, in its order.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    /// For each wait that one of the others ended: whether others waited on.
    pub queued: Vec<bool>,
    /// For each of the others that it woke: how long it had held the mutex at least, if it had not waited for it.
    pub held: Vec<Nanos>,
}

/// The sections of a mutex.
#[derive(Debug)]
pub(super) struct Sections {
    /// How long those last that show whole, in the order of their tasks.
    lengths: Vec<Nanos>,
    mean: Nanos,
    longest: Nanos,
    /// One that waits again after no more than this has waited in vain.
    in_vain: Nanos,
    /// How many there are, of all tasks.
    number: f64,
}

/// What a task does after a wait.
enum Then {
    /// It wakes one of the others after so much work.
    WakesOn(Nanos),
    /// It waits again at once.
    WaitsAgain,
    Other,
}

impl Sections {
    /// What the sequences of the members show, which had so much CPU time; none if they are not those of tasks that
    /// share a mutex. `signs` are those if who waits again after so much work has waited in vain.
    pub fn of(
        members: &[TaskIx],
        lists: &[&[Token]],
        shares: &[Share],
        run: Nanos,
        signs: impl FnOnce(Nanos) -> Signs,
    ) -> Option<Self> {
        let (mut lengths, mut queued, mut wake_on) = (Vec::new(), 0, 0);
        for (list, share) in std::iter::zip(lists, shares) {
            let mut waits = share.queued.iter();
            for at in (0..list.len()).filter(|at| is_wait(members, &list[*at])) {
                if *waits.next()? {
                    let then = then(members, &list[at + 1..]);
                    queued += 1;
                    wake_on += usize::from(!matches!(then, Then::Other));
                    lengths.extend(if let Then::WakesOn(length) = then { Some(length) } else { None });
                }
            }
            let wakes = list.iter().filter(|token| is_release(members, token)).count();
            if waits.next().is_some() || wakes != share.held.len() {
                return None;
            }
        }
        if lengths.len() < FEWEST || wake_on * 100 < queued * PERCENT_WAKE_ON {
            return None;
        }
        let mut sorted = lengths.clone();
        sorted.sort_unstable();
        let longest = sorted[sorted.len() * PERCENT_USUAL / 100].saturating_mul(PERCENT_LONGEST) / 100;
        lengths.retain(|length| *length <= longest);
        let mean = (lengths.iter().map(|length| u128::from(*length)).sum::<u128>() / lengths.len() as u128) as Nanos;
        if mean < SHORTEST {
            return None;
        }
        let in_vain = (mean / PART_IN_VAIN).clamp(LEAST_IN_VAIN, MOST_IN_VAIN);
        // A section takes more CPU time than its work on a smaller CPU, and beside a busy sibling.
        let work = lists.iter().map(|list| total_run(list)).fold(0, Nanos::saturating_add);
        let number = signs(in_vain).sections(mean as f64 * run as f64 / work.max(1) as f64, run as f64);
        Some(Self { lengths, mean, longest, in_vain, number })
    }

    /// The sequences of the members with their sections.
    pub fn written(&self, members: &[TaskIx], lists: &[&[Token]], shares: &[Share]) -> Vec<Vec<Token>> {
        let mut lengths = self.lengths.iter().copied().cycle();
        let mut write = |(list, share): (&&[Token], &Share)| {
            let (name, lengths) = (members[0], &mut lengths);
            let writer = Writer { name, sections: self, lengths, list: Vec::new(), section: None, plain: 0 };
            writer.written(members, list, share)
        };
        let shown: Vec<Vec<Token>> = std::iter::zip(lists, shares).map(&mut write).collect();
        let apart = self.apart(members[0], &shown);
        let with_hidden = |list: &Vec<Token>| self.with_hidden(members[0], list, apart, lengths.by_ref());
        shown.iter().map(with_hidden).collect()
    }

    /// How far apart sections must be for there to be as many as there are, with those that these lists show.
    fn apart(&self, name: TaskIx, shown: &[Vec<Token>]) -> f64 {
        let gaps: Vec<Nanos> = shown.iter().flat_map(|list| parts(name, list)).map(|(gap, _)| total_run(gap)).collect();
        let sections = shown.iter().flatten().filter(|token| matches!(token, Token::Lock(_))).count();
        let number = self.number.min(sections as f64 * MOST_FOR_EACH);
        let lacking = |apart: f64| {
            let hidden: usize = gaps.iter().map(|gap| self.hidden(*gap, apart)).sum();
            ((sections + hidden) as f64) < number
        };
        let (mut least, mut most) = (self.mean as f64 / CLOSEST, gaps.iter().copied().max().unwrap_or(0) as f64 * 2.0);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(least, most);
            *(if lacking(middle) { &mut most } else { &mut least }) = middle;
        }
        least
    }

    /// How many sections there are in so much work between two that show, if they are so far apart.
    fn hidden(&self, gap: Nanos, apart: f64) -> usize {
        ((gap as f64 - apart).max(0.0) / (apart + self.mean as f64)).round() as usize
    }

    /// The list with sections that do not show, evenly between those that do.
    fn with_hidden(
        &self,
        name: TaskIx,
        list: &[Token],
        apart: f64,
        mut lengths: impl Iterator<Item = Nanos>,
    ) -> Vec<Token> {
        let mut out = Vec::with_capacity(list.len());
        for (outside, section) in parts(name, list) {
            let gap = total_run(outside);
            let held: Vec<Nanos> = lengths.by_ref().take(self.hidden(gap, apart)).collect();
            let inside = held.iter().copied().fold(0, Nanos::saturating_add);
            let apart = (gap.saturating_sub(inside) / (held.len() as Nanos + 1)).max(1);
            let (mut held, mut due) = (held.into_iter(), apart);
            for token in outside {
                let Token::Run(mut work) = *token else {
                    out.push(*token);
                    continue;
                };
                while work > due
                    && let Some(length) = held.next()
                {
                    let length = length.clamp(1, work - due);
                    push(&mut out, Token::Run(due));
                    out.extend([Token::Lock(name), Token::Run(length), Token::Unlock(name)]);
                    (work, due) = (work - due - length, apart);
                }
                due -= work.min(due - 1);
                push(&mut out, Token::Run(work));
            }
            out.extend_from_slice(section);
        }
        out
    }
}

/// The parts of a list outside of sections, each with the section that follows.
fn parts(name: TaskIx, mut list: &[Token]) -> impl Iterator<Item = (&[Token], &[Token])> {
    std::iter::from_fn(move || {
        let (outside, rest) = list.split_at(position(list, Token::Lock(name)));
        let (section, rest) = rest.split_at(rest.len().min(position(rest, Token::Unlock(name)) + 1));
        let is_end = list.is_empty();
        list = rest;
        (!is_end).then_some((outside, section))
    })
}

/// Where the first of these tokens is; at the end if there is none.
fn position(list: &[Token], what: Token) -> usize {
    list.iter().position(|token| *token == what).unwrap_or(list.len())
}

/// A wait that one of the members ended.
fn is_wait(members: &[TaskIx], token: &Token) -> bool {
    matches!(token, Token::Block { waker, .. } if members.binary_search(waker).is_ok())
}

/// A wake-up of one of the members.
fn is_release(members: &[TaskIx], token: &Token) -> bool {
    matches!(token, Token::Post(task) if members.binary_search(task).is_ok())
}

/// What a task does after a wait, from these tokens on.
fn then(members: &[TaskIx], rest: &[Token]) -> Then {
    let mut work: Nanos = 0;
    for token in rest {
        match token {
            Token::Run(length) => work = work.saturating_add(*length),
            token if is_release(members, token) => return Then::WakesOn(work),
            token if is_wait(members, token) && work <= MOST_IN_VAIN => return Then::WaitsAgain,
            Token::Post(_) | Token::Yield => {}
            _ => return Then::Other,
        }
    }
    Then::Other
}

/// Writes the sections of one task.
struct Writer<'a, I> {
    name: TaskIx,
    sections: &'a Sections,
    lengths: &'a mut I,
    list: Vec<Token>,
    /// Behind the lock of the section that it is in.
    section: Option<usize>,
    /// From here on there is neither a section nor a wait.
    plain: usize,
}

impl<I: Iterator<Item = Nanos>> Writer<'_, I> {
    fn written(mut self, members: &[TaskIx], list: &[Token], share: &Share) -> Vec<Token> {
        let mut held = share.held.iter();
        for token in list {
            match token {
                Token::Run(_) | Token::Yield => push(&mut self.list, *token),
                token if is_wait(members, token) => self.waits(),
                token if is_release(members, token) => self.releases(held.next().copied().unwrap_or(0)),
                Token::Post(_) => self.list.push(*token),
                other => {
                    self.close();
                    self.list.push(*other);
                    self.plain = self.list.len();
                }
            }
        }
        self.close();
        self.list
    }

    /// It waits for the mutex, and gets it.
    fn waits(&mut self) {
        if self.section.is_none_or(|at| total_run(&self.list[at..]) > self.sections.in_vain) {
            self.close();
            self.list.push(Token::Lock(self.name));
            self.section = Some(self.list.len());
        }
    }

    /// It wakes one that waited for the mutex, which it has held for so long at least if it had not waited for it.
    fn releases(&mut self, held: Nanos) {
        if self.section.is_none_or(|at| total_run(&self.list[at..]) > self.sections.longest) {
            self.close();
            let length = self.lengths.next().unwrap_or(0).max(held);
            self.insert_lock(length);
        }
        self.unlock();
    }

    fn unlock(&mut self) {
        self.list.push(Token::Unlock(self.name));
        (self.section, self.plain) = (None, self.list.len());
    }

    /// Locks the mutex so much work before here, or as much as there is.
    fn insert_lock(&mut self, mut before: Nanos) {
        let mut at = self.list.len();
        while at > self.plain {
            if let Token::Run(length) = self.list[at - 1] {
                if length > before {
                    self.split(at - 1, length - before, Token::Lock(self.name));
                    return;
                }
                before -= length;
            }
            at -= 1;
        }
        self.list.insert(at, Token::Lock(self.name));
    }

    /// Ends the section that it is in, of which the end does not show.
    fn close(&mut self) {
        let Some(section) = self.section.take() else { return };
        let mut left = self.lengths.next().unwrap_or(0);
        for at in section..self.list.len() {
            if let Token::Run(length) = self.list[at] {
                if length > left {
                    self.plain = self.split(at, left, Token::Unlock(self.name));
                    return;
                }
                left -= length;
            }
        }
        self.unlock();
    }

    /// Splits a burst after so much work, and puts a token between its parts. Returns the place of the second part.
    fn split(&mut self, at: usize, done: Nanos, token: Token) -> usize {
        let Token::Run(length) = self.list[at] else { return at };
        let all = [Token::Run(done), token, Token::Run(length - done)];
        let first = usize::from(done == 0);
        self.list.splice(at..=at, all.into_iter().skip(first));
        at + 2 - first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Token = Token::Block { length: 50, waker: 2 };
    const WAKE: Token = Token::Post(2);

    /// What the first of three tasks does, if sections last 1 us and there are so many.
    fn written(number: f64, list: &[Token], held: Nanos) -> Vec<Token> {
        let sections = Sections { lengths: vec![1_000], mean: 1_000, longest: 1_500, in_vain: 100, number };
        let times = |what: Token| list.iter().filter(|token| **token == what).count();
        let share = Share { queued: vec![true; times(WAIT)], held: vec![held; times(WAKE)] };
        let [own, others] = [share, Share::default()];
        sections.written(&[1, 2, 3], &[list, &[], &[]], &[own, others.clone(), others]).swap_remove(0)
    }

    const LOCK: Token = Token::Lock(1);
    const UNLOCK: Token = Token::Unlock(1);

    #[test]
    fn a_section_shows_at_its_beginning_or_at_its_end() {
        use Token::Run;
        // Both; the beginning alone; the end alone, and it had the mutex for longer than usual.
        assert_eq!(written(0.0, &[WAIT, Run(900), WAKE, Run(5_000)], 0), [LOCK, Run(900), UNLOCK, Run(5_000)]);
        assert_eq!(written(0.0, &[WAIT, Run(5_000)], 0), [LOCK, Run(1_000), UNLOCK, Run(4_000)]);
        assert_eq!(written(0.0, &[Run(5_000), WAKE], 0), [Run(4_000), LOCK, Run(1_000), UNLOCK]);
        assert_eq!(written(0.0, &[Run(5_000), WAKE], 2_000), [Run(3_000), LOCK, Run(2_000), UNLOCK]);
        // It waits in vain; it wakes one long after its own section; it sleeps for something else.
        assert_eq!(written(0.0, &[WAIT, Run(50), WAIT, Run(900), WAKE], 0), [LOCK, Run(950), UNLOCK]);
        let twice = [LOCK, Run(1_000), UNLOCK, Run(2_000), LOCK, Run(1_000), UNLOCK];
        assert_eq!(written(0.0, &[WAIT, Run(4_000), WAKE], 0), twice);
        let sleep = Token::Block { length: 50, waker: 9 };
        assert_eq!(written(0.0, &[WAIT, Run(300), sleep, Run(9)], 0), [LOCK, Run(300), UNLOCK, sleep, Run(9)]);
        assert_eq!(written(0.0, &[sleep, Run(300), WAKE], 0), [sleep, LOCK, Run(300), UNLOCK]);
    }

    #[test]
    fn what_does_not_show_is_between_what_does() {
        use Token::Run;
        let section = [LOCK, Run(1_000), UNLOCK];
        let list = [WAIT, Run(1_000), WAKE, Run(11_000), WAIT, Run(1_000), WAKE];
        let all = [&section[..], &[Run(3_000)], &section, &[Run(3_000)], &section, &[Run(3_000)], &section].concat();
        assert_eq!(written(4.0, &list, 0), all);
        assert_eq!(total_run(&written(1e9, &list, 0)), total_run(&list));
    }

    #[test]
    fn there_are_not_many_more_than_show() {
        for number in [1e6, f64::INFINITY] {
            let list = written(number, &[WAIT, Token::Run(1_000), WAKE, Token::Run(1_000_000_000)], 0);
            let all = list.iter().filter(|token| **token == LOCK).count();
            assert!((32..=33).contains(&all), "{number}: {all}");
        }
    }
}
