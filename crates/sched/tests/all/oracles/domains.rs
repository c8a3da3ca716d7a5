//! The sched domains of `linux-6.1` and `linux-6.12` against those that Debian's kernels built on five machines: at
//! boot, with CPU 3 offline, and with it back. Everything must agree: levels, spans, groups and their order, masks,
//! flags, parameters.

use schedlab_base::CpuId;
use schedlab_machine::{Machine, MachineFile};
use schedlab_sched::balance::domains::{Domain, Domains, Fixes};
use schedlab_sched::kernels::find;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    id: String,
    kernel: String,
    machine: Shape,
    parameters_of_cpu0: Vec<Parameters>,
    domains: States,
}

#[derive(Deserialize)]
struct Shape {
    sockets: u32,
    cores: u32,
    threads: u32,
    distances: Option<Vec<Vec<u32>>>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Parameters {
    level: String,
    flags: Vec<String>,
    min_interval_ms: u32,
    max_interval_ms: u32,
    busy_factor: u32,
    imbalance_pct: u32,
    cache_nice_tries: u32,
}

/// Lists only CPUs whose domains were attached again.
#[derive(Deserialize)]
struct States {
    boot: BTreeMap<CpuId, Vec<Level>>,
    offline_cpu3: BTreeMap<CpuId, Vec<Level>>,
    online_cpu3: BTreeMap<CpuId, Vec<Level>>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Level {
    level: String,
    span: Vec<CpuId>,
    groups: Vec<Group>,
}

/// The kernel prints a mask only if it is not the whole group.
#[derive(Debug, PartialEq, Deserialize)]
struct Group {
    span: Vec<CpuId>,
    mask: Option<Vec<CpuId>>,
}

impl Shape {
    fn machine(&self) -> Machine {
        let distances = self.distances.clone().unwrap_or_default();
        MachineFile { distances, ..MachineFile::flat("oracle", self.sockets, self.cores, self.threads) }
            .build()
            .unwrap()
    }
}

fn level(domains: &Domains, domain: &Domain) -> Level {
    let cpus = |id| domains.span(id).cpus.to_vec();
    let groups = domains.groups(domain).map(|id| {
        let group = domains.group(id);
        Group { span: cpus(group.span), mask: (group.mask != group.span).then(|| cpus(group.mask)) }
    });
    Level { level: domains.name(domain).to_owned(), span: cpus(domain.span), groups: groups.collect() }
}

fn parameters(domains: &Domains, domain: &Domain) -> Parameters {
    let params = domains.params(domain);
    Parameters {
        level: domains.name(domain).to_owned(),
        flags: domains.flag_names(domain.flags).map(str::to_owned).collect(),
        min_interval_ms: params.min_interval_ms,
        max_interval_ms: params.max_interval_ms,
        busy_factor: params.busy_factor,
        imbalance_pct: params.imbalance_pct,
        cache_nice_tries: params.cache_nice_tries,
    }
}

fn check(case: &Case, state: &str, domains: &Domains, real: &BTreeMap<CpuId, Vec<Level>>) {
    assert!(!real.is_empty());
    for (cpu, levels) in real {
        let ours: Vec<Level> = domains.of(*cpu).iter().map(|domain| level(domains, domain)).collect();
        assert_eq!(&ours, levels, "{} {} {state} CPU {cpu}", case.id, case.kernel);
    }
}

#[test]
fn domains_are_those_of_the_real_kernels() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("domains.json")).unwrap();
    assert_eq!(cases.len(), 10);
    for case in &cases {
        let machine = case.machine.machine();
        let mut builder = find(&case.kernel).unwrap().domains(&machine, Fixes::default()).unwrap();
        let boot = builder.build();
        check(case, "boot", &boot, &case.domains.boot);
        assert_eq!(case.domains.boot.len(), machine.cpus.len());
        let ours: Vec<Parameters> = boot.of(0).iter().map(|domain| parameters(&boot, domain)).collect();
        assert_eq!(ours, case.parameters_of_cpu0, "{} {}", case.id, case.kernel);
        let offline = builder.offline(3);
        assert!(offline.of(3).is_empty());
        check(case, "offline", &offline, &case.domains.offline_cpu3);
        check(case, "online", &builder.online(3), &case.domains.online_cpu3);
    }
}
