//! NUMA placement decisions worked out by hand, for given fault counts by node.

use super::faults::Faults;
use super::groups::Group;
use super::locality::Locality;
use super::place::Moment;
use super::sight::{Best, Sight};
use super::{Numa, OfTask};
use crate::balance::domains::{Builder, Fixes};
use crate::balance::fair::Features;
use crate::kernels;
use schedlab_base::{CpuId, v};
use schedlab_machine::tomltext::TomlText;
use schedlab_sim::TaskId;

const OLD: [&str; 2] = ["linux-3.18", "linux-4.1"];
const NEW: [&str; 3] = ["linux-6.1", "linux-6.6", "linux-6.12"];

/// Two nodes of two CPUs each, with the task that runs on each CPU. Every task has a load of 1024.
struct Machine([Option<TaskId>; 4]);

impl Sight for Machine {
    fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.0[cpu as usize]
    }
    fn allowed(&self, _p: TaskId, _cpu: CpuId) -> bool {
        true
    }
    fn task_load(&self, _p: TaskId) -> i64 {
        1024
    }
    fn load(&self, cpu: CpuId) -> i64 {
        1024 * i64::from(self.nr_running(cpu))
    }
    fn runnable(&self, cpu: CpuId) -> i64 {
        self.load(cpu)
    }
    fn util(&self, cpu: CpuId) -> i64 {
        self.load(cpu)
    }
    fn nr_running(&self, cpu: CpuId) -> u32 {
        u32::from(self.0[cpu as usize].is_some())
    }
    fn capacity(&self, _cpu: CpuId) -> i64 {
        1024
    }
    fn is_idle(&self, cpu: CpuId) -> bool {
        self.0[cpu as usize].is_none()
    }
    fn core_is_idle(&self, _cpu: CpuId) -> bool {
        false
    }
    fn idle_beside(&self, _p: TaskId, cpu: CpuId) -> CpuId {
        cpu
    }
    fn across_nodes(&self, _cpu: CpuId) -> Option<(i64, u32)> {
        Some((125, 1))
    }
}

/// NUMA balancing on a machine with two nodes, and one task for each pair of fault counts by node.
pub(super) fn numa(kernel: &str, faults: &[[i64; 2]]) -> Numa {
    let text = "sockets = 2\ncores = 2\nthreads = 1\ndistances = [[10, 20], [20, 10]]\n";
    let machine = schedlab_machine::MachineFile::parse(&TomlText::new("m.toml", text)).expect("a machine");
    let release = kernels::find(kernel).ok().and_then(|kernel| kernel.release).expect("a release");
    let domains = Builder::new(release, &machine, Fixes::default()).build();
    let mut numa = Numa::new(release, &machine, &domains, super::period::Settings::default());
    for &[a, b] in faults {
        let memory = vec![[0, a], [0, b]];
        let faults = Faults { memory, total: a + b, ..Faults::new(2) };
        let preferred = Some(u32::from(b > a));
        let (period_ms, pending) = (1000, vec![0; 2]);
        let faults = Some(Box::new(faults));
        numa.tasks.push(OfTask { faults, preferred, period_ms, pending, ..OfTask::default() });
    }
    numa
}

fn at(cpu: CpuId) -> Moment {
    Moment { now: 9_000_000_000, jiffies: 2250, tick: 4_000_000, cpu, account: (1, 1), runnable: 1024 }
}

/// How many accesses of A and B are local, out of 200, if they run on nodes `a` and `b`.
fn local(numa: &Numa, a: u32, b: u32) -> i64 {
    [a, b].iter().zip(&numa.tasks).map(|(node, of)| of.faults.as_ref().map_or(0, |faults| faults.on(*node))).sum()
}

#[test]
fn who_has_its_memory_on_the_empty_node_goes_there() {
    // qe-05, first example: A (30% here, 70% there) and B (60%, 40%) on node 0, and no task on node 1.
    for kernel in OLD.into_iter().chain(NEW) {
        let mut numa = numa(kernel, &[[30, 70], [60, 40]]);
        let machine = Machine([Some(0), Some(1), None, None]);
        let found = numa.find(&machine, 0, &at(0)).expect("A goes");
        assert_eq!((found.cpu, found.with), (2, None), "{kernel}");
        assert_eq!(numa.find(&machine, 1, &at(1)), None, "{kernel}: B is where it should be");
    }
}

