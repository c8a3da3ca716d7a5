//! `schedlab machines M --domains`: the scheduling domains that a kernel builds, as text and as JSON.

use crate::ui::Ui;
use schedlab_base::{CpuId, Error, Result};
use schedlab_machine::Machine;
use schedlab_sched::balance::domains::{Domain, Domains, Fixes, GroupId, SpanId};
use schedlab_sched::kernels::{Kernel, find};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The widest line, in characters.
const WIDTH: usize = 110;
/// So many sets of CPUs are shown as text unless one CPU is asked for.
const SETS: usize = 16;

/// Which domains to show.
#[derive(clap::Args)]
pub struct Built {
    /// The kernel that builds them: linux-2.6.11, linux-4.1, linux-6.12, ...
    #[arg(long, value_name = "NAME", requires = "domains")]
    kernel: Option<String>,
    /// Take a CPU offline first; may be given several times.
    #[arg(long, value_name = "CPU", requires = "domains")]
    offline: Vec<CpuId>,
    /// Bring a CPU back that was taken offline.
    #[arg(long, value_name = "CPU", requires = "domains")]
    online: Vec<CpuId>,
    /// Show this CPU's domains only.
    #[arg(long, value_name = "CPU", requires = "domains")]
    cpu: Option<CpuId>,
    /// Change a tunable of the kernel: fix.group_construction=on, fix.missing_domains=on (linux-4.1).
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::super::sim::setting, requires = "domains")]
    set: Vec<(String, String)>,
}

/// Builds and prints them.
pub fn show(machine: &Machine, args: &Built, ui: &Ui) -> Result<()> {
    let kernel = find(args.kernel.as_deref().expect("--domains requires it"))?;
    // Other tunables of the kernel are taken and change nothing here.
    let fixes = Fixes::of(&kernel.values(machine, &args.set)?);
    let mut builder = kernel.domains(machine, fixes)?;
    for cpu in [&args.offline, &args.online].into_iter().flatten().chain(&args.cpu) {
        if *cpu as usize >= machine.cpus.len() {
            let last = machine.cpus.len() - 1;
            return Err(
                Error::input(format!("there is no CPU {cpu}")).mend(format!("the machine has CPUs 0 to {last}"))
            );
        }
    }
    for &cpu in &args.offline {
        if builder.cpus_online().without(cpu).is_empty() {
            return Err(Error::input(format!("CPU {cpu} is the last one online")).mend("leave one CPU online"));
        }
        builder.offline(cpu);
    }
    for &cpu in &args.online {
        if builder.cpus_online().contains(cpu) {
            return Err(Error::input(format!("CPU {cpu} is online")).mend("give it to --offline, too"));
        }
        builder.online(cpu);
    }
    let domains = builder.build();
    let cpus: Vec<CpuId> = domains.online().iter().filter(|cpu| args.cpu.is_none_or(|only| only == *cpu)).collect();
    if ui.json {
        print_json(&domains, &cpus, ui);
    } else {
        print_text(machine, kernel, &domains, &cpus, ui);
    }
    Ok(())
}

/// One line a CPU: a big machine's lists are long, and spans are written once.
fn print_json(domains: &Domains, cpus: &[CpuId], ui: &Ui) {
    let mut texts: BTreeMap<SpanId, String> = BTreeMap::new();
    let mut list = |id: SpanId| -> String {
        let write = || serde_json::to_string(&domains.span(id).cpus).expect("plain data is always JSON");
        texts.entry(id).or_insert_with(write).clone()
    };
    ui.print("{\"domains\": {\n");
    for (n, &cpu) in cpus.iter().enumerate() {
        let domains: Vec<String> = domains.of(cpu).iter().map(|domain| json_of(domains, domain, &mut list)).collect();
        let comma = if n + 1 < cpus.len() { "," } else { "" };
        ui.print(&format!("\"{cpu}\": [{}]{comma}\n", domains.join(", ")));
    }
    ui.print("}}\n");
}

/// A domain as JSON. A group's mask is told where it is not the whole group, as the kernel does.
fn json_of(domains: &Domains, domain: &Domain, list: &mut impl FnMut(SpanId) -> String) -> String {
    let groups: Vec<String> = domains
        .groups(domain)
        .map(|id| {
            let group = domains.group(id);
            let mask = (group.mask != group.span).then(|| format!(", \"mask\": {}", list(group.mask)));
            format!("{{\"span\": {}{}}}", list(group.span), mask.unwrap_or_default())
        })
        .collect();
    let flags: Vec<&str> = domains.flag_names(domain.flags).collect();
    let p = domains.params(domain);
    let mut out = format!(
        "{{\"level\": \"{}\", \"span\": {}, \"groups\": [{}], \"flags\": {}, \"min_interval_ms\": {}, \
         \"max_interval_ms\": {}, \"busy_factor\": {}, \"imbalance_pct\": {}, \"cache_nice_tries\": {}",
        domains.name(domain),
        list(domain.span),
        groups.join(", "),
        serde_json::to_string(&flags).expect("plain data is always JSON"),
        p.min_interval_ms,
        p.max_interval_ms,
        p.busy_factor,
        p.imbalance_pct,
        p.cache_nice_tries
    );
    for (name, value) in of_old_releases(domains, domain) {
        let _ = write!(out, ", \"{name}\": {value}");
    }
    out.push('}');
    out
}

