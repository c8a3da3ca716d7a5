//! The expressions of experiment files: arithmetic over measures, metrics, parameters and published tables.
//!
//! A value is a number, a text, or a list of numbers (one for each task, CPU or point of a sweep). A name may carry
//! the kernel that it is asked of and selectors: `variance@cfs[n=3]`, `run_s['hog-*', window=2]`,
//! `table_a.mean[n=n]`; `[n=*]` takes all points along `n` as a list.

mod eval;
mod functions;
mod parse;

pub use eval::{Problem, Scope, Selected, eval, eval_number};
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

/// What an expression comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<f64>),
}

impl Expr {
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
