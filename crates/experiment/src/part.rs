//! The part of an experiment that a backend with a real kernel can run, and the simulation to hold beside it.

use crate::backend::Backend;
use crate::catalogue;
use crate::experiment::{Experiment, Selection};
use crate::expr::{Expr, Selector};
use crate::file::KernelFile;
use crate::run;
use crate::scalar::Scalar;
use crate::verdict::Verdict;
use schedlab_base::{Error, ErrorKind, Nanos, Release, Result};
use schedlab_sched::kernels::{self, Kernel};
use std::collections::{BTreeMap, BTreeSet};

/// What a real kernel is asked of an experiment.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it runs.
    pub real: Experiment,
    /// The same for the simulator, with the profile of the real kernel; `None` if nothing of it can be run.
    pub simulated: Option<Experiment>,
    /// What stands in for what, and what is left out.
    pub remarks: Vec<String>,
}

/// A real kernel as experiments are asked of it.
struct Asked<'a> {
    /// Its release, as it writes it.
    name: &'a str,
    release: Release,
    /// What is simulated beside it.
    profile: &'static Kernel,
    /// Whether tunables can be set on it.
    settable: bool,
}

/// Settings by name.
type Settings = BTreeMap<String, Scalar>;

/// What the backend can run of these experiments. One of which it can run nothing is kept, with its expectations
/// skipped.
///
/// # Errors
/// When it can run nothing of any, or an experiment is wrong.
pub fn parts(experiments: Vec<Experiment>, backend: &dyn Backend) -> Result<Vec<Part>> {
    let (mut parts, mut refusals) = (Vec::new(), Vec::new());
    for experiment in experiments {
        match part(experiment.clone(), backend) {
            Ok(part) => parts.push(part),
            Err(refusal) if refusal.kind() == ErrorKind::NotPermitted => {
                let remarks = vec![format!("skipped: {refusal}")];
                let why = refusal.to_string();
                let why = why.split_once(": ").map_or(why.as_str(), |(_, why)| why);
                let why = why.split("; simulate it").next().unwrap_or(why);
                parts.push(Part { real: experiment.unrun(Verdict::Skipped, why), simulated: None, remarks });
                refusals.push(refusal);
            }
            Err(error) => return Err(error),
        }
    }
    match refusals.pop() {
        Some(refusal) if refusals.len() + 1 == parts.len() => Err(refusal),
        _ => Ok(parts),
    }
}

/// The part that the backend can run. The real kernel stands in for those of the experiment's kernels that have its
/// kind of scheduler, are not later than it, and set nothing that it does not have: for all that set the same, it runs
/// once.
///
/// # Errors
/// When the backend can run nothing of it; the message says what is missing.
fn part(experiment: Experiment, backend: &dyn Backend) -> Result<Part> {
    let name = backend.real_kernel().unwrap_or_default();
    let id = experiment.file.id.clone();
    let refused = |why: String| {
        Error::not_permitted(format!("{id} cannot run here: {why}"))
            .mend("simulate it (--on sim), or run it on a machine like the experiment's")
    };
    let release: Release = name.parse().map_err(|_| refused(format!("\"{name}\" is no release of a kernel")))?;
    let asked = Asked { name, release, profile: kernels::not_newer_than(release), settable: backend.can_set() };
    let (experiment, cut) = possible(experiment, backend)?.map_err(refused)?;
    let described = &experiment.file.kernels;
    let sets: Vec<Result<Settings, String>> = described.iter().map(|kernel| asked.settings(kernel)).collect();
    let roles = roles(described, &sets);
    if let Some(Err(why)) = roles.iter().all(Result::is_err).then(|| &roles[0]) {
        return Err(refused(why.clone()));
    }
    if let Some(why) = asked.lacks_all(&experiment) {
        return Err(refused(why));
    }
    let several = (0..roles.len()).filter(|k| roles[*k] == Ok(*k)).count() > 1;
    let labelled = |label: &str, k: usize| KernelFile {
        label: Some(if several { format!("{label}, {}", described[k].name) } else { label.to_owned() }),
        kernel: asked.profile.name.to_owned(),
        set: sets[k].clone().unwrap_or_default(),
        ..described[k].clone()
    };
    let own = format!("real {name}");
    let real = experiment.clone().stood_in(&roles, &|k| labelled(&own, k));
    let simulated = experiment.clone().stood_in(&roles, &|k| labelled(asked.profile.name, k));
    let cut = cut.map(|cut| format!("{id}: {cut}"));
    let remarks = cut.into_iter().chain([format!("{id}: {}", remark(described, &asked, &roles))]).collect();
    Ok(Part { real, simulated: Some(simulated), remarks })
}

