//! The checker that looks now and then, applied to a trace and compared with the exact check.

use crate::verbs::stats::table::{Table, duration, grouped, shorten};
use schedlab_base::{CpuList, Error, Nanos, Result, counted};
use schedlab_measure::{CheckReport, Finding, SampledReport, Timing, Verdict, Violation};
use serde::Serialize;

/// So many are listed unless all are asked for.
const TOP: usize = 20;

/// The times that were given, checked; the defaults for the others.
pub fn timing(every: Option<Nanos>, watch: Option<Nanos>) -> Result<Timing> {
    let default = Timing::default();
    let every = every.unwrap_or(default.every);
    let watch = watch.unwrap_or(default.watch.min(every));
    let refuse = |key: &str, what: &str, mend: &str| Err(Error::input(what).mend(mend).key(key));
    if every < 1_000_000 {
        return refuse("--every", "that is too often", "look every 1ms or less often");
    }
    if watch < 100_000 {
        return refuse("--watch", "that is too short", "watch for 100us or longer");
    }
    if watch > every {
        return refuse("--watch", "a watch would last beyond the next look", "choose --every as long or longer");
    }
    Ok(Timing { every, watch })
}

/// What looking now and then found, beside what there was.
#[derive(Serialize)]
pub struct Compared<'a> {
    #[serde(flatten)]
    report: &'a SampledReport,
    /// The violations of the exact check that are longer than the watch.
    exact: u64,
    /// How many of these were found.
    exact_found: u64,
}

impl<'a> Compared<'a> {
    /// Compares the two.
    pub fn new(report: &'a SampledReport, exact: &CheckReport) -> Self {
        let long: Vec<&Violation> = exact.violations.iter().filter(|v| v.duration_us > report.watch_us).collect();
        let found = long.iter().filter(|v| report.found.iter().any(|one| meets(one, v))).count();
        Self { report, exact: long.len() as u64, exact_found: found as u64 }
    }

    /// The verdict by what was found, unless the trace decides nothing.
    pub fn verdict(&self, exact: &CheckReport) -> Verdict {
        match (exact.verdict, self.report.found.is_empty()) {
            (Verdict::Undecided, _) => Verdict::Undecided,
            (_, true) => Verdict::Pass,
            (_, false) => Verdict::Fail,
        }
    }

    /// What was found, for people.
    pub fn text(&self, all: bool) -> String {
        let Self { report, exact, exact_found } = self;
        let times = |n: u64| if n == 1 { "once".to_owned() } else { format!("{} times", grouped(n)) };
        let mut out = format!(
            "looked every {}, and watched {} for {}\n",
            duration(report.every_us),
            times(report.work.watches),
            duration(report.watch_us)
        );
        if report.found.is_empty() {
            out.push_str(
                "At the end of no watch was a CPU still idle beside a waiting task that could have run there.\n",
            );
        } else {
            let mut table = Table::new(6, ["from", "watched", "idle", "busy", "level", "waiting"]);
            for one in report.found.iter().take(if all { usize::MAX } else { TOP }) {
                table.row(row(one));
            }
            out.push('\n');
            out.push_str(&table.render());
            let more = report.found.len().saturating_sub(TOP);
            if more > 0 && !all {
                out.push_str(&format!("... and {} more (--all shows them)\n", grouped(more as u64)));
            }
        }
        out + &format!(
            "\nfound: {} of {} that the exact check finds to be longer than {}\n\n",
            grouped(*exact_found),
            counted(*exact, "violation"),
            duration(report.watch_us)
        )
    }
}

fn row(one: &Finding) -> [String; 6] {
    let first: Vec<String> = one.waiting.iter().take(2).map(|t| format!("{} {}", shorten(&t.name), t.tid)).collect();
    let more = one.waiting_tasks.saturating_sub(first.len() as u64);
    let more = if more > 0 { format!(" and {} more", grouped(more)) } else { String::new() };
    [
        duration(one.start_us),
        duration(one.duration_us),
        one.idle_cpus.clone(),
        one.busy_cpus.clone(),
        one.distance.map_or_else(|| one.level.name().to_owned(), |d| format!("{} {d}", one.level.name())),
        format!("{}{more}", first.join(", ")),
    ]
}

/// Whether what was found is this violation: of one of its idle CPUs, and at that time.
fn meets(found: &Finding, violation: &Violation) -> bool {
    let idle: CpuList = found.idle_cpus.parse().unwrap_or_default();
    let (from, to) = (found.start_us, found.start_us + found.duration_us);
    idle.contains(violation.idle_cpu) && from < violation.start_us + violation.duration_us && violation.start_us < to
}

#[cfg(test)]
mod tests {
    use super::timing;

    #[test]
    fn times_that_make_no_sense_are_refused() {
        const MS: u64 = 1_000_000;
        assert!(timing(None, None).is_ok() && timing(Some(50 * MS), None).is_ok_and(|t| t.watch == 50 * MS));
        for (every, watch) in [(Some(0), None), (None, Some(0)), (Some(10 * MS), Some(11 * MS))] {
            assert!(timing(every, watch).is_err(), "{every:?} {watch:?}");
        }
    }
}
