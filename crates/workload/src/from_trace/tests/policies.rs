//! Changes of policy that only the priorities of switches show.

use super::*;
use schedlab_base::{Policy as Known, TaskProperties, TaskRecord};

#[test]
fn a_priority_shows_a_policy_whose_change_was_not_recorded() {
    let mut builder = ModelBuilder::new(&Meta { span: Some((0, 0)), ..Meta::default() });
    [1, 2]
        .into_iter()
        .for_each(|tid| builder.name(&NameRecord { time: 0, tid, tgid: None, comm: "t".into(), cgroup: None }));
    let properties = TaskProperties { policy: Some(Known::Other), nice: Some(3), ..TaskProperties::default() };
    builder.task(&TaskRecord { time: 0, tid: 1, properties });
    let mut s = Script::default();
    let switch =
        |prev, prev_prio, prev_state, next, next_prio| Payload::Switch { prev, prev_prio, prev_state, next, next_prio };
    let exec = Payload::Exec { tid: 2, old: 2 };
    // 2 becomes chrt, which makes itself FIFO 20 and becomes another program; at its end it is fair again.
    s.at(0, 0, switch(0, 120, Runnable, 1, 123)).at(10, 0, Payload::Fork { parent: 1, child: 2 });
    s.wake(11, 0, 1, 2).at(100, 0, switch(1, 123, Sleeping, 2, 123)).at(200, 0, exec).at(300, 0, exec);
    s.at(1_000, 0, switch(2, 79, Sleeping, 0, 120)).wake(2_000, 1, 0, 2).at(2_000, 0, switch(0, 120, Runnable, 2, 79));
    s.at(2_500, 0, switch(2, 79, Runnable, 1, 123)).at(2_600, 0, switch(1, 123, Sleeping, 2, 120));
    s.at(3_000, 0, switch(2, 120, Dead, 0, 120));
    builder.events(&s.events);
    let Model { workload, .. } = builder.finish(&Options::default()).unwrap();
    assert_eq!(
        told(&workload, "t-2"),
        ["1 x run 100, x-exec, run 100, x-exec", "1 x run 700, sleep 1000, run 500", "1 x run 400"]
    );
    let two = workload.tasks.iter().find(|task| task.name == "t-2").unwrap();
    let nicer = Props { priority: Some(3), ..Props::default() };
    let fifo = Props { policy: Some(Policy::Fifo), priority: Some(20), ..Props::default() };
    let fair = Props { policy: Some(Policy::Other), priority: Some(0), ..Props::default() };
    let phases: Vec<_> = two.phases.iter().map(|phase| phase.props.clone()).collect();
    assert_eq!((&two.props, phases.as_slice()), (&nicer, &[Props::default(), fifo, fair][..]));
}
