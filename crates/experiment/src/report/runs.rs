//! The parts of a report that draw runs side by side: figures compared, shares over time, latencies.

use super::page::Page;
use crate::figures::{MainFigures, Run};
use schedlab_chart::{Bar, Layer, Span, bars, histograms, number, stack, unit};
use schedlab_measure::series::Track;
use std::collections::BTreeMap;

/// Up to so many tasks are stacked; of more, their kinds; many of one kind are a heat map.
const MOST_LAYERS: usize = 8;

/// A main figure of a run: its title, and its value.
type Figure = (&'static str, Quantity, fn(&MainFigures) -> Option<f64>);

/// What a figure counts.
#[derive(Clone, Copy, PartialEq)]
enum Quantity {
    /// Nanoseconds.
    Time,
    /// How many.
    Number,
}

const FIGURES: [Figure; 6] = [
    ("Wake-up latency, mean", Quantity::Time, |f| f.latency_mean),
    ("Wake-up latency, 99th percentile", Quantity::Time, |f| f.latency_p99),
    ("Switches while runnable (involuntary)", Quantity::Number, |f| f.involuntary),
    ("Moves between CPUs", Quantity::Number, |f| f.moves),
    ("CPU time, all tasks", Quantity::Time, |f| f.run),
    ("Time waited for a CPU, all tasks", Quantity::Time, |f| f.wait),
];

/// The main figures of each kernel's runs, one a seed: bars, or a table of a single run. A figure that no run has is
/// left out.
pub fn figures(page: &mut Page, kernels: &[(&str, Vec<&MainFigures>)]) {
    let mut drawings = Vec::new();
    let mut rows = Vec::new();
    for (title, quantity, get) in FIGURES {
        let values: Vec<Vec<f64>> =
            kernels.iter().map(|(_, seeds)| seeds.iter().filter_map(|f| get(f)).collect()).collect();
        let longest = values.iter().flatten().copied().fold(0.0, f64::max);
        if values.iter().all(Vec::is_empty) {
            continue;
        }
        let (size, unit) = if quantity == Quantity::Time { unit(longest) } else { (1.0, "") };
        let bar = |((label, _), seeds): (&(&str, Vec<&MainFigures>), &Vec<f64>)| {
            let scatter: Vec<f64> = seeds.iter().map(|x| x / size).collect();
            let mean = (!seeds.is_empty()).then(|| scatter.iter().sum::<f64>() / seeds.len() as f64);
            Bar { label: (*label).to_owned(), value: mean, scatter }
        };
        let drawn: Vec<Bar> = kernels.iter().zip(&values).map(bar).collect();
        if let [one] = &drawn[..] {
            let value = one.value.map_or_else(String::new, number);
            rows.push([title.to_owned(), unit.to_owned(), value, super::charts::range(&one.scatter)]);
        } else {
            drawings.push(bars(title, unit, &drawn));
        }
    }
    if rows.is_empty() { page.grid(&drawings) } else { page.table(&rows) }
}

/// Which task had each CPU, one drawing a run.
pub fn shares(page: &mut Page, runs: &[&Run]) {
    for run in runs {
        let series = &run.series;
        let width = series.width;
        // The last window may be a part of one.
        let length = |k: usize| width.min(series.end.saturating_sub(k as u64 * width)).max(1) as f64;
        let layer = |track: &Track| Layer {
            label: track.name.clone(),
            values: track.windows.iter().enumerate().map(|(k, ns)| *ns as f64 / length(k)).collect(),
        };
        let span = Span { window_s: width as f64 * 1e-9, end_s: series.end as f64 * 1e-9 };
        let layers: Vec<Layer> = series.tasks.iter().filter(|t| t.run > 0).map(layer).collect();
        let stacked = |layers: &[Layer]| stack(&run.label, span, ("CPUs", series.cpus.len().max(1) as f64), layers);
        let kinds = by_kind(&layers);
        let drawing = match (layers.len() <= MOST_LAYERS, kinds.len()) {
            (true, _) => stacked(&layers),
            (false, 0 | 1) => schedlab_chart::shares(&run.label, span, &layers),
            (false, _) => stacked(&largest(kinds)),
        };
        page.figure("", &drawing);
    }
}

/// One layer a kind of task: those whose names differ in trailing numbers only.
fn by_kind(layers: &[Layer]) -> Vec<Layer> {
    let mut kinds: BTreeMap<&str, (usize, Layer)> = BTreeMap::new();
    for layer in layers {
        let kind = kind_of(&layer.label);
        let empty = || (0, Layer { label: kind.to_owned(), values: Vec::new() });
        let (count, sum) = kinds.entry(kind).or_insert_with(empty);
        *count += 1;
        add(&mut sum.values, &layer.values);
    }
    let named = |(count, mut layer): (usize, Layer)| {
        if count > 1 {
            layer.label = format!("{} ({count})", layer.label);
        }
        layer
    };
    kinds.into_values().map(named).collect()
}

/// The name without numbers at its end: `cc1` of `cc1-15204-3`, `kworker` of `kworker_0:2`.
fn kind_of(label: &str) -> &str {
    let mut kind = label;
    loop {
        let name = kind.trim_end_matches(|c: char| c.is_ascii_digit());
        let shorter = name.strip_suffix(['-', '.', ':', '_', '/']).filter(|n| name.len() < kind.len() && !n.is_empty());
        match shorter {
            Some(shorter) => kind = shorter,
            None => return kind,
        }
    }
}

/// The layers with the most time, and one of all others.
fn largest(mut layers: Vec<Layer>) -> Vec<Layer> {
    let time = |layer: &Layer| layer.values.iter().sum::<f64>();
    layers.sort_by(|a, b| time(b).total_cmp(&time(a)));
    if layers.len() > MOST_LAYERS {
        let others = layers.split_off(MOST_LAYERS - 1);
        let mut sum = Layer { label: format!("{} other kinds", others.len()), values: Vec::new() };
        others.iter().for_each(|o| add(&mut sum.values, &o.values));
        layers.push(sum);
    }
    layers
}

fn add(sum: &mut Vec<f64>, values: &[f64]) {
    if sum.len() < values.len() {
        sum.resize(values.len(), 0.0);
    }
    sum.iter_mut().zip(values).for_each(|(s, v)| *s += v);
}

/// How long tasks waited from wake-up to running, one row a run; nothing where nobody was woken.
pub fn latencies(page: &mut Page, runs: &[&Run]) {
    let rows: Vec<_> = runs.iter().map(|r| (r.label.as_str(), &*r.series.latency)).collect();
    if rows.iter().any(|(_, h)| h.iter().any(|n| *n > 0)) {
        page.figure("", &histograms("wake-up latency by kernel", &rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(label: &str, values: &[f64]) -> Layer {
        Layer { label: label.to_owned(), values: values.to_vec() }
    }

    #[test]
    fn a_kind_is_the_name_without_its_numbers() {
        for (label, kind) in [("cc1-15204-3", "cc1"), ("kworker_0:2", "kworker"), ("cc1", "cc1"), ("-7", "-7")] {
            assert_eq!(kind_of(label), kind);
        }
    }

    #[test]
    fn tasks_of_a_kind_become_one_layer_and_small_kinds_the_rest() {
        let mut layers = vec![layer("cc1-12-3", &[1.0]), layer("cc1-13", &[0.5, 1.0]), layer("42", &[2.0])];
        let kinds = by_kind(&layers);
        assert_eq!(kinds.iter().map(|l| l.label.as_str()).collect::<Vec<_>>(), ["42", "cc1 (2)"]);
        assert_eq!(kinds[1].values, [1.5, 1.0]);
        layers.extend((0..9).map(|i| layer(&format!("k{i}x"), &[0.1])));
        let largest = largest(by_kind(&layers));
        assert_eq!((largest.len(), largest[0].label.as_str()), (MOST_LAYERS, "cc1 (2)"));
        assert_eq!(largest[MOST_LAYERS - 1].label, "4 other kinds");
    }
}
