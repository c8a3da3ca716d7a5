//! The values of metrics, parameters and tables, as expectations and charts ask for them.

use super::Results;
use crate::expr::{Problem, Reference, Scope, Selected, Value};
use crate::points::{Point, same, value_of};
use crate::scalar::Scalar;

/// What an expression sees: one kernel (where it does not name its own), one point, one seed.
pub(super) struct CompareScope<'a> {
    pub(super) results: &'a Results<'a>,
    pub(super) kernel: Option<usize>,
    pub(super) point: &'a Point,
    pub(super) seed: usize,
}

impl Scope for CompareScope<'_> {
    fn value(&self, reference: &Reference, selected: &[Selected]) -> Result<Value, Problem> {
        let experiment = self.results.experiment;
        if let Some(value) = experiment.tables.value(&reference.path, selected) {
            return value;
        }
        if let Some(values) = experiment.file.sweep.get(&reference.path) {
            return self.parameter(reference, values, selected);
        }
        let kernel = match &reference.kernel {
            Some(name) => match experiment.file.kernels.iter().position(|k| k.name == *name) {
                Some(kernel) => Some(kernel),
                // All names were checked before a part was selected.
                None => return Err(Problem::NotRun(format!("it needs the kernel \"{name}\", which is not selected"))),
            },
            None => self.kernel.or((experiment.file.kernels.len() == 1).then_some(0)),
        };
        let kernel = kernel.ok_or_else(|| Problem::Wrong(format!("say of which kernel: {}@...", reference.path)))?;
        let metric = |point: usize| self.results.run(kernel, point, self.seed).metrics[&reference.path].clone();
        let (points, many) = self.points(reference, selected)?;
        match (many, &points[..]) {
            (false, [one]) => metric(*one).map(Value::Number),
            (false, _) => Err(Problem::Wrong(format!("\"{}\" was not run at one such point", reference.path))),
            (true, points) => points.iter().map(|p| metric(*p)).collect::<Result<_, _>>().map(Value::List),
        }
    }
}

impl CompareScope<'_> {
    fn parameter(&self, reference: &Reference, values: &[Scalar], selected: &[Selected]) -> Result<Value, Problem> {
        match selected {
            [] => match self.point.0.get(&reference.path) {
                Some(value) => Ok(value_of(value)),
                None => Err(Problem::Wrong(format!("\"{0}\" has no one value here; take {0}[{0}=*]", reference.path))),
            },
            [(_, None)] => {
                self.whole(&reference.path)?;
                let number = |v: &Scalar| {
                    v.number().ok_or_else(|| Problem::Wrong(format!("{}={v} is no number", reference.path)))
                };
                values.iter().map(number).collect::<Result<_, _>>().map(Value::List)
            }
            _ => Err(Problem::Wrong(format!("write \"{0}\" or \"{0}[{0}=*]\"", reference.path))),
        }
    }

    /// Checks that no value of a parameter is left out.
    fn whole(&self, parameter: &String) -> Result<(), Problem> {
        if self.results.experiment.narrowed.contains(parameter) {
            return Err(Problem::NotRun(format!("it needs every {parameter}, and not all are selected")));
        }
        Ok(())
    }

    /// The points that the selectors and, where they say nothing, the case's own point name.
    fn points(&self, reference: &Reference, selected: &[Selected]) -> Result<(Vec<usize>, bool), Problem> {
        let experiment = self.results.experiment;
        selected.iter().filter(|(_, wanted)| wanted.is_none()).try_for_each(|(name, _)| self.whole(name))?;
        let fits = |point: &Point| {
            point.0.iter().all(|(name, value)| match selected.iter().find(|(k, _)| k == name) {
                Some((_, Some(wanted))) => same(value, wanted),
                Some((_, None)) => true,
                None => self.point.0.get(name).is_none_or(|own| own == value),
            })
        };
        let found: Vec<usize> = (0..experiment.points.len()).filter(|p| fits(&experiment.points[*p])).collect();
        let narrowed = selected.iter().any(|(name, _)| experiment.narrowed.contains(name));
        if found.is_empty() && narrowed {
            return Err(Problem::NotRun(format!("it needs \"{}\" at a point that is not selected", reference.path)));
        }
        if found.is_empty() {
            return Err(Problem::Wrong(format!("\"{}\" was run at no such point", reference.path)));
        }
        Ok((found, selected.iter().any(|(_, wanted)| wanted.is_none())))
    }
}
