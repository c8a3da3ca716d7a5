//! The points of a sweep: one for each combination of parameter values.

use crate::expr::Value;
use crate::file::TableFile;
use crate::scalar::Scalar;
use std::collections::BTreeMap;

/// One combination of parameter values, by parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point(pub BTreeMap<String, Scalar>);

impl Point {
    /// The text with `{name}` replaced by the value of each parameter.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        self.0
            .iter()
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), &value.to_string()))
    }

    /// `n=3, load=10`; empty where nothing is swept.
    #[must_use]
    pub fn label(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ")
    }

    /// The point with only the parameters of `names`.
    #[must_use]
    pub fn project(&self, names: &[String]) -> Self {
        Self(self.0.iter().filter(|(name, _)| names.contains(name)).map(|(n, v)| (n.clone(), v.clone())).collect())
    }
}

/// All combinations; the last parameter runs fastest. Nothing swept is one point.
#[must_use]
pub fn points(sweep: &BTreeMap<String, Vec<Scalar>>) -> Vec<Point> {
    sweep.iter().fold(vec![Point::default()], |points, (name, values)| {
        points
            .iter()
            .flat_map(|point| {
                values.iter().map(|value| {
                    let mut more = point.clone();
                    more.0.insert(name.clone(), value.clone());
                    more
                })
            })
            .collect()
    })
}

/// The combinations of a sweep; with a table, only those that are in one of its rows.
#[must_use]
pub fn of(sweep: &BTreeMap<String, Vec<Scalar>>, table: Option<&TableFile>) -> Vec<Point> {
    let mut all = points(sweep);
    if let Some(table) = table {
        let fits = |point: &Point, row: &Vec<Scalar>| {
            let cells = table.columns.iter().zip(row);
            cells.into_iter().all(|(column, cell)| point.0.get(column).is_none_or(|value| value == cell))
        };
        all.retain(|point| table.rows.iter().any(|row| fits(point, row)));
    }
    all
}

/// How many combinations there are.
#[must_use]
pub fn count(sweep: &BTreeMap<String, Vec<Scalar>>) -> usize {
    sweep.values().fold(1, |n, values| n.saturating_mul(values.len()))
}

/// Whether the file's value and the expression's are the same.
#[must_use]
pub fn same(scalar: &Scalar, value: &Value) -> bool {
    match (scalar, value) {
        (Scalar::Text(a), Value::Text(b)) => a == b,
        (a, Value::Number(b)) => a.number() == Some(*b),
        _ => false,
    }
}

/// The value as expressions see it.
#[must_use]
pub fn value_of(scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Text(text) => Value::Text(text.clone()),
        number => Value::Number(number.number().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_every_combination_in_order() {
        let sweep = BTreeMap::from([
            ("load".to_owned(), vec![Scalar::Int(1), Scalar::Int(10)]),
            ("n".to_owned(), vec![Scalar::Int(2), Scalar::Int(3)]),
        ]);
        let labels: Vec<_> = points(&sweep).iter().map(Point::label).collect();
        assert_eq!(labels, ["load=1, n=2", "load=1, n=3", "load=10, n=2", "load=10, n=3"]);
        assert_eq!(count(&sweep), 4);
        assert_eq!(points(&BTreeMap::new()).len(), 1);
    }

    #[test]
    fn only_parameters_in_braces_are_filled_in() {
        let point = Point(BTreeMap::from([("n".to_owned(), Scalar::Int(3))]));
        assert_eq!(point.fill("{\"run\": {n}, \"n\": \"{m}\"}"), "{\"run\": 3, \"n\": \"{m}\"}");
    }
}
