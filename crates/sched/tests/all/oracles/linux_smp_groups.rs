//! The `linux-6.1` and `linux-6.12` profiles against Debian's kernels in guests with groups and policies, on 1, 2 and 4
//! CPUs.
//!
//! [`crate::support::smp`] has the criterion; the oracles explain how they were measured. Where the tasks were when
//! they began decides much of what is moved later, so each run is simulated with its own start. What is not met is
//! listed in `linux-smp-groups-unmet.json`, with its cause.

use crate::support::MS;
use crate::support::smp::{Case, Guest};
use serde::Deserialize;
use std::collections::BTreeMap;

const LINUX_6_1: Guest = Guest {
    kernel: "linux-6.1",
    set: &[],
    duration: 2_000 * MS,
    tick: |_| 4_000_000,
    softirqd: None,
    worker_us: |_| 1_000,
    seeds: 101,
};

/// Debian's 6.12 has autogroups on: the tasks of no group, which are of one session, are a group.
const LINUX_6_12: Guest = Guest { kernel: "linux-6.12", set: &[("sched_autogroup_enabled", "1")], ..LINUX_6_1 };

const UNMET: &str = include_str!("linux-smp-groups-unmet.json");

fn judge(guest: &Guest, oracle: &str) {
    #[derive(Deserialize)]
    struct Oracle {
        cases: Vec<Case>,
    }
    let oracle: Oracle = serde_json::from_str(oracle).unwrap();
    let unmet: BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>> = serde_json::from_str(UNMET).unwrap();
    let unmet = &unmet[guest.kernel];
    assert!(unmet.keys().all(|id| oracle.cases.iter().any(|case| case.id == *id)), "an unmet case is none");
    let kinds: Vec<Vec<&str>> = unmet.values().map(|kinds| kinds.keys().map(String::as_str).collect()).collect();
    let unmet: Vec<_> = unmet.keys().zip(&kinds).map(|(id, kinds)| (id.as_str(), &kinds[..])).collect();
    guest.judge(&oracle.cases, &unmet);
}

#[test]
fn linux_6_1_with_groups_on_several_cpus() {
    judge(&LINUX_6_1, include_str!("linux-6.1-smp-groups.json"));
}

#[test]
fn linux_6_12_with_groups_on_several_cpus() {
    judge(&LINUX_6_12, include_str!("linux-6.12-smp-groups.json"));
}
