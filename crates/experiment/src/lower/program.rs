//! A task's phases as one flat program with loops.

use schedlab_base::Nanos;
use schedlab_sim::program::{Amount, JobList, Op};
use schedlab_workload::{Step, TaskDef};

/// The program of a task. `sets` says for each phase which setting to apply at its start; `add` adds what an event
/// does.
pub(super) fn of(task: &TaskDef, sets: &[Option<u32>], add: impl Fn(&Step, &mut Vec<Op>)) -> Vec<Op> {
    let mut program = Vec::new();
    if task.loops == Some(0) {
        return program;
    }
    // One phase gone through again and again, with nothing to set between: the inner loop says nothing of its own.
    let endless = task.loops.is_none() && task.phases.len() == 1 && sets.iter().all(Option::is_none);
    repeat(&mut program, task.loops, |program| {
        for (phase, set) in task.phases.iter().zip(sets) {
            program.extend(set.map(Op::Set));
            let loops = if endless { Some(1) } else { phase.loops };
            repeat(program, loops, |program| phase.events.iter().for_each(|step| add(step, program)));
        }
    });
    program
}

/// The jobs that a task's phases are; `add` adds what an event does.
pub(super) fn jobs(task: &TaskDef, add: impl Fn(&Step, &mut Vec<Op>)) -> JobList {
    let mut list = JobList::default();
    let mut end = 0_u64;
    for phase in &task.phases {
        let mut job = Vec::new();
        phase.events.iter().for_each(|step| add(step, &mut job));
        end = end.saturating_add(phase.loops.unwrap_or(u64::MAX));
        list.jobs.push(job);
        list.ends.push(end);
    }
    list.total = task.loops.map_or(u64::MAX, |rounds| rounds.saturating_mul(end));
    list
}

/// Marks an operation of an event that says `x-sync`. Of those that an event becomes, only the one that wakes others
/// counts.
pub(super) fn sync(op: &mut Op) {
    if matches!(op, Op::Signal(_) | Op::Broadcast(_) | Op::Resume(_) | Op::SemPost(_) | Op::Ask(_) | Op::Answer(_)) {
        *op = Op::Synced(Box::new(std::mem::replace(op, Op::Yield)));
    }
}

/// The program that first sleeps.
pub(super) fn after(delay: Nanos, program: &[Op]) -> Vec<Op> {
    if delay == 0 {
        return program.to_vec();
    }
    let sleep = Op::Sleep(Amount { mean: delay, sd: 0 });
    let moved = program.iter().map(|op| match op {
        Op::LoopEnd { start } => Op::LoopEnd { start: start + 1 },
        op => op.clone(),
    });
    std::iter::once(sleep).chain(moved).collect()
}

fn repeat(program: &mut Vec<Op>, times: Option<u64>, body: impl FnOnce(&mut Vec<Op>)) {
    if times == Some(1) {
        return body(program);
    }
    let start = program.len() as u32;
    program.push(Op::LoopStart { times });
    body(program);
    program.push(Op::LoopEnd { start });
}
