//! `schedlab model --validate`: how far simulations of a model are from what was recorded.

use crate::model::SERVER;
use crate::support::{json, ok, schedlab};

#[test]
fn a_model_validated_as_recorded_says_how_far_to_trust_it() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    std::fs::write(folder.join("server.json"), SERVER).expect("written");
    ok(folder, &["sim", "-k", "linux-6.1", "-m", "2", "-w", "server.json", "-o", "t.arrows"]);
    let validated = |more: &[&str]| {
        let args = ["model", "t.arrows", "-o", "x.json", "--force", "--validate"];
        json(folder, &[&args[..], more].concat())["validation"].clone()
    };
    let same = validated(&[]);
    assert_eq!((&same["kernel"], &same["machine"], &same["seeds"]), (&"linux-6.1".into(), &"2".into(), &3.into()));
    let (run, again) = (same["recorded"]["run_us"].as_f64(), same["simulated"]["run_us"].as_f64());
    let (run, again) = (run.expect("a time"), again.expect("a time"));
    assert!((run - again).abs() < run * 0.01, "{run} {again}");
    let other = validated(&["--kernel", "linux-2.6.11", "--seeds", "2"]);
    assert_eq!((&other["kernel"], &other["seeds"]), (&"linux-2.6.11".into(), &2.into()));
    let text = ok(folder, &["model", "t.arrows", "--validate", "--seeds", "1"]);
    assert!(text.contains("as recorded: linux-6.1 on 2, 1 seed\n") && text.contains("how far to trust it: "), "{text}");
    // The trace is read once, so that it may come through a pipe.
    let trace = std::fs::File::open(folder.join("t.arrows")).expect("the trace");
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let copying = std::thread::spawn(move || std::io::copy(&mut &trace, &mut writer).expect("copied"));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_schedlab"));
    let piped = command.args(["model", "/dev/stdin", "--validate", "--seeds", "1"]).stdin(reader).output();
    let piped = piped.expect("schedlab runs");
    drop(command);
    copying.join().expect("no panic");
    assert_eq!(String::from_utf8(piped.stdout).expect("text"), text);
    let refused = schedlab(folder, &["model", "t.arrows", "--seeds", "2"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

/// One recording is a draw: which client is behind which differs from seed to seed.
#[test]
fn the_scheduler_that_was_recorded_repeats_the_waits_and_another_one_does_not() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = temporary.path();
    std::fs::write(folder.join("server.json"), SERVER).expect("written");
    let parts = ["task_wait_median", "task_wait_p90"];
    let mut of = [[0.0; 2]; 2];
    for seed in ["1", "2", "3", "4"] {
        ok(
            folder,
            &["sim", "-k", "linux-6.1", "-m", "2", "-w", "server.json", "--seed", seed, "-o", "t.arrows", "--force"],
        );
        for (errors, kernel) in of.iter_mut().zip(["linux-6.1", "linux-2.6.11"]) {
            let args = ["model", "t.arrows", "-o", "x.json", "--force", "--validate", "--kernel", kernel];
            let validation = json(folder, &args)["validation"].clone();
            for (error, part) in errors.iter_mut().zip(parts) {
                *error += validation["errors"][part].as_f64().expect("a part") / 4.0;
            }
        }
    }
    let [same, other] = of;
    assert!(same[0] < 0.3 && other[0] > 0.4, "{same:?} {other:?}");
    assert!(other[1] > 3.0 * same[1], "{same:?} {other:?}");
}
