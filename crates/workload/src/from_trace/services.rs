//! Servers and their clients: who is answered is who asked.
//!
//! A client asks, and is answered by the server that took its question. Which one that is, and which client it answers
//! next, is the recorded scheduler's doing: a server that is free sooner takes more questions. If each server answered
//! the clients in the recorded order, a question would wait for one server while another is free, and an answer would
//! come before its question. So in the model the servers of a *service* take questions from one queue, in the order in
//! which they come, and each answers the client whose question it took (`x-ask`, `x-answer`, `x-await`).
//!
//! Tasks are a service and its clients if they wake each other more than their own side ([`super::sides`]), and if a
//! server that a client has woken wakes that client more often than by chance, before any other or before it sleeps
//! again ([`super::serving`]). Of both sides that is true where there is one server or one client: then the smaller
//! side serves. One client of several servers may also send each of them what is meant for it: they count as a service
//! only if they have one name. Servers that have too much to do are never woken. They are taken for servers if there
//! are several, which wake nobody else than their clients, and if these wait for nobody else. Tasks that send others
//! what these have not asked for look alike; but they wake in turn those who wait ([`super::consumers`]), while some
//! answers take longer than others. The stages of a pipeline wake each other in both directions, too, but wait for what
//! they have not asked for, and each has two neighbours alone.
//!
//! A question shows only if a server slept, and an answer only if the client did. So where the sequences lack one:
//!
//! - A server that answers without having been asked took a question when it had given its last answer. One that takes
//!   a question before it has answered the last one answers that first: its client was awake. If another server wakes
//!   it, it takes a question as well.
//! - A client that is answered without having asked asks before. One that seems to ask twice takes an answer in
//!   between.
//!
//! So clients that have several questions open are left as they are: how many does not show.
//!
//! The replay cannot deadlock. All questions are asked, and all that else wakes a server before its last one is done,
//! if each question is answered at once and the servers do nothing besides: that is tried without time. There are as
//! many questions as the servers take, and each of these is answered. So while there is a question, some server that is
//! not done takes it.

use super::consumers::are_woken_in_order;
use super::handoffs::Handoff;
use super::life::Task;
use super::pools::Play;
use super::sequence::{ANSWER, QUEUE, TaskIx, Token, is_folded};
use super::serving::{answer_their_wakers, are_asked, had_questions, have_one_queue, never_sleep};
use super::sides::{Sides, links};
use super::track::Track;
use schedlab_base::Nanos;
use std::collections::BTreeMap;

/// Clients that wait for each answer ask so many percent of the questions that show in a burst of its own at least.
/// They get the answer from the server that the question woke at least so many percent as often as by chance: one that
/// was awake may have taken it. Clients that have several questions open get the answer to an earlier one.
const PERCENT_ALONE: u64 = 60;
const PERCENT_OF_CHANCE: u64 = 70;

/// So many percent of the questions may be lacking in the end.
const PERCENT_LACKING: usize = 10;

/// Servers that take questions from one queue, and their clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Service {
    /// In ascending order; the queue has the name of the first.
    pub servers: Vec<TaskIx>,
    pub clients: Vec<TaskIx>,
}

impl Service {
    fn serves(&self, task: TaskIx) -> bool {
        self.servers.binary_search(&task).is_ok()
    }

    fn asks(&self, task: TaskIx) -> bool {
        self.clients.binary_search(&task).is_ok()
    }

    /// Whose name the queue has.
    pub fn queue(&self) -> TaskIx {
        self.servers[0]
    }
}

/// The services of a model.
#[derive(Clone, Debug, Default)]
pub(super) struct Services(Vec<Service>);

impl Services {
    /// Those that these sequences show. Of tasks whose sequences have loops nothing is known.
    pub fn find(track: &Track, kept: &[bool], window: (Nanos, Nanos), alike: impl Fn(&[TaskIx]) -> bool) -> Self {
        let tasks = &track.tasks;
        let all: Vec<&[Token]> = tasks.iter().map(|task| &task.sequence[..]).collect();
        let plain: Vec<&[Token]> = all.iter().map(|list| if is_folded(list) { &[] } else { *list }).collect();
        let sides = Sides::of(&links(&plain)).into_iter();
        let woken = track.handoffs.woken();
        let mut services = Self(sides.filter_map(|sides| service(&plain, sides, woken, &alike)).collect());
        services.0.retain(|Service { servers, clients }| {
            had_questions(tasks, window, servers, clients) && are_asked(tasks, servers, clients)
        });
        services.written(tasks, kept, &all);
        services
    }

