use super::*;
use schedlab_base::{CpuPlace, TaskState, Tid};

/// A simulation of so many CPUs a node.
fn meta(span: Option<Nanos>, nodes: &[u32]) -> Meta {
    let place = |(cpu, node): (CpuId, &u32)| CpuPlace { cpu, node: *node, ..CpuPlace::default() };
    let cpus = (0..).zip(nodes).map(place).collect();
    Meta { source: "sim".into(), span: span.map(|end| (0, end)), cpus, ..Meta::default() }
}

fn heat(meta: &Meta, what: What, (from, to, columns): (Nanos, Option<Nanos>, usize), events: &[Event]) -> Heat {
    let mut map = Heatmap::new(meta, what, Window { from, to, columns });
    map.events(events);
    map.finish(None)
}

fn means(heat: &Heat) -> Vec<f64> {
    let Cells::Means(cells) = &heat.cells else { panic!("means were asked for") };
    cells.iter().map(|mean| mean.unwrap_or(-1.0)).collect()
}

fn switch(time: Nanos, cpu: CpuId, prev: Tid, next: Tid) -> Event {
    let prev_state = TaskState::Sleeping;
    Event { time, cpu, what: Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 } }
}

fn wake(time: Nanos, cpu: CpuId, tid: Tid) -> Event {
    Event { time, cpu, what: Payload::Wakeup { tid, prio: 120, target: cpu } }
}

fn told(time: Nanos, cpu: CpuId, length: u32) -> Event {
    Event { time, cpu, what: Payload::Queue { length, load: u64::from(length) * 1024 } }
}

fn looked(time: Nanos, cpu: CpuId, why: Looking, mask: u64) -> Event {
    Event { time, cpu, what: Payload::Considered { why, tid: 0, word: 0, mask } }
}