impl Asked<'_> {
    /// What the real kernel is to set for it to stand in for this one; or why it cannot stand in for it.
    fn settings(&self, kernel: &KernelFile) -> Result<Settings, String> {
        let own = kernels::find(&kernel.kernel).map_err(|e| e.to_string())?;
        let Some(release) = own.release.filter(|_| is_fair(own)) else {
            return Err(format!("its scheduler is another one ({})", own.scheduler));
        };
        if release > self.release {
            return Err(format!("it is later than {}", self.name));
        }
        let mut set = Settings::new();
        for (name, value) in &kernel.set {
            // A bug that is fixed for good needs no fix.
            if name.starts_with("fix.") && self.profile.tunable(name).is_none() {
                continue;
            }
            set.insert(self.tunable(name)?, value.clone());
        }
        match set.keys().next() {
            Some(name) if !self.settable => {
                Err(format!("setting {name} would change this machine for everybody; a guest can (--on vm:KERNEL)"))
            }
            _ => Ok(set),
        }
    }

    /// Why no metric of the experiment has a value here: each asks for a tunable that this kernel does not have.
    fn lacks_all(&self, experiment: &Experiment) -> Option<String> {
        let has = |name: &str| spellings(name).any(|name| self.profile.tunable(name).is_some());
        let lacking = |metric: &Expr| {
            let mut lacking = None;
            metric.references(&mut |reference| {
                if let ("tunable", [Selector::Pattern(name)]) = (reference.path.as_str(), &reference.selectors[..])
                    && !has(name)
                {
                    lacking = Some(name.clone());
                }
            });
            lacking
        };
        let names: Option<BTreeSet<String>> = experiment.metrics.values().map(lacking).collect();
        let names: Vec<String> = names.filter(|names| !names.is_empty())?.into_iter().collect();
        Some(format!("it measures nothing but what {} does not have: {}", self.name, names.join(", ")))
    }

    /// The real kernel's name of a tunable.
    fn tunable(&self, name: &str) -> Result<String, String> {
        let settable = |name: &str| {
            let entry = catalogue::find(name).is_some_and(|e| matches!(e.location.as_str(), "sysctl" | "debugfs"));
            self.profile.tunable(name).filter(|_| entry).map(|tunable| tunable.name.to_owned())
        };
        spellings(name).find_map(settable).ok_or_else(|| format!("{} has no {name} that could be set", self.name))
    }
}

/// The names that a tunable may have: what was in /proc/sys/kernel until 5.12 then lost the first part of its name.
fn spellings(name: &str) -> impl Iterator<Item = &str> {
    std::iter::once(name).chain(name.strip_prefix("sched_"))
}

fn is_fair(kernel: &Kernel) -> bool {
    matches!(kernel.scheduler, "CFS" | "EEVDF")
}

/// For each kernel, which one stands for it: of those that set the same, the latest, and the first of equal ones.
fn roles(kernels: &[KernelFile], sets: &[Result<Settings, String>]) -> Vec<Result<usize, String>> {
    let release = |k: usize| kernels::find(&kernels[k].kernel).ok().and_then(|kernel| kernel.release);
    let role = |set: &Result<Settings, String>| -> Result<usize, String> {
        let set = set.as_ref().map_err(Clone::clone)?;
        let same = (0..kernels.len()).filter(|k| sets[*k].as_ref() == Ok(set));
        Ok(same.max_by_key(|k| (release(*k), usize::MAX - k)).expect("it sets the same as itself"))
    };
    sets.iter().map(role).collect()
}

