//! How much work a message takes, and whether a task's long bursts are of several messages.
//!
//! A burst may be long because several messages came, or because the task had more to do this time. What came while the
//! task waited for a CPU was sent by its wakers while they ran meanwhile. So if long bursts are of several messages,
//! they follow waits during which the wakers did much, and short bursts follow those in which they did little. What
//! they did during the burst itself shows nothing: in a long burst they do more in any case.

use super::life::Task;
use super::unseen::Fed;
use schedlab_base::Nanos;

/// So many bursts of a task at least show which are usual.
const FEWEST: u64 = 16;

/// The language's unit: a piece is no shorter.
const SHORTEST: Nanos = 1_000;

/// Bursts that are longer than so many usual ones count as that long: one of them would else decide.
const MOST: Nanos = 10;

/// The least correlation of the bursts with what the wakers did. It is also beyond chance by three standard deviations.
const LEAST: f64 = 0.2;
const DEVIATIONS: f64 = 3.0;

/// Sums of pairs of numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Pairs {
    count: f64,
    sums: (f64, f64),
    squares: (f64, f64),
    products: f64,
}

impl Pairs {
    /// Adds a pair so many times.
    fn add(&mut self, (x, y): (f64, f64), times: f64) {
        self.count += times;
        self.sums = (self.sums.0 + times * x, self.sums.1 + times * y);
        self.squares = (self.squares.0 + times * x * x, self.squares.1 + times * y * y);
        self.products += times * x * y;
    }

    /// The correlation coefficient; 0 if one of the two never changes.
    fn correlation(&self) -> f64 {
        let moment = |product: f64, a: f64, b: f64| self.count * product - a * b;
        let (x, y) = self.sums;
        let spread = moment(self.squares.0, x, x) * moment(self.squares.1, y, y);
        if spread > 0.0 { moment(self.products, x, y) / spread.sqrt() } else { 0.0 }
    }

    fn rise_together(&self) -> bool {
        self.correlation() >= LEAST.max(DEVIATIONS / self.count.sqrt())
    }
}

/// What the lengths of a task's bursts say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    /// Whether long bursts are of several messages.
    pub of_several: bool,
    /// The work that a message takes, if that is so and bursts have a usual length.
    pub take: Option<Nanos>,
}

/// What the lengths of the tasks' bursts say.
pub(super) fn lengths(fed: &[Fed], tasks: &[Task]) -> Vec<Lengths> {
    let most: Vec<Nanos> = tasks.iter().map(|task| MOST * task.receiver.lengths.percentile(50)).collect();
    let mut pairs = vec![Pairs::default(); tasks.len()];
    for ((task, most), pairs) in tasks.iter().zip(&most).zip(&mut pairs) {
        let (alone, times) = task.receiver.alone.kept();
        alone.iter().for_each(|burst| pairs.add((0.0, *burst.min(most) as f64), times));
    }
    for Fed { task, burst, waited, .. } in fed {
        pairs[*task as usize].add((*waited as f64, *burst.min(&most[*task as usize]) as f64), 1.0);
    }
    let lengths = |(task, pairs): (&Task, Pairs)| {
        let of_several = pairs.rise_together();
        Lengths { of_several, take: usual(task).filter(|_| of_several) }
    };
    std::iter::zip(tasks, pairs).map(lengths).collect()
}

/// The usual length of a task's bursts after wake-ups by tasks, if there is one: half of them are not much longer than
/// the shortest tenth.
fn usual(task: &Task) -> Option<Nanos> {
    let lengths = &task.receiver.lengths;
    let [short, median] = [10, 50].map(|percent| lengths.percentile(percent));
    (lengths.seen() >= FEWEST && short >= SHORTEST && median <= 2 * short).then_some(median)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: impl IntoIterator<Item = (f64, f64)>) -> Pairs {
        let mut pairs = Pairs::default();
        list.into_iter().for_each(|pair| pairs.add(pair, 1.0));
        pairs
    }

    #[test]
    fn numbers_rise_together_beyond_chance() {
        let line = |n: u32| (0..n).map(|i| (f64::from(i), 3.0 * f64::from(i) + 1e6));
        assert!((pairs(line(20)).correlation() - 1.0).abs() < 1e-6);
        assert!(pairs(line(20)).rise_together());
        // As few as these may do so by chance.
        assert!(!pairs(line(8)).rise_together());
        assert!(!pairs((0..1000).map(|i| (f64::from(i), f64::from(i % 7)))).rise_together());
        assert!(!pairs((0..1000).map(|i| (f64::from(i), -f64::from(i)))).rise_together());
        assert_eq!(pairs([(1.0, 5.0), (2.0, 5.0)]).correlation(), 0.0);
    }
}