    /// All of them.
    pub fn all(&self) -> &[Service] {
        &self.0
    }

    /// The service that a task serves in.
    pub fn of_server(&self, task: TaskIx) -> Option<&Service> {
        self.0.iter().find(|service| service.serves(task))
    }

    /// Leaves out the services of a single client in which one of these tasks is: it gives them jobs.
    pub fn leave(&mut self, workers: &[TaskIx]) {
        let works = |task: &TaskIx| workers.contains(task);
        self.0.retain(|service| service.clients.len() > 1 || !service.servers.iter().any(works));
    }

    /// Whether a task serves others, or asks them.
    pub fn has(&self, task: TaskIx) -> bool {
        self.0.iter().any(|service| service.serves(task) || service.asks(task))
    }

    /// Whether one of the two serves the other.
    pub fn joins(&self, a: TaskIx, b: TaskIx) -> bool {
        let member = |service: &Service, task| service.serves(task) || service.asks(task);
        self.0.iter().any(|service| member(service, a) && member(service, b))
    }

    /// The sequences of their tasks, with questions and answers. Services in which somebody could get stuck are given
    /// up.
    pub fn written(&mut self, tasks: &[Task], kept: &[bool], sequences: &[&[Token]]) -> BTreeMap<TaskIx, Vec<Token>> {
        loop {
            let mut written = BTreeMap::new();
            self.0.retain(|service| service.written(sequences).map(|lists| written.extend(lists)).is_some());
            if self.0.is_empty() {
                return written;
            }
            let mut lists = sequences.to_vec();
            written.iter().for_each(|(task, list): (&TaskIx, &Vec<Token>)| lists[*task as usize] = list);
            let mut play = Play::new(tasks, &lists, kept, vec![false; tasks.len()]);
            play.on();
            let all = self.0.len();
            self.0.retain(|service| {
                let goes_on = |task: &TaskIx| play.came[*task as usize] >= awaited(lists[*task as usize]);
                play.asks_all(service.queue()) && service.servers.iter().all(goes_on)
            });
            if self.0.len() == all {
                return written;
            }
        }
    }
}

/// How often a server waits for others than its clients before it takes its last question.
fn awaited(list: &[Token]) -> u64 {
    let last = list.iter().rposition(|token| matches!(token, Token::Block { waker: QUEUE, .. })).unwrap_or(0);
    let is_wait = |token: &&Token| matches!(token, Token::Block { waker, .. } if *waker < ANSWER);
    list[..last].iter().filter(is_wait).count() as u64
}

/// The service that the tasks of two sides are, if one side serves the other.
fn service(
    sequences: &[&[Token]],
    Sides(sides): Sides,
    woken: &[Handoff],
    alike: impl Fn(&[TaskIx]) -> bool,
) -> Option<Service> {
    let [a, b] = &sides;
    let serves = |servers: &[TaskIx], clients: &[TaskIx]| {
        let unasked = || never_sleep(sequences, servers, clients) && !are_woken_in_order(woken, servers, clients);
        servers.len() + clients.len() > 2 && (answer_their_wakers(sequences, servers, clients) || unasked())
    };
    let a_serves = match (serves(a, b), serves(b, a)) {
        (true, true) if a.len() == b.len() => return None,
        (true, true) => a.len() < b.len(),
        (true, false) => true,
        (false, true) => false,
        (false, false) => return None,
    };
    let [a, b] = sides;
    let (servers, clients) = if a_serves { (a, b) } else { (b, a) };
    let known = clients.len() > 1 || alike(&servers);
    let has_one = |service: &Service| have_one_queue(sequences, &service.servers, &service.clients);
    let is_one = |service: &Service| has_one(service) && service.is_asked_in_turn(sequences);
    Some(Service { servers, clients }).filter(|service| known && is_one(service))
}

