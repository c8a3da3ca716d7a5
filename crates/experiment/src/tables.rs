//! Published and reference tables, as expressions look into them.

use crate::expr::{Problem, Selected, Value};
use crate::file::TableFile;
use crate::points::{same, value_of};

/// The tables of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Tables(pub Vec<TableFile>);

impl Tables {
    /// Whether `path` is `table.column`.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.find(path).is_some()
    }

    /// The names that expressions may use.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|t| t.columns.iter().map(|c| format!("{}.{c}", t.name)))
    }

    fn find(&self, path: &str) -> Option<(&TableFile, usize)> {
        let (table, column) = path.split_once('.')?;
        let table = self.0.iter().find(|t| t.name == table)?;
        Some((table, table.columns.iter().position(|c| c == column)?))
    }

    /// The cell of `table.column` in the row that the selectors name, or the column's cells in all rows that fit
    /// where a selector is `*` or none is given; `None` when there is no such table or column.
    #[must_use]
    pub fn value(&self, path: &str, selected: &[Selected]) -> Option<Result<Value, Problem>> {
        let (table, column) = self.find(path)?;
        Some(select(table, column, selected))
    }
}

fn select(table: &TableFile, column: usize, selected: &[Selected]) -> Result<Value, Problem> {
    let mut rows: Vec<usize> = (0..table.rows.len()).collect();
    for (key, value) in selected {
        let Some(at) = table.columns.iter().position(|c| c == key) else {
            return Err(Problem::Wrong(format!("the table \"{}\" has no column \"{key}\"", table.name)));
        };
        if let Some(value) = value {
            rows.retain(|r| same(&table.rows[*r][at], value));
        }
    }
    let cells: Vec<Value> = rows.iter().map(|r| value_of(&table.rows[*r][column])).collect();
    let wants_one = !selected.is_empty() && selected.iter().all(|(_, value)| value.is_some());
    match (wants_one, &cells[..]) {
        (true, [one]) => Ok(one.clone()),
        (true, []) => Err(Problem::Undefined(format!("the table \"{}\" has no such row", table.name))),
        (true, several) => {
            Err(Problem::Wrong(format!("{} rows of the table \"{}\" fit; name one", several.len(), table.name)))
        }
        (false, _) => cells
            .into_iter()
            .map(|cell| match cell {
                Value::Number(x) => Ok(x),
                other => Err(Problem::Wrong(format!("{other:?} in \"{}\" is no number", table.name))),
            })
            .collect::<Result<_, _>>()
            .map(Value::List),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::Scalar;

    fn tables() -> Tables {
        let row = |a: i64, b: f64| vec![Scalar::Int(a), Scalar::Float(b)];
        Tables(vec![TableFile {
            name: "t".into(),
            title: None,
            columns: vec!["n".into(), "mean".into()],
            rows: vec![row(2, 1.5), row(3, 2.5), row(3, 3.5)],
            ours: std::collections::BTreeMap::new(),
        }])
    }

    #[test]
    fn a_cell_is_found_by_its_row() {
        let at = |n: f64| tables().value("t.mean", &[("n".into(), Some(Value::Number(n)))]).unwrap();
        assert_eq!(at(2.0), Ok(Value::Number(1.5)));
        assert!(matches!(at(3.0), Err(Problem::Wrong(_))));
        assert!(matches!(at(4.0), Err(Problem::Undefined(_))));
        assert_eq!(tables().value("t.mean", &[]), Some(Ok(Value::List(vec![1.5, 2.5, 3.5]))));
        assert_eq!(tables().value("t.mode", &[]), None);
    }
}
