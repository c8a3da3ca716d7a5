//! The picture of lanes: one line a lane, under a ruler of time.

use schedlab_base::{CpuId, Nanos, Tid, counted, is_hidden};
use schedlab_measure::Slot;
use schedlab_measure::lanes::{CpuCell, CpuCells, Sum, TaskCell, TaskCells, Window};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Heights of a cell in which a task ran for an eighth of the time, two eighths, ...
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Letters for the tasks of CPU lanes.
const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Any task that has no letter of its own.
const OTHER: char = '*';

/// Backgrounds for letters, light enough for black text: indices into the terminal's 256 colours.
const BACKGROUNDS: [u8; 12] = [117, 215, 114, 211, 222, 183, 80, 203, 150, 111, 180, 176];

/// A name is cut to this many characters.
const LONGEST_NAME: usize = 15;

/// What stands beside a CPU's lane, and beside a task's.
const CPU_MARGIN: usize = "cpu1234 ││ 100%".len() - 4;
const TASK_MARGIN: usize = 2 + " 100%  100%".len();

/// A task as the legend shows it.
pub struct TaskLabel {
    /// The task.
    pub task: Slot,
    /// Its thread id.
    pub tid: Tid,
    /// Its name.
    pub name: String,
    /// What it did in the window.
    pub sum: Sum,
}

impl TaskLabel {
    fn text(&self) -> String {
        let name: String = self.name.chars().filter(|c| !is_hidden(*c)).take(LONGEST_NAME).collect();
        if name.is_empty() { self.tid.to_string() } else { format!("{name} {}", self.tid) }
    }
}

/// How to draw.
pub struct Picture {
    /// What part of the trace.
    pub window: Window,
    /// The length of the whole trace.
    pub length: Nanos,
    /// Columns.
    pub width: usize,
    /// Whether to colour.
    pub color: bool,
    /// Whether only some of the tasks are selected.
    pub selected: bool,
}

/// A time in the unit that suits it.
pub fn time(ns: Nanos) -> String {
    with_decimals(ns, 3)
}

fn with_decimals(ns: Nanos, decimals: usize) -> String {
    let (unit, name) = unit(ns);
    let text = format!("{:.decimals$}", ns as f64 / unit as f64);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {name}")
}

/// A time to about three digits.
fn roughly(ns: Nanos) -> String {
    let whole = ns / unit(ns).0;
    with_decimals(ns, [2, 1, 0][(whole >= 10) as usize + (whole >= 100) as usize])
}

fn unit(ns: Nanos) -> (Nanos, &'static str) {
    match ns {
        0..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    }
}

