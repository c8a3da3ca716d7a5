//! A real kernel in a virtual machine as a backend: `schedlab exec` runs the workload inside, and its trace comes home.
//!
//! A guest stays for further runs on the same machine with the same settings.

mod kept;

use super::recording::{Real, Recording, Unnamed};
use super::{Backend, Outcome, Request, Sim};
use kept::Kept;
use schedlab_base::{Error, ErrorKind, Meta, Nanos, Result, Sink};
use schedlab_capture::{Output, Recorded, available_kib};
use schedlab_guest::{Done, Guest, Job, Kernel, Limits, PRINTED, Ran};
use schedlab_live::Execution;
use schedlab_machine::Machine;
use schedlab_sched::kernels;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// Where the trace will be in the guest.
const TRACE: &str = "/run/trace.arrows";

/// The longest name of a workload in bytes that a file in the guest gets.
const LONGEST: usize = 200;

/// From this part of the time on that the host takes from a guest's CPUs, a remark says so.
const BUSY: f64 = 0.05;

/// How long a virtual CPU's turn is where several count instructions.
const TURN_US: f64 = 122.0;

/// Memory that is to be available for each guest: of its own, a small one uses half as much.
const GUEST_KIB: u64 = 1 << 20;

/// What is wrong with counted time on several CPUs.
pub(crate) const ONE_CLOCK: &str =
    "all CPUs share the clock that counts instructions, so less is done in a burst the more of them are busy";

/// A kernel, and how its guests are to be.
#[derive(Clone, Debug)]
pub struct Vm {
    name: String,
    /// The kernel.
    pub kernel: Kernel,
    /// Whether time is counted in instructions, so that equal requests give equal bytes.
    pub deterministic: bool,
    /// The guest's memory in MiB, if not what suits the machine.
    pub memory: Option<u64>,
    /// How long the guest may take to boot.
    pub boot: Duration,
    /// How long a run may take, if not what follows from the request's duration.
    pub run: Option<Duration>,
    /// The guest that waits for another run.
    kept: Kept,
}

/// What a run in a guest says beside its trace.
#[derive(Debug)]
pub struct Inside {
    /// How it was recorded.
    pub recorded: Recorded,
    /// What the tasks report about themselves.
    pub execution: Execution,
    /// Remarks.
    pub notes: Vec<String>,
    /// The guest.
    pub guest: Ran,
}

/// The document that `schedlab exec --json` prints in the guest.
#[derive(Deserialize)]
struct Document {
    execution: Facts,
}

#[derive(Deserialize)]
struct Facts {
    recorded: Recorded,
    notes: Vec<String>,
    #[serde(flatten)]
    execution: Execution,
}

impl Vm {
    /// Guests of the kernel that is named after `vm:`.
    ///
    /// # Errors
    /// When there is no such kernel here.
    pub fn new(name: &str) -> Result<Self> {
        let kernel = schedlab_guest::find(name)?;
        let name = format!("vm:{name}");
        let (boot, kept) = (Limits::default().boot, Kept::default());
        Ok(Self { name, kernel, deterministic: false, memory: None, boot, run: None, kept })
    }

    /// Runs a request in a guest, with these options of `schedlab exec`. `open` creates the output for the trace when
    /// its metadata is known; `say` is called with what goes on.
    ///
    /// # Errors
    /// When the workload does not fit the machine or would never end, the guest fails, or the output does.
    pub fn record<O: Output>(
        &self,
        request: &Request,
        options: &[String],
        open: impl FnOnce(&Meta) -> Result<O>,
        say: &mut dyn FnMut(&str),
    ) -> Result<(O::Done, Inside)> {
        let job = job(request, options)?;
        let (trace, inside) = self.run_inside(request, &mut |guest| schedlab_guest::run(guest, &job, say))?;
        let mut source = trace.open()?;
        let mut output = open(&self.meta_of(source.meta(), request, &inside.guest))?;
        source.run(&mut output)?;
        Ok((output.finish()?, inside))
    }

