//! Heat maps as pictures: their scale, and what their legend and their small print say.

use schedlab_base::Looking;
use schedlab_chart::heatmap::{Cells, Picture, Row, Scale};
use schedlab_chart::{number, unit};
use schedlab_measure::heatmap::{self, Heat, HeatRow, Looks, What};

/// A scale of queues reaches to so many tasks at least: two are no crowd.
const LEAST: f64 = 4.0;
/// All but one in so many cells lie within a scale of loads.
const OUTLIERS: usize = 200;

/// What a heat map cannot show, as words for the user; `None` where it shows something.
#[must_use]
pub fn missing(heat: &Heat) -> Option<&'static str> {
    match heat.what {
        _ if heat.to <= heat.from || heat.rows.is_empty() => Some("nothing happens in this part of the trace"),
        What::Load if !heat.told => Some("loads are not in the trace"),
        What::Memory if !heat.told => Some("where memory is is not in the trace"),
        What::Considered { .. } if !heat.told => Some("the CPUs that the scheduler looked at are not in the trace"),
        _ => None,
    }
}

/// One scale for heat maps of one kind that are to be compared: runnable tasks by powers of two above one, loads and
/// memory in proportion.
#[must_use]
pub fn scale<'a>(heats: impl Iterator<Item = &'a Heat> + Clone) -> Scale {
    let highest = heats.clone().map(Heat::highest).fold(0.0, f64::max);
    match heats.clone().next().map(|heat| &heat.what) {
        Some(What::Queue) => Scale::powers(highest.ceil().max(LEAST)),
        Some(What::Memory) if highest > 1024.0 => Scale::linear((highest / 1024.0).ceil() * 1024.0, highest),
        Some(What::Memory) => Scale::linear(highest.max(1.0), highest),
        _ => Scale::linear(usual(heats), highest),
    }
}

/// The load that hardly a cell exceeds; 1 where there is none.
fn usual<'a>(heats: impl Iterator<Item = &'a Heat>) -> f64 {
    let means = |heat: &'a Heat| match &heat.cells {
        heatmap::Cells::Means(means) => means.as_slice(),
        heatmap::Cells::Looks(_) => &[],
    };
    let mut loads: Vec<f64> = heats.flat_map(means).flatten().copied().filter(|load| *load > 0.0).collect();
    loads.sort_by(f64::total_cmp);
    loads.get((loads.len().max(1) - 1) * (OUTLIERS - 1) / OUTLIERS).copied().unwrap_or(1.0)
}

/// The picture of a heat map; `about` says more than its title, in small letters.
#[must_use]
pub fn picture(heat: &Heat, title: &str, about: &str, scale: Scale) -> Picture {
    let cells = match &heat.cells {
        heatmap::Cells::Means(means) => {
            Cells::Values { values: means.clone(), scale, label: label(&heat.what).to_owned() }
        }
        heatmap::Cells::Looks(looks) => {
            Cells::Kinds { kinds: looks.iter().map(most_frequent).collect(), names: reasons(heat) }
        }
    };
    Picture {
        title: title.to_owned(),
        about: small_print(heat, about),
        rows: heat.rows.iter().map(row).collect(),
        columns: heat.columns,
        cells,
        span: (heat.from, heat.to),
    }
}

fn row(row: &HeatRow) -> Row {
    match row.cpus.first() {
        Some(cpu) => Row::Cpu(*cpu, row.node),
        None => Row::Node(row.node.unwrap_or(0)),
    }
}

/// What the values are.
fn label(what: &What) -> &'static str {
    match what {
        What::Load => "load of a CPU, in the scheduler's unit",
        What::Memory => "memory on a node, MiB",
        What::Queue | What::Considered { .. } => "runnable tasks of a CPU, the running one included",
    }
}

/// The reason for most of the looks.
fn most_frequent(looks: &Looks) -> Option<u8> {
    let most = looks.iter().copied().max().filter(|most| *most > 0)?;
    looks.iter().position(|count| *count == most).map(|reason| reason as u8)
}

