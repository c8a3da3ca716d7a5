//! How much to move: the end of `find_busiest_group` of 2.6.11 and of 2.6.18, as functions of sums.

/// The load of one task of nice 0, and what one CPU is worth (`SCHED_LOAD_SCALE`).
pub const SCALE: u64 = 128;

/// What is known of a group of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// The load that counts, of all its CPUs by what they are worth.
    pub load: u64,
    /// What its CPUs are worth together.
    pub power: u64,
    /// How many tasks can run (2.6.18).
    pub running: u64,
    /// Their weights (2.6.18).
    pub weight: u64,
}

/// How many tasks of 2.6.11 to move from the busiest group to this one; `None`: the domain is balanced.
pub fn tasks(busiest: &Sum, here: &Sum, average: u64, imbalance_pct: u64) -> Option<u64> {
    if here.load >= busiest.load || here.load >= average || 100 * busiest.load <= imbalance_pct * here.load {
        return None;
    }
    // Rounding can leave the busiest below the average: then the kernel's unsigned difference is huge.
    let load = busiest.load.wrapping_sub(average).min(average - here.load) * busiest.power.min(here.power) / SCALE;
    if load >= SCALE - 1 {
        return Some((load + 1) / SCALE);
    }
    if busiest.load - here.load >= 2 * SCALE {
        return Some(1);
    }
    // Nothing to even out; but perhaps one task less there and one more here get more done.
    let done = |load: u64, power: u64| power * load.min(SCALE);
    let now = (done(busiest.load, busiest.power) + done(here.load, here.power)) / SCALE;
    let left = busiest.load.saturating_sub(SCALE * SCALE / busiest.power);
    let more = (SCALE * SCALE / here.power).min(busiest.load);
    let moved = (done(left, busiest.power) + done(here.load + more, here.power)) / SCALE;
    (moved >= now + SCALE / 8).then_some(1)
}

/// How much weight of 2.6.18 to move from the busiest group to this one; `None`: the domain is balanced.
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
    // Groups that are not full do not count as the busiest, but for the average: it can be above.
    if busiest.load >= average {
        let most = (busiest.load - average).min(busiest.load - per_task);
        let load = (most * busiest.power).min((average - here.load) * here.power) / SCALE;
        if load >= per_task {
            return Some(load);
        }
    }
    one_task(busiest, here, per_task)
}

/// The imbalance is less than a task: is it right to move one?
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
        // One task alone is not moved; of a load that has risen to 192, an eighth of a CPU and more is gained.
        assert_eq!(tasks(&cpu(128), &cpu(0), 64, 125), None);
        assert_eq!(tasks(&cpu(192), &cpu(0), 96, 125), Some(1));
        // 144 is the least.
        assert_eq!([143, 144].map(|load| tasks(&cpu(load), &cpu(0), load / 2, 125)), [None, Some(1)]);
    }

    #[test]
    fn loads_are_brought_to_the_average() {
        // Six against two: 384 - 256 is one task short of two, by rounding down.
        assert_eq!(tasks(&cpu(768), &cpu(256), 512, 125), Some(2));
        assert_eq!(tasks(&cpu(767), &cpu(256), 511, 125), Some(2));
        assert_eq!(tasks(&cpu(766), &cpu(256), 511, 125), Some(2));
        assert_eq!(tasks(&cpu(764), &cpu(256), 510, 125), Some(1));
        // Less than 25% is borne, and three against two.
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
        // Four of nice 0 against none: two.
        assert_eq!(weight(&group(512, 4, 512), &group(0, 0, 0), 256, 125), Some(256));
        // One task is not moved to change places.
        assert_eq!(weight(&group(128, 1, 128), &group(0, 0, 0), 64, 125), None);
        // Two against one heavier: 256 against 200. To the average 28, less than a task, and 56 are less than one.
        assert_eq!(weight(&group(256, 2, 256), &group(200, 1, 200), 228, 125), None);
        // Two of nice 0 beside one of nice 19: 250 is more than one task, and the task here is lighter.
        assert_eq!(weight(&group(256, 2, 256), &group(6, 1, 6), 131, 125), Some(128));
    }
}
