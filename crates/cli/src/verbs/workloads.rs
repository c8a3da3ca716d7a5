//! `schedlab workloads`: lists the presets, describes a workload, or writes a preset to a file.

use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{PathText, Result, counted};
use schedlab_workload::presets::{PRESETS, Preset};
use schedlab_workload::{Action, Group, Policy, Props, Start, TaskDef, Workload, time};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `workloads` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab workloads\n  schedlab workloads li:tasks=10,nice=5\n  \
                  schedlab workloads messaging:groups=2 -o messaging.json\n  schedlab workloads mine.json")]
pub struct Args {
    /// A preset with its parameters (li:tasks=10), or a file of rt-app's JSON; all presets when left out.
    workload: Option<String>,
    /// Write the workload as rt-app's JSON.
    #[arg(short, long, value_name = "FILE", requires = "workload")]
    output: Option<PathBuf>,
    /// Overwrite the file if it exists.
    #[arg(long, requires = "output")]
    force: bool,
}

/// Lists the presets, shows one workload, or writes it.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let Some(spec) = args.workload else {
        list(ui);
        return Ok(ExitCode::SUCCESS);
    };
    let workload = schedlab_workload::load(&spec)?;
    for warning in &workload.warnings {
        ui.note(warning);
    }
    if let Some(path) = &args.output {
        Target::new(path, args.force)?.write_all(schedlab_workload::write(&workload).as_bytes())?;
    }
    if ui.json {
        let mut value = to_json(&workload);
        if let Some(path) = &args.output {
            value["file"] = json!(PathText(path));
        }
        ui.print_json(&value);
    } else if args.output.is_none() {
        ui.print(&summary(&workload));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(ui: &Ui) {
    if ui.json {
        let presets: Vec<Value> = PRESETS.iter().map(preset_json).collect();
        ui.print_json(&json!({ "workloads": presets }));
        return;
    }
    let mut out = String::new();
    for preset in PRESETS {
        let _ = writeln!(out, "{:<12}{}", preset.name, preset.meaning);
        for param in preset.params {
            let _ = writeln!(out, "    {:<16}{}", format!("{}={}", param.name, param.default), param.meaning);
        }
    }
    out.push_str("\nwritten as li:tasks=10,nice=5; or a file of rt-app's JSON\n");
    ui.print(&out);
}

fn preset_json(preset: &Preset) -> Value {
    let params: Vec<Value> = preset
        .params
        .iter()
        .map(|param| json!({ "name": param.name, "default": param.default, "meaning": param.meaning }))
        .collect();
    json!({ "name": preset.name, "meaning": preset.meaning, "parameters": params })
}

fn summary(workload: &Workload) -> String {
    let duration = workload.global.duration.map_or("until its tasks end".to_owned(), |ns| format!("for {}", time(ns)));
    let mut out = format!("{}: {}, {duration}\n", workload.name, counted(threads(workload), "task"));
    for (path, group) in &workload.groups {
        let _ = writeln!(out, "  group {path}{}", group_words(group));
    }
    let steps = || workload.steps().map(|(_, _, step)| &step.what);
    let jobs: BTreeSet<&str> =
        steps().filter_map(|what| if let Action::Jobs(name) = what { Some(&**name) } else { None }).collect();
    for task in &workload.tasks {
        let words = match jobs.contains(task.name.as_str()) {
            true => ", jobs that others do".to_owned(),
            false => task_words(task, workload.global.default_policy),
        };
        let _ = writeln!(out, "  {}{words}", task.name);
        for phase in &task.phases {
            let _ = writeln!(out, "    {}", phase.summary());
        }
    }
    for change in &workload.hotplug {
        let state = if change.online { "comes" } else { "goes" };
        let _ = writeln!(out, "  at {} CPU {} {state}", time(change.at), change.cpu);
    }
    out
}

fn threads(workload: &Workload) -> u64 {
    workload.tasks.iter().map(|task| u64::from(task.instances)).sum()
}

fn group_words(group: &Group) -> String {
    let mut words = String::new();
    let _ = match (group.weight, group.shares) {
        (Some(weight), _) => write!(words, ", weight {weight}"),
        (_, Some(shares)) => write!(words, ", {shares} shares"),
        _ => Ok(()),
    };
    if let Some(quota) = group.quota {
        let _ = write!(words, ", {} of each {}", time(quota), time(group.period.unwrap_or(100_000_000)));
    }
    if group.idle {
        words.push_str(", idle");
    }
    words
}

fn task_words(task: &TaskDef, default: Policy) -> String {
    let mut words = match task.instances {
        0 => ", when forked".to_owned(),
        1 => String::new(),
        n => format!(", {n} instances"),
    };
    for (what, ns) in [("starts at", task.delay), ("then one each", task.stagger)] {
        if ns > 0 {
            let _ = write!(words, ", {what} {}", time(ns));
        }
    }
    words
        + &props_words(&task.props, default)
        + &match task.how_often() {
            often if often.is_empty() => often,
            often => format!(", {often}"),
        }
}

fn props_words(props: &Props, default: Policy) -> String {
    let policy = props.policy.unwrap_or(default);
    let mut words = if policy == Policy::Other { String::new() } else { format!(", {policy:?}") };
    match (props.priority, policy) {
        (Some(priority), Policy::Fifo | Policy::Rr) => _ = write!(words, " {priority}"),
        (Some(nice), _) if nice != 0 => _ = write!(words, ", nice {nice}"),
        _ => {}
    }
    if let Some(cpus) = &props.cpus {
        let _ = write!(words, ", on CPUs {cpus:?}");
    }
    if let Some(group) = &props.taskgroup {
        let _ = write!(words, ", in {group}");
    }
    words
}

fn to_json(workload: &Workload) -> Value {
    let us = |ns: u64| ns as f64 / 1000.0;
    let tasks: Vec<Value> = workload
        .tasks
        .iter()
        .map(|task| {
            let phases: Vec<Value> = task
                .phases
                .iter()
                .map(|phase| {
                    let events: Vec<String> = phase.events.iter().map(|step| step.what.to_string()).collect();
                    json!({ "name": phase.name, "loop": phase.loops, "events": events })
                })
                .collect();
            json!({
                "name": task.name, "instances": task.instances, "delay_us": us(task.delay),
                "stagger_us": us(task.stagger), "loop": task.loops, "phases": phases,
            })
        })
        .collect();
    let start = match workload.global.start {
        Start::Wake => "wake",
        Start::Fork => "fork",
        Start::Threads => "threads",
    };
    json!({
        "name": workload.name, "duration_us": workload.global.duration.map(us), "start": start,
        "threads": threads(workload), "tasks": tasks, "groups": workload.groups.keys().collect::<Vec<_>>(),
        "warnings": workload.warnings,
    })
}
