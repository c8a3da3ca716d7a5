//! The functions that expressions know.

use super::eval::Problem;

/// A function over lists of numbers.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// How many arguments it takes.
    pub arguments: usize,
    /// What it gives.
    pub about: &'static str,
    /// Computes it; a single number comes as a list of one.
    pub apply: fn(&[Vec<f64>]) -> Result<f64, Problem>,
}

macro_rules! functions {
    ($($name:literal $arguments:literal $about:literal $apply:expr;)*) => {
        /// All of them.
        pub const FUNCTIONS: &[Function] =
            &[$(Function { name: $name, arguments: $arguments, about: $about, apply: $apply }),*];
    };
}

functions! {
    "mean" 1 "the mean" |a| some(&a[0]).map(mean);
    "sum" 1 "the sum" |a| Ok(a[0].iter().sum());
    "count" 1 "how many" |a| Ok(a[0].len() as f64);
    "min" 1 "the least" |a| some(&a[0]).map(|x| x.iter().copied().fold(f64::INFINITY, f64::min));
    "max" 1 "the greatest" |a| some(&a[0]).map(|x| x.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    "median" 1 "the median" |a| some(&a[0]).map(|x| quantile(x, 0.5));
    "p90" 1 "the 90th percentile" |a| some(&a[0]).map(|x| quantile(x, 0.9));
    "p99" 1 "the 99th percentile" |a| some(&a[0]).map(|x| quantile(x, 0.99));
    "var" 1 "the sample variance (over n - 1); 0 of one" |a| some(&a[0]).map(variance);
    "pvar" 1 "the population variance (over n)" |a| some(&a[0]).map(population_variance);
    "sd" 1 "the sample standard deviation" |a| some(&a[0]).map(|x| variance(x).sqrt());
    "cv" 1 "the standard deviation over the mean" |a| some(&a[0]).and_then(|x| over(variance(x).sqrt(), mean(x)));
    "spread" 1 "(max - min) / mean" |a| some(&a[0]).and_then(spread);
    "jain" 1 "Jain's fairness index" |a| some(&a[0]).and_then(jain);
    "geomean" 1 "the geometric mean" |a| some(&a[0]).and_then(geometric_mean);
    "r2" 2 "R squared of the straight line through (x, y)" |a| fit(&a[0], &a[1]).map(|f| f.r2);
    "slope" 2 "the slope of the straight line through (x, y)" |a| fit(&a[0], &a[1]).map(|f| f.slope);
    "abs" 1 "the absolute value" |a| single(&a[0]).map(f64::abs);
    "ln" 1 "the natural logarithm" |a| single(&a[0]).map(f64::ln);
    "exp" 1 "e to the power" |a| single(&a[0]).map(f64::exp);
    "larger" 2 "the larger of two" |a| Ok(single(&a[0])?.max(single(&a[1])?));
    "smaller" 2 "the smaller of two" |a| Ok(single(&a[0])?.min(single(&a[1])?));
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
