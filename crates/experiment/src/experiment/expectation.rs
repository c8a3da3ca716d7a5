//! The expectations of a file: what is judged, against what, and of which cases.

use super::check::Check;
use super::margin::Margin;
use super::names::Names;
use super::{Bound, Expectation, Ours, Published};
use crate::expr::Expr;
use crate::file::{ExpectationFile, Kind, Relation};
use crate::scalar::Scalar;
use crate::tables::Tables;
use schedlab_base::Result;

impl Check<'_> {
    pub(super) fn expectations(&self, tables: &Tables, ours: &Ours) -> Result<Vec<Expectation>> {
        let names = self.names(tables, true);
        let one =
            |(i, file): (usize, &ExpectationFile)| self.expectation(&format!("expectations[{i}]"), file, &names, ours);
        self.file.expectations.iter().enumerate().map(one).collect()
    }

    fn expectation(&self, path: &str, file: &ExpectationFile, names: &Names, ours: &Ours) -> Result<Expectation> {
        for kernel in &file.kernels {
            self.known(&format!("{path}.kernels"), kernel, "kernel of this file", names.kernels.iter().copied())?;
        }
        if file.kind == Some(Kind::Calibration) && file.known_difference.is_some() {
            let mend = "leave one of the two out";
            return self.wrong(&format!("{path}.kind"), "a calibration has no known difference", mend);
        }
        if file.seed_dependent.is_some() && (file.kind == Some(Kind::Calibration) || file.known_difference.is_some()) {
            let what = "only what is judged can depend on the seed, not a calibration or a known difference";
            return self.wrong(&format!("{path}.seed_dependent"), what, "leave one of the two out");
        }
        let cells = file.cells.as_ref().map(|cells| self.cells(&format!("{path}.cells"), cells)).transpose()?;
        self.places(path, file, cells)?;
        let metric = self.metric(path, file, cells, names, ours)?;
        let published = match (&file.published, cells) {
            (None, Some(_)) => Published::Cell,
            (None, None) => Published::Nothing,
            (Some(Scalar::Text(text)), _) if text.starts_with('=') => {
                Published::Computed(self.expression(&format!("{path}.published"), &text[1..], names)?)
            }
            (Some(plain), _) => Published::Plain(plain.clone()),
        };
        let (relation, bound, margin) = self.requirement(path, file, &published, names)?;
        let text = words(file, self.metric_text(file, cells));
        let (file, stands_in, left_out) = (file.clone(), false, None);
        Ok(Expectation { file, text, cells, metric, relation, bound, margin, published, stands_in, left_out })
    }

    /// The table and the column of `table.column`.
    fn cells(&self, path: &str, cells: &str) -> Result<(usize, usize)> {
        let found = cells.split_once('.').and_then(|(table, column)| {
            let t = self.file.tables.iter().position(|t| t.name == table)?;
            Some((t, self.file.tables[t].columns.iter().position(|c| c == column)?))
        });
        found.map_or_else(|| self.wrong(path, format!("\"{cells}\" is no column"), "write table.column"), Ok)
    }

    /// Checks the places at which it is asked: parameters of the sweep, or columns of its table.
    fn places(&self, path: &str, file: &ExpectationFile, cells: Option<(usize, usize)>) -> Result<()> {
        for (name, values) in &file.at {
            let place = format!("{path}.at");
            let column = cells.and_then(|(t, _)| {
                let table = &self.file.tables[t];
                table.columns.iter().position(|c| c == name).map(|c| (table, c))
            });
            if let Some((table, c)) = column {
                if let Some(value) = values.iter().find(|v| table.rows.iter().all(|row| row.get(c) != Some(v))) {
                    return self.wrong(
                        &place,
                        format!("{name} = {value} is in no row of the table"),
                        "take one that is",
                    );
                }
                continue;
            }
            self.parameter(&place, name)?;
            if let Some(value) = values.iter().find(|v| !self.file.sweep[name].contains(v)) {
                return self.wrong(&place, format!("{name} = {value} is not among the sweep's"), "take one that is");
            }
        }
        Ok(())
    }

    fn metric(
        &self,
        path: &str,
        file: &ExpectationFile,
        cells: Option<(usize, usize)>,
        names: &Names,
        ours: &Ours,
    ) -> Result<Expr> {
        if let Some(text) = &file.metric {
            return self.expression(&format!("{path}.metric"), text, names);
        }
        let Some((table, column)) = cells else {
            return self.wrong(&format!("{path}.metric"), "is missing", "say what is judged: a metric, or cells");
        };
        match ours[table].get(&column) {
            Some(expr) => Ok(expr.clone()),
            None => {
                let what = format!("the column \"{}\" has nothing of ours", self.file.tables[table].columns[column]);
                self.wrong(&format!("{path}.cells"), what, "name it in the table's ours, or give a metric")
            }
        }
    }

    fn metric_text<'f>(&'f self, file: &'f ExpectationFile, cells: Option<(usize, usize)>) -> &'f str {
        let of_cells = || {
            let table = cells.map(|(t, c)| (&self.file.tables[t], c));
            table.and_then(|(table, c)| table.ours.get(&table.columns[c])).map(String::as_str)
        };
        file.metric.as_deref().or_else(of_cells).unwrap_or_default()
    }

    fn requirement(
        &self,
        path: &str,
        file: &ExpectationFile,
        published: &Published,
        names: &Names,
    ) -> Result<(Relation, Bound, Margin)> {
        let figure = !matches!(published, Published::Nothing | Published::Plain(Scalar::Text(_)));
        let margin = |key: &str, scalar: &Scalar| {
            let amounts = "\"2%\", or an amount such as 0.5";
            Margin::parse(scalar).or_else(|what| self.wrong(&format!("{path}.{key}"), what, amounts))
        };
        if let Some(within) = &file.within {
            let spare = [("relation", file.relation.is_some()), ("bound", file.bound.is_some())];
            let spare = spare.into_iter().chain([("margin", file.margin.is_some())]).find(|(_, there)| *there);
            if let Some((key, _)) = spare {
                return self.wrong(&format!("{path}.{key}"), "stands beside within", "leave one of the two out");
            }
            if !figure {
                let mend = "give published as a number or \"= expression\", or cells";
                return self.wrong(&format!("{path}.within"), "has no published figure to be near to", mend);
            }
            return Ok((Relation::Equal, Bound::Published, margin("within", within)?));
        }
        let Some(relation) = file.relation else {
            return self.wrong(&format!("{path}.relation"), "is missing", "give relation and bound, or within");
        };
        if relation == Relation::AsPublished && !figure {
            let mend = "give published as a number or \"= expression\", or cells";
            return self.wrong(&format!("{path}.relation"), "has no published figure to follow", mend);
        }
        let bound = match &file.bound {
            None => return self.wrong(&format!("{path}.bound"), "is missing", "give relation and bound, or within"),
            Some(Scalar::Text(text)) => self.expression(&format!("{path}.bound"), text, names)?,
            Some(number) => Expr::Number(number.number().unwrap_or_default()),
        };
        let margin = file.margin.as_ref().map_or(Ok(Margin::Absolute(0.0)), |given| margin("margin", given))?;
        Ok((relation, Bound::Computed(bound), margin))
    }
}

/// The metric, the relation, the bound and the margin in one line.
fn words(file: &ExpectationFile, metric: &str) -> String {
    if let Some(within) = &file.within {
        let published = match (&file.published, &file.cells) {
            (Some(published), _) => published.to_string().trim_start_matches('=').trim().to_owned(),
            (None, cells) => cells.clone().unwrap_or_default(),
        };
        return format!("{metric} == {published} within {within}");
    }
    let margin = file.margin.as_ref().map_or_else(String::new, |m| format!(" within {m}"));
    let bound = file.bound.as_ref().map_or_else(String::new, ToString::to_string);
    format!("{metric} {} {bound}{margin}", file.relation.map_or("", Relation::sign))
}
