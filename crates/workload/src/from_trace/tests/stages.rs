//! Stages of a pipeline: each waits for the one before it and for the one behind it.

use super::*;

const WRITER: Tid = 11;
const FILTER: Tid = 12;
const READER: Tid = 13;

/// A writer, a filter and a reader with a CPU each. In most rounds the filter, which waited for the writer, wakes it,
/// since there is room again, and the reader; every third time it has waited for the reader to make room.
fn pipeline(rounds: Nanos) -> Script {
    let mut script = Script::default();
    for (cpu, (tid, name)) in (0..).zip([(WRITER, "writer"), (FILTER, "filter"), (READER, "reader")]) {
        script.name(tid, name).switch(0, cpu, 0, Runnable, tid).switch(1 + u64::from(cpu), cpu, tid, Sleeping, 0);
    }
    let task = Context::Task;
    for round in 0..rounds {
        let at = 100 * round + 10;
        if round % 3 == 2 {
            script.wake_in(Context::HardIrq, at, 2, 0, READER).switch(at + 1, 2, 0, Runnable, READER);
            script.wake_in(task, at + 2, 2, READER, FILTER).switch(at + 3, 1, 0, Runnable, FILTER);
            script.switch(at + 4, 2, READER, Sleeping, 0);
        } else {
            script.wake_in(Context::HardIrq, at, 0, 0, WRITER).switch(at + 1, 0, 0, Runnable, WRITER);
            script.wake_in(task, at + 2, 0, WRITER, FILTER).switch(at + 3, 1, 0, Runnable, FILTER);
            script.switch(at + 4, 0, WRITER, Sleeping, 0);
            script.wake_in(task, at + 20, 1, FILTER, WRITER).switch(at + 21, 0, 0, Runnable, WRITER);
            script.switch(at + 30, 0, WRITER, Sleeping, 0);
        }
        script.wake_in(task, at + 40, 1, FILTER, READER).switch(at + 41, 2, 0, Runnable, READER);
        script.switch(at + 45, 1, FILTER, Sleeping, 0).switch(at + 50, 2, READER, Sleeping, 0);
    }
    script
}

#[test]
fn the_neighbours_of_a_stage_do_not_ask_it() {
    let model = pipeline(300).model(&Options::default()).unwrap();
    for name in ["writer-11", "filter-12", "reader-13"] {
        let told = told(&model.workload, name);
        assert!(told.iter().any(|phase| phase.contains("wait")), "{told:?}");
        assert!(!told.iter().any(|phase| phase.contains("ask ") || phase.contains("answer ")), "{told:?}");
    }
}
