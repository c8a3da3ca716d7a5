//! The expressions of a file: those of metrics, tables and charts, parsed, with every name known.

use super::check::{Check, is_name};
use super::names::Names;
use super::{Chart, Ours};
use crate::expr::{Expr, parse};
use crate::file::{ChartFile, ChartKind, TableFile};
use crate::tables::Tables;
use schedlab_base::Result;
use std::collections::BTreeMap;

impl Check<'_> {
    pub(super) fn metrics(&self, tables: &Tables) -> Result<BTreeMap<String, Expr>> {
        let names = self.names(tables, false);
        let mut metrics = BTreeMap::new();
        for (name, metric) in &self.file.metrics {
            let path = format!("metrics.{name}");
            if !is_name(name) || self.file.sweep.contains_key(name) {
                return self.wrong(
                    &path,
                    format!("\"{name}\" cannot be its name"),
                    "letters, digits, '_'; no parameter's",
                );
            }
            metrics.insert(name.clone(), self.expression(&format!("{path}.value"), &metric.value, &names)?);
        }
        Ok(metrics)
    }

    /// The expressions that are ours for the tables' cells.
    pub(super) fn ours(&self, tables: &Tables) -> Result<Ours> {
        let names = self.names(tables, true);
        let of_table = |(i, table): (usize, &TableFile)| {
            let of_column = |(column, text): (&String, &String)| {
                let path = format!("tables[{i}].ours.{column}");
                let known = table.columns.iter().position(|c| c == column);
                let Some(at) = known else {
                    return self.wrong(&path, format!("\"{column}\" is no column of this table"), "name one that is");
                };
                Ok((at, self.expression(&path, text, &names)?))
            };
            table.ours.iter().map(of_column).collect()
        };
        self.file.tables.iter().enumerate().map(of_table).collect()
    }

    pub(super) fn charts(&self, tables: &Tables) -> Result<Vec<Chart>> {
        let names = self.names(tables, true);
        let one = |(i, file): (usize, &ChartFile)| self.chart(&format!("charts[{i}]"), file, &names, tables);
        self.file.charts.iter().enumerate().map(one).collect()
    }

    fn chart(&self, path: &str, file: &ChartFile, names: &Names, tables: &Tables) -> Result<Chart> {
        let needs = needs(file);
        if let Some((key, what)) = needs {
            return self.wrong(&format!("{path}.{key}"), what, "docs/experiments.md lists what each kind takes");
        }
        if let Some(x) = &file.x {
            self.parameter(&format!("{path}.x"), x)?;
        }
        self.drawn_at(&format!("{path}.at"), file)?;
        for kernel in &file.kernels {
            self.known(&format!("{path}.kernels"), kernel, "kernel of this file", names.kernels.iter().copied())?;
        }
        let optional = |key: &str, text: &Option<String>, names: &Names| {
            text.as_ref().map(|text| self.expression(&format!("{path}.{key}"), text, names)).transpose()
        };
        let measures = self.names(tables, false);
        let mut groups = Vec::new();
        for (i, group) in file.groups.iter().enumerate() {
            let path = format!("groups[{i}]");
            let value = optional(&format!("{path}.value"), &Some(group.value.clone()), names)?;
            let published = optional(&format!("{path}.published"), &group.published, names)?;
            groups.extend(value.map(|value| (value, published)));
        }
        let tasks = match (optional("tasks", &file.tasks, &measures)?, optional("tasks_x", &file.tasks_x, &measures)?) {
            (Some(y), x) => Some((y, x)),
            (None, _) => None,
        };
        let mut published = Vec::new();
        for (label, text) in &file.published {
            published.push((label.clone(), self.expression(&format!("{path}.published"), text, names)?));
        }
        let (y, error) = (optional("y", &file.y, names)?, optional("error", &file.error, names)?);
        Ok(Chart { y, error, groups, tasks, published })
    }

    /// Checks where a chart is drawn: at values of the sweep, one of each parameter but that along the x axis.
    fn drawn_at(&self, path: &str, file: &ChartFile) -> Result<()> {
        for (name, values) in &file.at {
            let path = format!("{path}.{name}");
            values.iter().try_for_each(|value| self.value(&path, name, value))?;
            if values.len() != 1 && (values.is_empty() || file.x.as_ref() != Some(name)) {
                return self.wrong(&path, "is one point of the chart", "give one value");
            }
        }
        Ok(())
    }

    pub(super) fn names<'n>(&'n self, tables: &'n Tables, metrics: bool) -> Names<'n> {
        Names {
            parameters: self.file.sweep.keys().map(String::as_str).collect(),
            metrics: metrics.then(|| self.file.metrics.keys().map(String::as_str).collect()),
            kernels: self.file.kernels.iter().map(|k| k.name.as_str()).collect(),
            tables,
        }
    }

    pub(super) fn expression(&self, path: &str, text: &str, names: &Names) -> Result<Expr> {
        self.within(path, text, names, &mut Vec::new())
    }

    /// The expression of a term, or one that names terms: those in `around` contain it.
    fn within<'f>(&'f self, path: &str, text: &str, names: &Names, around: &mut Vec<&'f str>) -> Result<Expr> {
        let mut expr = parse(text).map_err(|e| self.at(path, &e))?;
        if names.metrics.is_some() {
            expr.replace(&mut |name| {
                let Some((term, text)) = self.file.terms.get_key_value(name) else { return Ok(None) };
                if around.contains(&term.as_str()) {
                    return self.wrong(path, format!("\"{term}\" contains itself"), "let each term name others only");
                }
                around.push(term);
                let found = self.within(&format!("terms.{term}"), text, names, around);
                around.pop();
                found.map(Some)
            })?;
        }
        names.check(&expr).map_err(|(what, mend)| self.slip(path, what, mend))?;
        Ok(expr)
    }

    /// Checks the terms, those that nothing names included.
    pub(super) fn terms(&self, tables: &Tables) -> Result<()> {
        let names = self.names(tables, true);
        for (name, text) in &self.file.terms {
            let path = format!("terms.{name}");
            let taken = self.file.sweep.contains_key(name) || self.file.metrics.contains_key(name);
            if !is_name(name) || taken {
                let what = format!("\"{name}\" cannot be its name");
                return self.wrong(&path, what, "letters, digits, '_'; no parameter's and no metric's");
            }
            self.within(&path, text, &names, &mut vec![name])?;
        }
        Ok(())
    }
}

