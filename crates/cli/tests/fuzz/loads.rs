//! Random loads under random kernels: no task is on two CPUs or outside its affinity, CPUs run or are idle all the
//! time, and nothing panics or takes too long.

use crate::cases::{self, Machine, Workload};
use crate::driver::{Campaign, Verdict};
use crate::readers::verdict;
use schedlab_base::{AffinityRecord, CpuList, Event, NameRecord, Nanos, Payload, Rng, Sink, Tid};
use schedlab_experiment::backend::{self, Request};
use schedlab_machine::tomltext::TomlText;
use schedlab_machine::{Costs, MachineFile};
use schedlab_measure::Stats;
use schedlab_sched::kernels::KERNELS;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Checks the events of a simulation as they come.
struct Rules {
    /// What runs on each CPU.
    current: Vec<Tid>,
    allowed: BTreeMap<Tid, CpuList>,
    last: Nanos,
}

impl Sink for Rules {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            assert!(event.time >= self.last, "time goes back to {}", event.time);
            self.last = event.time;
            let Payload::Switch { prev, next, .. } = event.what else { continue };
            let cpu = event.cpu as usize;
            assert_eq!(self.current[cpu], prev, "at {} CPU {cpu} did not run what leaves it", event.time);
            self.current[cpu] = next;
            if next != 0 {
                let elsewhere = self.current.iter().enumerate().find(|(other, tid)| *other != cpu && **tid == next);
                assert!(elsewhere.is_none(), "at {} task {next} is on CPUs {cpu} and {elsewhere:?}", event.time);
                let allowed = &self.allowed[&next];
                assert!(allowed.contains(event.cpu), "at {} task {next} runs on CPU {cpu}: {allowed:?}", event.time);
            }
        }
    }

    fn name(&mut self, _: &NameRecord) {}

    fn affinity(&mut self, record: &AffinityRecord) {
        self.allowed.insert(record.tid, record.cpus.clone());
    }
}

/// Replaces some of the numbers in a workload by others, small and large.
fn disturb(value: &mut Value, key: &str, rng: &mut Rng) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(key, value)| disturb(value, key, rng)),
        Value::Array(items) => items.iter_mut().for_each(|value| disturb(value, key, rng)),
        Value::Number(_) if rng.below(12) == 0 => {
            // Many tasks or tiny bursts take long without being a fault.
            let choices: &[i64] = match key {
                "instance" => &[0, 1, 3, 40],
                "run" | "mean" | "sleep" | "period" => &[50, 500, 1_000_000, i64::MAX / 1000],
                "cpu" | "cpus" => &[0, 1, 2],
                _ => &[-1, 0, 1, 2, 19, 1000, 65_536, i64::MAX],
            };
            *value = json!(choices[rng.below(choices.len() as u64) as usize]);
        }
        _ => {}
    }
}

/// CPUs that go and come, so close to each other that tasks wake and start meanwhile.
fn hotplug(rng: &mut Rng) -> Value {
    let changes = 1 + rng.below(6);
    let change = |_| json!({ "at_us": rng.below(30_000), "cpu": rng.below(4), "online": rng.below(2) == 0 });
    (0..changes).map(change).collect()
}

fn make(rng: &mut Rng) -> Vec<u8> {
    let case = cases::case(rng.next_u64() >> 8);
    let machine = match case.machine {
        Machine::Named(name) => json!({ "name": name }),
        Machine::File(text) => json!({ "text": text }),
    };
    let mut workload = match case.workload {
        Workload::Named(name) => json!({ "name": name }),
        Workload::File(text) => json!({ "text": text }),
    };
    if let Some(text) = workload.get_mut("text") {
        if rng.below(2) == 0 {
            disturb(text, "", rng);
        }
        if rng.below(3) == 0 {
            text["x-hotplug"] = hotplug(rng);
        }
    }
    // The kernel's own settings fit only the kernel of the case. Another kernel has one setting at an end of its range.
    let other = KERNELS[rng.below(KERNELS.len() as u64) as usize];
    let (kernel, set) = if rng.below(2) == 0 {
        (case.kernel, case.set)
    } else {
        let tunable = &other.tunables[rng.below(other.tunables.len() as u64) as usize];
        let value = if rng.below(2) == 0 { tunable.range.0 } else { tunable.range.1 };
        (other.name, vec![format!("{}={value}", tunable.name)])
    };
    let input = json!({
        "kernel": kernel, "machine": machine, "bare": case.bare, "workload": workload, "set": set, "seed": case.seed,
        "duration_us": 1000 * case.duration_ms.min(60),
    });
    input.to_string().into_bytes()
}

/// The request that an input stands for.
fn request(input: &Value) -> schedlab_base::Result<Request> {
    let mut machine = match input["machine"]["text"].as_str() {
        Some(text) => MachineFile::parse(&TomlText::new("m.toml", text))?,
        None => schedlab_machine::load(input["machine"]["name"].as_str().expect("a name"))?,
    };
    if input["bare"] == true {
        machine.costs = Costs::none();
    }
    let workload = match input["workload"]["name"].as_str() {
        Some(name) => schedlab_workload::load(name)?,
        None => schedlab_workload::parse(input["workload"]["text"].to_string().as_bytes(), Path::new("w.json"))?,
    };
    let set = input["set"].as_array().expect("a list").iter().map(|set| {
        let (name, value) = set.as_str().and_then(|set| set.split_once('=')).expect("a setting");
        (name.to_owned(), value.to_owned())
    });
    Ok(Request {
        kernel: input["kernel"].as_str().expect("a name").to_owned(),
        machine,
        workload,
        set: set.collect(),
        duration: Some(input["duration_us"].as_u64().expect("a number") * 1000),
        seed: input["seed"].as_u64().expect("a number"),
        skip_ticks: true,
    })
}

fn check(bytes: &[u8]) -> Verdict {
    let input: Value = serde_json::from_slice(bytes).expect("JSON");
    let request = match request(&input) {
        Ok(request) => request,
        Err(error) => return verdict::<()>(Err(error)),
    };
    let cpus = request.machine.cpus.len();
    let mut rules = Rules { current: vec![0; cpus], allowed: BTreeMap::new(), last: 0 };
    let sim = backend::parse("sim", false).expect("a backend");
    let mut stats = Stats::new(&sim.meta(&request));
    let result = sim.run(&request, &mut (&mut rules, &mut stats));
    if let Ok(outcome) = &result {
        let total = stats.finish(Some(outcome.end)).total;
        let (accounted, whole) = (total.sums.run.run_us + total.idle_us, cpus as f64 * outcome.end as f64 / 1e3);
        assert!((accounted - whole).abs() < 1.0, "{accounted} us of {whole} us are accounted for");
        assert_eq!((total.contradictions, total.unknown_us), (0, 0.0));
    }
    verdict(result)
}

#[test]
fn loads() {
    Campaign { name: "loads", rounds: 300, least_percent: 10 }.run(make, check);
}
