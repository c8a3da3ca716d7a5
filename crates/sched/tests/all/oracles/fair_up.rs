//! The `linux-6.1` and `linux-6.12` profiles against Debian's own kernels in a guest with one CPU.
//!
//! Tolerances: CPU time 3 ticks or 1%; slices 3 or 3%; wait 3%, 15 ms or one mean wait.

use crate::support::guest::Guest;

const GUEST: Guest = Guest {
    kernel: "linux-6.1",
    first_ticks: true,
    burst_more_us: 0.0,
    ticks: 3.0,
    part: 0.01,
    slices: &[],
    controlled: false,
};

#[test]
fn linux_6_1_is_met() {
    GUEST.judge(include_str!("linux-6.1-up.json"), 18, &[]);
}

#[test]
fn linux_6_12_is_met() {
    let guest = Guest { kernel: "linux-6.12", first_ticks: false, ..GUEST };
    guest.judge(include_str!("linux-6.12-up.json"), 18, &[]);
}
