//! Evaluates expressions.

use super::functions::FUNCTIONS;
use super::{Expr, Operator, Problem, Reference, Selector, Value};

/// A selector whose value is known; `None` is `*`.
pub type Selected = (String, Option<Value>);

/// Gives names their values.
pub trait Scope {
    /// The value of `reference`, whose patterns stand in `reference` and whose other selectors are evaluated.
    ///
    /// # Errors
    /// When there is no such name, or it has no value.
    fn value(&self, reference: &Reference, selected: &[Selected]) -> Result<Value, Problem>;
}

/// The numbers that an expression has, one or a list; none where it has no value.
pub fn eval_list(expr: &Expr, scope: &dyn Scope) -> Vec<f64> {
    match eval(expr, scope) {
        Ok(Value::List(list)) => list,
        Ok(Value::Number(one)) => vec![one],
        _ => Vec::new(),
    }
}

/// Evaluates to a number.
///
/// # Errors
/// When the value is something else, or no finite number, or there is none.
pub fn eval_number(expr: &Expr, scope: &dyn Scope) -> Result<f64, Problem> {
    let value = match eval(expr, scope)? {
        Value::Number(x) => x,
        Value::List(list) if list.len() == 1 => list[0],
        Value::List(list) => {
            let n = list.len();
            return Err(Problem::Wrong(format!("a list of {n} numbers where one belongs; take mean(...) or the like")));
        }
        Value::Text(text) => return Err(Problem::Wrong(format!("the text '{text}' where a number belongs"))),
    };
    if value.is_finite() { Ok(value) } else { Err(Problem::Undefined("the value is not finite".into())) }
}

/// Evaluates.
///
/// # Errors
/// When a name has no value, or an operation none.
pub fn eval(expr: &Expr, scope: &dyn Scope) -> Result<Value, Problem> {
    match expr {
        Expr::Number(x) => Ok(Value::Number(*x)),
        Expr::Text(text) => Ok(Value::Text(text.clone())),
        Expr::Negate(x) => binary(Operator::Subtract, Value::Number(0.0), eval(x, scope)?),
        Expr::Binary(operator, x, y) => binary(*operator, eval(x, scope)?, eval(y, scope)?),
        Expr::Call(name, args) => {
            let args = args.iter().map(|x| list(eval(x, scope)?)).collect::<Result<Vec<_>, _>>()?;
            let function = FUNCTIONS.iter().find(|f| f.name == *name).expect("the parser knows all functions");
            (function.apply)(&args).map(Value::Number)
        }
        Expr::Name(reference) => {
            let mut selected = Vec::new();
            for selector in &reference.selectors {
                match selector {
                    Selector::Pattern(_) => {}
                    Selector::Equal(key, x) => selected.push((key.clone(), Some(eval(x, scope)?))),
                    Selector::All(key) => selected.push((key.clone(), None)),
                }
            }
            scope.value(reference, &selected)
        }
    }
}

fn list(value: Value) -> Result<Vec<f64>, Problem> {
    match value {
        Value::Number(x) => Ok(vec![x]),
        Value::List(list) => Ok(list),
        Value::Text(text) => Err(Problem::Wrong(format!("the text '{text}' where numbers belong"))),
    }
}

fn binary(operator: Operator, left: Value, right: Value) -> Result<Value, Problem> {
    if let (Value::Number(x), Value::Number(y)) = (&left, &right) {
        return compute(operator, *x, *y).map(Value::Number);
    }
    let (left, right) = (list(left)?, list(right)?);
    let n = left.len().max(right.len());
    if !((left.len() == n || left.len() == 1) && (right.len() == n || right.len() == 1)) {
        return Err(Problem::Wrong(format!("lists of {} and {} numbers do not pair", left.len(), right.len())));
    }
    let at = |list: &[f64], i: usize| if list.len() == 1 { list[0] } else { list[i] };
    (0..n).map(|i| compute(operator, at(&left, i), at(&right, i))).collect::<Result<_, _>>().map(Value::List)
}

fn compute(operator: Operator, x: f64, y: f64) -> Result<f64, Problem> {
    Ok(match operator {
        Operator::Add => x + y,
        Operator::Subtract => x - y,
        Operator::Multiply => x * y,
        Operator::Divide if y == 0.0 => return Err(Problem::Undefined("a division by zero".into())),
        Operator::Divide => x / y,
        Operator::Power => x.powf(y),
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    struct Fixed;

    impl Scope for Fixed {
        fn value(&self, reference: &Reference, selected: &[Selected]) -> Result<Value, Problem> {
            match (reference.path.as_str(), selected) {
                ("x", []) => Ok(Value::List(vec![1.0, 2.0, 4.0])),
                ("none", []) => Ok(Value::List(vec![])),
                ("at", [(_, Some(value))]) => Ok(value.clone()),
                (name, _) => Err(Problem::Wrong(format!("\"{name}\" is not known"))),
            }
        }
    }

    fn number(text: &str) -> f64 {
        eval_number(&parse(text).unwrap(), &Fixed).unwrap()
    }

    #[test]
    fn arithmetic_binds_as_usual() {
        assert_eq!(number("1 + 2 * 3 - -4"), 11.0);
        assert_eq!(number("-2 ^ 2"), -4.0);
        assert_eq!(number("2 ^ -1"), 0.5);
        assert_eq!(number("1e3 / (2 + 2)"), 250.0);
        assert_eq!(number("at[k = 2 + 3]"), 5.0);
    }

    #[test]
    fn functions_take_lists() {
        assert_eq!(number("mean(x)"), 7.0 / 3.0);
        assert_eq!(number("sum(x * 2)"), 14.0);
        assert_eq!(number("median(x)"), 2.0);
        assert!((number("var(x)") - 7.0 / 3.0).abs() < 1e-12);
        assert!((number("pvar(x)") - 14.0 / 9.0).abs() < 1e-12);
        assert_eq!(number("geomean(x)"), 2.0);
        assert!((number("spread(x)") - 9.0 / 7.0).abs() < 1e-12);
        assert_eq!(number("below(x, 2)"), 1.0 / 3.0);
        assert_eq!(number("below(x, x + 1)"), 1.0);
        assert_eq!(number("at_min(x, (x - 2) ^ 2)"), 2.0);
        assert_eq!(number("downhill(x, 0 - x, 1)"), 4.0);
        // From 1 the least is behind a rise, which a descent does not cross.
        assert_eq!(number("downhill(x, x * (4.5 - x), 1)"), 1.0);
        assert_eq!(number("at_min(x, x * (4.5 - x))"), 4.0);
        assert!((number("r2(x, 3 * x + 1)") - 1.0).abs() < 1e-12);
        assert!((number("slope(x, 3 * x + 1)") - 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_value_says_why() {
        let problem = |text: &str| eval_number(&parse(text).unwrap(), &Fixed).unwrap_err();
        assert!(matches!(problem("1 / 0"), Problem::Undefined(_)));
        assert!(matches!(problem("mean(none)"), Problem::Undefined(_)));
        assert!(matches!(problem("x"), Problem::Wrong(_)));
        assert!(matches!(problem("y"), Problem::Wrong(_)));
        assert!(matches!(problem("ln(0)"), Problem::Undefined(_)));
        assert!(matches!(problem("at_min(none, none)"), Problem::Undefined(_)));
        assert!(matches!(problem("at_min(x, 1)"), Problem::Wrong(_)));
        assert!(matches!(problem("downhill(x, x, 3)"), Problem::Wrong(_)));
    }
}