/// What a question or an answer that is added waits for.
fn added(waker: TaskIx) -> Token {
    Token::Block { length: 0, waker }
}

/// What a server does.
#[derive(Default)]
struct Served {
    list: Vec<Token>,
    /// How many questions it takes.
    taken: usize,
    /// Where it stands after its last answer.
    done: usize,
}

impl Served {
    fn takes(&mut self, length: Nanos) {
        self.list.push(Token::Block { length, waker: QUEUE });
        self.taken += 1;
    }

    /// It answers the question that it has taken.
    fn answers(&mut self) {
        self.list.push(Token::Answer);
        self.done = self.list.len();
    }

    /// Behind its last answer it takes and answers another question.
    fn answers_one_more(&mut self) {
        self.list.splice(self.done..self.done, [added(QUEUE), Token::Answer]);
        self.done += 2;
        self.taken += 1;
    }
}

impl Service {
    /// The sequences of its tasks with questions and answers; none if too much does not show.
    fn written(&self, sequences: &[&[Token]]) -> Option<Vec<(TaskIx, Vec<Token>)>> {
        let list = |task: &TaskIx| sequences[*task as usize];
        let mut served: Vec<Served> = self.servers.iter().map(|server| self.server(list(server))).collect();
        let mut asked: Vec<Vec<Token>> = self.clients.iter().map(|client| self.client(list(client))).collect();
        let taken: usize = served.iter().map(|served| served.taken).sum();
        let questions = asked.iter().flatten().filter(|token| matches!(token, Token::Ask(_))).count();
        if taken.abs_diff(questions) * 100 > taken * PERCENT_LACKING {
            return None;
        }
        // As many questions as are taken: what is lacking comes last.
        let (servers, clients) = (served.len(), asked.len());
        (taken..questions).for_each(|n| served[n % servers].answers_one_more());
        (questions..taken).for_each(|n| asked[n % clients].push(Token::Ask(self.queue())));
        let served = std::iter::zip(&self.servers, served).map(|(task, served)| (*task, served.list));
        let asked = std::iter::zip(&self.clients, asked).map(|(task, list)| (*task, list));
        Some(served.chain(asked).collect())
    }

    /// Whether its clients wait for each answer before they ask again.
    fn is_asked_in_turn(&self, sequences: &[&[Token]]) -> bool {
        let (mut alone, mut together, mut by_it, mut by_others) = (0, 0, 0, 0);
        for client in &self.clients {
            let mut woken = None;
            for token in sequences[*client as usize] {
                match token {
                    Token::Post(task) if self.serves(*task) => {
                        *(if woken.is_none() { &mut alone } else { &mut together }) += 1;
                        woken = Some(*task);
                    }
                    Token::Block { waker, .. } if self.serves(*waker) => match woken.take() {
                        Some(task) if task == *waker => by_it += 1,
                        Some(_) => by_others += 1,
                        None => {}
                    },
                    _ => {}
                }
            }
        }
        let by_chance = (by_it + by_others) / self.servers.len() as u64;
        alone * 100 >= (alone + together) * PERCENT_ALONE && by_it * 100 >= by_chance * PERCENT_OF_CHANCE
    }

    /// What a server does.
    fn server(&self, list: &[Token]) -> Served {
        let mut served = Served::default();
        let mut asked = false;
        for token in list {
            match *token {
                Token::Block { length, waker } if self.asks(waker) || self.serves(waker) => {
                    if std::mem::replace(&mut asked, true) {
                        served.answers();
                    }
                    served.takes(length);
                }
                Token::Post(task) if self.asks(task) => {
                    if !std::mem::take(&mut asked) {
                        served.list.insert(served.done, added(QUEUE));
                        served.taken += 1;
                    }
                    served.answers();
                }
                Token::Post(task) if self.serves(task) => {}
                other => served.list.push(other),
            }
        }
        if asked {
            // Nothing shows of the last answer, which is due before the server ends.
            let is_take = |token: &Token| matches!(token, Token::Block { waker: QUEUE, .. });
            let rest = served.list.iter().rev().take_while(|token| !is_take(token)).count();
            let at = served.list.len() - rest;
            let at = at + usize::from(matches!(served.list.get(at), Some(Token::Run(_))));
            served.list.insert(at, Token::Answer);
            served.done = at + 1;
        }
        served
    }

