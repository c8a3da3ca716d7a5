//! `x-irq`: a source on each of its CPUs.

use super::settings::check_cpu;
use schedlab_base::{Error, Result};
use schedlab_machine::Machine;
use schedlab_sim::program::{Amount, InterruptKind, InterruptSpec};
use schedlab_workload::Workload;

/// The sources of interrupts of a workload. Each CPU must have time left for tasks.
pub(super) fn of(workload: &Workload, machine: &Machine) -> Result<Vec<InterruptSpec>> {
    let mut all = Vec::new();
    let mut taken = vec![0.0; machine.cpus.len()];
    for interrupt in &workload.interrupts {
        let cpus = interrupt.cpus.clone().unwrap_or_else(|| (0..machine.cpus.len() as u32).collect());
        for cpu in cpus {
            check_cpu(cpu, machine).map_err(|e| e.key("x-irq"))?;
            taken[cpu as usize] += interrupt.duration.mean as f64 / interrupt.period as f64;
            all.push(InterruptSpec {
                kind: match interrupt.kind {
                    schedlab_workload::InterruptKind::Irq => InterruptKind::Irq,
                    schedlab_workload::InterruptKind::Softirq => InterruptKind::Softirq,
                    schedlab_workload::InterruptKind::Steal => InterruptKind::Steal,
                },
                cpu,
                first: interrupt.at,
                period: interrupt.period,
                random: interrupt.random,
                length: Amount { mean: interrupt.duration.mean, sd: interrupt.duration.sd },
            });
        }
    }
    if let Some((cpu, part)) = taken.iter().enumerate().find(|(_, part)| **part >= 1.0) {
        let what = format!("the entries take {:.0}% of CPU {cpu} together, which leaves no time", part * 100.0);
        return Err(Error::input(what).key("x-irq").mend("take longer periods, shorter durations or other CPUs"));
    }
    Ok(all)
}
