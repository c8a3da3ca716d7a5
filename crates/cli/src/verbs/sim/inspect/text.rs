//! Decisions in words: what was decided, the rule below it, and what was compared, a line for each task.

use schedlab_experiment::inspected::{InWords, Number};
use std::fmt::Write;

/// So many tasks of a decision are named; more are counted.
const MOST_NAMED: usize = 8;

/// What stands above the decisions.
pub const HEADER: &str = "     time ms  CPU  what was decided, and over which tasks; the rule; what it compared\n";

/// Where the text of a decision begins.
const INDENT: usize = 19;

/// What was decided, by which rule, and what each had to show for itof.
pub(super) fn text(of: &InWords) -> String {
    let who = of.who.as_deref().unwrap_or("nobody");
    let mut text = format!("{:>12.6}  {:>3}  {:<9} {who}", of.time_us / 1e3, of.cpu, of.choice);
    if !of.over.is_empty() {
        let _ = write!(text, " over {}", names(&of.over));
    }
    let _ = writeln!(text, "\n{:INDENT$}{}", "", of.rule);
    let parties = parties(&of.numbers, of.who.as_deref());
    let width = parties.iter().take(MOST_NAMED).map(|(of, _)| of.chars().count()).max().unwrap_or(0);
    for (of, amounts) in parties.iter().take(MOST_NAMED) {
        let _ = writeln!(text, "{:INDENT$}  {of:<width$}  {}", "", amounts.join(", "));
    }
    if parties.len() > MOST_NAMED {
        let _ = writeln!(text, "{:INDENT$}  and {} more", "", parties.len() - MOST_NAMED);
    }
    text
}

fn names(all: &[String]) -> String {
    let named = all.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MOST_NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// What belongs to each task, `who` first and the others in the order in which they were named; what belongs to none is
/// the queue's, and last.
fn parties<'a>(numbers: &'a [Number], who: Option<&str>) -> Vec<(&'a str, Vec<String>)> {
    let mut parties: Vec<(&str, Vec<String>)> = Vec::new();
    let (own, queue): (Vec<_>, Vec<_>) = numbers.iter().partition(|number| number.of.is_some());
    for number in own.into_iter().chain(queue) {
        let of = number.of.as_deref().unwrap_or("queue");
        let amount = amount(number.what, number.value);
        match parties.iter_mut().find(|(other, _)| *other == of) {
            Some((_, amounts)) => amounts.push(amount),
            None => parties.push((of, vec![amount])),
        }
    }
    if let Some(first) = parties.iter().position(|(of, _)| Some(*of) == who) {
        parties[..=first].rotate_right(1);
    }
    parties
}

/// `vruntime_ns` 4000000 becomes `vruntime 4.000000 ms`, `time_slice_ticks` 100 as `time slice 100 ticks`.
fn amount(what: &str, value: i64) -> String {
    let words = |name: &str| name.replace('_', " ");
    if let Some(name) = what.strip_suffix("_ns") {
        return format!("{} {:.6} ms", words(name), value as f64 / 1e6);
    }
    for unit in ["us", "ticks", "uw"] {
        if let Some(name) = what.strip_suffix(unit).and_then(|rest| rest.strip_suffix('_')) {
            return format!("{} {value} {unit}", words(name));
        }
    }
    format!("{} {value}", words(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(of: Option<&str>, what: &'static str, value: i64) -> Number {
        Number { of: of.map(str::to_owned), what, value }
    }

    #[test]
    fn each_task_has_a_line_with_units_and_the_queue_the_last() {
        let decision = InWords {
            time_us: 1_500.25,
            cpu: 3,
            choice: "turn-ends",
            who: Some("hog".into()),
            over: vec!["a".into(), "b".into()],
            rule: "its slice is used up",
            numbers: vec![
                number(Some("b"), "prio", 121),
                number(Some("hog"), "time_slice_ticks", 4),
                number(None, "min_vruntime_ns", -2_000_000),
                number(Some("b"), "deadline_us", 7),
                number(Some("hog"), "prio", 120),
            ],
        };
        let expected = [
            "    1.500250    3  turn-ends hog over a, b",
            "                   its slice is used up",
            "                     hog    time slice 4 ticks, prio 120",
            "                     b      prio 121, deadline 7 us",
            "                     queue  min vruntime -2.000000 ms",
            "",
        ];
        assert_eq!(text(&decision), expected.join("\n"));
    }

    #[test]
    fn a_crowd_is_counted() {
        let all: Vec<String> = (0..11).map(|n| format!("t{n}")).collect();
        assert_eq!(names(&all), "t0, t1, t2, t3, t4, t5, t6, t7 and 3 more");
        let numbers = all.iter().map(|name| number(Some(name), "prio", 120)).collect();
        let decision =
            InWords { time_us: 0.0, cpu: 0, choice: "pick", who: None, over: Vec::new(), rule: "none", numbers };
        let text = text(&decision);
        assert_eq!(text.lines().count(), 2 + 8 + 1);
        assert!(text.ends_with("  and 3 more\n"));
        assert!(text.contains("pick      nobody\n"));
    }
}
