//! Changes and their undoing on files that stand in for the kernel's.

use crate::change::{Step, apply_stepwise};
use crate::plan::Plan;
use crate::spec::{Group, Risk, Spec};
use crate::values::{Bound, Values};
use crate::{Here, Journal, Owner, Root, Settings, State, apply, knobs, restore};
use schedlab_base::{Error, ErrorKind, Result, Tid};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary directory with these files.
pub(crate) fn tree(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

/// A few tunables, as the catalogue has them.
pub(crate) fn specs() -> Vec<Spec> {
    let numbers = |lo, hi| Values::Numbers { count: 1, lo, hi: Bound::Number(hi) };
    let spec = |name, group, path, values, changes: &[&'static str]| Spec {
        name,
        group,
        risk: Risk::Low,
        path,
        unit: "",
        meaning: "",
        harm: "",
        default: "",
        values: Some(values),
        changes: changes.to_vec(),
        instead: "slice nice",
    };
    let queue = Group::Disk;
    vec![
        spec("vm.swappiness", Group::Vm, "/proc/sys/vm/swappiness", numbers(0, 200), &[]),
        spec("vm.dirty_ratio", Group::Vm, "/proc/sys/vm/dirty_ratio", numbers(0, 100), &["vm.dirty_bytes"]),
        spec("vm.dirty_bytes", Group::Vm, "/proc/sys/vm/dirty_bytes", numbers(8192, 1 << 62), &["vm.dirty_ratio"]),
        spec(
            "queue.scheduler",
            queue,
            "/sys/block/<dev>/queue/scheduler",
            Values::Listed(None),
            &["queue.nr_requests"],
        ),
        spec("queue.nr_requests", queue, "/sys/block/<dev>/queue/nr_requests", numbers(4, 65536), &[]),
        spec("irq.smp_affinity_list", Group::Irq, "/proc/irq/<irq>/smp_affinity_list", Values::Cpus, &[]),
    ]
}

/// A machine with two disks, where knobs are files.
struct Machine {
    dir: TempDir,
    specs: Vec<Spec>,
}

impl Machine {
    fn new() -> Self {
        let dir = tree(&[
            ("proc/sys/kernel/osrelease", "6.12.3\n"),
            ("proc/sys/kernel/random/boot_id", "this-boot\n"),
            ("proc/sys/vm/swappiness", "60\n"),
            ("proc/sys/vm/dirty_ratio", "20\n"),
            ("proc/sys/vm/dirty_bytes", "0\n"),
            ("sys/block/sda/queue/nr_requests", "128\n"),
            ("sys/block/sdb/queue/nr_requests", "256\n"),
            ("sys/block/sdb/queue/scheduler", "none\n"),
            ("proc/irq/24/smp_affinity_list", "0-1\n"),
            ("proc/irq/default_smp_affinity", "3\n"),
        ]);
        Self { dir, specs: specs() }
    }

    fn root(&self) -> Root {
        Root::new(self.dir.path())
    }

    fn state(&self) -> State {
        State::new(None, &self.root())
    }

    fn journal(&self) -> PathBuf {
        self.state().journal()
    }

    fn value(&self, path: &str) -> String {
        self.root().value(path).unwrap()
    }

    fn set(&self, path: &str, text: &str) {
        fs::write(self.dir.path().join(path.trim_start_matches('/')), text).unwrap();
    }

    /// All knobs with their values.
    fn all(&self) -> Vec<(String, String)> {
        let root = self.root();
        knobs(&self.specs, &root).into_iter().map(|k| (k.name.clone(), root.value(&k.path).unwrap())).collect()
    }

    fn plan(&self, text: &str) -> Result<Plan> {
        let (root, settings) = (self.root(), Settings::parse(Path::new("s.toml"), text)?);
        let here = Here::look(&root);
        Plan::new(&settings, &knobs(&self.specs, &root), (&root, &here), None, true, &|_| None)
    }

    fn apply(&self, text: &str, owner: Option<&Owner>) -> Result<crate::Applied> {
        let (plan, root) = (self.plan(text)?, self.root());
        apply(&root, &self.state(), &Here::look(&root), &plan, owner)
    }

    /// Applies, and ends at a step as if the process had been killed there: nothing more is run.
    fn killed_at(&self, text: &str, at: Step) {
        let (plan, root) = (self.plan(text).unwrap(), self.root());
        let mut kill = |step: Step| assert!(step != at, "killed");
        let apply = || apply_stepwise(&root, &self.state(), &Here::look(&root), &plan, None, &mut kill);
        assert!(catch_unwind(AssertUnwindSafe(apply)).is_err(), "{at:?} was not reached");
    }

    fn restore(&self) -> Result<crate::Restored> {
        let root = self.root();
        restore(&root, &self.state(), &Here::look(&root), None)
    }
}

const FILE: &str = "vm.swappiness = 10\n\"sda:nr_requests\" = 64\n\"sdb:nr_requests\" = 512\n";

fn gone() -> Owner {
    Owner { pid: 1, start: 1, name: "tune".to_owned() }
}

fn said<T: std::fmt::Debug>(result: Result<T>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn what_is_applied_is_put_back_whole_and_only_once() {
    let machine = Machine::new();
    let before = machine.all();
    let applied = machine.apply(FILE, None).unwrap();
    assert_eq!(applied.set.len(), 3);
    assert_eq!((applied.set[1].from.as_str(), applied.set[1].to.as_str()), ("128", "64"));
    assert_eq!(machine.value("/proc/sys/vm/swappiness"), "10");
    assert_ne!(machine.all(), before);
    let restored = machine.restore().unwrap();
    assert_eq!(restored.restored.len(), 3);
    assert!(restored.restored.iter().all(|back| !back.foreign));
    assert_eq!(machine.all(), before);
    assert!(!machine.journal().exists());
    assert_eq!(machine.restore().unwrap(), crate::Restored::default());
}

#[test]
fn the_oldest_value_of_a_knob_stays() {
    let machine = Machine::new();
    let before = machine.all();
    for value in [10, 20, 30] {
        machine.apply(&format!("vm.swappiness = {value}\n\"sda:nr_requests\" = {value}\n"), None).unwrap();
    }
    machine.apply("\"sdb:nr_requests\" = 8\n", None).unwrap();
    machine.restore().unwrap();
    assert_eq!(machine.all(), before);
}

#[test]
fn a_process_killed_at_any_step_leaves_what_can_be_put_back() {
    let steps = [Step::Journal, Step::Write(0), Step::Write(1), Step::Write(2), Step::Written];
    for at in steps {
        for again in [false, true] {
            let machine = Machine::new();
            let before = machine.all();
            if again {
                machine.apply("vm.swappiness = 99\n", None).unwrap();
            }
            machine.killed_at(FILE, at);
            let journaled = Journal::read(&machine.journal()).unwrap();
            if machine.all() != before {
                assert!(matches!(journaled, crate::journal::Found::Whole(_)), "changed without a journal at {at:?}");
            }
            let restored = machine.restore().unwrap();
            assert_eq!(machine.all(), before, "{at:?}");
            assert!(restored.restored.iter().all(|back| !back.foreign), "blames somebody at {at:?}");
        }
    }
}

#[test]
fn a_value_that_the_kernel_refuses_takes_the_others_back() {
    let machine = Machine::new();
    let before = machine.all();
    let plan = machine.plan(FILE).unwrap();
    // The last file turns into a directory: it cannot be written any more, as root too.
    let file = machine.dir.path().join("sys/block/sdb/queue/nr_requests");
    let (root, here) = (machine.root(), Here::look(&machine.root()));
    let mut breaks = |step: Step| {
        if step == Step::Write(2) {
            let _ = fs::remove_file(&file);
            let _ = fs::create_dir(&file);
        }
    };
    let error = apply_stepwise(&root, &machine.state(), &here, &plan, None, &mut breaks).unwrap_err().to_string();
    assert!(error.starts_with("sdb:nr_requests: the kernel does not take 512: "), "{error}");
    fs::remove_dir(&file).unwrap();
    fs::write(&file, "256\n").unwrap();
    if machine.journal().exists() {
        // What could not be looked at then is put back now.
        machine.restore().unwrap();
    }
    assert_eq!(machine.all(), before);
}

#[test]
fn everything_is_checked_before_anything_is_changed() {
    let machine = Machine::new();
    let before = machine.all();
    let error = |text: &str| said(machine.apply(text, None));
    assert_eq!(
        error("vm.swappiness = 10\nvm.swapines = 10\n"),
        "s.toml:2: vm.swapines: this machine has no tunable of this name; did you mean \"vm.swappiness\"?"
    );
    assert_eq!(
        error("\"sda:nr_requests\" = 64\nvm.swappiness = 201\n"),
        "s.toml:2: vm.swappiness: 201 is out of range; give a number of 0 to 200"
    );
    assert!(
        error("nr_requests = 64\n").contains("2 of this machine's tunables have this name; say which: \"sda:nr_req")
    );
    assert!(error("swappiness = 1\nvm.swappiness = 2\n").contains("vm.swappiness is set above already"));
    assert!(error("\"sdb:scheduler\" = \"nonne\"\n").contains("did you mean \"none\"?"));
    assert_eq!(machine.all(), before);
    assert!(!machine.journal().exists());
}

#[test]
fn only_the_groups_that_were_asked_for_are_set() {
    let machine = Machine::new();
    let (root, settings) = (machine.root(), Settings::parse(Path::new("s.toml"), FILE).unwrap());
    let here = Here::look(&root);
    let only = |groups: &[Group]| {
        Plan::new(&settings, &knobs(&machine.specs, &root), (&root, &here), Some(groups), true, &|_| None)
    };
    assert_eq!(
        only(&[Group::Vm]).unwrap_err().to_string(),
        "s.toml:2: sda:nr_requests: it belongs to the group disk, and only vm may be set"
    );
    assert_eq!(only(&[Group::Vm, Group::Disk]).unwrap().changes.len(), 3);
}

#[test]
fn what_the_kernel_changes_too_is_in_the_journal() {
    let machine = Machine::new();
    let before = machine.all();
    machine.apply("vm.dirty_bytes = 16777216\n\"sdb:scheduler\" = \"none\"\n", None).unwrap();
    // As the kernel does when it gets the other one.
    machine.set("/proc/sys/vm/dirty_ratio", "0\n");
    machine.set("/sys/block/sdb/queue/nr_requests", "62\n");
    machine.set("/sys/block/sda/queue/nr_requests", "63\n");
    machine.restore().unwrap();
    assert_eq!(machine.value("/sys/block/sda/queue/nr_requests"), "63", "another disk's is none of it");
    machine.set("/sys/block/sda/queue/nr_requests", "128\n");
    assert_eq!(machine.all(), before);
}

#[test]
fn a_value_that_somebody_else_changed_is_put_back_and_said() {
    let machine = Machine::new();
    machine.apply(FILE, None).unwrap();
    machine.set("/proc/sys/vm/swappiness", "33\n");
    let restored = machine.restore().unwrap();
    let foreign: Vec<_> = restored.restored.iter().filter(|back| back.foreign).collect();
    assert_eq!(foreign.len(), 1);
    assert_eq!(
        (foreign[0].from.as_str(), foreign[0].to.as_str(), foreign[0].given.as_deref()),
        ("33", "60", Some("10"))
    );
    assert_eq!(machine.value("/proc/sys/vm/swappiness"), "60");
}

#[test]
fn a_journal_of_another_boot_has_nothing_to_put_back() {
    let machine = Machine::new();
    machine.apply(FILE, None).unwrap();
    machine.set("/proc/sys/kernel/random/boot_id", "next-boot\n");
    machine.set("/proc/sys/vm/swappiness", "77\n");
    assert_eq!(machine.restore().unwrap().other_boot, 3);
    assert_eq!(machine.value("/proc/sys/vm/swappiness"), "77");
    assert!(!machine.journal().exists());
}

#[test]
fn a_device_that_disappeared_is_said_and_does_not_stop_the_others() {
    let machine = Machine::new();
    machine.apply(FILE, None).unwrap();
    fs::remove_dir_all(machine.dir.path().join("sys/block/sdb")).unwrap();
    let restored = machine.restore().unwrap();
    assert_eq!((restored.gone, restored.restored.len()), (vec!["sdb:nr_requests".to_owned()], 2));
    assert!(!machine.journal().exists());
}

#[test]
fn a_damaged_journal_is_kept_aside() {
    let machine = Machine::new();
    for (n, cut) in [(1, 0), (2, 20), (3, 200)] {
        machine.apply(FILE, None).unwrap();
        let whole = fs::read(machine.journal()).unwrap();
        fs::write(machine.journal(), &whole[..cut]).unwrap();
        let error = said(if n == 2 { machine.apply(FILE, None).map(drop) } else { machine.restore().map(drop) });
        let aside = machine.journal().with_file_name(format!("journal.damaged-{n}"));
        assert!(error.contains("the journal is damaged") && error.contains(aside.to_str().unwrap()), "{error}");
        assert_eq!(fs::read(aside).unwrap(), &whole[..cut], "nothing is lost");
        machine.restore().unwrap();
    }
}

#[test]
fn the_values_of_a_process_that_ended_are_put_back_by_the_next() {
    let machine = Machine::new();
    let before = machine.all();
    machine.apply(FILE, Some(&gone())).unwrap();
    let applied = machine.apply("vm.swappiness = 5\n", None).unwrap();
    assert_eq!(applied.before.restored.len(), 3);
    assert_eq!((applied.set[0].from.as_str(), applied.set[0].to.as_str()), ("60", "5"));
    machine.restore().unwrap();
    assert_eq!(machine.all(), before);
}

#[test]
fn the_values_of_another_process_are_left_alone() {
    let machine = Machine::new();
    let mut other = std::process::Command::new("sleep").arg("100").spawn().unwrap();
    let owner = Owner::of(other.id() as Tid).unwrap();
    machine.apply(FILE, Some(&owner)).unwrap();
    let set = machine.all();
    let refused = |error: Error| (error.kind(), error.to_string().contains("has changed tunables and still runs"));
    let not = (ErrorKind::NotPermitted, true);
    assert_eq!(refused(machine.restore().unwrap_err()), not);
    assert_eq!(refused(machine.apply("vm.swappiness = 5\n", None).unwrap_err()), not);
    assert_eq!(refused(machine.apply("vm.swappiness = 5\n", Some(&Owner::of(1).unwrap())).unwrap_err()), not);
    assert_eq!(machine.all(), set);
    // In its name, more is set, and all put back; so it is once it was killed.
    machine.apply("vm.swappiness = 5\n", Some(&owner)).unwrap();
    other.kill().unwrap();
    while owner.is_alive() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(machine.restore().unwrap().restored.len(), 3, "a zombie has ended");
    other.wait().unwrap();
    assert_eq!(machine.value("/proc/sys/vm/swappiness"), "60");
}

#[test]
fn values_set_by_hand_are_not_mixed_with_those_of_a_process() {
    let machine = Machine::new();
    machine.apply("vm.swappiness = 5\n", None).unwrap();
    let this = Owner::of(std::process::id() as Tid).unwrap();
    assert!(said(machine.apply(FILE, Some(&this))).contains("already changed by hand; schedlab tunables --restore"));
    machine.restore().unwrap();
    machine.apply(FILE, Some(&this)).unwrap();
    machine.restore().unwrap();
    assert_eq!(machine.value("/proc/sys/vm/swappiness"), "60");
}
