//! A parallel make and two statistics programs: the load under which "A Decade of Wasted Cores" found its first bug.
//!
//! `make` keeps a number of compilations running. Each is a driver that forks the compiler and then the assembler, as
//! `gcc -c` does, and waits for each. The compiler first reads its files. A child that ends posts a semaphore of its
//! parent, as the end of a child ends a `wait()`. The R tasks compute without sleeping. `make` and each R task have
//! sessions of their own, as if each had been started from its own terminal.

use super::{Given, Preset, exactly, param, step};
use crate::{Action, Amount, Phase, Step, TaskDef, Workload};
use schedlab_base::{Nanos, Result};

pub(super) const PRESET: Preset = Preset {
    name: "make-r",
    meaning: "a parallel make of short compilations, and two R jobs that only compute, each in its own session",
    params: &[
        param("parallel", "64", "compilations under way at a time (make -j)"),
        param("jobs", "3000", "compilations in all"),
        param("compile", "400ms", "CPU time of a compilation, the mean; half of it is the standard deviation"),
        param("r", "2", "R jobs"),
        param("seconds", "60", "CPU time of each R job"),
    ],
    build,
};

/// What `make` computes to start a compilation: it reads its rules, forks and calls exec.
const RULE: Nanos = 300_000;
/// What the driver computes before the compiler runs, and again after the assembler.
const DRIVER: Nanos = 2_000_000;
/// The time to read a source file and its headers, some of which are not in the page cache.
const READ: Nanos = 500_000;
/// The assembler's CPU time, in percent of the compiler's.
const ASSEMBLER_PERCENT: u64 = 8;
const MS: Nanos = 1_000_000;

fn build(given: &Given) -> Result<Workload> {
    let parallel = given.number("parallel", 1, 10_000)?.unsigned_abs();
    let jobs = given.number("jobs", 1, 1_000_000)?.unsigned_abs();
    let compile = given.time("compile")?.max(MS);
    let mut tasks = vec![make(parallel, jobs), driver()];
    tasks.push(child("cc1", compile, "compiled"));
    tasks.push(child("as", compile * ASSEMBLER_PERCENT / 100, "assembled"));
    for n in 0..given.number("r", 0, 1000)? {
        tasks.push(statistics(n as u32, given.number("seconds", 1, 1_000_000)?.unsigned_abs()));
    }
    Ok(Workload { tasks, ..Workload::default() })
}

fn wait(name: &str) -> Step {
    step("sem_wait", Action::SemWait(name.to_owned()))
}

fn post(name: &str) -> Step {
    step("sem_post", Action::SemPost(name.to_owned()))
}

fn run(time: Nanos) -> Step {
    step("run", Action::Run(exactly(time)))
}

fn phase(name: &str, loops: u64, events: Vec<Step>) -> Phase {
    Phase { name: name.to_owned(), loops: Some(loops), events, ..Phase::default() }
}

fn make(parallel: u64, jobs: u64) -> TaskDef {
    let fork = step("fork", Action::Fork("gcc".to_owned()));
    TaskDef {
        name: "make".to_owned(),
        loops: Some(1),
        session: Some(1),
        phases: vec![
            phase("slots", parallel, vec![post("slot")]),
            phase("start", jobs, vec![wait("slot"), run(RULE), fork]),
            phase("finish", parallel, vec![wait("slot")]),
            phase("link", 1, vec![run(100 * MS)]),
        ],
        ..TaskDef::default()
    }
}

fn forked(name: &str, events: Vec<Step>) -> TaskDef {
    let phases = vec![Phase { events, ..Phase::default() }];
    TaskDef { name: name.to_owned(), instances: 0, loops: Some(1), session: Some(1), phases, ..TaskDef::default() }
}

fn driver() -> TaskDef {
    let fork = |key: &str, name: &str| step(key, Action::Fork(name.to_owned()));
    let wait = |key: &str, name: &str| step(key, Action::SemWait(name.to_owned()));
    let end = step("run_end", Action::Run(exactly(DRIVER)));
    let children = vec![fork("fork_cc1", "cc1"), wait("sem_wait_cc1", "compiled"), fork("fork_as", "as")];
    forked("gcc", [vec![run(DRIVER)], children, vec![wait("sem_wait_as", "assembled"), end, post("slot")]].concat())
}

fn child(name: &str, mean: Nanos, done: &str) -> TaskDef {
    let read = step("sleep", Action::Sleep(Amount { mean: READ, sd: READ / 2 }));
    let work = step("run", Action::Run(Amount { mean, sd: mean / 2 }));
    let mut task = forked(name, vec![read, work, post(done)]);
    task.props.working_set = Some(1 << 20);
    task
}

fn statistics(n: u32, seconds: u64) -> TaskDef {
    let mut task = TaskDef {
        name: format!("R-{n}"),
        loops: Some(1),
        session: Some(2 + n),
        phases: vec![phase("compute", seconds, vec![run(1000 * MS)])],
        ..TaskDef::default()
    };
    task.props.working_set = Some(4 << 20);
    task
}
