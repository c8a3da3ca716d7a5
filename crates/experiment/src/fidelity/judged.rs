//! Figures of the simulator beside those of the real kernel, and how far apart they may be.

use super::figures::Figures;
use schedlab_base::total;
use serde::Serialize;
use std::fmt;

/// Tasks that use less than this part of one CPU are not judged one by one.
const LEAST_SHARE: f64 = 0.01;
/// How far the CPU time of any task and the number of switches may be off on one CPU, and on several.
const ONE_CPU: (f64, f64) = (0.02, 0.05);
const SEVERAL: (f64, f64) = (0.05, 0.15);
/// How far latencies may be off.
const LATENCY: f64 = 0.2;
/// Fewer wake-ups than this have no 99th percentile that means something.
const WAKEUPS: f64 = 100.0;

/// How a figure stands to its bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Within the bar.
    Met,
    /// Beyond the bar, but between the least and the largest value of the real kernel's own runs.
    WithinScatter,
    /// Beyond both.
    Missed,
    /// There is no bar.
    NoBar,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::WithinScatter => "within scatter",
            Self::Missed => "MISSED",
            Self::NoBar => "",
        })
    }
}

/// A figure of a load in a place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The backend, as `--on` names it.
    pub on: String,
    /// The machine.
    pub machine: String,
    /// The load.
    pub load: String,
    /// The figure.
    pub figure: &'static str,
    /// What it counts in: `us`, `%`, or nothing for a number.
    pub unit: &'static str,
    /// Its mean over the runs of the real kernel.
    pub real: f64,
    /// The least and the largest value of these.
    pub range: (f64, f64),
    /// Its mean over the simulations.
    pub simulated: f64,
    /// The error of the simulator: relative, but for a percentage, of which it is the difference. None where there is
    /// nothing to divide by.
    pub error: Option<f64>,
    /// The largest error that meets the bar.
    pub bar: Option<f64>,
    /// How it stands to its bar.
    pub standing: Standing,
}

/// Two kernels on one machine that differ by more than they scatter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Order {
    /// The machine.
    pub machine: String,
    /// The load.
    pub load: String,
    /// The figure.
    pub figure: &'static str,
    /// The kernel of which it is smaller, as `--on` names it.
    pub smaller: String,
    /// The kernel of which it is larger.
    pub larger: String,
    /// Whether the simulations stand in the same order.
    pub right: bool,
}

/// The values of one figure over some runs.
struct Values {
    mean: f64,
    least: f64,
    most: f64,
}