    /// Runs a request in the guest that `run` is given, and reads what it hands back.
    fn run_inside(
        &self,
        request: &Request,
        run: &mut dyn FnMut(&Guest<'_>) -> Result<Ran>,
    ) -> Result<(Unnamed, Inside)> {
        // What is wrong with the workload is found here, where the user's file is.
        request.load()?;
        let run_for = match (self.run, request.length()?) {
            (Some(limit), _) => limit,
            (None, Some(length)) => run_limit(length),
            // A simulation may be shorter than the guest is: it lengthens the usual limit only.
            (None, None) => self.simulated_length(request).map_or(Duration::ZERO, run_limit).max(Limits::default().run),
        };
        let limits = Limits { boot: self.boot, run: run_for };
        let (deterministic, memory) = (self.deterministic, self.memory);
        let guest = Guest { kernel: &self.kernel, machine: &request.machine, deterministic, memory, limits };
        let mut ran = run(&guest)?;
        if ran.done.status != 0 {
            return Err(self.failed(request, &ran.done));
        }
        let mut hand = |path: &str| {
            let missing = || Error::input(format!("{}: the guest did not hand back {path}", self.kernel.name));
            ran.files.remove(path).ok_or_else(missing)
        };
        let (printed, trace) = (hand(PRINTED)?, hand(TRACE)?);
        let document: Document = serde_json::from_slice(&printed)
            .map_err(|e| Error::input(format!("{}: what the guest printed cannot be read: {e}", self.kernel.name)))?;
        let Facts { recorded, mut notes, execution } = document.execution;
        notes.extend(ran.remarks.iter().cloned());
        let mut file = Unnamed::new()?;
        file.0.write_all(&trace).map_err(|e| Error::system("cannot keep the guest's trace", &e))?;
        Ok((file, Inside { recorded, execution, notes, guest: ran }))
    }

    /// About how long a run takes that ends when its tasks have ended, if it can be simulated.
    fn simulated_length(&self, request: &Request) -> Option<Nanos> {
        let kernel = kernels::not_newer_than(self.kernel.release.parse().ok()?).name.to_owned();
        let simulated = Request { kernel, set: Vec::new(), ..request.clone() };
        Some(Sim.run(&simulated, &mut ()).ok()?.end)
    }

    /// The guest's tunables at the end, by their names in the kernel's profile.
    fn tunables(&self, ran: &Ran) -> BTreeMap<&'static str, i64> {
        let Ok(release) = self.kernel.release.parse() else { return BTreeMap::new() };
        let profile = kernels::not_newer_than(release);
        let known = |(name, value): (&String, &String)| Some((profile.tunable(name)?.name, value.parse().ok()?));
        ran.done.tunables.iter().filter_map(known).collect()
    }

    /// The error of a command that failed in the guest, in its own words. What it says of its copy of the workload is
    /// true of the user's file.
    fn failed(&self, request: &Request, done: &Done) -> Error {
        let said = done.said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
        let said = said.trim_start_matches("schedlab: ");
        let kind = if done.status == 4 { ErrorKind::NotPermitted } else { ErrorKind::Input };
        let error = |said: &str| Error::new(kind, format!("in the guest {}: {said}", self.kernel.name));
        match said.strip_prefix(&format!("{}: ", copy(request))) {
            Some(said) => request.in_file(error(said)),
            None => error(said),
        }
    }

    /// The metadata of a guest's trace, with the guest.
    fn meta_of(&self, inside: &Meta, request: &Request, ran: &Ran) -> Meta {
        let mut meta = Meta { machine: request.machine.name.clone(), ..inside.clone() };
        let settings: Vec<String> = request.set.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let time = if self.deterministic { "counted instructions" } else { "the host's" };
        for (name, value) in [
            ("guest", self.kernel.name.as_str()),
            ("accelerator", ran.accel.name()),
            ("guest_time", time),
            ("set", &settings.join(" ")),
        ] {
            if !value.is_empty() {
                meta.notes.insert(name.to_owned(), value.to_owned());
            }
        }
        meta
    }
}

