//! The expressions of experiment files: arithmetic over measures, metrics, parameters and published tables.
//!
//! A value is a number, a text, or a list of numbers (one for each task, CPU or point of a sweep). A name may carry
//! the kernel that it is asked of and selectors: `variance@cfs[n=3]`, `run_s['hog-*', window=2]`,
//! `table_a.mean[n=n]`; `[n=*]` takes all points along `n` as a list.

mod eval;
mod functions;
mod parse;

pub use eval::{Scope, Selected, eval, eval_list, eval_number};
pub use functions::FUNCTIONS;
pub use parse::parse;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number.
    Number(f64),
    /// A quoted text.
    Text(String),
    /// `-x`.
    Negate(Box<Expr>),
    /// `x + y` and the like.
    Binary(Operator, Box<Expr>, Box<Expr>),
    /// `f(x, y)`.
    Call(String, Vec<Expr>),
    /// A name with what hangs on it.
    Name(Reference),
}

/// The arithmetic operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
}

/// A name, the kernel that it is asked of, and its selectors.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// `variance`, or `table_a.mean`.
    pub path: String,
    /// `@cfs`.
    pub kernel: Option<String>,
    /// `[...]`.
    pub selectors: Vec<Selector>,
}

/// One selector.
#[derive(Clone, Debug, PartialEq)]
pub enum Selector {
    /// `'hog-*'`: by name.
    Pattern(String),
    /// `n = 3`.
    Equal(String, Expr),
    /// `n = *`.
    All(String),
}

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<f64>),
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The expression makes no sense: a mistake in the file.
    Wrong(String),
    /// It makes sense, but this run has no such figure (a task never ended, a division by zero).
    Undefined(String),
    /// It needs what is not there: runs that were not selected, or what a real kernel does not show.
    NotRun(String),
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Self::Wrong(text) | Self::Undefined(text) | Self::NotRun(text)) = self;
        f.write_str(text)
    }
}

impl Expr {
    /// The names of tasks that it selects.
    pub fn patterns(&self) -> Vec<&str> {
        let mut patterns = Vec::new();
        self.references(&mut |reference| {
            patterns.extend(reference.selectors.iter().filter_map(|selector| match selector {
                Selector::Pattern(pattern) => Some(pattern.as_str()),
                _ => None,
            }));
        });
        patterns
    }

    /// Puts other expressions in place of bare names, selectors included, where `other` gives one.
    ///
    /// # Errors
    /// The first of `other`.
    pub fn replace<E>(&mut self, other: &mut dyn FnMut(&str) -> Result<Option<Self>, E>) -> Result<(), E> {
        match self {
            Self::Number(_) | Self::Text(_) => {}
            Self::Negate(x) => x.replace(other)?,
            Self::Binary(_, x, y) => {
                x.replace(other)?;
                y.replace(other)?;
            }
            Self::Call(_, args) => args.iter_mut().try_for_each(|x| x.replace(other))?,
            Self::Name(reference) => {
                for selector in &mut reference.selectors {
                    if let Selector::Equal(_, x) = selector {
                        x.replace(other)?;
                    }
                }
                if reference.kernel.is_none()
                    && reference.selectors.is_empty()
                    && let Some(found) = other(&reference.path)?
                {
                    *self = found;
                }
            }
        }
        Ok(())
    }

    /// Calls `change` for every name in it, selectors included.
    pub fn references_mut(&mut self, change: &mut dyn FnMut(&mut Reference)) {
        match self {
            Self::Number(_) | Self::Text(_) => {}
            Self::Negate(x) => x.references_mut(change),
            Self::Binary(_, x, y) => {
                x.references_mut(change);
                y.references_mut(change);
            }
            Self::Call(_, args) => args.iter_mut().for_each(|x| x.references_mut(change)),
            Self::Name(reference) => {
                change(reference);
                for selector in &mut reference.selectors {
                    if let Selector::Equal(_, x) = selector {
                        x.references_mut(change);
                    }
                }
            }
        }
    }

    /// Calls `visit` for every name in it, selectors included.
    pub fn references<'a>(&'a self, visit: &mut dyn FnMut(&'a Reference)) {
        match self {
            Self::Number(_) | Self::Text(_) => {}
            Self::Negate(x) => x.references(visit),
            Self::Binary(_, x, y) => {
                x.references(visit);
                y.references(visit);
            }
            Self::Call(_, args) => args.iter().for_each(|x| x.references(visit)),
            Self::Name(reference) => {
                visit(reference);
                for selector in &reference.selectors {
                    if let Selector::Equal(_, x) = selector {
                        x.references(visit);
                    }
                }
            }
        }
    }
}
