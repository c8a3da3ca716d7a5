//! Writes a sequence down as phases of the workload language, whose unit is a whole microsecond.

use super::sequence::{NOBODY, Stretch, TaskIx, Token, stretches, total_run};
use crate::{Action, Amount, Phase, Step, TimerMode};
use schedlab_base::Nanos;

/// The workload language's unit.
const US: Nanos = 1_000;

/// What the writer of one task must know of it and the others.
pub(super) struct Voice<'a> {
    /// The keys of all tasks; empty for those that are left out.
    pub keys: &'a [String],
    /// The task itself.
    pub own: TaskIx,
    /// Its beat, where its sleeps are a timer's.
    pub period: Option<Nanos>,
}

/// The phases that do what the sequence says. Sums of CPU time are kept to the microsecond: what
/// rounding leaves over goes into the next burst, or into some rounds of a loop.
pub(super) fn phases(list: &[Token], voice: &Voice) -> Vec<Phase> {
    let mut writer = Writer { voice, phases: Vec::new(), run_left: 0, sleep_left: 0 };
    for stretch in stretches(list) {
        if stretch.times == 1 {
            writer.plain(stretch.body);
        } else {
            writer.rounds(&stretch);
        }
    }
    if writer.phases.is_empty() {
        let us = (total_run(list) + US / 2) / US;
        writer.phase(1, vec![Action::Run(exact(us.max(1)))]);
    }
    writer.phases
}

struct Writer<'a> {
    voice: &'a Voice<'a>,
    phases: Vec<Phase>,
    /// Nanoseconds of CPU time that rounding has left over (or taken too much).
    run_left: i64,
    /// The same of sleep.
    sleep_left: i64,
}

/// The nearest number of microseconds, and what is left over.
fn rounded(ns: Nanos, left: i64) -> (u64, i64) {
    let sum = i64::try_from(ns).unwrap_or(i64::MAX / 2).saturating_add(left).max(0);
    let us = (sum as u64 + US / 2) / US;
    (us, sum - (us * US) as i64)
}

fn exact(us: u64) -> Amount {
    Amount { mean: us * US, sd: 0 }
}

impl Writer<'_> {
    fn plain(&mut self, body: &[Token]) {
        let mut actions = Vec::with_capacity(body.len());
        for token in body {
            match *token {
                Token::Run(ns) => {
                    let (us, left) = rounded(ns, self.run_left);
                    self.run_left = left;
                    if us > 0 {
                        actions.push(Action::Run(exact(us)));
                    }
                }
                Token::Block { length, waker: NOBODY } => {
                    let (us, left) = rounded(length, self.sleep_left);
                    self.sleep_left = left.clamp(-(US as i64), US as i64);
                    actions.push(self.sleep(length, us));
                }
                other => actions.extend(self.others(&other)),
            }
        }
        self.phase(1, actions);
    }

    /// A loop: all rounds alike, but that some are a microsecond longer where rounding would else
    /// cost more than a thousandth.
    fn rounds(&mut self, stretch: &Stretch) {
        let times = u64::from(stretch.times);
        let (total, left) = rounded(total_run(stretch.body), self.run_left);
        self.run_left = left;
        let nearest = (total + times / 2) / times;
        if total.abs_diff(nearest * times) * 1000 <= total {
            let round = self.round(stretch, nearest);
            self.phase(times, round);
        } else {
            let (long, short) = (self.round(stretch, total / times + 1), self.round(stretch, total / times));
            self.phase(total % times, long);
            self.phase(times - total % times, short);
        }
    }

    /// One round of a loop with `cycle` microseconds of CPU time, spread over its bursts as recorded.
    fn round(&self, stretch: &Stretch, cycle: u64) -> Vec<Action> {
        let whole = u128::from(total_run(stretch.body)).max(1);
        let (mut recorded, mut given) = (0u128, 0u64);
        let mut actions = Vec::with_capacity(stretch.body.len());
        for token in stretch.body {
            match *token {
                Token::Run(ns) => {
                    recorded += u128::from(ns);
                    let until = ((recorded * u128::from(cycle) + whole / 2) / whole) as u64;
                    if until > given {
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

    /// A sleep that no task ended: until the next beat for tasks that have one, else for so long.
    fn sleep(&self, length: Nanos, us: u64) -> Action {
        match self.voice.period {
            Some(period) if length < period + period / 2 => Action::Timer {
                name: "unique".to_owned(),
                unique: true,
                period: exact((period + US / 2) / US),
                mode: TimerMode::Relative,
            },
            _ => Action::Sleep(exact(us.max(1))),
        }
    }

    fn others(&self, token: &Token) -> Option<Action> {
        let key = |ix: TaskIx| &self.voice.keys[ix as usize];
        Some(match *token {
            Token::Block { .. } => Action::SemWait(semaphore(key(self.voice.own))),
            Token::Post(sleeper) => Action::SemPost(semaphore(key(sleeper))),
            Token::Fork(child) => Action::Fork(key(child).clone()),
            Token::Run(_) | Token::Loop { .. } => return None,
        })
    }

    fn phase(&mut self, times: u64, actions: Vec<Action>) {
        if actions.is_empty() || times == 0 {
            return;
        }
        let events = actions
            .into_iter()
            .enumerate()
            .map(|(n, what)| Step { key: format!("{}{n}", event_name(&what)), line: 0, what, sync: false })
            .collect();
        let name = format!("p{}", self.phases.len());
        self.phases.push(Phase { name, loops: Some(times), events, ..Phase::default() });
    }
}

fn semaphore(key: &str) -> String {
    format!("wake-{key}")
}

fn event_name(action: &Action) -> &'static str {
    match action {
        Action::Run(_) => "run",
        Action::Timer { .. } => "timer",
        Action::SemWait(_) => "sem_wait",
        Action::SemPost(_) => "sem_post",
        Action::Fork(_) => "fork",
        _ => "sleep",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(list: &[Token]) -> Vec<Phase> {
        let keys = ["a".to_owned(), "b".to_owned()];
        phases(list, &Voice { keys: &keys, own: 0, period: None })
    }

    fn cpu_us(phases: &[Phase]) -> u64 {
        let run = |s: &Step| if let Action::Run(a) = s.what { a.mean / US } else { 0 };
        phases.iter().map(|p| p.loops.unwrap() * p.events.iter().map(run).sum::<u64>()).sum()
    }

    #[test]
    fn short_bursts_keep_their_sum() {
        let block = Token::Block { length: 50_400, waker: NOBODY };
        let plain: Vec<Token> = (0..1000).flat_map(|_| [Token::Run(1_400), block]).collect();
        assert_eq!(cpu_us(&written(&plain)), 1_400);
        let total = Token::Block { length: 50_400_000, waker: NOBODY };
        let folded = written(&[Token::Loop { times: 1000, len: 2 }, Token::Run(1_400_000), total]);
        assert_eq!((cpu_us(&folded), folded.len()), (1_400, 2));
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
                ("run0", &Action::Run(exact(3))),
                ("sem_post1", &Action::SemPost("wake-b".into())),
                ("run2", &Action::Run(exact(6))),
                ("sem_wait3", &Action::SemWait("wake-a".into())),
            ]
        );
        assert_eq!(written[0].loops, Some(100));
    }
}
