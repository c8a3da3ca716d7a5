use super::*;
use schedlab_base::Rng;
use std::collections::BTreeMap;

const TASKS: u64 = 60;

/// What ran on a CPU, told span by span, and what of it each part should have.
#[derive(Default)]
struct Plain {
    /// By CPU: from when on, and who.
    spans: Vec<Vec<(Nanos, Who)>>,
    parts: Vec<(Ticket, BTreeMap<Who, Nanos>)>,
}

impl Plain {
    fn ran(&self, cpu: CpuId, from: Nanos, to: Nanos) -> BTreeMap<Who, Nanos> {
        let spans = &self.spans[cpu as usize];
        let ends = spans.iter().skip(1).map(|(begin, _)| *begin).chain([Nanos::MAX]);
        let mut sums = BTreeMap::new();
        for ((begin, who), end) in spans.iter().zip(ends) {
            let time = end.min(to).saturating_sub((*begin).max(from));
            if time > 0 {
                *sums.entry(*who).or_default() += time;
            }
        }
        sums
    }
}

#[test]
fn parts_are_what_ran_however_long_the_log_gets() {
    for (seed, leave) in [(1, 40), (2, 4), (3, 200)] {
        let mut rng = Rng::new(seed);
        let (mut queues, mut plain, mut now) = (Queues::default(), Plain::default(), 0);
        for cpu in 0..2 {
            queues.occupy(cpu, IDLE, 0);
            plain.spans.push(vec![(0, IDLE)]);
        }
        let mut shortened = 0;
        for _ in 0..60_000 {
            now += rng.below(50);
            let (cpu, task) = (rng.below(2) as CpuId, rng.below(TASKS) as Slot);
            let waits = queues.place(task);
            match waits {
                None if rng.below(20) == 0 => queues.push(task, cpu, now),
                Some((cpu, since)) if rng.below(leave) == 0 => {
                    queues.settle(cpu, now);
                    let kept = queues.keep(task);
                    queues.remove(task);
                    if rng.below(3) == 0 {
                        queues.parts.drop_all(&[kept]);
                    } else {
                        let ran = plain.ran(cpu, since, now);
                        plain.parts.push((kept, ran));
                    }
                }
                _ => {
                    // Tasks that do not wait take turns.
                    let who = (TASKS + rng.below(30)) as Who;
                    queues.occupy(cpu, who, now);
                    plain.spans[cpu as usize].push((now, who));
                }
            }
            shortened += u32::from(queues.cpus[cpu as usize].kept > 0);
        }
        for cpu in 0..2 {
            queues.settle(cpu, now);
            queues.add_up(cpu, 0);
        }
        assert!(plain.parts.len() > 100 && (seed == 2 || shortened > 0), "{} parts", plain.parts.len());
        for (ticket, should) in plain.parts {
            let is: BTreeMap<Who, Nanos> = queues.sums(&[ticket]).into_iter().collect();
            assert_eq!(is, should, "seed {seed}");
        }
    }
}
