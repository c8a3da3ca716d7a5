//! Sleeps that end with a tick (`schedule_timeout()`).

use crate::support::registry::releases;
use crate::support::{MS, bare, exactly, hog, once, simulate};
use schedlab_base::{Payload, v2_6};
use schedlab_sim::program::{Load, Op};

/// The task computes for 0.7 ms and sleeps for 8 ms, again and again; a hog is beside it. With ticks each 4 ms it wakes
/// at the second tick after it fell asleep, with ticks each 10 ms at the first one, and with ticks each 1 ms at the
/// eighth.
#[test]
fn a_timeout_ends_with_a_tick() {
    let body = vec![Op::LoopStart { times: None }, Op::Run(exactly(700_000)), Op::Timeout(8 * MS)];
    let task = once("kthread", [body, vec![Op::LoopEnd { start: 0 }]].concat());
    let load = Load { tasks: vec![task, hog("hog", 0)], ..Load::default() };
    for kernel in releases(v2_6(24)..) {
        for (hz, first, tick) in [("250", 8, 4), ("100", 10, 10), ("1000", 8, 1)] {
            let events = simulate(kernel, &bare("1"), &load, &[("hz", hz.to_owned())], 200 * MS).events;
            let woken = |e: &schedlab_base::Event| matches!(e.what, Payload::Waking { tid: 1, .. }).then_some(e.time);
            let times: Vec<u64> = events.iter().filter_map(woken).filter(|time| *time > 0).collect();
            assert_eq!(times[0], first * MS, "{kernel} at {hz} Hz");
            assert!(times.len() > 5 && times.iter().all(|time| time % (tick * MS) == 0), "{kernel}: {times:?}");
        }
    }
}
