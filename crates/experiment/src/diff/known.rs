//! What partial recordings leave unknown of a comparison.

use super::align::Key;
use super::{Question, Run};
use schedlab_base::{Partial, listed};
use schedlab_measure::compared::FIGURES;
use schedlab_measure::partial;

impl Question {
    /// The figures of a row that one side does not tell. All tasks of a partial recording are other ones than those of
    /// a whole machine.
    pub(super) fn unknown(&self, key: &Key) -> Vec<&'static str> {
        let others = *key == Key::All && self.is_mixed();
        let untold = |key: &str| self.partials().any(|own| partial::unknown(own.covers).any(|unknown| unknown == key));
        FIGURES.iter().map(|figure| figure.key).filter(|key| others || untold(key)).collect()
    }

    /// Says which side is partial, and what is not compared because of it.
    pub(super) fn remark_partial(&self, remarks: &mut Vec<String>) {
        for (side, runs) in [("A", &self.a), ("B", &self.b)] {
            if let Some(partial) = partials(runs).next() {
                remarks.push(format!("{side} is partial: {}", partial.reason()));
            }
        }
        if self.is_mixed() {
            remarks.push("all tasks together are not compared, because some recordings have fewer of them".to_owned());
        }
        let unknown = self.unknown(&Key::Team(String::new()));
        let names = FIGURES.iter().filter(|figure| unknown.contains(&figure.key)).map(|figure| figure.name.to_owned());
        let names: Vec<String> = names.collect();
        if !names.is_empty() {
            remarks.push(format!("not compared, because a partial recording does not tell: {}", listed(&names)));
        }
    }

    /// Whether some recordings are partial and others are not.
    fn is_mixed(&self) -> bool {
        let partial = self.partials().count();
        partial > 0 && partial < self.a.len() + self.b.len()
    }

    fn partials(&self) -> impl Iterator<Item = &Partial> {
        partials(&self.a).chain(partials(&self.b))
    }
}

fn partials(runs: &[Run]) -> impl Iterator<Item = &Partial> {
    runs.iter().filter_map(|run| run.partial.as_ref())
}