/// The parameters that newer releases do not have, where they are not 0.
fn of_old_releases(domains: &Domains, domain: &Domain) -> impl Iterator<Item = (&'static str, u64)> {
    let p = domains.params(domain);
    let all = [
        ("busy_idx", u64::from(p.busy_idx)),
        ("idle_idx", u64::from(p.idle_idx)),
        ("newidle_idx", u64::from(p.newidle_idx)),
        ("wake_idx", u64::from(p.wake_idx)),
        ("forkexec_idx", u64::from(p.forkexec_idx)),
        ("cache_hot_time_ns", p.cache_hot_time_ns),
        ("per_cpu_gain", u64::from(p.per_cpu_gain)),
        ("smt_gain", u64::from(p.smt_gain)),
    ];
    all.into_iter().filter(|(_, value)| *value != 0)
}

fn print_text(machine: &Machine, kernel: &Kernel, domains: &Domains, cpus: &[CpuId], ui: &Ui) {
    let mut out = format!("{} under {}: {}\n", machine.name, kernel.name, machine.summary());
    let away: Vec<CpuId> = (0..domains.cpus()).filter(|cpu| !domains.online().contains(*cpu)).collect();
    if !away.is_empty() {
        let _ = writeln!(out, "offline: CPU{} {}", if away.len() == 1 { "" } else { "s" }, ranges(&away));
    }
    let sets = alike(domains, cpus);
    for set in sets.iter().take(SETS) {
        let _ = writeln!(out, "\nCPU{} {}", if set.len() == 1 { "" } else { "s" }, ranges(set));
        if domains.of(set[0]).is_empty() {
            out.push_str("  no domain\n");
        }
        for domain in domains.of(set[0]) {
            draw(&mut out, domains, domain);
        }
    }
    if sets.len() > SETS {
        let _ = writeln!(out, "\nand {} more sets of CPUs: --cpu CPU shows one, --json has all", sets.len() - SETS);
    }
    ui.print(&out);
}

/// The CPUs that have the same domains; where only the first group differs they have the same, too.
fn alike(domains: &Domains, cpus: &[CpuId]) -> Vec<Vec<CpuId>> {
    let mut sets: Vec<Vec<CpuId>> = Vec::new();
    let mut at: BTreeMap<Vec<(SpanId, Vec<GroupId>)>, usize> = BTreeMap::new();
    for &cpu in cpus {
        let groups = |domain: &Domain| {
            let mut groups: Vec<GroupId> = domains.groups(domain).collect();
            let least = groups.iter().enumerate().min_by_key(|(_, group)| **group).map_or(0, |(at, _)| at);
            groups.rotate_left(least);
            groups
        };
        let key = domains.of(cpu).iter().map(|domain| (domain.span, groups(domain))).collect();
        let set = *at.entry(key).or_insert_with(|| {
            sets.push(Vec::new());
            sets.len() - 1
        });
        sets[set].push(cpu);
    }
    sets
}

fn draw(out: &mut String, domains: &Domains, domain: &Domain) {
    let list = |id: SpanId| ranges(&domains.span(id).cpus);
    let p = domains.params(domain);
    let _ = write!(
        out,
        "  {:<8}{}: each {} to {} ms, busy CPUs x {}, imbalance {}%, nice tries {}",
        domains.name(domain),
        list(domain.span),
        p.min_interval_ms,
        p.max_interval_ms,
        p.busy_factor,
        p.imbalance_pct,
        p.cache_nice_tries
    );
    for (name, value) in of_old_releases(domains, domain) {
        let _ = write!(out, ", {name} {value}");
    }
    if domain.imb_numa_nr > 0 {
        let _ = write!(out, ", NUMA imbalance {}", domain.imb_numa_nr);
    }
    out.push('\n');
    let groups: Vec<String> = domains
        .groups(domain)
        .map(|id| {
            let group = domains.group(id);
            let mask = (group.mask != group.span).then(|| format!(" (balanced by {})", list(group.mask)));
            format!("[{}{}]", list(group.span), mask.unwrap_or_default())
        })
        .collect();
    wrap(out, "groups", &groups);
    let flags: Vec<String> =
        domains.flag_names(domain.flags).map(|name| name.trim_start_matches("SD_").to_owned()).collect();
    if !flags.is_empty() {
        wrap(out, "flags", &flags);
    }
}

fn wrap(out: &mut String, head: &str, words: &[String]) {
    let mut line = format!("          {head:<8}");
    let indent = line.len();
    for word in words {
        if line.len() > indent && line.len() + word.len() > WIDTH {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(indent);
        }
        line.push_str(word);
        line.push(' ');
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

/// `0-3,8`, as the kernel writes CPU lists.
fn ranges(cpus: &[CpuId]) -> String {
    let mut out = String::new();
    let mut rest = cpus;
    while let Some(&first) = rest.first() {
        let run = rest.iter().zip(first..).take_while(|(cpu, expected)| **cpu == *expected).count();
        let comma = if out.is_empty() { "" } else { "," };
        let _ = match run {
            1 => write!(out, "{comma}{first}"),
            _ => write!(out, "{comma}{first}-{}", rest[run - 1]),
        };
        rest = &rest[run..];
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn cpu_lists_are_written_as_ranges() {
        assert_eq!(super::ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(super::ranges(&[]), "");
    }
}
