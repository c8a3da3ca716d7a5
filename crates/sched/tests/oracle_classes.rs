//! The classes and groups of `linux-6.1` and `linux-6.12` against Debian's own kernels in a guest with one CPU.
//!
//! Tolerances: CPU time 4 ticks or 1.5%; slices 3 or 3%; wait 3%, 15 ms or one mean wait.

mod support;

use support::guest::Guest;

/// Two hogs and two SCHED_IDLE ones: the seventh slice of the last comes some 0.2 s before the end, or a second after it,
/// by the tick's phase; at 6 of 8 phases ours comes after, and the finished waits lack the last (1.15 tolerances).
const LAST_SLICE: &str = "whether an idle task's last slice comes before the end is decided by the tick's phase";

const GUEST: Guest =
    Guest { kernel: "linux-6.1", first_ticks: true, burst_more_us: 45.0, ticks: 4.0, part: 0.015, slices: &[] };

#[test]
fn linux_6_1_is_met() {
    let guest = Guest { slices: &[("linux-6.1-classes-10", 12.0)], ..GUEST };
    guest.judge(include_str!("oracles/linux-6.1-classes.json"), 11, &[]);
}

#[test]
fn linux_6_12_is_met() {
    let known = [("linux-6.12-classes-18", LAST_SLICE)];
    let slices = &[("linux-6.12-classes-10", 12.0)];
    let guest = Guest { kernel: "linux-6.12", first_ticks: false, burst_more_us: 50.0, slices, ..GUEST };
    guest.judge(include_str!("oracles/linux-6.12-classes.json"), 11, &known);
}
