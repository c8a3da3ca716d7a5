//! Checks what a file says besides its expressions: names, sizes, values of the sweep.

use super::names::known;
use crate::file::ExperimentFile;
use crate::points;
use crate::scalar::Scalar;
use schedlab_base::{Error, Nanos, Result, parse_duration};
use schedlab_machine::tomltext::TomlText;
use schedlab_measure::series::MOST_FIXED;
use std::collections::BTreeMap;

/// The most runs of one experiment.
const MOST_RUNS: usize = 20_000;

/// The most combinations of a sweep, of which a table may choose some.
const MOST_POINTS: usize = 100_000;

/// A file that is being checked.
pub(super) struct Check<'a> {
    pub(super) file: &'a ExperimentFile,
    pub(super) document: &'a TomlText,
}

impl Check<'_> {
    pub(super) fn head(&self) -> Result<()> {
        let id = &self.file.id;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
        if id.is_empty() || id.len() > 64 || !id.chars().all(fits) {
            return self.wrong("id", format!("\"{id}\" is no id"), "letters, digits, '-', '_', '.'; 64 at most");
        }
        if self.file.seeds.is_empty() {
            return self.wrong("seeds", "no seed, no run", "write [1], or leave it out for five");
        }
        let seeds = &self.file.seeds;
        if (1..seeds.len()).any(|i| seeds[..i].contains(&seeds[i])) {
            return self.wrong("seeds", "has a seed twice", "give each once");
        }
        let given = [&self.file.workload.preset, &self.file.workload.file, &self.file.workload.inline];
        if given.iter().filter(|w| w.is_some()).count() != 1 {
            return self.wrong("workload", "is not one workload", "give exactly one of preset, file, inline");
        }
        Ok(())
    }

    pub(super) fn sweep(&self) -> Result<()> {
        for (name, values) in &self.file.sweep {
            let path = format!("sweep.{name}");
            if !is_name(name) {
                return self.wrong(&path, format!("\"{name}\" is no name"), "letters, digits and '_'");
            }
            if values.is_empty() {
                return self.wrong(&path, "has no value", "give at least one");
            }
            if (1..values.len()).any(|i| values[..i].contains(&values[i])) {
                return self.wrong(&path, "has a value twice", "give each once");
            }
        }
        let all = points::count(&self.file.sweep);
        if all > MOST_POINTS {
            return self.wrong("sweep", format!("{all} combinations are too many"), "at most 100000");
        }
        let points = points::of(&self.file.sweep, self.file.points_table()).len();
        let runs = points.saturating_mul(self.file.kernels.len()).saturating_mul(self.file.seeds.len());
        if runs > MOST_RUNS {
            return self.wrong("sweep", format!("{runs} runs are too many"), "at most 20000: values x kernels x seeds");
        }
        self.values("show", &self.file.show)
    }

    pub(super) fn kernels(&self) -> Result<()> {
        let kernels = &self.file.kernels;
        if kernels.is_empty() {
            return self.wrong("kernels", "no kernel, no run", "give at least one [[kernels]]");
        }
        for (i, kernel) in kernels.iter().enumerate() {
            let path = format!("kernels[{i}].name");
            if !is_name(&kernel.name) {
                return self.wrong(&path, format!("\"{}\" is no name", kernel.name), "letters, digits and '_'");
            }
            if kernels[..i].iter().any(|k| k.name == kernel.name) {
                return self.wrong(&path, format!("\"{}\" is there twice", kernel.name), "give each its own name");
            }
        }
        Ok(())
    }

    pub(super) fn tables(&self) -> Result<()> {
        for (i, table) in self.file.tables.iter().enumerate() {
            let path = format!("tables[{i}]");
            if !is_name(&table.name) || self.file.tables[..i].iter().any(|t| t.name == table.name) {
                let what = format!("\"{}\" is no name, or there twice", table.name);
                return self.wrong(&format!("{path}.name"), what, "letters, digits and '_'");
            }
            if let Some(column) = table.columns.iter().find(|c| !is_name(c)) {
                let what = format!("\"{column}\" is no name");
                return self.wrong(&format!("{path}.columns"), what, "letters, digits and '_'");
            }
            if let Some(row) = table.rows.iter().position(|r| r.len() != table.columns.len()) {
                let what = format!("{} cells for {} columns", table.rows[row].len(), table.columns.len());
                return self.wrong(&format!("{path}.rows[{row}]"), what, "give each column its cell");
            }
        }
        Ok(())
    }

    pub(super) fn points_table(&self) -> Result<()> {
        let Some(name) = &self.file.points else { return Ok(()) };
        self.known("points", name, "table of this file", self.file.tables.iter().map(|table| table.name.as_str()))
    }

    pub(super) fn window(&self, window: Option<Nanos>) -> Result<()> {
        let Some(window) = window else { return Ok(()) };
        if window == 0 {
            return self.wrong("window", "a window of no width", "write a width: 1s");
        }
        let duration = self.file.duration.as_deref().and_then(|d| parse_duration(d).ok());
        if duration.is_some_and(|d| d / window > MOST_FIXED) {
            return self.wrong("window", "makes too many windows", "at most 10000 in the duration");
        }
        Ok(())
    }

    pub(super) fn wrong<T>(&self, path: &str, what: impl Into<String>, mend: &str) -> Result<T> {
        Err(self.document.error(path, what).mend(mend))
    }

    /// An error from elsewhere at this place.
    pub(super) fn at(&self, path: &str, error: &Error) -> Error {
        self.document.error(path, error.to_string())
    }

    /// One value of each of some parameters.
    pub(super) fn values(&self, path: &str, values: &BTreeMap<String, Scalar>) -> Result<()> {
        values.iter().try_for_each(|(name, value)| self.value(&format!("{path}.{name}"), name, value))
    }

    /// Checks that a parameter of the sweep has a value.
    pub(super) fn value(&self, path: &str, name: &str, value: &Scalar) -> Result<()> {
        self.parameter(path, name)?;
        if self.file.sweep[name].contains(value) {
            return Ok(());
        }
        self.wrong(path, format!("{value} is not among the sweep's"), "take one that is")
    }

    pub(super) fn parameter(&self, path: &str, name: &str) -> Result<()> {
        self.known(path, name, "parameter of the sweep", self.file.sweep.keys().map(String::as_str))
    }

    pub(super) fn known<'n>(
        &self,
        path: &str,
        name: &str,
        noun: &str,
        all: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<()> {
        known(name, noun, all).map_err(|(what, mend)| self.slip(path, what, mend))
    }

    pub(super) fn slip(&self, path: &str, what: String, mend: Option<String>) -> Error {
        let error = self.document.error(path, what);
        match mend {
            Some(mend) => error.mend(mend),
            None => error,
        }
    }
}

/// Whether a text can be a name in expressions.
pub(super) fn is_name(text: &str) -> bool {
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.len() <= 64 && text.starts_with(starts) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
