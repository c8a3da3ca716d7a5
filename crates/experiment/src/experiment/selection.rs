//! A part of experiments: some of them, some of their kernels, or some points of their sweeps.

use super::Experiment;
use super::names::known;
use crate::file::KernelFile;
use crate::points;
use schedlab_base::{Error, Result};

/// What is to be run of experiments; everything if it names nothing.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    ids: Vec<String>,
    kernels: Vec<String>,
    points: Vec<(String, String)>,
}

impl Selection {
    /// Reads what the user asks for: `kernels` by any of their names; `only` the ids of experiments, kernels, or
    /// `PARAMETER=VALUE`.
    ///
    /// # Errors
    /// When no experiment has such an id, kernel, parameter or value.
    pub fn new(experiments: &[Experiment], kernels: &[String], only: &[String]) -> Result<Self> {
        let mut selection = Self::default();
        for name in kernels {
            check("--kernel", name, "kernel of these experiments", &all_kernels(experiments))?;
            selection.kernels.push(name.clone());
        }
        let ids: Vec<&str> = experiments.iter().map(|e| e.file.id.as_str()).collect();
        for text in only {
            if let Some((name, value)) = text.split_once('=') {
                selection.point(experiments, name.trim(), value.trim())?;
            } else if all_kernels(experiments).contains(&text.as_str()) && !ids.contains(&text.as_str()) {
                selection.kernels.push(text.clone());
            } else {
                let all: Vec<&str> = ids.iter().copied().chain(all_kernels(experiments)).collect();
                check("--only", text, "experiment or kernel here", &all)?;
                selection.ids.push(text.clone());
            }
        }
        Ok(selection)
    }

    fn point(&mut self, experiments: &[Experiment], name: &str, value: &str) -> Result<()> {
        let sweeps = || experiments.iter().map(|e| &e.file.sweep);
        let parameters: Vec<&str> = sweeps().flat_map(|sweep| sweep.keys().map(String::as_str)).collect();
        check("--only", name, "parameter of these experiments", &parameters)?;
        let values: Vec<String> =
            sweeps().filter_map(|sweep| sweep.get(name)).flatten().map(ToString::to_string).collect();
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        check(&format!("--only {name}"), value, "value of the sweep", &values)?;
        self.points.push((name.to_owned(), value.to_owned()));
        Ok(())
    }

    /// Whether it leaves anything out.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.ids.is_empty() && self.kernels.is_empty() && self.points.is_empty()
    }

    /// The selected part of these experiments. An experiment that has none of the kernels, or lacks a parameter or its
    /// value, is left out.
    ///
    /// # Errors
    /// When nothing is left.
    pub fn apply(&self, experiments: Vec<Experiment>) -> Result<Vec<Experiment>> {
        if self.is_everything() {
            return Ok(experiments);
        }
        let wanted = |e: &Experiment| self.ids.is_empty() || self.ids.contains(&e.file.id);
        let selected: Vec<Experiment> =
            experiments.into_iter().filter(wanted).filter_map(|experiment| self.part(experiment)).collect();
        if selected.is_empty() {
            return Err(Error::input("no experiment has everything that --kernel and --only select")
                .mend("select less at a time"));
        }
        Ok(selected)
    }

    fn is_wanted(&self, kernel: &KernelFile) -> bool {
        self.kernels.is_empty() || names(kernel).any(|name| self.kernels.iter().any(|wanted| wanted == name))
    }

    fn part(&self, mut experiment: Experiment) -> Option<Experiment> {
        let old_kernels = std::mem::take(&mut experiment.file.kernels);
        let kept: Vec<usize> = (0..old_kernels.len()).filter(|k| self.is_wanted(&old_kernels[*k])).collect();
        experiment.file.kernels = kept.iter().map(|k| old_kernels[*k].clone()).collect();
        let sweep = &mut experiment.file.sweep;
        if self.points.iter().any(|(name, _)| !sweep.contains_key(name)) {
            return None;
        }
        for (name, values) in sweep.iter_mut() {
            let asked: Vec<&String> = self.points.iter().filter(|(n, _)| n == name).map(|(_, value)| value).collect();
            if !asked.is_empty() {
                let before = values.len();
                values.retain(|value| asked.contains(&&value.to_string()));
                if values.len() < before {
                    experiment.narrowed.push(name.clone());
                }
            }
        }
        if experiment.file.kernels.is_empty() || sweep.values().any(Vec::is_empty) {
            return None;
        }
        let points = points::of(&experiment.file.sweep, experiment.file.points_table());
        let old_points = std::mem::replace(&mut experiment.points, points);
        if experiment.points.is_empty() {
            return None;
        }
        for map in &mut experiment.heatmaps {
            map.kernels = map.kernels.iter().filter_map(|k| kept.iter().position(|kept| kept == k)).collect();
            match experiment.points.iter().position(|p| *p == old_points[map.point]) {
                Some(point) => map.point = point,
                None => map.kernels.clear(),
            }
        }
        Some(experiment)
    }
}

/// The names by which a user may call a kernel of an experiment.
fn names(kernel: &KernelFile) -> impl Iterator<Item = &str> {
    [kernel.name.as_str(), &kernel.kernel].into_iter().chain(kernel.label.as_deref())
}

fn all_kernels(experiments: &[Experiment]) -> Vec<&str> {
    experiments.iter().flat_map(|e| e.file.kernels.iter().flat_map(names)).collect()
}

fn check(option: &str, name: &str, noun: &str, all: &[&str]) -> Result<()> {
    let mut all = all.to_vec();
    all.sort_unstable();
    all.dedup();
    known(name, noun, all.into_iter()).map_err(|(what, mend)| {
        let error = Error::input(what).key(option);
        match mend {
            Some(mend) => error.mend(mend),
            None => error,
        }
    })
}