impl Values {
    fn of(runs: &[Figures], figure: impl Fn(&Figures) -> f64) -> Self {
        let values: Vec<f64> = runs.iter().map(figure).collect();
        Self {
            mean: total(values.iter().copied()) / values.len().max(1) as f64,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// A figure by name: its unit, its value in a run, and its bar.
type Figure = (&'static str, &'static str, fn(&Figures) -> f64, Option<f64>);

/// The rows of a load in a place, which is the backend, the machine and the load.
pub(super) fn rows(about: (&str, &str, &str), cpus: usize, real: &[Figures], simulated: &[Figures]) -> Vec<Row> {
    let (share, switches) = if cpus == 1 { ONE_CPU } else { SEVERAL };
    let woken = Values::of(real, |run| run.all.wakeups).mean >= WAKEUPS;
    let latency = woken.then_some(LATENCY);
    let figures: [Figure; 6] = [
        ("wait", "us", |run| run.all.wait_us, None),
        ("switches", "", |run| run.all.slices, Some(switches)),
        ("migrations", "", |run| run.all.migrations, None),
        ("latency p50", "us", |run| run.all.latency_p50_us, latency),
        ("latency p99", "us", |run| run.all.latency_p99_us, latency),
        ("wasted CPU time", "%", |run| run.wasted * 100.0, None),
    ];
    let mut rows: Vec<Row> = worst_task(about, real, simulated, share).into_iter().collect();
    for (figure, unit, of, bar) in figures {
        let (real, simulated) = (Values::of(real, of), Values::of(simulated, of));
        if figure.starts_with("latency") && !woken || real.most == 0.0 && simulated.most == 0.0 {
            continue;
        }
        rows.push(row(about, (figure, unit, bar), &real, simulated.mean));
    }
    rows
}

fn row(
    (on, machine, load): (&str, &str, &str),
    (figure, unit, bar): (&'static str, &'static str, Option<f64>),
    real: &Values,
    simulated: f64,
) -> Row {
    let off = simulated - real.mean;
    let error = if unit == "%" { Some(off / 100.0) } else { (real.mean != 0.0).then(|| off / real.mean) };
    let standing = match (bar, error) {
        (None, _) => Standing::NoBar,
        (Some(bar), Some(error)) if error.abs() <= bar => Standing::Met,
        _ if (real.least..=real.most).contains(&simulated) => Standing::WithinScatter,
        _ => Standing::Missed,
    };
    let (on, machine, range) = (on.to_owned(), machine.to_owned(), (real.least, real.most));
    Row { on, machine, load: load.to_owned(), figure, unit, real: real.mean, range, simulated, error, bar, standing }
}

/// The task whose CPU time is furthest off. Instances of one task are compared by size: the largest with the largest.
fn worst_task(about: (&str, &str, &str), real: &[Figures], simulated: &[Figures], bar: f64) -> Option<Row> {
    let first = real.first()?;
    let places = first.run.iter().flat_map(|(key, of)| (0..of.len()).map(move |at| (key, at)));
    let all = places.map(|(key, at)| {
        let of = |run: &Figures| run.run.get(key).and_then(|of| of.get(at)).copied().unwrap_or(0.0);
        row(about, ("CPU time, worst task", "us", Some(bar)), &Values::of(real, of), Values::of(simulated, of).mean)
    });
    let judged = all.filter(|row| row.real >= first.span_us * LEAST_SHARE);
    let size = |row: &Row| row.error.map_or(0.0, f64::abs);
    judged.max_by(|a, b| size(a).total_cmp(&size(b)))
}

/// Where two kernels differ by more than they scatter, among the rows of one machine.
pub(super) fn orders(rows: &[Row]) -> Vec<Order> {
    let mut orders = Vec::new();
    for (n, a) in rows.iter().enumerate() {
        for b in &rows[n + 1..] {
            let same = (&a.load, a.figure) == (&b.load, b.figure) && a.on != b.on;
            let (small, large) = if a.range.1 < b.range.0 { (a, b) } else { (b, a) };
            // Of the worst task, each kernel has its own.
            if !same || small.range.1 >= large.range.0 || a.figure.starts_with("CPU time") {
                continue;
            }
            orders.push(Order {
                machine: a.machine.clone(),
                load: a.load.clone(),
                figure: a.figure,
                smaller: small.on.clone(),
                larger: large.on.clone(),
                right: small.simulated < large.simulated,
            });
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_measure::compared::Compared;
    use std::collections::BTreeMap;

    fn run(tasks: &[f64], slices: f64, p50: f64) -> Figures {
        Figures {
            run: BTreeMap::from([("hog".to_owned(), tasks.to_vec())]),
            all: Compared { slices, latency_p50_us: p50, wakeups: 500.0, ..Compared::default() },
            wasted: 0.0,
            span_us: 1e6,
            starts: BTreeMap::new(),
        }
    }

    #[test]
    fn figures_stand_to_their_bars() {
        let real = [run(&[500e3, 300e3, 1e3], 100.0, 10.0), run(&[510e3, 310e3, 1e3], 110.0, 20.0)];
        let simulated = [run(&[505e3, 290e3, 9e3], 105.0, 19.0)];
        let rows = rows(("live", "2", "hogs"), 2, &real, &simulated);
        let of = |figure: &str| rows.iter().find(|row| row.figure == figure).unwrap();
        let task = of("CPU time, worst task");
        assert_eq!((task.real, task.simulated, task.standing), (305e3, 290e3, Standing::Met), "5% on several CPUs");
        assert_eq!(of("switches").standing, Standing::Met);
        assert_eq!(of("latency p50").standing, Standing::WithinScatter);
        assert!(rows.iter().all(|row| row.figure != "latency p99"), "there is nothing to compare");
        let one = super::rows(("live", "1", "hogs"), 1, &real, &simulated);
        assert_eq!(one[0].standing, Standing::Missed, "2% on one");
    }

    #[test]
    fn an_order_counts_where_kernels_differ_by_more_than_they_scatter() {
        let place = |on: &str, real: [f64; 2], simulated: f64| {
            let runs = real.map(|slices| run(&[1.0], slices, 0.0));
            rows((on, "2", "hogs"), 2, &runs, &[run(&[1.0], simulated, 0.0)])
        };
        let judged = |a: Vec<Row>, b: Vec<Row>| orders(&a.into_iter().chain(b).collect::<Vec<_>>());
        let right = judged(place("a", [100.0, 110.0], 105.0), place("b", [120.0, 130.0], 119.0));
        assert_eq!((right.len(), right[0].right, right[0].smaller.as_str()), (1, true, "a"));
        let wrong = judged(place("a", [120.0, 130.0], 105.0), place("b", [100.0, 110.0], 119.0));
        assert_eq!((wrong.len(), wrong[0].right, wrong[0].smaller.as_str()), (1, false, "b"));
        assert!(judged(place("a", [100.0, 121.0], 1.0), place("b", [120.0, 130.0], 2.0)).is_empty());
    }
}
