//! What a simulation records, on request, of queues, of the CPUs that its scheduler looked at, and of affinities.

use crate::support::{bare, exactly, forever, hog};
use schedlab_base::{AffinityRecord, Event, Looking, NameRecord, Payload, Sink};
use schedlab_sched::kernels::{self, How};
use schedlab_sim::program::{Load, Op, Setting};

const SECOND: u64 = 1_000_000_000;

#[derive(Default)]
struct Told {
    wants: bool,
    events: Vec<Event>,
    affinities: Vec<(i32, String)>,
}

impl Sink for Told {
    fn events(&mut self, batch: &[Event]) {
        self.events.extend_from_slice(batch);
    }

    fn name(&mut self, _: &NameRecord) {}

    fn affinity(&mut self, record: &AffinityRecord) {
        self.affinities.push((record.tid, record.cpus.to_string()));
    }

    fn wants_queues(&self) -> bool {
        self.wants
    }
}

fn told(kernel: &str, load: &Load, wants: bool, skip_ticks: bool) -> Told {
    let kernel = kernels::find(kernel).expect("a kernel");
    let machine = bare("2x2");
    let values = kernel.values(&machine, &[]).expect("tunables");
    let how = How { duration: Some(SECOND), seed: 1, skip_ticks };
    let mut told = Told { wants, ..Told::default() };
    kernel.simulate(&machine, load, &values, &how, &mut told).expect("a run");
    told
}

fn load() -> Load {
    let nap = |name| forever(name, 0, vec![Op::Run(exactly(3_000_000)), Op::Sleep(exactly(4_000_000))]);
    let mut tasks: Vec<_> = (0..5).map(|_| hog("hog", 0)).chain((0..6).map(|_| nap("nap"))).collect();
    tasks[1].initial.cpus = Some(vec![0, 1, 3]);
    let mut change = hog("change", 0);
    change.program = vec![Op::Run(exactly(5_000_000)), Op::Set(0), Op::Run(exactly(SECOND))];
    tasks.push(change);
    let settings = vec![Setting { cpus: Some(vec![2, 3]), ..Setting::default() }];
    Load { tasks, settings, ..Load::default() }
}

const KERNELS: [&str; 7] = ["linux-2.6.0", "linux-2.6.11", "linux-2.6.18", "sd", "linux-6.1", "linux-6.12", "mlfq"];

fn is_extra(event: &Event) -> bool {
    matches!(event.what, Payload::Queue { .. } | Payload::Considered { .. })
}

#[test]
fn nothing_is_told_unasked_and_asking_changes_nothing_else() {
    for kernel in KERNELS {
        let (plain, asked) = (told(kernel, &load(), false, true), told(kernel, &load(), true, true));
        assert!(!plain.events.iter().any(is_extra));
        let rest: Vec<Event> = asked.events.iter().copied().filter(|e| !is_extra(e)).collect();
        assert_eq!(rest, plain.events, "{kernel}");
        assert_eq!(told(kernel, &load(), true, false).events, asked.events, "{kernel}: ticks taken and skipped");
    }
}

/// The queue's length agrees with the events: the last length recorded for a CPU at an instant is the number of tasks
/// that are runnable there.
#[test]
fn lengths_are_those_of_the_events() {
    for kernel in KERNELS {
        let told = told(kernel, &load(), true, true);
        let (mut home, mut running, mut lengths) = (vec![None; 32], [0i32; 4], [0u32; 4]);
        let mut checked = 0;
        for (at, event) in told.events.iter().enumerate() {
            let cpu = event.cpu as usize;
            match event.what {
                Payload::Wakeup { tid, target, .. } | Payload::WakeupNew { tid, target, .. } => {
                    home[tid as usize] = Some(target as usize);
                }
                Payload::Migrate { tid, to, .. } if home[tid as usize].is_some() => {
                    home[tid as usize] = Some(to as usize);
                }
                Payload::Switch { prev, prev_state, next, .. } => {
                    if prev_state != schedlab_base::TaskState::Runnable {
                        home[prev as usize] = None;
                    }
                    running[cpu] = next;
                }
                Payload::Queue { length, load } => {
                    lengths[cpu] = length;
                    assert_eq!(load == 0, length == 0, "{kernel}: {event:?}");
                }
                _ => {}
            }
            let ends = told.events.get(at + 1).is_none_or(|next| next.time > event.time);
            if ends {
                for (cpu, length) in lengths.iter().enumerate() {
                    let known = home.iter().filter(|home| **home == Some(cpu)).count();
                    assert_eq!(*length as usize, known, "{kernel}: CPU {cpu} after {event:?}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 400, "{kernel}: {checked}");
    }
}

#[test]
fn the_cpus_looked_at_are_allowed_or_in_the_span() {
    let mut seen = std::collections::BTreeSet::new();
    // Without hogs, CPUs run out of tasks.
    let naps = Load { tasks: load().tasks.split_off(5), settings: load().settings, ..Load::default() };
    for (kernel, load) in KERNELS.iter().flat_map(|kernel| [(kernel, load()), (kernel, naps.clone())]) {
        let told = told(kernel, &load, true, true);
        let bound = load.tasks.iter().position(|task| task.initial.cpus.is_some());
        for event in &told.events {
            let Payload::Considered { why, tid, word, mask } = event.what else { continue };
            seen.insert(why.name());
            assert!(word == 0 && mask != 0 && mask < 16, "{event:?}");
            assert_eq!(why.balances(), tid == 0, "{event:?}");
            if tid > 0 && bound == Some(tid as usize - 1) {
                assert_eq!(mask & 0b100, 0, "{kernel}: a CPU that the task may not use was looked at");
            }
            if why == Looking::NewIdle {
                assert_eq!(mask >> event.cpu & 1, 0, "a CPU pulls from others");
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["newidle", "nohz", "periodic", "wake"]);
}

#[test]
fn affinities_are_told_at_birth_and_when_they_change() {
    let told = told("linux-6.1", &load(), false, true);
    let of = |tid: i32| told.affinities.iter().filter(|a| a.0 == tid).map(|a| a.1.as_str()).collect::<Vec<_>>();
    assert_eq!((of(1), of(2), of(12)), (vec!["0-3"], vec!["0-1,3"], vec!["0-3", "2-3"]));
}
