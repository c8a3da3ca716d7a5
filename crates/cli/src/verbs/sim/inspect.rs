//! Inside a simulation: the queues at given times, and the reason of each decision.

mod sched_debug;
mod text;

use crate::ui::Ui;
use schedlab_base::{CpuId, Error, Event, NameRecord, Nanos, Result, Sink, duration_text, parse_duration};
use schedlab_experiment::inspected::{InWords, Named, in_words, named};
use schedlab_sched::kernels;
use schedlab_sim::{Decision, Inspect, Inspector, TaskId, View};
use serde::Serialize;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// What is asked for.
#[derive(clap::Args)]
pub struct InspectArgs {
    /// Print each decision, the tasks that were not chosen, and the rule and numbers that decided; for the whole run
    /// or for FROM..TO (10ms..20ms; either may be left out).
    #[arg(long, value_name = "FROM..TO", num_args = 0..=1, default_missing_value = "..", value_parser = window)]
    explain: Option<Window>,
    /// Print the state of every CPU's queues at this time, as JSON; may be repeated.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    queues_at: Vec<Nanos>,
    /// Print what /proc/sched_debug would have shown at this time (kernels with CFS or EEVDF).
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    sched_debug: Option<Nanos>,
}

/// A window of simulated time.
#[derive(Clone, Debug)]
pub struct Window(pub Range<Nanos>);

/// Reads `FROM..TO`, either of which may be missing.
pub fn window(text: &str) -> Result<Window> {
    let (from, to) = text
        .split_once("..")
        .ok_or_else(|| Error::input(format!("\"{text}\" is no window")).mend("write FROM..TO, as in 10ms..20ms"))?;
    let or = |text: &str, or: Nanos| if text.is_empty() { Ok(or) } else { parse_duration(text) };
    let window = or(from, 0)?..or(to, Nanos::MAX)?;
    if window.is_empty() {
        return Err(Error::input(format!("the window \"{text}\" is empty")).mend("let it end after it begins"));
    }
    Ok(Window(window))
}

impl InspectArgs {
    /// Whether anything is asked for.
    pub fn any(&self) -> bool {
        self.explain.is_some() || !self.queues_at.is_empty() || self.sched_debug.is_some()
    }

    /// The times at which queues are wanted, ascending.
    pub fn times(&self) -> Vec<Nanos> {
        let mut times: Vec<Nanos> = self.queues_at.iter().copied().chain(self.sched_debug).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// What the simulation is asked to show to `inspection`.
    pub fn inspect<'a>(&self, times: &'a [Nanos], inspection: &Inspection) -> Option<Inspect<'a>> {
        let explain = self.explain.as_ref().map_or(Nanos::MAX..Nanos::MAX, |window| window.0.clone());
        self.any().then(|| Inspect { at: times, explain, to: Box::new(inspection.clone()) })
    }
}

/// Takes what was asked for: as the sink it learns the names, as the inspector it sees the rest.
#[derive(Clone, Default)]
pub struct Inspection(Rc<RefCell<Seen>>);

#[derive(Default)]
struct Seen {
    names: Vec<String>,
    decisions: Vec<InWords>,
    queues: Vec<Queue>,
    /// Decisions are printed as they are made.
    aloud: bool,
    /// There is no trace to complete: if nobody reads the decisions, the run is for nothing.
    only_printed: bool,
    ui: Ui,
    /// How many decisions were printed or noted.
    decided: u64,
    /// When queues are to be shown, and when as `/proc/sched_debug`.
    queues_at: Vec<Nanos>,
    debug_at: Option<Nanos>,
    debug: Option<String>,
    kernel: String,
    /// When the queues were shown last: the run reached that time.
    reached: Nanos,
}

/// What was seen, as JSON.
#[derive(Serialize)]
pub struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<Vec<InWords>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queues: Option<Vec<Queue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sched_debug: Option<String>,
}

#[derive(Serialize)]
struct Queue {
    time_us: f64,
    cpu: CpuId,
    queue: Named,
}