#[test]
fn two_tasks_change_places_if_together_they_are_better_off() {
    // qe-05, second example: A (30%, 70%) alone on node 0, B (40%, 60%) alone on node 1. 90 of 200 accesses are local.
    let machine = Machine([Some(0), None, Some(1), None]);
    for kernel in OLD {
        let mut numa = numa(kernel, &[[30, 70], [40, 60]]);
        assert_eq!(numa.find(&machine, 0, &at(0)), Some(Best { cpu: 2, with: Some(1), gain: 200 }), "{kernel}");
        assert_eq!((local(&numa, 0, 1), local(&numa, 1, 0)), (90, 110));
    }
    // Since 5.7 tasks do not swap while there is room, because that helps one at the cost of the other. Nor does A move
    // to the idle CPU: a difference of two tasks between nodes of two CPUs is too much (imb_numa_nr 1).
    for kernel in NEW {
        assert_eq!(numa(kernel, &[[30, 70], [40, 60]]).find(&machine, 0, &at(0)), None, "{kernel}");
    }
    // With all CPUs busy they swap in every release.
    let full = Machine([Some(0), Some(2), Some(1), Some(3)]);
    for kernel in OLD.into_iter().chain(NEW) {
        let mut numa = numa(kernel, &[[30, 70], [40, 60], [90, 10], [10, 90]]);
        // From 5.10 on B's part counts a sixteenth less, because B is on its preferred node.
        let gain = if OLD.contains(&kernel) { 200 } else { 188 };
        assert_eq!(numa.find(&full, 0, &at(0)), Some(Best { cpu: 2, with: Some(1), gain }), "{kernel}");
    }
}

#[test]
fn a_swap_that_gains_little_is_none_from_5_on() {
    let full = Machine([Some(0), Some(2), Some(1), Some(3)]);
    let faults = [[490, 510], [500, 500], [900, 100], [100, 900]];
    for kernel in OLD {
        let found = numa(kernel, &faults).find(&full, 0, &at(0));
        assert_eq!(found, Some(Best { cpu: 2, with: Some(1), gain: 20 }), "{kernel}");
    }
    for kernel in NEW {
        assert_eq!(numa(kernel, &faults).find(&full, 0, &at(0)), None, "{kernel}: 20 of 1000 are less than 30");
    }
}

#[test]
fn who_is_taken_by_the_balancer() {
    let shares = [[30, 70], [60, 40]];
    let all_with = |kernel: &str, p, on: &Features| {
        let numa = numa(kernel, &shares);
        [(0, 2), (2, 0), (0, 1)].map(|way| numa.locality(p, way, true, false, on))
    };
    let all = |kernel: &str, p| all_with(kernel, p, &Features::DEFAULT);
    use Locality::{Better, Equal, Worse};
    for kernel in OLD {
        assert_eq!((all(kernel, 0), all(kernel, 1)), ([Better, Equal, Equal], [Equal, Better, Equal]), "{kernel}");
        let resists = Features { numa_resist_lower: true, ..Features::DEFAULT };
        let neither = Features { numa_favour_higher: false, ..Features::DEFAULT };
        assert_eq!(all_with(kernel, 0, &resists), [Better, Worse, Equal], "{kernel}");
        assert_eq!(all_with(kernel, 0, &neither), [Equal; 3], "{kernel}");
    }
    for kernel in NEW {
        assert_eq!((all(kernel, 0), all(kernel, 1)), ([Better, Worse, Equal], [Worse, Better, Equal]), "{kernel}");
        let numa = numa(kernel, &shares);
        assert_eq!(
            numa.locality(1, (0, 2), false, false, &Features::DEFAULT),
            Equal,
            "all are on their preferred node: somebody must go"
        );
    }
}

#[test]
fn tasks_that_share_memory_become_a_group() {
    for kernel in OLD.into_iter().chain(NEW) {
        let mut numa = numa(kernel, &[[30, 70], [40, 60], [50, 0]]);
        numa.meet(0, 0, 1, true);
        assert_eq!(numa.group_of(0).map(|group| group.tasks), Some(1), "{kernel}: B has no group yet");
        numa.meet(1, 1, 0, true);
        let group = Group { founder: 0, tasks: 2, memory: vec![[0, 70], [0, 130]], total: 200, ..Group::default() };
        let ours = numa.group_of(1).expect("they share");
        assert_eq!((&ours.memory, ours.total, ours.tasks), (&group.memory, group.total, group.tasks), "{kernel}");
        assert_eq!(numa.group_weight(0, 1, 20), 650);
        numa.meet(2, 0, 0, false);
        assert_eq!(numa.group_of(2).map(|group| group.tasks), Some(1), "{kernel}: A does not run just then");
        numa.meet(2, 0, 0, true);
        assert_eq!(numa.group_of(0).map(|group| (group.tasks, group.total)), Some((3, 250)), "{kernel}");
        numa.forget(1);
        assert_eq!(numa.group_of(0).map(|group| (group.tasks, group.total)), Some((2, 150)), "{kernel}");
    }
}

#[test]
fn in_a_group_pages_move_to_even_out_only() {
    let mut numa = numa("linux-3.18", &[[600, 400]]);
    numa.meet(0, 0, 0, false);
    assert_eq!(numa.release, v(3, 18));
    assert!(!numa.group_moves(0, 0, 1), "node 1 is none that the group uses");
    assert!(numa.group_moves(0, 1, 0), "node 0 is, and node 1 is not");
    numa.groups[0].active = vec![true, true];
    assert!(numa.group_moves(0, 0, 1), "400 are less than 3/4 of 600");
    assert!(!numa.group_moves(0, 1, 0));
}