/// `the real 6.1.0 stands in for linux-2.6.32 and linux-6.1; left out: eevdf (it is later than 6.1.0)`.
fn remark(kernels: &[KernelFile], asked: &Asked<'_>, roles: &[Result<usize, String>]) -> String {
    let mut stood: Vec<&str> = Vec::new();
    let mut left = Vec::new();
    for (kernel, role) in kernels.iter().zip(roles) {
        match role {
            Ok(_) if stood.contains(&kernel.kernel.as_str()) => {}
            Ok(_) => stood.push(&kernel.kernel),
            Err(why) => left.push(format!("{} ({why})", kernel.name)),
        }
    }
    let stood = match &stood[..] {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => stood.concat(),
    };
    let left = if left.is_empty() { String::new() } else { format!("; left out: {}", left.join(", ")) };
    format!("the real {} stands in for {stood}{left}", asked.name)
}

/// The experiment without those values of a parameter whose machines the backend does not have, and what was left out;
/// or why nothing can be left.
fn possible(experiment: Experiment, backend: &dyn Backend) -> Result<Result<(Experiment, Option<String>), String>> {
    let mut lacking: BTreeMap<usize, String> = BTreeMap::new();
    for job in run::plan(&experiment)? {
        if let Some(why) = backend.lacks(job.machine()) {
            lacking.extend(job.points().iter().map(|point| (*point, why.clone())));
        }
    }
    let Some(why) = lacking.values().next().cloned() else { return Ok(Ok((experiment, None))) };
    let points = || experiment.points.iter().enumerate();
    for (name, values) in &experiment.file.sweep {
        let of = |value: &Scalar| -> Vec<usize> {
            points().filter(|(_, point)| point.0.get(name) == Some(value)).map(|(at, _)| at).collect()
        };
        let whole = |value: &&Scalar| of(value).iter().all(|at| lacking.contains_key(at));
        let (out, rest): (Vec<&Scalar>, Vec<&Scalar>) = values.iter().partition(whole);
        let clean = rest.iter().all(|value| of(value).iter().all(|at| !lacking.contains_key(at)));
        if out.is_empty() || rest.is_empty() || !clean {
            continue;
        }
        let only: Vec<String> = rest.iter().map(|value| format!("{name}={value}")).collect();
        let out: Vec<String> = out.iter().map(ToString::to_string).collect();
        let remark = format!("{name}={} is left out: {why}", out.join(", "));
        let selection = Selection::new(std::slice::from_ref(&experiment), &[], &only)?;
        let part = selection.apply(vec![experiment.clone()])?.pop().expect("something is left");
        return Ok(Ok((part, Some(remark))));
    }
    Ok(Err(why))
}