/// The key of a chart that is missing or does not belong there, and what is wrong with it.
fn needs(file: &ChartFile) -> Option<(&'static str, &'static str)> {
    let (x, y) = (file.x.is_some(), file.y.is_some());
    let (groups, tasks) = (!file.groups.is_empty(), file.tasks.is_some());
    if tasks && !x && !file.at.is_empty() {
        return Some(("at", "the tasks are those of the runs shown"));
    }
    match file.kind {
        ChartKind::Lines if !x => Some(("x", "lines need a parameter along the x axis")),
        ChartKind::Lines if !y => Some(("y", "lines need an expression along the y axis")),
        ChartKind::Lines if groups || tasks => Some(("kind", "lines take neither groups nor tasks")),
        ChartKind::Bars if usize::from(x && y) + usize::from(groups) + usize::from(tasks) != 1 => {
            Some(("kind", "bars are of one of: x and y, groups, tasks"))
        }
        ChartKind::Stacked if y || groups == tasks || tasks && !x => {
            Some(("groups", "the parts are given as groups, or as tasks along x, and there is no y"))
        }
        ChartKind::Pie if !groups || y || tasks => Some(("groups", "the parts are given as groups, and there is no y")),
        ChartKind::Points if !tasks || groups || x || y => Some(("tasks", "points are of tasks alone")),
        ChartKind::Shares if !tasks || groups || x || y => {
            Some(("tasks", "shares are of tasks: run_s with a name, such as run_s['hog-*']"))
        }
        _ => None,
    }
}