    /// What a client does.
    fn client(&self, list: &[Token]) -> Vec<Token> {
        let mut all = Vec::with_capacity(list.len());
        let ask = Token::Ask(self.queue());
        let mut waits = false;
        for token in list {
            match *token {
                Token::Post(task) if self.serves(task) => {
                    if std::mem::replace(&mut waits, true) {
                        all.push(added(ANSWER));
                    }
                    all.push(ask);
                }
                Token::Block { length, waker } if self.serves(waker) => {
                    if !std::mem::take(&mut waits) {
                        all.push(ask);
                    }
                    all.push(Token::Block { length, waker: ANSWER });
                }
                other => all.push(other),
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::super::sequence::NOBODY;
    use super::*;

    fn woken(waker: TaskIx) -> Token {
        Token::Block { length: 5, waker }
    }

    const RUN: Token = Token::Run(7);
    const TAKE: Token = Token::Block { length: 5, waker: QUEUE };
    const TOLD: Token = Token::Block { length: 5, waker: ANSWER };

    /// The services among tasks of one name that did this again and again.
    fn found(rounds: &[&[Token]]) -> Vec<Service> {
        let sequences: Vec<Vec<Token>> = rounds.iter().map(|round| round.repeat(40)).collect();
        let lists: Vec<&[Token]> = sequences.iter().map(|list| &list[..]).collect();
        Sides::of(&links(&lists)).into_iter().filter_map(|sides| service(&lists, sides, &[], |_| true)).collect()
    }

    #[test]
    fn servers_wake_the_client_that_woke_them() {
        let client = [RUN, Token::Post(2), woken(2), RUN, Token::Post(3), woken(3)];
        let server = [woken(0), RUN, Token::Post(0), woken(1), RUN, Token::Post(1)];
        let service = Service { servers: vec![2, 3], clients: vec![0, 1] };
        assert_eq!(found(&[&client, &client, &server, &server]), [service]);
        // One server that all clients wake: it is the smaller side.
        let client = [RUN, Token::Post(2), woken(2)];
        assert_eq!(found(&[&client, &client, &server]), [Service { servers: vec![2], clients: vec![0, 1] }]);
        // A pair, and two pairs.
        let client = |server| [RUN, Token::Post(server), woken(server)];
        let server = |client| [woken(client), RUN, Token::Post(client)];
        assert_eq!(found(&[&client(1), &server(0)]), []);
        assert_eq!(found(&[&client(2), &client(3), &server(0), &server(1)]), []);
    }

    #[test]
    fn a_server_may_take_several_questions_and_answer_the_last_one_first() {
        let client = [RUN, Token::Post(3), woken(3)];
        let two = |a, b| [woken(a), RUN, Token::Post(b), Token::Post(a)];
        let server = [&two(0, 1)[..], &two(1, 2), &two(2, 0), &[woken(0), RUN, Token::Post(0)]].concat();
        let service = Service { servers: vec![3], clients: vec![0, 1, 2] };
        assert_eq!(found(&[&client, &client, &client, &server]), [service]);
        // It answers all in each burst, or any.
        let serves = |server: &[Token]| {
            let found = found(&[&client, &client, &client, server]);
            found.iter().any(|service| service.servers == [3])
        };
        let all = |by| [woken(by), RUN, Token::Post(2), Token::Post(1), Token::Post(0)];
        assert!(!serves(&[all(0), all(1), all(2)].concat()));
        let any = |by, to| [woken(by), RUN, Token::Post(to)];
        assert!(!serves(&[any(0, 1), any(1, 2), any(2, 0)].concat()));
        assert!(serves(&[any(0, 0), any(1, 1), any(2, 2)].concat()));
    }

    #[test]
    fn servers_with_too_much_to_do_are_never_woken() {
        let client = [RUN, woken(2), RUN, woken(3)];
        let server = |a, b| [RUN, Token::Post(a), RUN, Token::Post(b), RUN, Token::Post(a), RUN, Token::Post(b)];
        let service = Service { servers: vec![2, 3], clients: vec![0, 1] };
        assert_eq!(found(&[&client, &client, &server(0, 1), &server(1, 0)]), [service]);
        // Only one; they sleep; the clients wake others, or wait for one of them.
        assert_eq!(found(&[&client[..2], &client[..2], &server(0, 1)]), []);
        let sleeps = [RUN, Token::Post(0), RUN, Token::Post(1), woken(NOBODY)];
        assert_eq!(found(&[&client, &client, &sleeps, &sleeps]), []);
        let tells = [RUN, woken(2), Token::Post(4), RUN, woken(3)];
        assert_eq!(found(&[&tells, &tells, &server(0, 1), &server(1, 0), &[RUN]]), []);
        let one = |server| [RUN, woken(server), RUN, woken(server)];
        assert_eq!(found(&[&one(2), &one(3), &server(0, 1), &server(1, 0)]), []);
    }

    #[test]
    fn a_pipeline_is_no_service() {
        let first = [RUN, Token::Post(1), woken(1)];
        let middle = [woken(0), RUN, Token::Post(2), RUN, Token::Post(0)];
        let last = [woken(1), RUN];
        assert_eq!(found(&[&first, &middle, &last]), []);
        // Tasks that hand something round.
        let ring = |from: TaskIx, to| [woken(from), RUN, Token::Post(to)];
        assert_eq!(found(&[&ring(2, 1), &ring(0, 2), &ring(1, 0)]), []);
    }

    #[test]
    fn what_does_not_show_is_added() {
        let service = Service { servers: vec![0, 1], clients: vec![2, 3] };
        // It finds a question when it has given an answer; its client is awake; another server wakes it; and the last
        // answer does not show.
        let list = [
            woken(2),
            RUN,
            Token::Post(2),
            RUN,
            Token::Post(3),
            woken(2),
            RUN,
            woken(1),
            Token::Post(3),
            woken(3),
            RUN,
        ];
        let Served { list, taken, .. } = service.server(&list);
        let found = Token::Block { length: 0, waker: QUEUE };
        let first = [TAKE, RUN, Token::Answer, found, RUN, Token::Answer];
        let rest = [TAKE, RUN, Token::Answer, TAKE, Token::Answer, TAKE, RUN, Token::Answer];
        assert_eq!((list, taken), ([&first[..], &rest].concat(), 5));
        // It asks though the server is awake, and takes an answer without having slept.
        let list = [RUN, woken(0), RUN, Token::Post(1), RUN, Token::Post(0), woken(9), woken(1)];
        let told = Token::Block { length: 0, waker: ANSWER };
        let ask = Token::Ask(0);
        assert_eq!(service.client(&list), [RUN, ask, TOLD, RUN, ask, RUN, told, ask, woken(9), TOLD]);
    }

    #[test]
    fn there_are_as_many_questions_as_are_taken() {
        let service = Service { servers: vec![0], clients: vec![1, 2] };
        let client = |tail: &[Token]| [&[RUN, Token::Post(0), woken(0)].repeat(20)[..], tail].concat();
        let server = [woken(1), RUN, Token::Post(1), woken(2), RUN, Token::Post(2)].repeat(20);
        let count = |lists: &[(TaskIx, Vec<Token>)], is: fn(&Token) -> bool| {
            lists.iter().flat_map(|(_, list)| list).filter(|token| is(token)).count()
        };
        for (tail, times) in [(&[][..], 40), (&[RUN, Token::Post(0)][..], 42)] {
            let written = service.written(&[&server, &client(tail), &client(tail)]).unwrap();
            let is_take = |token: &Token| matches!(token, Token::Block { waker: QUEUE, .. });
            assert_eq!(count(&written, |token| matches!(token, Token::Ask(_))), times);
            assert_eq!(count(&written, is_take), times);
            assert_eq!(count(&written, |token| *token == Token::Answer), times);
        }
        // Far too few questions, and several open at a time.
        assert!(service.written(&[&server, &client(&[]), &[RUN]]).is_none());
        let many = [RUN, Token::Post(0), RUN, Token::Post(0), woken(0), woken(0)].repeat(10);
        assert!(service.written(&[&server, &many, &many]).is_none());
        assert!(!service.is_asked_in_turn(&[&server, &many, &many]));
    }
}
