//! A comparison in words.

use super::{By, Change, Comparison, DURATION, Direction, Intervals, Per, Ruling};
use schedlab_base::duration_text as time;
use schedlab_measure::compared::{FIGURES, Unit};

impl Comparison {
    /// How it was compared, a line for each thing.
    #[must_use]
    pub fn head(&self) -> Vec<String> {
        let how = match self.by {
            By::Task => "task: by name, and among those of one name by order",
            By::Name => "name",
            By::Role => "role: by name without its numbers",
            By::Process => "process: by name, and among those of one name by order",
            By::Group => "cgroup",
        };
        let from = match self.intervals {
            Intervals::Runs => "intervals: from the scatter between runs".to_owned(),
            Intervals::Blocks => format!(
                "intervals: from {} blocks of time of each trace, so they do not include what differs from run to run",
                self.blocks
            ),
            Intervals::None => "intervals: none, because there is one run each".to_owned(),
        };
        let mut head = vec![format!("aligned by {how}"), from];
        if self.per == Per::Second {
            head.push("sums are given for a second".to_owned());
        }
        head
    }

    /// What changed, a line for each figure: what got worse first.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.changes.iter().map(Change::sentence).collect();
        let unknown = self.rows.iter().flat_map(|row| row.figures.values());
        if self.intervals == Intervals::None {
            lines.push("whether any of this is chance cannot be told from one run each".to_owned());
        } else if lines.is_empty() {
            let judged = unknown.filter(|effect| effect.chance.is_some()).count();
            lines.push(format!("none of {judged} figures changed beyond the scatter"));
        }
        lines
    }

    /// The exit status that the bounds ask for.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        self.bounds.iter().map(|judged| judged.ruling).max().map_or(0, Ruling::exit_status)
    }
}

impl Change {
    /// `worse: server: p99 of wake-up latency +165%, from 3.1 ms to 8.2 ms (95%: +120% to +210%)`.
    fn sentence(&self) -> String {
        let figure = FIGURES.iter().chain(std::iter::once(&DURATION)).find(|figure| figure.key == self.figure);
        let (name, unit) = figure.map_or((self.figure, Unit::Count), |figure| (figure.name, figure.unit));
        let value = |value: f64| match unit {
            Unit::Time => time(value),
            Unit::Count => format!("{value:.0}"),
        };
        let how = match self.effect.direction {
            Direction::Worse => "worse",
            Direction::Better => "better",
            Direction::More => "more",
            _ => "less",
        };
        let percent = |part: f64| format!("{:+.1}%", part * 100.0);
        let effect = &self.effect;
        let interval = effect
            .interval
            .map_or_else(String::new, |[low, high]| format!(" (95% interval {} to {})", percent(low), percent(high)));
        format!(
            "{how}: {}: {name} {}, from {} to {}{interval}",
            self.row,
            percent(effect.change),
            value(effect.a),
            value(effect.b)
        )
    }
}
