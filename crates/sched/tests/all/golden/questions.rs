//! Questions, and who is answered.

use crate::support::{Accounts, MS, bare, exactly, once, run, simulate, sleep};
use schedlab_base::{Event, Nanos, Payload};
use schedlab_sim::program::{Load, Op, TaskSpec};

fn accounts(cpus: &str, tasks: Vec<TaskSpec>, duration: Nanos) -> Accounts {
    let load = Load { tasks, sems: vec!["queue".into(), "other".into()], ..Load::default() };
    simulate("linux-6.12", &bare(cpus), &load, &[], duration)
}

fn asks(name: &str, after: Nanos) -> TaskSpec {
    once(name, vec![Op::Sleep(exactly(after)), Op::Ask(0), Op::Await, run(5)])
}

/// Takes questions and answers each after so many ms of work.
fn rounds(work: u64, times: usize) -> Vec<Op> {
    vec![vec![Op::SemWait(0), run(work), Op::Answer(0)]; times].concat()
}

/// When a task ends.
fn end(seen: &Accounts, name: &str) -> Nanos {
    let is_end =
        |event: &&Event| matches!(event.what, Payload::Exit { tid, .. } if seen.names[tid as usize - 1] == name);
    seen.events.iter().find(is_end).expect("it ends").time
}

/// Of three questions, the slow server takes the first and the quick one the others: it answers the second client and
/// the third while the first still waits.
#[test]
fn who_asked_is_answered_by_who_took_the_question() {
    let serves =
        |name: &str, after, work, times| once(name, [vec![Op::Sleep(exactly(after))], rounds(work, times)].concat());
    let servers = [serves("slow", 0, 100, 1), serves("quick", MS / 2, 10, 2)];
    let clients = [asks("first", MS), asks("second", 2 * MS), asks("third", 3 * MS)];
    let seen = accounts("8", servers.into_iter().chain(clients).collect(), 1000 * MS);
    let at = ["first", "second", "third"].map(|name| end(&seen, name));
    assert_eq!(at, [106 * MS, 17 * MS, 27 * MS]);
}

/// One that takes several questions first answers in their order, those of one queue apart from those of another. There
/// is nothing to answer without a question; an answer that comes early is kept.
#[test]
fn answers_come_in_the_order_of_the_questions() {
    let elsewhere = once("elsewhere", vec![Op::Sleep(exactly(MS / 2)), Op::Ask(1), Op::Await, run(5)]);
    let early = once("early", vec![Op::Sleep(exactly(3 * MS)), Op::Ask(0), run(200), Op::Await, run(5)]);
    let takes = vec![Op::Answer(0), Op::SemWait(1), Op::SemWait(0), Op::SemWait(0), Op::SemWait(0), sleep(10)];
    let gives = [0, 0, 0, 1].map(|queue| vec![Op::Answer(queue), run(10)]).concat();
    let tasks =
        vec![asks("first", MS), asks("second", 2 * MS), elsewhere, early, once("server", [takes, gives].concat())];
    let seen = accounts("8", tasks, 1000 * MS);
    let at = ["first", "second", "elsewhere"].map(|name| end(&seen, name));
    assert_eq!(at, [18 * MS, 28 * MS, 48 * MS]);
    assert_eq!(seen.named("early").run, 205 * MS);
}

/// A server that is killed answers what has been asked, though it does not do the work.
#[test]
fn a_killed_server_answers_what_has_been_asked() {
    let server = TaskSpec { lifetime: Some(60 * MS), ..once("server", rounds(50, 9)) };
    let seen = accounts("8", vec![server, asks("first", MS), asks("second", 2 * MS), asks("late", 70 * MS)], 1000 * MS);
    let ran = ["server", "first", "second", "late"].map(|name| seen.named(name).run);
    assert_eq!(ran, [60 * MS - MS, 5 * MS, 5 * MS, 0]);
    // A post that asks nothing is for whoever lives.
    let waits = |name: &str| once(name, vec![Op::SemWait(0), run(5)]);
    let killed = TaskSpec { lifetime: Some(10 * MS), ..once("killed", vec![run(50), Op::SemWait(0), run(5)]) };
    let posts = once("posts", vec![Op::SemPost(0)]);
    let seen = accounts("8", vec![killed, posts, TaskSpec { start: 20 * MS, ..waits("later") }], 1000 * MS);
    assert_eq!(["killed", "later"].map(|name| seen.named(name).run), [10 * MS, 5 * MS]);
}
