//! How near the simulator comes to a real kernel: the same loads in both, figure by figure, beside the real kernel's
//! own scatter.
//!
//! The simulator is given what is known of the real kernel before the comparison: its release and settings, its
//! machine, and what a wake-up and calls cost there, which loads of their own show (`WAKE_UPS`, `CALLS`). Of each run
//! it is given when and where each task of the load began (`start`), what ran beside them (`others`), by how much
//! bursts were too long where the CPUs of a guest share a clock (`lengths`), and nothing else.

mod calibrated;
mod calls;
mod figures;
mod judged;
mod lengths;
mod loads;
mod others;
mod start;
mod text;

pub use judged::{Order, Row, Standing};
pub use text::{markdown, table};

use crate::as_recorded::Setup;
use crate::backend::vm::ONE_CLOCK;
use crate::backend::{Backend, Outcome, Real, Request, Sim};
use crate::parallel::on_threads;
use figures::{Figures, Measuring};
use lengths::{Longer, lengthened};
use loads::{LOADS, Subject, calibration};
use schedlab_base::{Cost, Error, Meta, Nanos, Result, Sink, nearest};
use schedlab_machine::{CostsFile, Machine};
use schedlab_workload::Workload;
use serde::Serialize;
use start::begun_as;

/// What is to be compared.
pub struct Question {
    /// The real kernels.
    pub kernels: Vec<Box<dyn Real>>,
    /// The machines.
    pub machines: Vec<Machine>,
    /// The names of the loads; all if there is neither a name nor a workload.
    pub loads: Vec<String>,
    /// The user's own workloads.
    pub workloads: Vec<Workload>,
    /// How long each run is.
    pub duration: Nanos,
    /// How often each load is run on each kernel, and simulated.
    pub repeats: u64,
    /// How many runs go on at once, where they do not disturb each other.
    pub threads: usize,
}

impl Question {
    /// Whether some load forks: those of this module do not.
    fn forks(&self) -> bool {
        self.workloads.iter().flat_map(|workload| &workload.tasks).any(|task| task.instances == 0)
    }
}

/// A kernel on a machine, and the simulation of it.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The backend, as `--on` names it.
    pub on: String,
    /// The real kernel's release.
    pub kernel: String,
    /// The profile that is simulated.
    pub profile: String,
    /// The machine.
    pub machine: String,
    /// Its CPUs.
    pub cpus: usize,
    /// Settings of the simulation that differ from the profile's defaults.
    pub set: Vec<(String, String)>,
    /// What wake-ups, ticks and calls that block cost there, by its name in a machine's file: what was measured.
    pub costs: Vec<(&'static str, Cost)>,
    /// What the simulation cannot have as the real kernel had it.
    pub remarks: Vec<String>,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Fidelity {
    /// The length of a run in seconds.
    pub duration_s: f64,
    /// How many runs of each load.
    pub repeats: u64,
    /// The kernels on the machines.
    pub places: Vec<Place>,
    /// Every figure of every load in every place.
    pub rows: Vec<Row>,
    /// Where two kernels differ on one machine by more than they scatter: whether the simulations differ likewise.
    pub orders: Vec<Order>,
}

impl Fidelity {
    /// Whether every figure with a bar is within it, and every order is right.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.rows.iter().all(|row| row.standing != Standing::Missed) && self.orders.iter().all(|order| order.right)
    }
}

/// The loads: name and description.
pub fn loads() -> impl Iterator<Item = (&'static str, &'static str)> {
    LOADS.iter().map(|load| (load.name, load.meaning))
}

/// What is asked for: the loads that are named, or all if nothing is, and the user's own workloads.
fn chosen(question: &Question) -> Result<Vec<Subject<'_>>> {
    let find = |name: &String| {
        LOADS.iter().find(|load| load.name == name).map(Subject::Known).ok_or_else(|| {
            let error = Error::input(format!("there is no load \"{name}\"")).key("--load");
            match nearest(name, LOADS.iter().map(|load| load.name)) {
                Some(near) => error.mend(format!("did you mean \"{near}\"?")),
                None => {
                    error.mend(format!("there are {}", loads().map(|(name, _)| name).collect::<Vec<_>>().join(", ")))
                }
            }
        })
    };
    let own = question.workloads.iter().map(Subject::Own);
    if question.loads.is_empty() && question.workloads.is_empty() {
        return Ok(LOADS.iter().map(Subject::Known).collect());
    }
    question.loads.iter().map(find).chain(own.map(Ok)).collect()
}

/// Runs everything. `done` is called with what was done, before each run and at its end.
///
/// # Errors
/// When a load is unknown, a machine cannot be had, or a run fails.
pub fn compare(question: &Question, done: &(dyn Fn(&str) + Sync)) -> Result<Fidelity> {
    let subjects = chosen(question)?;
    let mut all = Fidelity {
        duration_s: question.duration as f64 / 1e9,
        repeats: question.repeats,
        places: Vec::new(),
        rows: Vec::new(),
        orders: Vec::new(),
    };
    for machine in &question.machines {
        for kernel in &question.kernels {
            if let Some(why) = kernel.lacks(machine) {
                return Err(Error::not_permitted(format!(
                    "{} cannot be the machine {}: {why}",
                    kernel.name(),
                    machine.name
                ))
                .mend("name another with --machine"));
            }
        }
        let first = all.rows.len();
        for kernel in &question.kernels {
            let (setup, remarks, runs) = both(question, &**kernel, machine, &subjects, done)?;
            all.places.push(place(&**kernel, machine, &setup, remarks));
            for (subject, (real, simulated)) in subjects.iter().zip(runs) {
                let about = (kernel.name(), machine.name.as_str(), subject.name());
                all.rows.extend(judged::rows(about, machine.cpus.len(), &real, &simulated));
            }
        }
        all.orders.extend(judged::orders(&all.rows[first..]));
    }
    Ok(all)
}

