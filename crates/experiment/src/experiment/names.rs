//! Checks the names in expressions before anything runs, so that a typing error is reported with its line.

use crate::expr::{Expr, Reference, Selector};
use crate::measures::{self, MEASURES};
use crate::tables::Tables;
use schedlab_base::nearest;

/// What expressions may name.
pub struct Names<'a> {
    /// The sweep's parameters.
    pub parameters: Vec<&'a str>,
    /// The metrics; empty within metrics themselves, where measures stand instead.
    pub metrics: Option<Vec<&'a str>>,
    /// The kernels' short names.
    pub kernels: Vec<&'a str>,
    /// The tables.
    pub tables: &'a Tables,
}

/// What is wrong, and how to fix it.
pub type Slip = (String, Option<String>);

impl Names<'_> {
    /// Checks every name of an expression.
    ///
    /// # Errors
    /// At the first name, kernel or selector that is not known.
    pub fn check(&self, expr: &Expr) -> Result<(), Slip> {
        let mut slip = None;
        expr.references(&mut |reference| {
            if slip.is_none() {
                slip = self.reference(reference).err();
            }
        });
        slip.map_or(Ok(()), Err)
    }

    fn reference(&self, reference: &Reference) -> Result<(), Slip> {
        let path = reference.path.as_str();
        if self.tables.has(path) {
            return no_kernel(reference);
        }
        if self.parameters.contains(&path) {
            no_kernel(reference)?;
            return self.selectors(reference, &[path], false);
        }
        match &self.metrics {
            Some(metrics) if metrics.contains(&path) => {
                if let Some(kernel) = &reference.kernel {
                    known(kernel, "kernel of this file", self.kernels.iter().copied())?;
                }
                self.selectors(reference, &self.parameters, false)
            }
            None if measures::find(path).is_some() => {
                no_kernel(reference)?;
                let measure = measures::find(path).expect("just found");
                self.selectors(reference, measure.selectors(), measure.takes_pattern())
            }
            _ => self.unknown(path),
        }
    }

    fn unknown(&self, path: &str) -> Result<(), Slip> {
        let tables: Vec<String> = self.tables.names().collect();
        let (noun, own): (_, Vec<&str>) = match &self.metrics {
            Some(metrics) => ("metric, parameter or table", metrics.clone()),
            None => ("measure, parameter or table", MEASURES.iter().map(|m| m.name).collect()),
        };
        let all = own.into_iter().chain(self.parameters.iter().copied()).chain(tables.iter().map(String::as_str));
        known(path, noun, all)
    }

    fn selectors(&self, reference: &Reference, keys: &[&str], pattern: bool) -> Result<(), Slip> {
        for selector in &reference.selectors {
            match selector {
                Selector::Pattern(_) if pattern => {}
                Selector::Pattern(text) => {
                    return Err((format!("\"{}\" is not selected by a name ('{text}')", reference.path), None));
                }
                Selector::Equal(key, _) | Selector::All(key) => known(key, "selector here", keys.iter().copied())?,
            }
        }
        Ok(())
    }
}

fn no_kernel(reference: &Reference) -> Result<(), Slip> {
    match &reference.kernel {
        Some(kernel) => Err((format!("\"{}\" is asked of no kernel (@{kernel})", reference.path), None)),
        None => Ok(()),
    }
}

/// Checks that `name` is among `all`.
///
/// # Errors
/// With the nearest, when it is not.
pub fn known<'a>(name: &str, noun: &str, all: impl Iterator<Item = &'a str> + Clone) -> Result<(), Slip> {
    if all.clone().any(|n| n == name) {
        return Ok(());
    }
    let mend = match nearest(name, all.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("known: {}", all.collect::<Vec<_>>().join(", ")),
    };
    Err((format!("\"{name}\" is no {noun}"), Some(mend)))
}