impl Inspection {
    /// One for a run of `kernel`, which prints decisions as they come unless JSON is asked for. If `only_printed`, the
    /// program ends once standard output takes no more.
    pub fn new(args: &InspectArgs, kernel: &str, only_printed: bool, ui: &Ui) -> Self {
        let seen = Seen {
            aloud: !ui.json,
            only_printed,
            ui: ui.clone(),
            queues_at: args.queues_at.clone(),
            debug_at: args.sched_debug,
            kernel: kernel.to_owned(),
            ..Seen::default()
        };
        Self(Rc::new(RefCell::new(seen)))
    }

    /// What was seen and not yet printed.
    pub fn finish(&self, args: &InspectArgs, ui: &Ui) -> Document {
        let mut seen = self.0.borrow_mut();
        if args.explain.is_some() && seen.decided == 0 {
            ui.note("no decision fell within the window of --explain");
        } else if seen.aloud && seen.decided > 0 {
            ui.print("\n");
        }
        let late =
            args.times().into_iter().filter(|time| *time > seen.reached).map(|time| duration_text(time as f64 / 1e3));
        let late: Vec<String> = late.collect();
        if !late.is_empty() {
            ui.note(format!("no queues are shown at {}: the simulation had ended", late.join(", ")));
        }
        if args.sched_debug.is_some_and(|time| time <= seen.reached) && seen.debug.is_none() {
            ui.note(format!("{} shows nothing in /proc/sched_debug then: try --queues-at", seen.kernel));
        }
        let sched_debug = seen.debug.take();
        if let Some(text) = sched_debug.as_ref().filter(|_| seen.aloud) {
            ui.print(text);
            ui.print("\n");
        }
        Document {
            decisions: (args.explain.is_some() && !seen.aloud).then(|| std::mem::take(&mut seen.decisions)),
            queues: (!args.queues_at.is_empty()).then(|| std::mem::take(&mut seen.queues)),
            sched_debug: sched_debug.filter(|_| !seen.aloud),
        }
    }
}

impl Document {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.decisions.is_none() && self.queues.as_ref().is_none_or(Vec::is_empty) && self.sched_debug.is_none()
    }
}

impl Seen {
    fn name(&self, p: TaskId) -> String {
        self.names.get(p as usize).cloned().unwrap_or_else(|| format!("task {p}"))
    }
}

impl Sink for Inspection {
    fn events(&mut self, _: &[Event]) {}

    fn name(&mut self, record: &NameRecord) {
        self.0.borrow_mut().names.push(record.comm.clone());
    }
}

impl Inspector for Inspection {
    fn view(&mut self, time: Nanos, cpu: CpuId, view: View) {
        let mut seen = self.0.borrow_mut();
        seen.reached = time;
        if seen.debug_at == Some(time) {
            let release = kernels::find(&seen.kernel).ok().and_then(|kernel| kernel.release);
            let section = sched_debug::cpu(cpu, &view, release, &|p| seen.name(p));
            let head = format!("{:<40}: {:.6}\n", "ktime", time as f64 / 1e6);
            if let Some(section) = section {
                let text = seen.debug.get_or_insert(head);
                text.push('\n');
                text.push_str(&section);
            }
        }
        if !seen.queues_at.contains(&time) {
            return;
        }
        let queue = named(view, &|p| seen.name(p));
        seen.queues.push(Queue { time_us: time as f64 / 1e3, cpu, queue });
    }

    fn decision(&mut self, decision: &Decision) {
        let mut seen = self.0.borrow_mut();
        let text = in_words(decision, &|p| seen.name(p));
        seen.decided += 1;
        if seen.aloud {
            if seen.decided == 1 {
                seen.ui.print(text::HEADER);
            }
            seen.ui.print(&text::text(&text));
            if seen.only_printed {
                seen.ui.exit_if_lost();
            }
        } else {
            seen.decisions.push(text);
        }
    }
}