/// Each reason with its number of looks, where there were any.
fn reasons(heat: &Heat) -> Vec<(u8, String)> {
    let named = Looking::ALL.iter().zip(heat.looks()).enumerate().filter(|(_, (_, looks))| *looks > 0);
    named.map(|(at, ((_, name), looks))| (at as u8, format!("{name} {}", number(looks as f64)))).collect()
}

fn small_print(heat: &Heat, about: &str) -> String {
    let column = duration(heat.column());
    let how = match &heat.what {
        What::Considered { by: Some(cpu), .. } => format!("CPUs looked at for cpu {cpu}"),
        What::Considered { by: None, .. } => "CPUs looked at for any".to_owned(),
        What::Queue if !heat.told => "means, worked out from switches and wake-ups".to_owned(),
        What::Queue | What::Load | What::Memory => "means".to_owned(),
    };
    let shared = heat.rows.iter().map(|row| row.cpus.len()).max().unwrap_or(1);
    let shared = if shared > 1 { format!(", a row {shared} CPUs") } else { String::new() };
    let about = if about.is_empty() { String::new() } else { format!("{about} \u{b7} ") };
    format!("{about}{how}, a column is {column}{shared}")
}

/// A time to three digits in the unit that suits it.
fn duration(ns: f64) -> String {
    let (unit, name) = unit(ns);
    let value = ns / unit;
    let digits = (2 - value.max(1.0).log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(what: What, means: &[f64]) -> Heat {
        let cells = heatmap::Cells::Means(means.iter().copied().map(Some).collect());
        let rows = vec![HeatRow { cpus: vec![0, 1], node: Some(0) }];
        Heat { what, from: 0, to: 1_000_000_000, rows, columns: 900, cells, told: true }
    }

    #[test]
    fn scales_reach_to_round_values() {
        let names = |what: What, means: &[f64]| {
            let ticks = scale([heat(what, means)].iter()).ticks();
            ticks.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(What::Queue, &[0.0, 0.5]), "0 1 2 4");
        assert_eq!(names(What::Queue, &[10.5]), "0 1 2 4 8 11", "the top is a whole number");
        assert_eq!(names(What::Load, &[512.0, 1024.0, 1024.0]), "0 256 512 768 1024");
        assert_eq!(names(What::Memory, &[1500.0]), "0 512 1024 1536 2048");
        let mut loads = vec![100.0; 1_000];
        loads.push(1e9);
        assert!(names(What::Load, &loads).ends_with("\u{2265} 100"));
    }

    #[test]
    fn the_most_frequent_reason_gives_the_colour() {
        assert_eq!(most_frequent(&[0; 8]), None);
        assert_eq!(most_frequent(&[1, 0, 0, 2, 0, 0, 0, 0]), Some(Looking::NewIdle as u8));
        let mut looks = heat(What::Considered { by: None, why: Vec::new() }, &[]);
        looks.cells = heatmap::Cells::Looks(vec![[1, 0, 0, 2, 0, 0, 0, 0]; 2]);
        let Cells::Kinds { names, .. } = picture(&looks, "", "", scale([&looks].into_iter())).cells else {
            panic!("looks are kinds")
        };
        assert_eq!(names, [(0, "wake 2".to_owned()), (3, "newidle 4".to_owned())]);
    }

    #[test]
    fn the_small_print_says_what_a_cell_is() {
        let mut queue = heat(What::Queue, &[]);
        assert_eq!(small_print(&queue, "t.arrows"), "t.arrows \u{b7} means, a column is 1.11 ms, a row 2 CPUs");
        queue.told = false;
        assert!(small_print(&queue, "").starts_with("means, worked out from switches"));
    }

    #[test]
    fn times_have_three_digits() {
        let cases =
            [(1_111_111.1, "1.11 ms"), (66_666_666.0, "66.7 ms"), (250e6, "250 ms"), (1.0, "1 ns"), (2e9, "2 s")];
        for (ns, text) in cases {
            assert_eq!(duration(ns), text);
        }
    }
}
