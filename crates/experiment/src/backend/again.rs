//! A simulated trace carries what made it, so that the same run can be made again and looked into.

use super::Request;
use schedlab_base::{Error, Meta, Result};
use schedlab_machine::MachineFile;
use schedlab_machine::tomltext::TomlText;
use std::collections::BTreeMap;
use std::path::Path;

const MACHINE: &str = "made.machine";
const WORKLOAD: &str = "made.workload";
const EVERY_TICK: &str = "made.every_tick";
const SET: &str = "set.";

/// The most bytes of workload that a trace carries.
const MOST_WORKLOAD: usize = 1 << 20;

/// The longest run that is believed, in ns: a year.
const LONGEST: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// Notes what made the trace, where that can be written down.
pub(super) fn note(request: &Request, notes: &mut BTreeMap<String, String>) {
    let workload = schedlab_workload::write(&request.workload);
    if let Some(machine) = MachineFile::of(&request.machine)
        && workload.len() <= MOST_WORKLOAD
    {
        notes.insert(MACHINE.to_owned(), machine.to_toml());
        notes.insert(WORKLOAD.to_owned(), workload);
        notes.insert(EVERY_TICK.to_owned(), (!request.skip_ticks).to_string());
    }
    for (name, value) in &request.set {
        notes.insert(format!("{SET}{name}"), value.clone());
    }
}

/// The request that made a trace.
///
/// # Errors
/// When the trace was not simulated, or does not carry what made it (a machine read from a host, a very large load).
pub fn request(meta: &Meta) -> Result<Request> {
    let note = |name: &str| {
        meta.notes.get(name).ok_or_else(|| {
            let error = Error::input(format!("the trace does not say what made it (no \"{name}\")"));
            error.mend(if meta.source == "sim" {
                "simulate again with --kernel, --machine and --workload"
            } else {
                "only a simulated trace can be made again"
            })
        })
    };
    let machine = MachineFile::parse(&TomlText::new(MACHINE, note(MACHINE)?.as_str()))?;
    let mut workload = schedlab_workload::parse(note(WORKLOAD)?.as_bytes(), Path::new(WORKLOAD))?;
    workload.name.clone_from(note("workload")?);
    let seed = note("seed")?;
    let duration = meta.span.map(|(_, end)| end);
    if duration.is_some_and(|end| end > LONGEST) {
        return Err(Error::input("the trace is damaged: it claims to span more than a year"));
    }
    Ok(Request {
        kernel: meta.kernel.clone(),
        machine,
        workload,
        set: meta
            .notes
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(SET)?.to_owned(), value.clone())))
            .collect(),
        duration,
        seed: seed.parse().map_err(|_| Error::input(format!("\"{seed}\" is no seed")))?,
        skip_ticks: note(EVERY_TICK)? != "true",
    })
}

#[cfg(test)]
mod tests {
    use super::super::{meta, simulate};
    use super::*;
    use schedlab_base::{Event, NameRecord, Sink};

    #[derive(Default)]
    struct All(Vec<Event>);

    impl Sink for All {
        fn events(&mut self, batch: &[Event]) {
            self.0.extend_from_slice(batch);
        }

        fn name(&mut self, _: &NameRecord) {}
    }

    fn events(request: &Request) -> Vec<Event> {
        let mut all = All::default();
        simulate(request, &mut all, None).unwrap();
        all.0
    }

    #[test]
    fn a_run_can_be_made_again_from_its_trace() {
        let text = r#"{"tasks": {"a": {"instance": 3, "loop": -1, "run": {"mean": 900, "sd": 100}, "sleep": 500}}}"#;
        let mut machine = schedlab_machine::load("2x2").unwrap();
        machine.costs.idle_exit_ns = 7;
        let first = Request {
            kernel: "linux-2.6.32".into(),
            machine,
            workload: schedlab_workload::parse(text.as_bytes(), Path::new("w.json")).unwrap(),
            set: vec![("sched_latency_ns".into(), "9000000".into())],
            duration: Some(200_000_000),
            seed: 7,
            skip_ticks: true,
        };
        let again = request(&meta(&first)).unwrap();
        assert_eq!(again.workload.name, "w");
        let (first, again) = (events(&first), events(&again));
        assert!(first.len() > 500 && first == again);
    }

    #[test]
    fn a_recorded_trace_is_refused() {
        let error = request(&Meta { source: "record".into(), ..Meta::default() }).unwrap_err().to_string();
        assert!(error.contains("only a simulated trace"), "{error}");
    }
}
