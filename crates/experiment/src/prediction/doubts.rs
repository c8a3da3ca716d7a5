//! What a model cannot know of the load that was recorded.

use schedlab_base::{Meta, counted};
use schedlab_measure::Report;
use schedlab_workload::from_trace;
use serde::Serialize;

/// Beyond this part of what was recorded, what the model lacks decides its answers.
const GUESSWORK: f64 = 0.5;

/// Beyond this part of the CPU time, what was lost does. `schedlab check` has the same bound.
const LOST: f64 = 0.05;

/// Why a simulation of the model may differ from the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Doubts {
    /// Why its answers would be guesswork; empty if they are not.
    pub guesswork: Vec<String>,
    /// What else is not in the model.
    pub causes: Vec<String>,
}

/// What the model of a recording cannot know.
#[must_use]
pub fn doubts(meta: &Meta, report: &Report, model: &from_trace::Report) -> Doubts {
    let mut doubts = Doubts::default();
    unmodelled(&mut doubts, model);
    unseen(&mut doubts, report);
    if let Some(what) = &model.cut {
        doubts.causes.push(format!("the recording was cut off, and what came after is not in the model: {what}"));
    }
    if let Some(partial) = &meta.partial {
        doubts.guesswork.push(partial.reason());
    }
    let groups = report.groups.iter().filter(|group| group.group.is_some() && group.share > 0.01).count();
    if groups > 1 && model.groups == 0 && !model.groups_known {
        doubts.causes.push(format!("the tasks ran in {groups} cgroups, whose weights and quotas are not recorded"));
    }
    if model.described == 0 {
        doubts.causes.push("the trace does not contain policies, slices and sessions (autogroup)".to_owned());
    } else if model.described < model.tasks {
        let rest = model.tasks - model.described;
        let (tasks, are) = (counted(rest as u64, "task"), if rest == 1 { "is" } else { "are" });
        doubts.causes.push(format!("{tasks} {are} modelled without a policy, which the trace does not contain"));
    }
    doubts
}

/// Tasks that are not in the model, and wake-ups by them.
fn unmodelled(doubts: &mut Doubts, model: &from_trace::Report) {
    let all = model.modelled_ns + model.left_out_ns;
    let part = model.left_out_ns as f64 / all.max(1) as f64;
    let mut say = |part: f64, what: String| match part {
        part if part > GUESSWORK => doubts.guesswork.push(what),
        part if part > 0.01 => doubts.causes.push(what),
        _ => {}
    };
    say(part, format!("tasks with {:.1}% of the CPU time are not in the model", part * 100.0));
    let woken = model.waits + model.sleeps;
    let part = model.unseen as f64 / woken.max(1) as f64;
    let what = format!(
        "{:.1}% of the sleeps ended by tasks that are not in the model, where they last as long as they did",
        part * 100.0
    );
    say(part, what);
}

/// Events that were lost or contradict others.
fn unseen(doubts: &mut Doubts, report: &Report) {
    let total = &report.total;
    let time = (total.span_us * total.cpus as f64).max(1.0);
    let mut say = |there: bool, part: f64, what: String| match part {
        part if there && part > LOST => doubts.guesswork.push(what),
        _ if there => doubts.causes.push(what),
        _ => {}
    };
    let part = total.unknown_us / time;
    let places = counted(total.losses, "place");
    let what = format!("events were lost at {places}: {:.1}% of the CPU time is unknown", part * 100.0);
    say(total.losses > 0, part, what);
    let part = total.contradicted_us / time;
    let events = counted(total.contradictions, "event");
    let contradict = if total.contradictions == 1 { "contradicts" } else { "contradict" };
    let what = format!("{events} {contradict} others: {:.1}% of the CPU time is assigned by guess", part * 100.0);
    say(total.contradictions > 0, part, what);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_recording_is_a_cause() {
        let mut report = Report::default();
        (report.total.span_us, report.total.cpus) = (1e6, 1);
        let mut model = from_trace::Report { described: 1, tasks: 1, ..from_trace::Report::default() };
        assert_eq!(doubts(&Meta::default(), &report, &model), Doubts::default());
        (report.total.losses, report.total.unknown_us) = (3, 1e4);
        model.was_cut("the file ends in a batch".to_owned());
        let found = doubts(&Meta::default(), &report, &model);
        let causes = [
            "events were lost at 3 places: 1.0% of the CPU time is unknown",
            "the recording was cut off, and what came after is not in the model: the file ends in a batch",
        ];
        assert_eq!((found.causes, found.guesswork), (causes.map(str::to_owned).to_vec(), Vec::new()));
    }
}
