//! The functions that expressions know.

use super::Problem;
use schedlab_base::total;

/// A function over lists of numbers.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// What it computes.
    pub about: &'static str,
    /// How many arguments it takes.
    pub arguments: usize,
    /// Computes it; a single number comes as a list of one.
    pub apply: fn(&[Vec<f64>]) -> Result<f64, Problem>,
}

macro_rules! functions {
    ($($(#[doc = $about:literal])+ $name:literal $arguments:literal $apply:expr;)*) => {
        /// All of them.
        pub const FUNCTIONS: &[Function] =
            &[$(Function { name: $name, about: concat!($($about),+), arguments: $arguments, apply: $apply }),*];
    };
}

functions! {
    /// The mean.
    "mean" 1 |a| some(&a[0]).map(mean);
    /// The sum.
    "sum" 1 |a| Ok(total(a[0].iter().copied()));
    /// How many.
    "count" 1 |a| Ok(a[0].len() as f64);
    /// The least.
    "min" 1 |a| some(&a[0]).map(|x| x.iter().copied().fold(f64::INFINITY, f64::min));
    /// The greatest.
    "max" 1 |a| some(&a[0]).map(|x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    /// The median.
    "median" 1 |a| some(&a[0]).map(|x| quantile(x, 0.5));
    /// The 90th percentile.
    "p90" 1 |a| some(&a[0]).map(|x| quantile(x, 0.9));
    /// The 99th percentile.
    "p99" 1 |a| some(&a[0]).map(|x| quantile(x, 0.99));
    /// The sample variance (over n - 1); 0 of one.
    "var" 1 |a| some(&a[0]).map(variance);
    /// The population variance (over n).
    "pvar" 1 |a| some(&a[0]).map(population_variance);
    /// The sample standard deviation.
    "sd" 1 |a| some(&a[0]).map(|x| variance(x).sqrt());
    /// The standard deviation over the mean.
    "cv" 1 |a| some(&a[0]).and_then(|x| over(variance(x).sqrt(), mean(x)));
    /// (max - min) / mean.
    "spread" 1 |a| some(&a[0]).and_then(spread);
    /// Jain's fairness index.
    "jain" 1 |a| some(&a[0]).and_then(jain);
    /// The geometric mean.
    "geomean" 1 |a| some(&a[0]).and_then(geometric_mean);
    /// R squared of the straight line through (x, y).
    "r2" 2 |a| fit(&a[0], &a[1]).map(|f| f.r2);
    /// The slope of the straight line through (x, y).
    "slope" 2 |a| fit(&a[0], &a[1]).map(|f| f.slope);
    /// The share of pairs, 0 to 1, in which the first is less than the second; one number stands for a whole list.
    "below" 2 |a| below(&a[0], &a[1]);
    /// Where y is the least: the x beside it, the first of equal ones.
    "at_min" 2 |a| paired(&a[0], &a[1]).map(|n| a[0][least(&a[1], 0..n)]);
    /// Where a descent in y ends that starts at an x and goes to the lower neighbour as long as there is one: its x.
    "downhill" 3 |a| downhill(&a[0], &a[1], single(&a[2])?);
    /// The absolute value.
    "abs" 1 |a| single(&a[0]).map(f64::abs);
    /// The natural logarithm.
    "ln" 1 |a| single(&a[0]).map(f64::ln);
    /// e to the power.
    "exp" 1 |a| single(&a[0]).map(f64::exp);
    /// The larger of two.
    "larger" 2 |a| Ok(single(&a[0])?.max(single(&a[1])?));
    /// The smaller of two.
    "smaller" 2 |a| Ok(single(&a[0])?.min(single(&a[1])?));
}

fn some(list: &[f64]) -> Result<&[f64], Problem> {
    if list.is_empty() { Err(Problem::Undefined("nothing was there to measure".into())) } else { Ok(list) }
}

fn single(list: &[f64]) -> Result<f64, Problem> {
    match list {
        [x] => Ok(*x),
        _ => Err(Problem::Wrong(format!("a list of {} where a number belongs", list.len()))),
    }
}

fn over(x: f64, y: f64) -> Result<f64, Problem> {
    if y == 0.0 { Err(Problem::Undefined("a division by zero".into())) } else { Ok(x / y) }
}

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn squares(x: &[f64]) -> f64 {
    let m = mean(x);
    x.iter().map(|v| (v - m).powi(2)).sum()
}

fn variance(x: &[f64]) -> f64 {
    if x.len() < 2 { 0.0 } else { squares(x) / (x.len() - 1) as f64 }
}

fn population_variance(x: &[f64]) -> f64 {
    squares(x) / x.len() as f64
}

fn quantile(x: &[f64], q: f64) -> f64 {
    let mut sorted = x.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = q * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

fn spread(x: &[f64]) -> Result<f64, Problem> {
    let range = x.iter().copied().fold(f64::NEG_INFINITY, f64::max) - x.iter().copied().fold(f64::INFINITY, f64::min);
    over(range, mean(x))
}

fn jain(x: &[f64]) -> Result<f64, Problem> {
    let sum: f64 = x.iter().sum();
    over(sum * sum, x.len() as f64 * x.iter().map(|v| v * v).sum::<f64>())
}

fn below(x: &[f64], y: &[f64]) -> Result<f64, Problem> {
    let n = x.len().max(y.len());
    if [x, y].into_iter().any(|list| list.len() != n && list.len() != 1) {
        return Err(unequal(x, y));
    }
    let at = |list: &[f64], i: usize| if list.len() == 1 { list[0] } else { list[i] };
    over((0..n).filter(|i| at(x, *i) < at(y, *i)).count() as f64, n as f64)
}

/// How many pairs the lists are.
fn paired(x: &[f64], y: &[f64]) -> Result<usize, Problem> {
    if x.len() == y.len() { some(x).map(<[f64]>::len) } else { Err(unequal(x, y)) }
}

fn unequal(x: &[f64], y: &[f64]) -> Problem {
    Problem::Wrong(format!("lists of {} and {} numbers do not pair", x.len(), y.len()))
}

/// The place of the least number in a part of a list that is not empty.
fn least(y: &[f64], part: std::ops::Range<usize>) -> usize {
    part.reduce(|best, i| if y[i] < y[best] { i } else { best }).unwrap_or(0)
}

fn downhill(x: &[f64], y: &[f64], start: f64) -> Result<f64, Problem> {
    let n = paired(x, y)?;
    let mut at = x.iter().position(|v| *v == start).ok_or_else(|| Problem::Wrong(format!("{start} is not listed")))?;
    loop {
        let best = least(y, at.saturating_sub(1)..n.min(at + 2));
        if y[best] >= y[at] {
            return Ok(x[at]);
        }
        at = best;
    }
}

fn geometric_mean(x: &[f64]) -> Result<f64, Problem> {
    if x.iter().any(|v| *v <= 0.0) {
        return Err(Problem::Undefined("a geometric mean of what is not above 0".into()));
    }
    Ok((x.iter().map(|v| v.ln()).sum::<f64>() / x.len() as f64).exp())
}

struct Fit {
    slope: f64,
    r2: f64,
}

fn fit(x: &[f64], y: &[f64]) -> Result<Fit, Problem> {
    if x.len() != y.len() || x.len() < 2 {
        return Err(Problem::Wrong(format!("a line through {} x and {} y", x.len(), y.len())));
    }
    let (mx, my) = (mean(x), mean(y));
    let sxy: f64 = x.iter().zip(y).map(|(a, b)| (a - mx) * (b - my)).sum();
    let slope = over(sxy, squares(x))?;
    let total = squares(y);
    let r2 = if total == 0.0 { 1.0 } else { sxy * sxy / (squares(x) * total) };
    Ok(Fit { slope, r2 })
}