#[test]
fn queue_lengths_follow_from_switches_and_wakeups() {
    // CPU 0 runs task 1 from 10 to 30 and task 2, woken at 20, from 30 on; CPU 1 is idle.
    let events = [wake(10, 0, 1), switch(10, 0, 0, 1), wake(20, 0, 2), switch(30, 0, 1, 2)];
    let heat = heat(&meta(Some(40), &[0, 0]), What::Queue, (0, None, 4), &events);
    assert_eq!(means(&heat), [0.0, 1.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!((heat.from, heat.to, heat.told, heat.highest()), (0, 40, false, 2.0));
}

#[test]
fn a_column_is_the_mean_over_its_time() {
    let events = [told(5, 0, 4), told(10, 0, 1)];
    let map = heat(&meta(Some(30), &[0]), What::Queue, (0, None, 2), &events);
    // 0 to 15: 5 of nothing, 5 of four, 5 of one.
    assert_eq!(means(&map), [25.0 / 15.0, 1.0]);
    assert_eq!((map.over_time(0), map.over_time(1)), (Some((25.0 / 15.0 + 1.0) / 2.0), None));
    let part = heat(&meta(Some(30), &[0]), What::Queue, (5, Some(15), 2), &events);
    assert_eq!((means(&part), part.from, part.to), (vec![4.0, 1.0], 5, 15));
    let load = heat(&meta(Some(30), &[0]), What::Load, (0, None, 2), &events);
    assert_eq!(means(&load)[1], 1024.0);
}

#[test]
fn what_is_told_replaces_what_was_worked_out() {
    // By the switches CPU 0 has one task from 0 on; the scheduler, which knows better, tells of three from 20 on.
    let heat = heat(&meta(Some(40), &[0]), What::Queue, (0, None, 2), &[switch(0, 0, 0, 1), told(20, 0, 3)]);
    assert_eq!((means(&heat), heat.told), (vec![0.0, 3.0], true));
}

#[test]
fn an_unknown_end_gives_the_same_picture() {
    let events: Vec<Event> = (0..=64).map(|k| told(k * 1_000, (k % 2) as CpuId, (k / 8) as u32)).collect();
    for columns in [1, 4, 16] {
        let known = heat(&meta(Some(64_000), &[0, 0]), What::Queue, (0, None, columns), &events);
        let unknown = heat(&meta(None, &[0, 0]), What::Queue, (0, None, columns), &events);
        assert_eq!((known.to, unknown.to), (64_000, 64_000));
        let sum = |heat: &Heat| means(heat).iter().sum::<f64>();
        assert!((sum(&known) - sum(&unknown)).abs() < 0.02 * sum(&known), "{columns}");
        for (a, b) in means(&known).into_iter().zip(means(&unknown)) {
            // Edges are blurred by less than half a column, and neighbours differ by 4 at most.
            assert!((a - b).abs() < 2.0, "{columns}: {a} is not {b}");
        }
    }
    let cut = heat(&meta(None, &[0, 0]), What::Queue, (10_000, Some(20_000), 5), &events);
    assert_eq!((cut.from, cut.to), (10_000, 20_000));
}

#[test]
fn a_run_whose_end_only_the_caller_knows_fills_the_picture() {
    let mut map = Heatmap::new(&meta(None, &[0]), What::Queue, Window { from: 0, to: None, columns: 4 });
    map.events(&[told(0, 0, 2), told(64, 0, 1)]);
    let heat = map.finish(Some(128));
    assert_eq!((heat.to, means(&heat)), (128, vec![2.0, 2.0, 1.0, 1.0]));
}

#[test]
fn rows_go_by_node_and_unlisted_cpus_come_last() {
    let heat = heat(&meta(Some(10), &[0, 1, 0, 1]), What::Queue, (0, None, 1), &[told(0, 9, 7)]);
    let rows: Vec<_> = heat.rows.iter().map(|row| (row.cpus[0], row.node)).collect();
    assert_eq!(rows, [(0, Some(0)), (2, Some(0)), (1, Some(1)), (3, Some(1)), (9, None)]);
    assert_eq!(means(&heat), [0.0, 0.0, 0.0, 0.0, 7.0]);
}

#[test]
fn very_many_cpus_share_rows_within_their_node() {
    let nodes: Vec<u32> = (0..1536).map(|cpu| cpu / 500).collect();
    let heat = heat(&meta(Some(10), &nodes), What::Queue, (0, None, 1), &[told(0, 0, 6)]);
    assert_eq!(heat.rows[0].cpus, [0, 1, 2]);
    assert!(heat.rows.iter().all(|row| row.cpus.iter().all(|cpu| Some(cpu / 500) == row.node)));
    assert_eq!(means(&heat)[..2], [2.0, 0.0]);
}

#[test]
fn looks_are_counted_by_reason() {
    use Looking::{NewIdle, Periodic, Wake};
    let events = [looked(1, 0, NewIdle, 0b11), looked(2, 0, NewIdle, 0b10), looked(12, 1, Wake, 0b10)];
    let all = |by, why| heat(&meta(Some(20), &[0, 0]), What::Considered { by, why }, (0, None, 2), &events);
    let heat = all(None, Vec::new());
    let Cells::Looks(cells) = &heat.cells else { panic!("looks were asked for") };
    let seen: Vec<_> = cells.iter().map(|c| (c[NewIdle as usize], c[Wake as usize])).collect();
    assert_eq!(seen, [(1, 0), (0, 0), (2, 0), (0, 1)]);
    let sums = |heat: Heat| (heat.looks()[NewIdle as usize], heat.looks()[Wake as usize]);
    assert_eq!(sums(all(Some(1), Vec::new())), (0, 1));
    assert_eq!(sums(all(None, vec![NewIdle, Periodic])), (3, 0));
}

#[test]
fn looks_are_not_lost_where_the_end_is_not_known() {
    let events: Vec<Event> = (0..1_000).map(|k| looked(k * 777, 0, Looking::Wake, 1)).collect();
    for columns in [1, 3, 10, 64, 900] {
        let what = What::Considered { by: None, why: Vec::new() };
        let heat = heat(&meta(None, &[0]), what, (0, None, columns), &events);
        // The last instant is the end, and no part of the picture.
        assert!((999..=1_000).contains(&heat.looks()[0]), "{columns}: {:?}", heat.looks());
    }
}

#[test]
fn nothing_is_known_before_and_after_a_loss() {
    let mut recorded = meta(Some(40), &[0]);
    recorded.source = "record".into();
    recorded.span = None;
    let lost = Event { time: 20, cpu: 0, what: Payload::Lost { count: 3 } };
    let heat =
        heat(&recorded, What::Queue, (0, None, 4), &[switch(0, 0, 0, 1), wake(10, 0, 2), lost, switch(40, 0, 2, 0)]);
    // Known up to the last event before the loss, at 10.
    assert_eq!(means(&heat), [1.0, -1.0, -1.0, -1.0]);
}

#[test]
fn memory_is_drawn_by_node() {
    let pages = |time, from, to, pages| Event { time, cpu: 0, what: Payload::Pages { tgid: 1, from, to, pages } };
    // 256 pages are a MiB.
    let events = [pages(0, schedlab_base::NOWHERE, 1, 512), pages(10, 1, 0, 256), pages(20, 1, 7, 256)];
    let heat = heat(&meta(Some(40), &[0, 0, 1]), What::Memory, (0, None, 4), &events);
    assert_eq!(means(&heat), [0.0, 1.0, 1.0, 1.0, 2.0, 1.0, 0.0, 0.0], "node 7 is not in the trace's head");
    assert_eq!((heat.rows.len(), heat.rows[1].node, heat.rows[1].cpus.len(), heat.told), (2, Some(1), 0, true));
    let none = self::heat(&meta(Some(40), &[0, 1]), What::Memory, (0, None, 4), &[told(5, 0, 4)]);
    assert!(!none.told, "queues are no memory");
}
