//! `schedlab tunables --live`, `--apply`, `--diff`, `--restore` and `--profile` on a directory that stands in for the
//! machine, and `schedlab tune` and `sweep`, which are other programs.

use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// A machine of 6.12 with this many disks.
struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new(disks: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let machine = Self { dir };
        let mut files = vec![
            ("proc/sys/kernel/osrelease".to_owned(), "6.12.3-test"),
            ("proc/sys/kernel/hostname".to_owned(), "here"),
            ("proc/sys/kernel/random/boot_id".to_owned(), "first"),
            ("proc/meminfo".to_owned(), "MemTotal:       8000000 kB"),
            ("proc/sys/vm/swappiness".to_owned(), "60"),
            ("proc/sys/vm/min_free_kbytes".to_owned(), "67584"),
            ("proc/sys/vm/dirty_ratio".to_owned(), "20"),
            ("proc/sys/vm/dirty_bytes".to_owned(), "0"),
            ("proc/sys/kernel/sched_autogroup_enabled".to_owned(), "1"),
            ("proc/irq/24/smp_affinity_list".to_owned(), "0-1"),
        ];
        for n in 0..disks {
            let queue = format!("sys/block/sd{n}/queue");
            for (name, value) in [("nr_requests", "128"), ("max_sectors_kb", "1280"), ("max_hw_sectors_kb", "4096")] {
                files.push((format!("{queue}/{name}"), value));
            }
            files.push((format!("{queue}/scheduler"), "[none] mq-deadline kyber"));
        }
        for (path, text) in files {
            machine.put(&path, &format!("{text}\n"));
        }
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn value(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap().trim().to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command.arg("tunables").arg("--root").arg(self.dir.path()).args(args).env_remove("SCHEDLAB_STATE");
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn refused(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.run(args);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    /// A file of settings in the directory.
    fn settings(&self, text: &str) -> String {
        self.put("s.toml", text);
        self.path("s.toml").to_str().unwrap().to_owned()
    }

    /// Every file but the journal's.
    fn all(&self) -> Vec<(PathBuf, String)> {
        fn walk(dir: &Path, into: &mut Vec<(PathBuf, String)>) {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    walk(&entry.path(), into);
                } else {
                    let text = fs::read_to_string(entry.path()).unwrap().trim().to_owned();
                    into.push((entry.path(), text));
                }
            }
        }
        let mut found = Vec::new();
        for dir in ["proc", "sys"] {
            walk(&self.path(dir), &mut found);
        }
        // The kernel shows the other schedulers too, and the file has only the one in force after it was written.
        found.iter_mut().for_each(|(_, text)| {
            if let Some((_, rest)) = text.split_once('[') {
                *text = rest.split(']').next().unwrap().to_owned();
            }
        });
        found.sort();
        found
    }
}