impl Backend for Vm {
    fn name(&self) -> &str {
        &self.name
    }

    fn deterministic(&self) -> bool {
        self.deterministic
    }

    fn smt_is_free(&self) -> bool {
        true
    }

    fn real_kernel(&self) -> Option<&str> {
        Some(&self.kernel.release)
    }

    fn can_set(&self) -> bool {
        true
    }

    fn at_once(&self, wanted: usize) -> usize {
        let room = available_kib().map_or(1, |kib| usize::try_from(kib / GUEST_KIB).unwrap_or(usize::MAX));
        if self.deterministic { wanted.min(room).max(1) } else { 1 }
    }

    fn lacks(&self, machine: &Machine) -> Option<String> {
        schedlab_guest::fits(machine).err().map(|e| e.to_string())
    }

    fn meta(&self, request: &Request) -> Meta {
        Meta {
            source: "record".to_owned(),
            kernel: self.kernel.release.clone(),
            machine: request.machine.name.clone(),
            clock: "mono".to_owned(),
            cpus: request.machine.cpus.iter().map(|cpu| cpu.place.clone()).collect(),
            distances: request.machine.distances.clone(),
            notes: BTreeMap::from([("workload".to_owned(), request.workload.name.clone())]),
            ..Meta::default()
        }
    }

    fn idle_ticks(&self, _: &Request) -> Result<Option<(Nanos, Nanos)>> {
        Ok(None)
    }

    fn run(&self, request: &Request, sink: &mut dyn Sink) -> Result<Outcome> {
        let mut recording = self.recording(request)?;
        if self.deterministic && request.machine.cpus.len() > 1 {
            let others = request.machine.cpus.len() as f64 - 1.0;
            recording.notes.push(format!(
                "{ONE_CLOCK}, and a latency of up to {:.1} ms can be the wait for a CPU's turn",
                others * TURN_US / 1000.0
            ));
        }
        recording.replay(sink)
    }
}

impl Real for Vm {
    fn recording(&self, request: &Request) -> Result<Recording> {
        let job = job(request, &[])?;
        let (trace, inside) = self.run_inside(request, &mut |guest| self.kept.run(guest, &job))?;
        let mut recording = Recording::new(trace, &inside.recorded, &inside.execution, inside.notes);
        recording.tunables = self.tunables(&inside.guest);
        recording.taken = inside.guest.taken;
        if recording.taken.is_some_and(|taken| taken > BUSY) {
            recording.notes.push(format!(
                "in some runs the host was busy and took more than {:.0}% of the time from the guest's CPUs",
                BUSY * 100.0
            ));
        }
        Ok(recording)
    }
}

/// The file with the workload in the guest. The workload has its name there, too.
fn copy(request: &Request) -> String {
    let name = request.workload.name.as_str();
    // The guest's own files begin with the name of this program.
    let fits =
        (1..=LONGEST).contains(&name.len()) && !name.contains(['/', '\0', '\n']) && !name.starts_with("schedlab");
    format!("/{}.json", if fits { name } else { "workload" })
}

/// The guest's job: this same program's verb `exec`.
fn job(request: &Request, options: &[String]) -> Result<Job> {
    let copy = copy(request);
    let mut command: Vec<String> = ["exec", &copy, "--json", "--output", TRACE, "--seed"].map(str::to_owned).into();
    command.push(request.seed.to_string());
    if let Some(duration) = request.length()? {
        command.extend(["--duration".to_owned(), format!("{duration}ns")]);
    }
    command.extend(options.iter().cloned());
    let workload = schedlab_workload::write(&request.workload).into_bytes();
    let wanted = vec![PRINTED.to_owned(), TRACE.to_owned()];
    let files = vec![(copy, workload)];
    Ok(Job { command, files, set: request.set.clone(), wanted, ..Job::default() })
}