/// The distance of the ruler's ticks: 1, 2 or 5 times a power of ten, at least `least` ns.
fn tick_step(least: Nanos) -> Nanos {
    let mut power: Nanos = 1;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step >= least || step == Nanos::MAX {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The time of a tick, in the unit that suits the window's end unless that takes too many decimals.
fn tick_label(at: Nanos, end: Nanos, step: Nanos) -> String {
    let mut scale = unit(end);
    let mut decimals = 0;
    while step.saturating_mul(10u64.pow(decimals)) < scale.0 {
        decimals += 1;
    }
    if decimals > 3 {
        (scale, decimals) = (unit(step), 0);
    }
    format!("{:.*} {}", decimals as usize, at as f64 / scale.0 as f64, scale.1)
}

impl Picture {
    /// Cells of a CPU's lane.
    pub fn cpu_cells(&self) -> usize {
        self.width - CPU_MARGIN
    }

    /// Cells of a task's lane.
    pub fn task_cells(&self, tasks: &[TaskLabel]) -> usize {
        self.width.saturating_sub(name_width(tasks) + TASK_MARGIN).max(10)
    }

    /// One lane for each CPU: a letter for the task that ran longest, and how many wake-ups there were.
    pub fn cpus(&self, cells: &CpuCells, busy: &BTreeMap<CpuId, Nanos>, tasks: &[TaskLabel], more: usize) -> String {
        let mut out = self.head(self.cpu_cells());
        let letters = letters(cells, tasks);
        out += &self.ruler("        ", self.cpu_cells(), " busy");
        for (cpu, lane) in &cells.lanes {
            let row: String = lane.iter().map(|cell| self.cpu_cell(cell, &letters)).collect();
            let part = self.percent(busy.get(cpu).copied().unwrap_or(0));
            let _ = writeln!(out, "{:<8}│{row}│ {part:>4}", format!("cpu{cpu}"));
            if lane.iter().any(|cell| cell.wakeups > 0) {
                let marks: String = lane.iter().map(|cell| wakeup_mark(cell.wakeups)).collect();
                let _ = writeln!(out, "        │{}│", self.dim(&marks));
            }
        }
        if more > 0 {
            let _ = writeln!(out, "and {} (--lanes)", counted(more as u64, "more CPU"));
        }
        out.push('\n');
        let unlettered = |cell: &CpuCell| !cell.lost && cell.busy >= 0.5 && !letters.contains_key(&cell.tid);
        let others = cells.lanes.values().flatten().any(unlettered);
        out += &self.letters_legend(&letters, tasks, others);
        out += "blank: idle   · busy for less than half   ↑ woken; 2, 3: number of wake-ups\n";
        if cells.lanes.values().flatten().any(|cell| cell.lost) {
            out += "? events were lost\n";
        }
        out
    }

    /// One lane for each task.
    pub fn tasks(&self, cells: &TaskCells, tasks: &[TaskLabel], more: usize) -> String {
        let (columns, names) = (self.task_cells(tasks), name_width(tasks));
        let mut out = self.head(columns);
        out += &self.ruler(&" ".repeat(names), columns, "  run  wait");
        for task in tasks {
            let Some(lane) = cells.lanes.get(&task.task) else { continue };
            let before = std::iter::once(None).chain(lane.iter().map(Some));
            let row: String = std::iter::zip(before, lane).map(|(b, c)| self.task_cell(b, c)).collect();
            let (run, wait) = (self.percent(task.sum.run), self.percent(task.sum.wait));
            let _ = writeln!(out, "{:<names$}│{row}│ {run:>4}  {wait:>4}", task.text());
        }
        if more > 0 {
            let _ = writeln!(out, "and {} (--lanes)", counted(more as u64, "more task"));
        }
        out += "\n█ running (lower: for a part of the column)   ▒ waiting for a CPU   ↑ woken\n";
        out += "· sleeping   ~ blocked (uninterruptible)   blank: not there\n";
        out
    }

    fn head(&self, cells: usize) -> String {
        let Window { from, to } = self.window;
        let part = if from == 0 && to == self.length {
            format!("{} in all", time(to))
        } else {
            format!("{} to {} of {}", if from == 0 { "0".to_owned() } else { time(from) }, time(to), time(self.length))
        };
        format!("{part}; one column is {}\n\n", roughly((to - from) / cells as Nanos))
    }

    /// Two lines: times, and ticks where they are.
    fn ruler(&self, margin: &str, cells: usize, heading: &str) -> String {
        let Window { from, to } = self.window;
        let length = to - from;
        // Twice: how far ticks must be apart depends on how long their times are, and the other way round.
        let mut step = 1;
        for _ in 0..2 {
            let room = tick_label(to, to, step).len().max(8) as u128 + 2;
            step = tick_step((u128::from(length) * room / cells as u128) as Nanos);
        }
        let (mut labels, mut ticks) = (String::new(), vec!['─'; cells]);
        let mut at = from.div_ceil(step) * step;
        while at < to {
            // As cells are cut: the column that the instant lies in.
            let column = (u128::from(at - from) * cells as u128 / u128::from(length)) as usize;
            let label = tick_label(at, to, step);
            if column + label.len() <= cells + heading.len() && labels.len() <= column {
                labels += &" ".repeat(column - labels.len());
                labels += &label;
                ticks[column] = '┬';
            }
            at = at.saturating_add(step);
        }
        let ticks: String = ticks.into_iter().collect();
        format!("{margin} {labels}\n{margin}┌{ticks}┐{heading}\n")
    }

    fn percent(&self, ns: Nanos) -> String {
        let part = ns as f64 * 100.0 / (self.window.to - self.window.from) as f64;
        if ns > 0 && part < 0.5 { "<1%".to_owned() } else { format!("{part:.0}%") }
    }

    fn cpu_cell(&self, cell: &CpuCell, letters: &BTreeMap<Tid, usize>) -> String {
        if cell.lost {
            return self.paint("97;41", "?");
        }
        if cell.busy < 0.5 {
            return if cell.busy > 0.0 { self.dim("·") } else { " ".to_owned() };
        }
        match letters.get(&cell.tid) {
            Some(n) => {
                let letter = letter(*n).to_string();
                self.paint(&format!("30;48;5;{}", BACKGROUNDS[n % BACKGROUNDS.len()]), &letter)
            }
            None => OTHER.to_string(),
        }
    }

    fn task_cell(&self, before: Option<&TaskCell>, cell: &TaskCell) -> String {
        let TaskCell { running, waiting, sleeping, blocked, wakeups } = *cell;
        let asleep_before = before.is_none_or(|b| b.running + b.waiting < 0.02);
        if running + waiting + sleeping + blocked < 0.02 {
            return " ".to_owned();
        }
        if wakeups > 0 && running < 0.75 && (asleep_before || running + waiting < 1.0 / 16.0) {
            return self.paint("1", "↑");
        }
        if waiting >= running && waiting >= sleeping + blocked {
            return self.paint("38;5;208", "▒");
        }
        if running >= 1.0 / 16.0 {
            let height = ((running * 8.0).round() as usize).clamp(1, 8);
            return self.paint("38;5;34", &HEIGHTS[height - 1].to_string());
        }
        self.dim(if blocked > sleeping { "~" } else { "·" })
    }

    /// Which task has which letter. Where `others`, some cells are of tasks that have none.
    fn letters_legend(&self, letters: &BTreeMap<Tid, usize>, tasks: &[TaskLabel], others: bool) -> String {
        let mut shown: Vec<&TaskLabel> = tasks.iter().filter(|t| letters.contains_key(&t.tid)).collect();
        shown.sort_by_key(|t| letters[&t.tid]);
        let (mut out, mut column) = (String::new(), 0);
        for task in &shown {
            let n = letters[&task.tid];
            let text = format!(" {} {}", task.text(), self.percent(task.sum.run));
            let used = 1 + text.chars().count();
            if column > 0 && column + 3 + used > self.width {
                out.push('\n');
                column = 0;
            }
            if column > 0 {
                out += "   ";
                column += 3;
            }
            out += &self.paint(&format!("30;48;5;{}", BACKGROUNDS[n % BACKGROUNDS.len()]), &letter(n).to_string());
            out += &text;
            column += used;
        }
        if column > 0 {
            out.push('\n');
        }
        match (tasks.len() - shown.len(), others) {
            (0, false) => {}
            (0, true) => {
                let _ = writeln!(out, "{OTHER} where a task that is not selected ran longest");
            }
            (n, false) => {
                let _ = writeln!(out, "and {}", counted(n as u64, "more task"));
            }
            (n, true) => {
                let more = counted(n as u64, "more task");
                let others = if self.selected { "one of them, or a task that is not selected," } else { "one of them" };
                let _ = writeln!(out, "and {more} ({OTHER} where {others} ran longest)");
            }
        }
        out
    }

    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }

    fn paint(&self, style: &str, text: &str) -> String {
        if self.color { format!("\x1b[{style}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

fn letter(n: usize) -> char {
    LETTERS.chars().nth(n).unwrap_or(OTHER)
}

fn name_width(tasks: &[TaskLabel]) -> usize {
    tasks.iter().map(|t| t.text().chars().count()).max().unwrap_or(0).max(4) + 1
}

/// Letters for the tasks that have a cell of their own, the busiest first.
fn letters(cells: &CpuCells, tasks: &[TaskLabel]) -> BTreeMap<Tid, usize> {
    let drawn: std::collections::BTreeSet<Tid> =
        cells.lanes.values().flatten().filter(|c| c.busy >= 0.5).map(|c| c.tid).collect();
    let tids = tasks.iter().map(|t| t.tid).filter(|tid| drawn.contains(tid));
    tids.take(LETTERS.len()).enumerate().map(|(n, tid)| (tid, n)).collect()
}

fn wakeup_mark(wakeups: u32) -> char {
    match wakeups {
        0 => ' ',
        1 => '↑',
        2..=9 => char::from_digit(wakeups, 10).unwrap_or('+'),
        _ => '+',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(from: Nanos, to: Nanos) -> Picture {
        Picture { window: Window { from, to }, length: 50_000_000, width: 80, color: false, selected: false }
    }

    #[test]
    fn the_ruler_has_round_times_where_they_are() {
        let text = picture(0, 50_000_000).ruler("", 50, "");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], " 0 ms      10 ms     20 ms     30 ms     40 ms");
        assert_eq!(lines[1], format!("┌{}┐", "┬─────────".repeat(5)));
        let text = picture(12_345_000, 12_347_000).ruler("", 40, "");
        assert!(text.contains("12.345 ms           12.346 ms"), "{text}");
        let text = picture(0, 2_400_000_000).ruler("", 50, "");
        assert!(text.starts_with(" 0.0 s     0.5 s     1.0 s"), "{text}");
    }

    #[test]
    fn times_have_their_unit() {
        assert_eq!(time(1_500), "1.5 us");
        assert_eq!(time(20_000_000), "20 ms");
        assert_eq!(time(0), "0 ns");
        assert_eq!(roughly(36_615_384), "36.6 ms");
        assert_eq!(roughly(666_666), "667 us");
        assert_eq!(roughly(100_000_000), "100 ms");
        assert_eq!(tick_step(21), 50);
        assert_eq!(tick_step(Nanos::MAX), Nanos::MAX);
    }

    #[test]
    fn a_cell_shows_what_matters_in_it() {
        let p = picture(0, 1);
        let cell = |running, waiting, sleeping, wakeups| TaskCell { running, waiting, sleeping, blocked: 0.0, wakeups };
        let asleep = cell(0.0, 0.0, 1.0, 0);
        let drawn = |before: &TaskCell, c| p.task_cell(Some(before), &c);
        assert_eq!(drawn(&asleep, cell(1.0, 0.0, 0.0, 0)), "█");
        assert_eq!(drawn(&asleep, cell(0.5, 0.1, 0.4, 0)), "▄");
        assert_eq!(drawn(&asleep, cell(0.1, 0.8, 0.1, 0)), "▒");
        assert_eq!(drawn(&asleep, cell(0.0, 0.0, 1.0, 0)), "·");
        assert_eq!(drawn(&asleep, cell(0.0, 0.4, 0.6, 1)), "↑");
        assert_eq!(drawn(&cell(0.3, 0.0, 0.7, 1), cell(0.3, 0.0, 0.7, 1)), "▂");
        assert_eq!(drawn(&asleep, cell(0.0, 0.0, 0.0, 0)), " ");
    }
}