/// How many times `done` will be called.
#[must_use]
pub fn steps(question: &Question) -> u64 {
    let named = question.loads.len() + question.workloads.len();
    let loads = if named == 0 { LOADS.len() } else { named } as u64;
    let calibrations: u64 = question.kernels.iter().map(|kernel| calibrated::times(&**kernel, question.repeats)).sum();
    let runs = 2 * loads * question.repeats * question.kernels.len() as u64;
    let of = |machine: &Machine| calibration(machine.cpus.len(), question.forks()).len() as u64 * calibrations + runs;
    question.machines.iter().map(of).sum()
}

fn place(kernel: &dyn Real, machine: &Machine, setup: &Setup, mut remarks: Vec<String>) -> Place {
    if shares_clock(kernel, machine) {
        remarks.push(ONE_CLOCK.to_owned());
    }
    Place {
        on: kernel.name().to_owned(),
        kernel: kernel.real_kernel().unwrap_or_default().to_owned(),
        profile: setup.kernel.clone(),
        machine: machine.name.clone(),
        cpus: machine.cpus.len(),
        set: setup.set.clone(),
        costs: CostsFile::of(&setup.machine.costs).given().collect(),
        remarks,
    }
}

/// Whether counted work takes longer the more CPUs are busy.
fn shares_clock(kernel: &dyn Real, machine: &Machine) -> bool {
    kernel.deterministic() && machine.cpus.len() > 1
}

fn request(kernel: &dyn Real, machine: &Machine, load: Subject, (duration, seed): (Nanos, u64)) -> Result<Request> {
    let cpus = machine.cpus.len() as u32;
    Ok(Request {
        kernel: kernel.real_kernel().unwrap_or_default().to_owned(),
        machine: machine.clone(),
        workload: load.workload(cpus)?,
        set: Vec::new(),
        duration: Some(duration),
        seed,
        skip_ticks: true,
    })
}

/// The runs of a load on a real kernel, and the simulations of them.
type Both = (Vec<Figures>, Vec<Figures>);

/// Runs each load on the real kernel, and simulates what ran there. The loads take turns, each turn with a calibration
/// of its own: what a machine's wake-ups take changes within seconds, and so is in the scatter of the runs of a load.
fn both(
    question: &Question,
    kernel: &dyn Real,
    machine: &Machine,
    loads: &[Subject],
    done: &(dyn Fn(&str) + Sync),
) -> Result<(Setup, Vec<String>, Vec<Both>)> {
    let (repeats, number) = (question.repeats as usize, loads.len());
    // By turns, the loads of each one after the other.
    let asked: Vec<Request> = (1..=question.repeats)
        .flat_map(|seed| loads.iter().map(move |load| (*load, seed)))
        .map(|(load, seed)| request(kernel, machine, load, (question.duration, seed)))
        .collect::<Result<_>>()?;
    let tell = |at: usize| done(&format!("{} on {}: {}", kernel.name(), machine.name, loads[at % number].name()));
    let keys = |at: usize| asked[at].workload.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<&str>>();
    let ran = |at: usize, smt_loss: u64| -> Result<(Figures, Workload)> {
        let recording = kernel.recording(&asked[at])?;
        let others = others::of(&recording, smt_loss)?;
        let longer = if shares_clock(kernel, machine) { lengths::of(&recording)? } else { Longer::new() };
        let mut figures = measured(&kernel.meta(&asked[at]), &keys(at), |sink| recording.replay(sink))?;
        let (begun, moved) = begun_as(&asked[at].workload, &figures.starts);
        figures.all.migrations -= f64::from(moved);
        tell(at);
        Ok((figures, others::beside(lengthened(begun, &longer), &others)))
    };
    let (mut calibrations, mut real) = (Vec::new(), Vec::new());
    for turn in 0..repeats {
        if turn < calibrated::times(kernel, question.repeats) as usize {
            calibrations.push(calibrated::once(question, kernel, machine, done)?);
        }
        let smt_loss = calibrations[0].0.machine.costs.smt_loss_percent;
        let these: Vec<usize> = (turn * number..(turn + 1) * number).collect();
        real.extend(on_threads(&these, kernel.at_once(question.threads), &|at| ran(at, smt_loss), &|| {})?);
    }
    let (setup, remarks) = calibrated::together(calibrations);
    let simulated = |at: usize| {
        let request = Request {
            kernel: setup.kernel.clone(),
            machine: setup.machine.clone(),
            set: setup.set.clone(),
            workload: real[at].1.clone(),
            ..asked[at].clone()
        };
        let figures = measured(&Sim.meta(&request), &keys(at), |sink| Sim.run(&request, sink));
        tell(at);
        figures
    };
    let every: Vec<usize> = (0..asked.len()).collect();
    let simulated = on_threads(&every, question.threads, &simulated, &|| {})?;
    let mut runs: Vec<Both> = loads.iter().map(|_| Both::default()).collect();
    for (at, ((real, _), simulated)) in real.into_iter().zip(simulated).enumerate() {
        let of_load = &mut runs[at % number];
        of_load.0.push(real);
        of_load.1.push(simulated);
    }
    Ok((setup, remarks, runs))
}

/// The figures of the tasks with these keys in a run.
fn measured(meta: &Meta, keys: &[&str], run: impl FnOnce(&mut dyn Sink) -> Result<Outcome>) -> Result<Figures> {
    let mut measuring = Measuring::new(meta);
    let outcome = measuring.watch(run)?;
    Ok(measuring.finish(&outcome, keys))
}
