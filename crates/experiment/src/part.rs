//! The part of an experiment that a backend with a real kernel can run.

use crate::backend::Backend;
use crate::experiment::{Experiment, Selection};
use crate::run;
use schedlab_base::{Error, Release, Result};
use schedlab_sched::kernels;

/// The part that the backend can run, and a remark if that is not everything. Of the experiment's kernels, a real one
/// stands in for the nearest release.
///
/// # Errors
/// When the backend can run nothing of it; the message says what is missing.
pub fn part(experiment: Experiment, backend: &dyn Backend) -> Result<(Experiment, Option<String>)> {
    let Some(kernel) = backend.real_kernel() else { return Ok((experiment, None)) };
    let id = experiment.file.id.clone();
    let refused = |why: String| {
        Error::not_permitted(format!("{id} cannot run here: {why}"))
            .mend("simulate it (--on sim), or run it on a machine like the experiment's")
    };
    if let Some(why) = run::plan(&experiment)?.iter().find_map(|job| backend.lacks(job.machine())) {
        return Err(refused(why));
    }
    let Some(k) = stands_for(&experiment, kernel) else {
        return Err(refused("each of its kernels sets tunables, or is later than this one".to_owned()));
    };
    let chosen = experiment.file.kernels[k].clone();
    let left_out = experiment.file.kernels.len() - 1;
    let selection = Selection::new(std::slice::from_ref(&experiment), std::slice::from_ref(&chosen.name), &[])?;
    let mut part = selection.apply(vec![experiment])?.pop().expect("the kernel was selected");
    part.file.kernels[0].label = Some(format!("real {kernel}"));
    let rest = match left_out {
        0 => String::new(),
        1 => "; 1 other kernel is left out".to_owned(),
        n => format!("; {n} other kernels are left out"),
    };
    Ok((part, Some(format!("{id}: the real {kernel} stands in for {}{rest}", chosen.kernel))))
}

/// The kernel of an experiment that a real one stands in for: of those that set nothing, the last release that is not
/// after it, and the first of equal ones.
fn stands_for(experiment: &Experiment, real: &str) -> Option<usize> {
    let real: Release = real.parse().ok()?;
    let release = |profile: &str| kernels::find(profile).ok().and_then(|kernel| kernel.release);
    let kernels = experiment.file.kernels.iter().enumerate().filter(|(_, kernel)| kernel.set.is_empty());
    let fitting = kernels.filter_map(|(k, kernel)| Some((release(&kernel.kernel)?, k)));
    let latest = fitting.filter(|(release, _)| *release <= real).max_by_key(|(release, k)| (*release, usize::MAX - k));
    latest.map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Outcome, Request};
    use schedlab_base::{Meta, Nanos, Sink};
    use schedlab_machine::Machine;
    use schedlab_machine::tomltext::TomlText;

    /// A real kernel on four CPUs that runs nothing.
    struct Real;

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
metrics = {{ n = {{ value = "sum(run_s)" }} }}
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
        let (part, remark) = part(experiment("4", &all), &Real).unwrap();
        assert_eq!(part.file.kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>(), ["new"]);
        assert_eq!(remark.unwrap(), "x: the real 6.18.44-x stands in for linux-6.12; 3 other kernels are left out");
    }

    #[test]
    fn what_cannot_run_is_refused_with_the_reason() {
        let refused = |experiment| part(experiment, &Real).unwrap_err();
        let error = refused(experiment("8", &[("new", "linux-6.12", "")]));
        assert!(error.to_string().starts_with("x cannot run here: its machine is larger"), "{error}");
        assert_eq!(error.exit_status(), 4);
        let error = refused(experiment("4", &[("tuned", "linux-6.12", "base_slice_ns = 1000000")]));
        assert!(error.to_string().contains("each of its kernels sets tunables"), "{error}");
    }
}
