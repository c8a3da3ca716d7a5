//! How much load to move: the end of `find_busiest_group` of 2.6.11 and 2.6.18, as functions of sums.

/// The load of one task at nice 0, and the power of one CPU (`SCHED_LOAD_SCALE`).
pub const SCALE: u64 = 128;

/// The sums over a group of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The load of all its CPUs, divided by their power.
    pub load: u64,
    /// The power of all its CPUs.
    pub power: u64,
    /// The number of runnable tasks (2.6.18).
    pub running: u64,
    /// The sum of their weights (2.6.18).
    pub weight: u64,
}

/// Returns how many tasks 2.6.11 moves from the busiest group to this one; `None` if the domain is balanced.
pub fn tasks(busiest: &Sum, here: &Sum, average: u64, imbalance_pct: u64) -> Option<u64> {
    if here.load >= busiest.load || here.load >= average || 100 * busiest.load <= imbalance_pct * here.load {
        return None;
    }
    // Rounding can leave the busiest group below the average; the kernel's unsigned difference is then huge.
    let load = busiest.load.wrapping_sub(average).min(average - here.load) * busiest.power.min(here.power) / SCALE;
    if load >= SCALE - 1 {
        return Some((load + 1) / SCALE);
    }
    if busiest.load - here.load >= 2 * SCALE {
        return Some(1);
    }
    // Less than a task needs to move. But one task less there and one more here may increase the throughput.
    let done = |load: u64, power: u64| power * load.min(SCALE);
    let now = (done(busiest.load, busiest.power) + done(here.load, here.power)) / SCALE;
    let left = busiest.load.saturating_sub(SCALE * SCALE / busiest.power);
    let more = (SCALE * SCALE / here.power).min(busiest.load);
    let moved = (done(left, busiest.power) + done(here.load + more, here.power)) / SCALE;
    (moved >= now + SCALE / 8).then_some(1)
}

/// Returns how much weight 2.6.18 moves from the busiest group to this one; `None` if the domain is balanced.
pub fn weight(busiest: &Sum, here: &Sum, average: u64, imbalance_pct: u64) -> Option<u64> {
    if here.load >= busiest.load || busiest.running == 0 {
        return None;
    }
    if here.load >= average || 100 * busiest.load <= imbalance_pct * here.load {
        return None;
    }
    let per_task = busiest.weight / busiest.running;
    if busiest.load <= per_task {
        return None;
    }
    // A group that is not full cannot be the busiest, but it counts in the average, which can therefore be higher.
    if busiest.load >= average {
        let most = (busiest.load - average).min(busiest.load - per_task);
        let load = (most * busiest.power).min((average - here.load) * here.power) / SCALE;
        if load >= per_task {
            return Some(load);
        }
    }
    one_task(busiest, here, per_task)
}

/// Decides whether to move one task although the imbalance is less than a task.
fn one_task(busiest: &Sum, here: &Sum, per_task: u64) -> Option<u64> {
    let per_task_here = here.weight.checked_div(here.running).unwrap_or(SCALE);
    let lighter_here = here.running > 0 && per_task > per_task_here;
    if busiest.load - here.load >= per_task * if lighter_here { 1 } else { 2 } {
        return Some(per_task);
    }
    let done = |load: u64, power: u64, per_task: u64| power * load.min(per_task);
    let now = (done(busiest.load, busiest.power, per_task) + done(here.load, here.power, per_task_here)) / SCALE;
    let left = busiest.load.saturating_sub(per_task * SCALE / busiest.power);
    let more = (busiest.load * busiest.power).min(per_task * SCALE) / here.power;
    let moved = (done(left, busiest.power, per_task) + done(here.load + more, here.power, per_task_here)) / SCALE;
    (moved > now).then_some(per_task)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(load: u64) -> Sum {
        Sum { load, power: SCALE, running: load.div_ceil(SCALE), weight: load }
    }

    #[test]
    fn two_tasks_beside_an_idle_cpu_are_parted_when_their_load_is_seen() {
        // One task alone is not moved. At a load of 192, moving one gains at least an eighth of a CPU.
        assert_eq!(tasks(&cpu(128), &cpu(0), 64, 125), None);
        assert_eq!(tasks(&cpu(192), &cpu(0), 96, 125), Some(1));
        // 144 is the smallest load at which a task is moved.
        assert_eq!([143, 144].map(|load| tasks(&cpu(load), &cpu(0), load / 2, 125)), [None, Some(1)]);
    }

    #[test]
    fn loads_are_brought_to_the_average() {
        // Six tasks against two: rounding down makes 384 - 256 one task short of two.
        assert_eq!(tasks(&cpu(768), &cpu(256), 512, 125), Some(2));
        assert_eq!(tasks(&cpu(767), &cpu(256), 511, 125), Some(2));
        assert_eq!(tasks(&cpu(766), &cpu(256), 511, 125), Some(2));
        assert_eq!(tasks(&cpu(764), &cpu(256), 510, 125), Some(1));
        // A difference of less than 25% is tolerated, and so is three against two.
        assert_eq!(tasks(&cpu(640), &cpu(512), 576, 125), None);
        assert_eq!(tasks(&cpu(384), &cpu(256), 320, 125), None);
        // Three against one differ by two tasks.
        assert_eq!(tasks(&cpu(384), &cpu(128), 256, 125), Some(1));
    }

    #[test]
    fn a_core_of_siblings_is_worth_a_tenth_more() {
        let core = |load| Sum { power: 140, ..cpu(load) };
        // Two tasks on one core and none on the other: 2 * 128 * 128 / 140 = 234.
        assert_eq!(tasks(&core(234), &core(0), 117, 125), Some(1));
    }

    #[test]
    fn weights_are_brought_to_the_average() {
        let group = |load, running, weight| Sum { load, power: SCALE, running, weight };
        // Four tasks of nice 0 against none: two are moved.
        assert_eq!(weight(&group(512, 4, 512), &group(0, 0, 0), 256, 125), Some(256));
        // A single task is not moved just to swap places.
        assert_eq!(weight(&group(128, 1, 128), &group(0, 0, 0), 64, 125), None);
        // Two tasks against a heavier one, 256 against 200: the average is 28 away, less than a task, and 56 is less
        // too.
        assert_eq!(weight(&group(256, 2, 256), &group(200, 1, 200), 228, 125), None);
        // Two tasks of nice 0 against one of nice 19: 250 is more than one task, and the task here is lighter.
        assert_eq!(weight(&group(256, 2, 256), &group(6, 1, 6), 131, 125), Some(128));
    }
}