#[test]
fn the_machine_s_tunables_are_listed_with_what_they_take() {
    let machine = Machine::new(1);
    let before = machine.all();
    let document = machine.json(&["--live"]);
    assert_eq!(
        (&document["host"], &document["kernel"], &document["journal"]),
        (&"here".into(), &"6.12".into(), &Value::Null)
    );
    let rows = document["tunables"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"));
    let swappiness = row("vm.swappiness");
    assert_eq!(
        (&swappiness["value"], &swappiness["group"], &swappiness["settable"]),
        (&"60".into(), &"vm".into(), &true.into())
    );
    assert_eq!(swappiness["range"], serde_json::json!([0, 200]));
    assert_eq!(swappiness["location"], "/proc/sys/vm/swappiness");
    assert_eq!(row("sd0:max_sectors_kb")["range"], serde_json::json!([4, 4096]), "up to what the hardware takes");
    assert_eq!(row("vm.min_free_kbytes")["range"], serde_json::json!([64, 400_000]), "a twentieth of the memory");
    assert_eq!(row("sd0:scheduler")["choices"], serde_json::json!(["none", "mq-deadline", "kyber"]));
    assert_eq!(
        (&row("sd0:scheduler")["value"], &row("irq24:smp_affinity_list")["group"]),
        (&"none".into(), &"irq".into())
    );
    let nofile = row("nofile");
    assert!(nofile["settable"] == false && nofile["instead"].as_str().unwrap().contains("prlimit"), "{nofile}");
    assert_eq!(machine.json(&["--live", "swappiness"])["tunables"].as_array().unwrap().len(), 1);
    let only = machine.json(&["--live", "--only-groups", "irq"]);
    assert!(only["tunables"].as_array().unwrap().iter().all(|row| row["group"] == "irq"));
    let (status, said) = machine.refused(&["--live", "sched_latency_ns"]);
    assert_eq!(status, Some(2));
    assert!(
        said.contains("Linux 6.12 does not have it: it exists in 2.6.23 to 5.12; latency_ns took its place"),
        "{said}"
    );
    assert!(said.contains("each task's own slice"), "what stands in for it on this kernel: {said}");
    assert_eq!(machine.all(), before, "looking changes nothing");
}

#[test]
fn settings_are_compared_applied_and_put_back() {
    let machine = Machine::new(2);
    let before = machine.all();
    let file = machine.settings("vm.swappiness = 10\n\"sd1:nr_requests\" = 64\n\"sd0:scheduler\" = \"kyber\"\n");
    let diff = machine.run(&["--diff", &file]);
    assert_eq!(diff.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(diff.stdout).unwrap(),
        "vm.swappiness: 60 -> 10\nsd1:nr_requests: 128 -> 64\nsd0:scheduler: none -> kyber\n"
    );
    assert_eq!(machine.all(), before);
    let set = machine.json(&["--apply", &file]);
    assert_eq!(set["set"].as_array().unwrap().len(), 3);
    assert_eq!(
        set["set"][0],
        serde_json::json!({
            "name": "vm.swappiness", "location": "/proc/sys/vm/swappiness", "from": "60", "to": "10", "asked": "10"
        })
    );
    assert_eq!(machine.run(&["--diff", &file]).status.code(), Some(0), "nothing is left to change");
    assert_eq!(machine.json(&["--live"])["journal"]["values"], 4, "nr_requests of sd0 depends on its scheduler");
    let back = machine.json(&["--restore"]);
    assert_eq!(back["restored"].as_array().unwrap().len(), 3);
    assert_eq!(machine.all(), before);
    let again = machine.run(&["--restore"]);
    assert!(again.status.success() && String::from_utf8(again.stdout).unwrap() == "nothing had to be put back\n");
}

#[test]
fn what_cannot_be_read_is_not_compared() {
    let machine = Machine::new(0);
    fs::remove_file(machine.path("proc/sys/vm/swappiness")).unwrap();
    // Not even root may read it.
    std::os::unix::fs::symlink("/proc/sys/vm/drop_caches", machine.path("proc/sys/vm/swappiness")).unwrap();
    let file = machine.settings("vm.swappiness = 10\nvm.dirty_ratio = 10\n");
    let diff = machine.run(&["--diff", &file]);
    let said = String::from_utf8(diff.stderr).unwrap();
    assert_eq!((diff.status.code(), diff.stdout.as_slice()), (Some(4), &b""[..]), "{said}");
    assert!(said.contains("s.toml:1: vm.swappiness: it can be neither read nor set: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    fs::remove_file(machine.path("proc/sys/vm/swappiness")).unwrap();
}

#[test]
fn wrong_settings_change_nothing_and_say_what_would_be_right() {
    let machine = Machine::new(1);
    let before = machine.all();
    for (text, status, expected) in [
        (
            "vm.swapiness = 10\n",
            2,
            "s.toml:1: vm.swapiness: this machine has no tunable of this name; did you mean \"vm.swappiness\"?",
        ),
        ("\n\nvm.swappiness = 201\n", 2, "s.toml:3: vm.swappiness: 201 is out of range; give a number of 0 to 200"),
        ("vm.swappiness = 1.5\n", 2, "s.toml:1: vm.swappiness: is neither text, a whole number nor true or false"),
        ("\"sd0:scheduler\" = \"cfq\"\n", 2, "\"cfq\" is none of its values; it takes none, mq-deadline, kyber"),
        ("base_slice_ns = 3000000\n", 2, "this machine does not have it, although Linux 6.12 can"),
        ("sched_latency_ns = 3000000\n", 2, "in 2.6.23 to 5.12"),
        ("nofile = 4096\n", 2, "it belongs to each process and not to the machine"),
        ("vm.swappiness = 10\nvm.swappiness = 20\n", 2, "s.toml:2: "),
    ] {
        let file = machine.settings(text);
        let (code, said) = machine.refused(&["--apply", &file]);
        assert!(code == Some(status) && said.contains(expected), "{text}{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    let (code, said) =
        machine.refused(&["--apply", &machine.settings("vm.swappiness = 10\n"), "--only-groups", "disk,irq"]);
    assert!(code == Some(2) && said.contains("it belongs to the group vm, and only disk, irq may be set"), "{said}");
    let (code, said) =
        machine.refused(&["--apply", &machine.settings("vm.swappiness = 10\n"), "--only-groups", "dsik"]);
    assert!(code == Some(2) && said.contains("did you mean \"disk\"?"), "{said}");
    let (code, said) = machine.refused(&["--only-groups", "vm"]);
    assert!(code == Some(2) && said.contains("--live"), "{said}");
    let (code, said) = machine.refused(&["--apply", "nothing.toml"]);
    assert!(code == Some(2) && said.contains("nothing.toml: cannot be read"), "{said}");
    assert_eq!(machine.all(), before);
    assert!(!machine.path("var/lib/schedlab/journal").exists());
}

#[test]
fn settings_come_from_standard_input_too() {
    let machine = Machine::new(0);
    let mut child = machine.command(&["--apply", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"swappiness = 7\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(machine.value("proc/sys/vm/swappiness"), "7");
}

/// A process that lives until it is dropped.
struct Owner(std::process::Child);

impl Owner {
    fn new() -> Self {
        Self(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn values_belong_to_their_process_until_it_has_ended() {
    let machine = Machine::new(1);
    let before = machine.all();
    let mut owner = Owner::new();
    let id = owner.id();
    let first = machine.settings("vm.swappiness = 10\n");
    assert!(machine.run(&["--apply", &first, "--owner", &id]).status.success());
    let second = machine.settings("vm.swappiness = 20\n\"sd0:nr_requests\" = 8\n");
    assert!(machine.run(&["--apply", &second, "--owner", &id]).status.success());
    let (code, said) = machine.refused(&["--apply", &second]);
    assert!(
        code == Some(4) && said.contains(&format!("process {id} (sleep) has changed tunables and still runs")),
        "{said}"
    );
    let (code, said) = machine.refused(&["--restore"]);
    assert!(code == Some(4) && said.contains(&format!("--owner {id}")), "{said}");
    assert_eq!(machine.value("proc/sys/vm/swappiness"), "20");
    owner.end();
    let note = String::from_utf8(machine.run(&["--live"]).stderr).unwrap();
    assert!(note.contains("has ended and left 2 tunables changed: schedlab tunables --restore"), "{note}");
    assert_eq!(machine.json(&["--restore"])["restored"].as_array().unwrap().len(), 2);
    assert_eq!(machine.all(), before);
    let (code, said) = machine.refused(&["--apply", &second, "--owner", &id]);
    assert!(code == Some(2) && said.contains("there is no process"), "{said}");
}

/// Applies in a process that is killed after a while, for many whiles: afterwards everything can be put back.
#[test]
fn a_process_killed_at_any_moment_leaves_what_can_be_put_back() {
    const DISKS: usize = 60;
    let machine = Machine::new(DISKS);
    let before = machine.all();
    let mut text = "vm.swappiness = 10\n".to_owned();
    for n in 0..DISKS {
        text += &format!("\"sd{n}:nr_requests\" = 64\n\"sd{n}:max_sectors_kb\" = 256\n");
    }
    let file = machine.settings(&text);
    let whole = {
        let start = std::time::Instant::now();
        assert!(machine.run(&["--apply", &file]).status.success());
        assert!(machine.run(&["--restore"]).status.success());
        start.elapsed()
    };
    let (mut untouched, mut partly, mut all_set) = (0, 0, 0);
    for round in 0..40 {
        let mut child =
            machine.command(&["--apply", &file]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(round) / 50.0).min(Duration::from_secs(1)));
        let _ = child.kill();
        child.wait().unwrap();
        let changed = machine.all().iter().zip(&before).filter(|(now, then)| now != then).count();
        match changed {
            0 => untouched += 1,
            n if n == 2 * DISKS + 1 => all_set += 1,
            _ => partly += 1,
        }
        assert!(changed == 0 || machine.path("var/lib/schedlab/journal").exists(), "changed without a journal");
        let restored = machine.run(&["--restore"]);
        assert!(restored.status.success(), "{}", String::from_utf8_lossy(&restored.stderr));
        assert_eq!(machine.all(), before, "round {round}");
    }
    println!("killed before the first write {untouched} times, between {partly}, after the last {all_set}");
}

#[test]
fn profiles_are_written_for_other_tools() {
    let machine = Machine::new(0);
    let file = machine
        .settings("# effect: run time -4 %\nvm.swappiness = 10\n\"sda:scheduler\" = \"none\" # effect: p99 -9 %\n");
    let text = |form: &str| String::from_utf8(machine.run(&["--profile", form, &file]).stdout).unwrap();
    assert!(text("sysctl").contains("\n# effect: run time -4 %\nvm.swappiness = 10\n"), "{}", text("sysctl"));
    assert!(
        text("tuned").contains("[sysfs]\n# effect: p99 -9 %\n/sys/block/sda/queue/scheduler=none\n"),
        "{}",
        text("tuned")
    );
    assert!(text("sh").starts_with("#!/bin/sh\n") && text("sh").contains("put '/proc/sys/vm/swappiness' '10'\n"));
    let value = machine.json(&["--profile", "sysctl", &file]);
    assert_eq!(value, serde_json::json!({ "form": "sysctl", "file": null, "text": text("sysctl") }));
    let (code, said) = machine.refused(&["--profile", "tunde", &file]);
    assert!(code == Some(2) && said.contains("did you mean \"tuned\"?"), "{said}");
    let output = machine.path("out.conf");
    assert!(machine.run(&["--profile", "sysctl", &file, "-o", output.to_str().unwrap()]).status.success());
    assert_eq!(fs::read_to_string(&output).unwrap(), text("sysctl"));
    let (code, said) = machine.refused(&["--profile", "sysctl", &file, "-o", output.to_str().unwrap()]);
    assert!(code == Some(2) && said.contains("exists already"), "{said}");
}

/// A folder with a program `schedlab-NAME` that prints its arguments and ends with status 7.
fn program(name: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(format!("schedlab-{name}"));
    fs::write(&path, "#!/bin/sh\nprintf '%s;' \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

#[test]
fn tune_and_sweep_are_programs_of_their_own() {
    let tune = program("tune");
    let run = |line: &str, path: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        let output = command.args(line.split(' ')).env("PATH", path).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run("tune study.toml --json -x", tune.path()), (Some(7), "study.toml;--json;-x;".into(), String::new()));
    assert_eq!(run("--json tune study.toml", tune.path()).1, "--json;study.toml;");
    assert_eq!(run("tune --help", tune.path()).1, "--help;");
    assert_eq!(run("help tune", tune.path()).1, "--help;");
    let nothing = tempfile::tempdir().unwrap();
    for verb in ["tune", "sweep"] {
        let (code, _, said) = run(&format!("{verb} x.toml"), nothing.path());
        assert_eq!(code, Some(4));
        assert!(said.contains("in schedlab's sources: pip install '.[tune]'") && said.lines().count() == 1, "{said}");
    }
    let help = run("--help", nothing.path()).1;
    assert!(help.contains("\n  tune ") && help.contains("\n  sweep "), "{help}");
}