impl Part {
    /// How many runs the real kernel does, and how long they take by its own time as far as that is known.
    ///
    /// # Errors
    /// When the experiment is wrong.
    pub fn length(&self) -> Result<(usize, Nanos)> {
        if self.simulated.is_none() {
            return Ok((0, 0));
        }
        let (jobs, seeds) = (run::plan(&self.real)?, self.real.file.seeds.len());
        let each: Nanos = jobs.iter().filter_map(run::Job::length).sum();
        Ok((jobs.len() * seeds, each * seeds as Nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Outcome, Request};
    use schedlab_base::{Meta, Nanos, Sink};
    use schedlab_machine::Machine;
    use schedlab_machine::tomltext::TomlText;

    /// A real kernel on four CPUs that runs nothing.
    struct Real {
        settable: bool,
    }

    impl Backend for Real {
        fn name(&self) -> &str {
            "real"
        }
        fn deterministic(&self) -> bool {
            false
        }
        fn real_kernel(&self) -> Option<&str> {
            Some("6.18.44-x")
        }
        fn can_set(&self) -> bool {
            self.settable
        }
        fn lacks(&self, machine: &Machine) -> Option<String> {
            (machine.cpus.len() > 4).then(|| "its machine is larger".to_owned())
        }
        fn meta(&self, _: &Request) -> Meta {
            Meta::default()
        }
        fn idle_ticks(&self, _: &Request) -> Result<Option<(Nanos, Nanos)>> {
            Ok(None)
        }
        fn run(&self, _: &Request, _: &mut dyn Sink) -> Result<Outcome> {
            unreachable!("it runs nothing")
        }
    }

    fn experiment(machine: &str, kernels: &[(&str, &str, &str)]) -> Experiment {
        measuring("sum(run_s)", machine, kernels)
    }

    fn measuring(metric: &str, machine: &str, kernels: &[(&str, &str, &str)]) -> Experiment {
        let kernel = |(name, profile, set): &(&str, &str, &str)| {
            format!("[[kernels]]\nname = \"{name}\"\nkernel = \"{profile}\"\nset = {{ {set} }}\n")
        };
        let kernels: String = kernels.iter().map(kernel).collect();
        let text = format!(
            r#"
id = "x"
title = "t"
machine = "{machine}"
duration = "1s"
source = {{ work = "w", place = "p", setup = "s", claim = "c" }}
workload = {{ preset = "li:tasks=2" }}
metrics = {{ n = {{ value = "{metric}" }} }}
{kernels}
[[expectations]]
figure = "f"
kind = "number"
metric = "n"
relation = "<="
bound = 9
"#
        );
        Experiment::parse(TomlText::new("x.toml", text)).unwrap()
    }

    #[test]
    fn the_nearest_kernel_that_sets_nothing_stands_for_the_real_one() {
        let all = [
            ("old", "linux-2.6.32", ""),
            ("new", "linux-6.12", ""),
            ("same", "linux-6.12", ""),
            ("tuned", "linux-6.12", "base_slice_ns = 1000000"),
        ];
        let part = part(experiment("4", &all), &Real { settable: false }).unwrap();
        let names = |e: &Experiment| e.file.kernels.iter().map(|k| k.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            (names(&part.real), names(part.simulated.as_ref().unwrap())),
            (vec!["new".into()], vec!["new".into()])
        );
        assert_eq!(part.real.kernel_label(0), "real 6.18.44-x");
        assert_eq!(part.simulated.unwrap().kernel_label(0), "linux-6.18");
        let why = "setting base_slice_ns would change this machine for everybody; a guest can (--on vm:KERNEL)";
        assert_eq!(
            part.remarks,
            [format!("x: the real 6.18.44-x stands in for linux-2.6.32 and linux-6.12; left out: tuned ({why})")]
        );
    }

    #[test]
    fn what_cannot_run_is_refused_with_the_reason() {
        let refused = |experiment| part(experiment, &Real { settable: false }).unwrap_err();
        let error = refused(experiment("8", &[("new", "linux-6.12", "")]));
        assert!(error.to_string().starts_with("x cannot run here: its machine is larger"), "{error}");
        assert_eq!(error.exit_status(), 4);
        let error = refused(experiment("4", &[("tuned", "linux-6.12", "base_slice_ns = 1000000")]));
        assert!(error.to_string().contains("would change this machine for everybody"), "{error}");
        let error = refused(experiment("4", &[("old", "linux-2.6.11", "")]));
        assert!(error.to_string().contains("its scheduler is another one (O(1))"), "{error}");
        let old = [("old", "linux-2.6.32", "")];
        let error = refused(measuring("tunable['sched_latency_ns'] / 1e6", "4", &old));
        let why = "it measures nothing but what 6.18.44-x does not have: sched_latency_ns";
        assert!(error.to_string().contains(why), "{error}");
        let has = measuring("tunable['sched_base_slice_ns'] / 1e6", "4", &old);
        assert!(part(has, &Real { settable: false }).is_ok());
        let both = vec![experiment("8", &[("new", "linux-6.12", "")]), experiment("4", &[("new", "linux-6.12", "")])];
        let parts = parts(both, &Real { settable: false }).unwrap();
        let left_out = |part: &Part| part.real.expectations[0].left_out.clone();
        let skipped = (Verdict::Skipped, "its machine is larger".to_owned());
        assert_eq!((left_out(&parts[0]), left_out(&parts[1])), (Some(skipped), None));
    }

    #[test]
    fn settings_are_made_under_the_real_kernel_s_names() {
        let kernels = [
            ("slice", "linux-6.12", "base_slice_ns = 2000000"),
            ("fixed", "linux-2.6.32", "\"fix.empty_shares\" = \"on\""),
            ("latency", "linux-2.6.32", "sched_latency_ns = 2000000"),
            ("hz", "linux-6.12", "hz = 1000"),
            ("rr", "linux-2.6.32", "sched_rt_runtime_us = 900000"),
        ];
        let part = part(experiment("4", &kernels), &Real { settable: true }).unwrap();
        let sets = part.real.file.kernels.iter().map(|k| (k.name.as_str(), k.set.keys().cloned().collect::<Vec<_>>()));
        let wanted = [
            ("slice", vec!["base_slice_ns".to_owned()]),
            ("fixed", Vec::new()),
            ("rr", vec!["sched_rt_runtime_us".to_owned()]),
        ];
        assert_eq!(sets.collect::<Vec<_>>(), wanted);
        assert_eq!(part.real.kernel_label(0), "real 6.18.44-x, slice");
        assert!(part.remarks[0].contains("latency (6.18.44-x has no sched_latency_ns that could be set)"), "{part:?}");
        assert!(part.remarks[0].contains("hz (6.18.44-x has no hz that could be set)"), "{part:?}");
    }

    #[test]
    fn what_compares_kernels_that_one_stands_in_for_is_left_out() {
        let text =
            experiment("4", &[("old", "linux-2.6.32", ""), ("new", "linux-6.12", ""), ("o1", "linux-2.6.11", "")]);
        let text = text.document.text().to_owned();
        let expect = |metric: &str, more: &str| {
            format!("[[expectations]]\nmetric = \"{metric}\"\nrelation = \"<=\"\nbound = 9\n{more}\n")
        };
        let text = text
            + &expect("n@old / n@new", "")
            + &expect("n@old", "")
            + &expect("n@old", "published = 3")
            + &expect("n@o1", "published = 3")
            + &expect("n", "kernels = [\"old\"]")
            + &expect("n", "kernels = [\"old\", \"o1\"]\npublished = 4\nknown_difference = \"x\"");
        let part = part(Experiment::parse(TomlText::new("x.toml", text)).unwrap(), &Real { settable: false }).unwrap();
        let all = &part.real.expectations;
        let why =
            |e: &crate::experiment::Expectation| e.left_out.as_ref().map_or("", |(_, why)| why.as_str()).to_owned();
        assert_eq!(
            all.iter().map(why).collect::<Vec<_>>(),
            [
                "",
                "it compares linux-6.12 with linux-2.6.32, and one kernel stands in for both",
                "it is about linux-2.6.32, and nothing was published for it",
                "",
                "it is about linux-2.6.11: its scheduler is another one (O(1))",
                "it is about linux-2.6.32, and nothing was published for it",
                "",
            ]
        );
        assert_eq!(all[6].file.kernels, ["new"]);
        let mut named = Vec::new();
        all[3].metric.references(&mut |reference| named.extend(reference.kernel.clone()));
        assert_eq!(named, ["new"]);
    }

    #[test]
    fn values_of_a_parameter_whose_machine_is_not_there_are_left_out() {
        let text = experiment("{cpus}", &[("new", "linux-6.12", "")]).document.text().to_owned();
        let text = text.replace("[[kernels]]", "[sweep]\ncpus = [2, 4, 8, 16]\n\n[[kernels]]");
        let text = text.replace("[[expectations]]", "[[expectations]]\nat = { cpus = [2] }");
        let part = part(Experiment::parse(TomlText::new("x.toml", text)).unwrap(), &Real { settable: false }).unwrap();
        assert_eq!(part.real.points.iter().map(|p| p.label()).collect::<Vec<_>>(), ["cpus=2", "cpus=4"]);
        assert_eq!(part.remarks[0], "x: cpus=8, 16 is left out: its machine is larger");
        assert_eq!(part.length().unwrap(), (2 * part.real.file.seeds.len(), 2 * 5_000_000_000));
    }
}
