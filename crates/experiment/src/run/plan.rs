//! The runs of an experiment: each combination of kernel, point and seed with its machine, workload and settings.

use super::Job;
use crate::experiment::Experiment;
use crate::file::CostsChoice;
use crate::points::Point;
use schedlab_base::{Result, parse_duration};
use schedlab_machine::tomltext::TomlText;
use schedlab_machine::{Costs, Machine};
use schedlab_workload::{Placement, Workload};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The runs of an experiment, kernel by kernel. Points that differ only in parameters which the run does not depend on
/// share one.
///
/// # Errors
/// When a machine, a workload or a duration is wrong at any point.
pub fn plan(experiment: &Experiment) -> Result<Vec<Job<'_>>> {
    let mut machines: HashMap<String, Arc<Machine>> = HashMap::new();
    let mut workloads: HashMap<String, Arc<Workload>> = HashMap::new();
    let file = &experiment.file;
    let mut jobs: Vec<Job> = Vec::new();
    for (kernel, described) in file.kernels.iter().enumerate() {
        let first = jobs.len();
        for (point, values) in experiment.points.iter().enumerate() {
            let machine = cached(&mut machines, values.fill(&file.machine), |spec| {
                let mut machine = machine(&experiment.document, spec)?;
                if file.costs == CostsChoice::None {
                    machine.costs = Costs::none();
                }
                Ok(machine)
            })?;
            let spec = values.fill(workload_text(experiment));
            let placement = placement(experiment, values)?;
            let key = format!("{placement:?} {spec}");
            let workload = cached(&mut workloads, key, |_| {
                let mut workload = workload(experiment, &spec)?;
                workload.global.placement = placement.unwrap_or(workload.global.placement);
                Ok(workload)
            })?;
            let (key, text) = match &described.duration {
                Some(own) => (format!("kernels[{kernel}].duration"), Some(own)),
                None => ("duration".to_owned(), file.duration.as_ref()),
            };
            let duration = text
                .map(|text| parse_duration(&values.fill(text)))
                .transpose()
                .map_err(|e| experiment.document.error(&key, e.to_string()))?;
            let set: Vec<(String, String)> =
                described.set.iter().map(|(name, value)| (name.clone(), values.fill(&value.to_string()))).collect();
            let same = |job: &&mut Job| {
                let parts = Arc::ptr_eq(&job.machine, &machine) && Arc::ptr_eq(&job.workload, &workload);
                parts && job.set == set && job.duration == duration
            };
            match jobs[first..].iter_mut().find(same) {
                Some(job) => job.points.push(point),
                None => jobs.push(Job { experiment, kernel, points: vec![point], machine, workload, set, duration }),
            }
        }
    }
    Ok(jobs)
}

fn cached<T>(
    known: &mut HashMap<String, Arc<T>>,
    spec: String,
    make: impl FnOnce(&str) -> Result<T>,
) -> Result<Arc<T>> {
    if let Some(found) = known.get(&spec) {
        return Ok(Arc::clone(found));
    }
    let made = Arc::new(make(&spec)?);
    known.insert(spec, Arc::clone(&made));
    Ok(made)
}

fn beside(document: &TomlText, name: &str) -> std::path::PathBuf {
    document.file.parent().unwrap_or(Path::new("")).join(name)
}

/// The machine that a file names; a machine's file is beside it.
///
/// # Errors
/// When there is no such machine.
pub fn machine(document: &TomlText, spec: &str) -> Result<Machine> {
    let found = if Path::new(spec).extension().is_some_and(|e| e == "toml") {
        schedlab_machine::MachineFile::open(&beside(document, spec))
    } else {
        schedlab_machine::load(spec)
    };
    found.map_err(|e| document.error("machine", e.to_string()))
}

/// The placement that the file asks for at a point.
fn placement(experiment: &Experiment, at: &Point) -> Result<Option<Placement>> {
    let Some(text) = &experiment.file.workload.placement else { return Ok(None) };
    let word = at.fill(text);
    match Placement::WORDS.iter().find(|(known, _)| *known == word) {
        Some((_, placement)) => Ok(Some(*placement)),
        None => {
            let error = experiment.document.error("workload.placement", format!("there is no placement \"{word}\""));
            Err(error.mend("scheduler, cpu or numa"))
        }
    }
}

/// The one of the workload's keys that is given.
fn workload_text(experiment: &Experiment) -> &str {
    let given = &experiment.file.workload;
    [&given.preset, &given.file, &given.inline].into_iter().flatten().next().map_or("", String::as_str)
}

fn workload(experiment: &Experiment, spec: &str) -> Result<Workload> {
    let given = &experiment.file.workload;
    let document = &experiment.document;
    if given.preset.is_some() {
        schedlab_workload::presets::build(spec).map_err(|e| document.error("workload.preset", e.to_string()))
    } else if given.file.is_some() {
        let path = beside(document, spec);
        if !path.is_file() {
            return Err(document.error("workload.file", format!("there is no file {}", path.display())));
        }
        schedlab_workload::load_strictly(&path.to_string_lossy())
    } else {
        schedlab_workload::parse_strictly(spec.as_bytes(), Path::new("inline"))
            .map_err(|e| document.error("workload.inline", e.to_string()))
    }
}
