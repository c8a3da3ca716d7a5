//! The expressions of a file: those of metrics, expectations and charts, parsed, with every name known.

use super::check::{Check, is_name};
use super::margin::Margin;
use super::names::Names;
use super::{Chart, Expectation, Published};
use crate::expr::{Expr, parse};
use crate::file::ExpectationFile;
use crate::scalar::Scalar;
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

    pub(super) fn expectations(&self, tables: &Tables) -> Result<Vec<Expectation>> {
        let names = self.names(tables, true);
        let one = |(i, file): (usize, &ExpectationFile)| self.expectation(&format!("expectations[{i}]"), file, &names);
        self.file.expectations.iter().enumerate().map(one).collect()
    }

    fn expectation(&self, path: &str, file: &ExpectationFile, names: &Names) -> Result<Expectation> {
        for kernel in &file.kernels {
            self.known(&format!("{path}.kernels"), kernel, "kernel of this file", names.kernels.iter().copied())?;
        }
        for (name, values) in &file.at {
            let place = format!("{path}.at");
            self.parameter(&place, name)?;
            if let Some(value) = values.iter().find(|v| !self.file.sweep[name].contains(v)) {
                return self.wrong(&place, format!("{name} = {value} is not among the sweep's"), "take one that is");
            }
        }
        let bound = match &file.bound {
            Scalar::Text(text) => self.expression(&format!("{path}.bound"), text, names)?,
            number => Expr::Number(number.number().unwrap_or_default()),
        };
        let margin = file.margin.as_ref().map_or(Ok(Margin::Absolute(0.0)), Margin::parse);
        let published = match &file.published {
            None => Published::Nothing,
            Some(Scalar::Text(text)) if text.starts_with('=') => {
                Published::Computed(self.expression(&format!("{path}.published"), &text[1..], names)?)
            }
            Some(plain) => Published::Plain(plain.clone()),
        };
        Ok(Expectation {
            metric: self.expression(&format!("{path}.metric"), &file.metric, names)?,
            bound,
            margin: margin
                .or_else(|what| self.wrong(&format!("{path}.margin"), what, "\"2%\", or an amount such as 0.5"))?,
            published,
            file: file.clone(),
        })
    }

    pub(super) fn charts(&self, tables: &Tables) -> Result<Vec<Chart>> {
        let names = self.names(tables, true);
        let mut charts = Vec::new();
        for (i, chart) in self.file.charts.iter().enumerate() {
            let path = format!("charts[{i}]");
            self.parameter(&format!("{path}.x"), &chart.x)?;
            for kernel in &chart.kernels {
                self.known(&format!("{path}.kernels"), kernel, "kernel of this file", names.kernels.iter().copied())?;
            }
            let y = self.expression(&format!("{path}.y"), &chart.y, &names)?;
            let published = chart
                .published
                .iter()
                .map(|(label, text)| Ok((label.clone(), self.expression(&format!("{path}.published"), text, &names)?)))
                .collect::<Result<_>>()?;
            charts.push(Chart { y, published });
        }
        Ok(charts)
    }

    fn names<'n>(&'n self, tables: &'n Tables, metrics: bool) -> Names<'n> {
        Names {
            parameters: self.file.sweep.keys().map(String::as_str).collect(),
            metrics: metrics.then(|| self.file.metrics.keys().map(String::as_str).collect()),
            kernels: self.file.kernels.iter().map(|k| k.name.as_str()).collect(),
            tables,
        }
    }

    fn expression(&self, path: &str, text: &str, names: &Names) -> Result<Expr> {
        let expr = parse(text).map_err(|e| self.at(path, &e))?;
        names.check(&expr).map_err(|(what, mend)| self.slip(path, what, mend))?;
        Ok(expr)
    }
}
