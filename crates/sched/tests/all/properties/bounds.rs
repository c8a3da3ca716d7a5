//! Every kernel runs with each of its tunables at the ends of its range.

use crate::support::{Accounts, bare, exactly, forever, hog};
use schedlab_sched::kernels::{How, KERNELS};
use schedlab_sim::program::{Load, Op, Start};

const MS: u64 = 1_000_000;

#[test]
fn every_kernel_runs_at_the_ends_of_each_range() {
    let sleeper = forever("sleeper", 5, vec![Op::Run(exactly(MS)), Op::Sleep(exactly(2 * MS))]);
    let tasks = (0..9).map(|n| hog(&format!("hog-{n}"), n - 4)).chain([sleeper]).collect();
    let load = Load { tasks, start: Start::Fork, ..Load::default() };
    let how = How { duration: Some(30 * MS), seed: 1, skip_ticks: true };
    for kernel in KERNELS {
        for cpus in ["1", "2"].iter().take(if kernel.most_cpus().is_some() { 1 } else { 2 }) {
            let machine = bare(cpus);
            for tunable in kernel.tunables {
                for value in [tunable.range.0, tunable.range.1] {
                    let set = [(tunable.name.to_owned(), value.to_string())];
                    let values = kernel.values(&machine, &set).unwrap();
                    let mut accounts = Accounts::default();
                    // An error says what does not go together. A panic says nothing.
                    if kernel.simulate(&machine, &load, &values, &how, &mut accounts).is_ok() {
                        accounts.finish(30 * MS);
                        let ran: u64 = accounts.tasks.iter().map(|task| task.run).sum();
                        let most = 30 * MS * machine.cpus.len() as u64;
                        // With few ticks a CPU may stay idle until it balances.
                        assert!((29 * MS..=most).contains(&ran), "{} {set:?}: {ran} of {most}", kernel.name);
                    }
                }
            }
        }
    }
}
