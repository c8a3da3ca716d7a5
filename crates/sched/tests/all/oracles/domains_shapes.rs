//! The sched domains of `linux-6.1` and `linux-6.12` against those that Debian's 6.1.192 and 6.12.117 built on machines
//! of many shapes (`oracles/domains-shapes.json`), at boot and after each of several CPUs that went offline and came
//! back. Everything must agree, for every CPU: levels, spans, groups and their order, masks, flags, parameters.
//!
//! How it was measured: the kernels were booted in QEMU 7.2 with `-smp sockets,cores,threads` (and `dies`, for machines
//! with `llc_cores`), `-numa node` for equal shares of the CPUs, `-numa dist` for the distances, and the kernel
//! parameters `sched_verbose log_buf_len=8M`. Spans, groups and masks are what the kernel then prints for each CPU that
//! it attaches domains to; flags and parameters are from `/sys/kernel/debug/sched/domains`. An `op` of `-3` means that
//! 0 was written to `cpu3/online` in sysfs, `+3` that 1 was. CPUs whose domains the kernel left unchanged are listed
//! with their present domains. With QEMU's processor `max`, 6.1 sees no SMT siblings: machines with threads or dies use
//! a `Skylake-Server` there.

use schedlab_base::CpuId;
use schedlab_machine::{Machine, MachineFile};
use schedlab_sched::balance::domains::{Domain, Domains, Fixes, SpanId};
use schedlab_sched::kernels::find;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    id: String,
    kernel: String,
    machine: Shape,
    kinds: Vec<Kind>,
    states: Vec<State>,
}

/// Flags, and the parameters: minimum and maximum interval in ms, busy factor, imbalance in percent, cache nice tries.
#[derive(Debug, PartialEq, Deserialize)]
struct Kind(String, [u32; 5]);

#[derive(Deserialize)]
struct Shape {
    sockets: u32,
    cores: u32,
    threads: u32,
    distances: Option<Vec<Vec<u32>>>,
    llc_cores: Option<u32>,
}

/// All domains after an operation.
#[derive(Deserialize)]
struct State {
    op: String,
    online: String,
    domains: Vec<Told>,
}

/// A domain that is the same for some CPUs: these CPUs, how many domains are below it, its level, its span, its groups
/// from the CPU's own on (`4-7 0-3/1`: CPU 1 balances on behalf of the second), and the index of its kind.
#[derive(Deserialize)]
struct Told(String, usize, String, String, String, usize);

impl Shape {
    fn machine(&self) -> Machine {
        let Self { sockets, cores, threads, llc_cores, .. } = *self;
        let distances = self.distances.clone().unwrap_or_default();
        let file = MachineFile { distances, llc_cores, ..MachineFile::flat("oracle", sockets, cores, threads) };
        file.build().unwrap()
    }
}

/// Parses a list of CPUs such as `0-2,5`.
fn cpus(list: &str) -> impl Iterator<Item = CpuId> + '_ {
    list.split(',').flat_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        from.parse().unwrap()..=to.parse().unwrap()
    })
}

/// Formats a list of CPUs such as `0-2,5`.
fn list(cpus: &[CpuId]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[CpuId]| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    };
    runs.map(run).collect::<Vec<_>>().join(",")
}

/// Returns level, span, groups and kind of a domain, in the format of the file.
fn told(domains: &Domains, domain: &Domain) -> (String, String, String, Kind) {
    let span = |id: SpanId| list(&domains.span(id).cpus);
    let groups = domains.groups(domain).map(|id| {
        let group = domains.group(id);
        let mask = (group.mask != group.span).then(|| format!("/{}", span(group.mask)));
        span(group.span) + &mask.unwrap_or_default()
    });
    let groups = groups.collect::<Vec<_>>().join(" ");
    let flags = domains.flag_names(domain.flags).collect::<Vec<_>>().join(" ");
    let p = domains.params(domain);
    let parameters = [p.min_interval_ms, p.max_interval_ms, p.busy_factor, p.imbalance_pct, p.cache_nice_tries];
    (domains.name(domain).to_owned(), span(domain.span), groups, Kind(flags, parameters))
}

/// Returns the differences in a state.
fn differences(domains: &Domains, state: &State, kinds: &[Kind]) -> Vec<String> {
    let mut different = Vec::new();
    let mut depths = vec![0; domains.cpus() as usize];
    for Told(list, depth, level, span, groups, kind) in &state.domains {
        let real = (level, span, groups, &kinds[*kind]);
        for cpu in cpus(list) {
            depths[cpu as usize] += 1;
            let ours = domains.of(cpu).get(*depth).map(|domain| told(domains, domain));
            if ours.as_ref().map(|(level, span, groups, kind)| (level, span, groups, kind)) != Some(real) {
                different.push(format!("CPU {cpu} domain {depth}\n  real {real:?}\n  ours {ours:?}"));
            }
        }
    }
    for cpu in 0..domains.cpus() {
        let (ours, real) = (domains.of(cpu).len(), depths[cpu as usize]);
        if ours != real {
            different.push(format!("CPU {cpu} has {ours} domains for {real}"));
        }
    }
    different
}

#[test]
fn domains_are_those_of_the_real_kernels_on_many_shapes() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("domains-shapes.json")).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let machine = case.machine.machine();
        let mut builder = find(&case.kernel).unwrap().domains(&machine, Fixes::default()).unwrap();
        for state in &case.states {
            let domains = match state.op.split_at(1) {
                ("-", cpu) => builder.offline(cpu.parse().unwrap()),
                ("+", cpu) => builder.online(cpu.parse().unwrap()),
                _ => builder.build(),
            };
            let online: Vec<CpuId> = domains.online().iter().collect();
            assert_eq!(list(&online), state.online);
            let different = differences(&domains, state, &case.kinds);
            let at = format!("{} {} after {}", case.id, case.kernel, state.op);
            wrong.extend(different.first().map(|first| format!("{at}: {} differences: {first}", different.len())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(cases.len(), 74);
}
