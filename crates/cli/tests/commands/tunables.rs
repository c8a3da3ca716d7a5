//! `schedlab tunables` and `schedlab kernels` through the command line, and the message of `--set` for a name of
//! another release.

use serde_json::Value;
use std::process::{Command, Output};

fn schedlab(args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab")).args(args.split_whitespace()).output().unwrap()
}

fn json(args: &str) -> Value {
    let output = schedlab(args);
    assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(args: &str) -> String {
    String::from_utf8(schedlab(args).stdout).unwrap()
}

fn refused(args: &str) -> String {
    let output = schedlab(args);
    assert_eq!(output.status.code(), Some(2), "{args}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_kernel_s_tunables_have_the_values_of_the_machine() {
    let default = |kernel: &str, machine: &str, name: &str| {
        let document = json(&format!("tunables --kernel {kernel} --machine {machine} --json"));
        let tunables = document["tunables"].as_array().unwrap();
        tunables.iter().find(|t| t["name"] == name).unwrap_or_else(|| panic!("{name}"))["default"].clone()
    };
    // 1 + log2 of 16 CPUs is 5. From 2.6.33 on, at most 8 CPUs count.
    assert_eq!(default("linux-2.6.32", "16", "sched_latency_ns"), 25_000_000);
    assert_eq!(default("linux-3.10", "16", "sched_latency_ns"), 24_000_000);
    assert_eq!(default("linux-6.12", "up", "base_slice_ns"), 700_000);
    assert_eq!(default("linux-6.6", "2", "base_slice_ns"), 1_500_000);
}

#[test]
fn the_catalogue_is_shown_whole_and_one_by_one() {
    let all = json("tunables --json");
    assert!(all["tunables"].as_array().unwrap().len() > 150);
    let one = json("tunables sched_latency_ns --json");
    assert_eq!(
        (&one["since"], &one["until"], &one["successor"]),
        (&"2.6.23".into(), &"5.12".into(), &"latency_ns".into())
    );
    assert!(one["kernels"].as_array().unwrap().contains(&"linux-4.1".into()));
    assert!(text("tunables swappiness").contains("range      0..100"));
    assert!(text("tunables").lines().any(|line| line.starts_with("vm.dirty_ratio")));
    assert!(
        text("tunables --kernel linux-2.6.24 sched_latency_ns --machine 2").starts_with("linux-2.6.24: 40000000 ns")
    );
    assert!(refused("tunables swapiness").contains("did you mean \"vm.swappiness\"?"));
}

#[test]
fn a_name_of_another_release_is_refused_with_its_successor() {
    let set = "--workload li:tasks=1 --duration 1s --set";
    let message = refused(&format!("sim --kernel linux-6.12 {set} sched_latency_ns=1000000"));
    assert!(
        message.contains("it exists in 2.6.23 to 5.12; latency_ns") && message.contains("base_slice_ns"),
        "{message}"
    );
    let message = refused(&format!("sim --kernel linux-2.6.32 {set} base_slice_ns=1000000"));
    assert!(message.contains("it exists since 6.6; linux-2.6.32 has sched_latency_ns and"), "{message}");
    let message = refused("tunables --kernel linux-6.12 latency_ns");
    assert!(message.starts_with("schedlab: latency_ns: no such tunable; "), "{message}");
    assert!(message.contains("base_slice_ns (debugfs, since 6.6)"), "{message}");
    assert!(refused("tunables --owner 5").contains("--apply <FILE>|--restore"), "{}", refused("tunables --owner 5"));
}

#[test]
fn kernels_say_how_they_were_built() {
    let kernels = json("kernels --json");
    let of = |name: &str| kernels["kernels"].as_array().unwrap().iter().find(|k| k["name"] == name).unwrap().clone();
    let six = of("linux-6.12");
    assert_eq!((&six["hz"], &six["no_hz"], &six["autogroup"]), (&250.into(), &true.into(), &false.into()));
    let old = of("linux-2.6.11");
    assert_eq!((&old["preemption"], &old["no_hz"], &old["autogroup"]), (&"none".into(), &false.into(), &Value::Null));
}
