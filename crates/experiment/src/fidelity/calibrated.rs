//! Where the simulation takes place: as recordings of some loads show the kernel, its machine, and what calls take.
//! These are taken again in each turn of the loads, and the mean counts.

use super::loads::{Subject, calibration};
use super::{Question, calls, request, shares_clock};
use crate::as_recorded::{self, Setup};
use crate::backend::Real;
use crate::parallel::on_threads;
use schedlab_base::{Cost, Nanos, Result};
use schedlab_machine::{Costs, Machine};
use schedlab_measure::intervals::{Intervals, Table};
use schedlab_workload::from_trace::{self, ModelBuilder};

/// How often to calibrate in so many turns: where time is counted, all would be alike.
pub(super) fn times(kernel: &dyn Real, turns: u64) -> u64 {
    if kernel.deterministic() { turns.min(1) } else { turns }
}

/// What one calibration shows, and what the simulation cannot have as the real kernel had it.
pub(super) fn once(
    question: &Question,
    kernel: &dyn Real,
    machine: &Machine,
    done: &(dyn Fn(&str) + Sync),
) -> Result<(Setup, Vec<String>)> {
    let recorded = |load: Subject| -> Result<(Setup, Vec<String>, Table)> {
        let mut source = kernel.recording(&request(kernel, machine, load, (question.duration, 1))?)?.open()?;
        let (mut builder, mut intervals) = (ModelBuilder::new(source.meta()), Intervals::new(source.meta()));
        source.run(&mut (&mut builder, &mut intervals))?;
        let model = builder.finish(&from_trace::Options::default())?;
        done(&format!("{} on {}: {}", kernel.name(), machine.name, load.name()));
        let (setup, remarks) = as_recorded::setup(None, None, &model.workload, || None)?;
        Ok((setup, remarks, intervals.finish()))
    };
    let loads = calibration(machine.cpus.len(), question.forks());
    let subjects: Vec<Subject> = loads.into_iter().map(Subject::Known).collect();
    let mut of = on_threads(&subjects, kernel.at_once(question.threads), &recorded, &|| {})?.into_iter();
    let ((mut setup, remarks, wake_ups), (other, _, calls)) = of.next().zip(of.next()).expect("one for each load");
    setup.machine.name.clone_from(&machine.name);
    let costs = &mut setup.machine.costs;
    let remote = other.machine.costs.remote_idle_exit_ns;
    if remote != other.machine.costs.idle_exit_ns {
        costs.remote_idle_exit_ns = remote;
    }
    let forks = if question.forks() { of.next_back() } else { None };
    if let Some((from_afar, ..)) = of.next() {
        costs.wakeup_to_switch_ns = from_afar.machine.costs.wakeup_to_switch_ns;
    }
    // Where the lengths of bursts are taken from each run, calls are in them.
    if !shares_clock(kernel, machine) {
        (costs.blocking_call_ns, costs.waking_call_ns) = calls::blocking_and_waking(&wake_ups, &calls);
        if let Some((.., table)) = forks {
            [costs.forking_call_ns, costs.forked_task_ns, costs.exit_ns] =
                calls::of_forks(&table, costs.blocking_call_ns);
        }
    }
    if kernel.smt_is_free() && machine.threads() > 1 {
        costs.smt_loss_percent = 0;
    }
    Ok((setup, remarks))
}

/// Several calibrations in one: costs are means, and all else is as in the last one.
pub(super) fn together(mut all: Vec<(Setup, Vec<String>)>) -> (Setup, Vec<String>) {
    let mut costs: Vec<Costs> = all.iter().map(|(setup, _)| setup.machine.costs.clone()).collect();
    let (mut setup, remarks) = all.pop().expect("there is a turn, and it has a calibration");
    let to = &mut setup.machine.costs;
    let varying: [fn(&mut Costs) -> &mut Cost; 6] = [
        |costs| &mut costs.wakeup_to_switch_ns,
        |costs| &mut costs.timer_to_switch_ns,
        |costs| &mut costs.own_wakeup_to_switch_ns,
        |costs| &mut costs.tick_to_switch_ns,
        |costs| &mut costs.idle_exit_ns,
        |costs| &mut costs.remote_idle_exit_ns,
    ];
    for field in varying {
        let measured: Vec<Cost> = costs.iter_mut().map(|costs| *field(costs)).collect();
        *field(to) = Cost::mean(&measured).unwrap_or(*field(to));
    }
    let calls: [fn(&mut Costs) -> &mut Nanos; 5] = [
        |costs| &mut costs.blocking_call_ns,
        |costs| &mut costs.waking_call_ns,
        |costs| &mut costs.forking_call_ns,
        |costs| &mut costs.forked_task_ns,
        |costs| &mut costs.exit_ns,
    ];
    for field in calls {
        *field(to) = costs.iter_mut().map(|costs| *field(costs)).sum::<Nanos>() / costs.len() as Nanos;
    }
    (setup, remarks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_calibrations_show_is_their_mean() {
        let one = |switch: Nanos, calls: Nanos, set: &str| {
            let mut machine = schedlab_machine::load("2").unwrap();
            machine.costs = Costs { timer_to_switch_ns: switch.into(), blocking_call_ns: calls, ..Costs::none() };
            (
                Setup { kernel: "linux-6.12".to_owned(), machine, set: vec![("a".to_owned(), set.to_owned())] },
                Vec::new(),
            )
        };
        let (setup, _) = together(vec![one(2_000, 10, "1"), one(3_000, 20, "2"), one(7_000, 60, "3")]);
        let costs = &setup.machine.costs;
        assert_eq!((costs.timer_to_switch_ns, costs.blocking_call_ns), (4_000.into(), 30));
        assert_eq!((costs.idle_exit_ns, &setup.set[0].1[..]), (0.into(), "3"));
    }
}