/// How long a guest may take for a run of this duration. Counted time is up to some ten times slower than the host's
/// on a busy host, and handing the trace back takes a while.
fn run_limit(length: Nanos) -> Duration {
    Duration::from_secs(120) + 20 * Duration::from_nanos(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Guests of this release whose time is counted.
    fn counted(release: &str) -> Vm {
        let kernel = Kernel { name: "k".into(), image: "k".into(), release: release.into() };
        let (boot, kept) = (Duration::from_secs(1), Kept::default());
        Vm { name: "vm:k".into(), kernel, deterministic: true, memory: None, boot, run: None, kept }
    }

    #[test]
    fn guests_that_would_disturb_each_other_run_one_by_one() {
        let mut vm = counted("6.1");
        // Two of them take little more memory than the tests themselves.
        assert_eq!((vm.at_once(2), vm.at_once(1)), (2, 1));
        assert!(vm.at_once(usize::MAX) < 100_000);
        vm.deterministic = false;
        assert_eq!(vm.at_once(2), 1);
        assert_eq!(Sim.at_once(64), 64);
    }

    #[test]
    fn the_job_is_exec_with_the_request() {
        let workload = schedlab_workload::presets::build("li:tasks=2").unwrap();
        let request = Request {
            kernel: "6.12".into(),
            machine: schedlab_machine::load("2").unwrap(),
            workload: workload.clone(),
            set: vec![("base_slice_ns".into(), "3000000".into())],
            duration: Some(2_500_000),
            seed: 7,
            skip_ticks: true,
        };
        let job = job(&request, &["--buffer".to_owned(), "512K".to_owned()]).unwrap();
        let inside = schedlab_workload::parse(&job.files[0].1, std::path::Path::new(&job.files[0].0)).unwrap();
        let words = "exec /li.json --json --output /run/trace.arrows --seed 7 --duration 2500000ns --buffer 512K";
        assert_eq!(job.command.join(" "), words);
        assert_eq!(job.set, request.set);
        assert_eq!((&inside.name, &inside.tasks), (&workload.name, &workload.tasks));
        assert_eq!(run_limit(1_000_000_000), Duration::from_secs(140));
    }

    #[test]
    fn what_a_guest_says_of_the_workload_names_the_user_s_file() {
        let text = r#"{ "tasks": { "t": { "loop": 1, "run": 1 } } }"#;
        let request = |file: &str| {
            let file = std::path::PathBuf::from(file);
            let workload = schedlab_workload::parse(text.as_bytes(), &file).unwrap();
            let workload = schedlab_workload::Workload { file: Some(file), ..workload };
            let (machine, set) = (schedlab_machine::load("1").unwrap(), Vec::new());
            Request { kernel: "6.1".into(), machine, workload, set, duration: None, seed: 1, skip_ticks: true }
        };
        let said = |file: &str, said: &str| {
            let mut done = Done::default();
            (done.status, done.said) = (4, said.to_owned());
            counted("6.1").failed(&request(file), &done).to_string()
        };
        let own = "schedlab: /my load.json: tasks.t: this kernel has none\n\n";
        assert_eq!(said("a/my load.json", own), "a/my load.json: in the guest k: tasks.t: this kernel has none");
        assert_eq!(said("w.json", "schedlab: it is too old\n"), "in the guest k: it is too old");
        assert_eq!(copy(&request(&format!("{}.json", "x".repeat(300)))), "/workload.json");
    }

    #[test]
    fn a_long_run_without_a_duration_has_the_time_that_it_needs() {
        let text = r#"{ "tasks": { "job": { "instance": 4, "loop": 1, "run": 100000000 } } }"#;
        let workload = schedlab_workload::parse(text.as_bytes(), std::path::Path::new("w.json")).unwrap();
        let machine = schedlab_machine::load("2").unwrap();
        let set = vec![("no_such_tunable".into(), "1".into())];
        let request = Request { kernel: "x".into(), machine, workload, set, duration: None, seed: 1, skip_ticks: true };
        let length = counted("6.1.0-56-cloud-amd64").simulated_length(&request).unwrap();
        assert!((200_000_000_000..201_000_000_000).contains(&length), "{length}");
        assert!(run_limit(length) > Duration::from_secs(4_000));
    }
}
