//! A machine's topology as text.

use crate::model::{Cpu, Machine, PerfState};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The widest line, in characters.
const WIDTH: usize = 100;

/// Draws the machine as text: nodes, sockets, caches and cores, then distances and costs.
#[must_use]
pub fn picture(machine: &Machine) -> String {
    let mut out = format!("{}: {}\n", machine.name, machine.summary());
    let mut nodes: BTreeMap<u32, Vec<&Cpu>> = BTreeMap::new();
    for cpu in &machine.cpus {
        nodes.entry(cpu.place.node).or_default().push(cpu);
    }
    for (node, cpus) in &nodes {
        draw_node(&mut out, *node, cpus);
    }
    let legend: &[(bool, &str)] =
        &[(machine.threads() > 1, "[0 1] SMT threads of a core"), (clustered(machine), "(0 1) cores that share an L2")];
    for (_, text) in legend.iter().filter(|(shown, _)| *shown) {
        let _ = writeln!(out, "\n{text}");
    }
    draw_distances(&mut out, machine);
    draw_energy(&mut out, machine);
    let costs = &machine.costs;
    let us = |ns: u64| format!("{} us", ns as f64 / 1000.0);
    let _ = writeln!(
        out,
        "\ncosts: wake-up to switch {}, tick to switch {}, nice to switch {}, context switch {}, idle exit {}",
        us(costs.wakeup_to_switch_ns.median()),
        us(costs.tick_to_switch_ns.median()),
        us(costs.change_to_switch_ns.median()),
        us(costs.context_switch_ns),
        us(costs.idle_exit_ns.median())
    );
    out
}

fn draw_energy(out: &mut String, machine: &Machine) {
    for (i, domain) in machine.energy.iter().enumerate() {
        let state = |state: &PerfState| format!("{} MHz {:.0} mW", state.mhz, f64::from(state.power_uw) / 1000.0);
        let (first, last) = (domain.cpus.first().unwrap_or(&0), domain.cpus.last().unwrap_or(&0));
        let states: Vec<_> = domain.states.iter().map(state).collect();
        let _ =
            writeln!(out, "{}CPUs {first}-{last}: {}", if i == 0 { "\npower " } else { "      " }, states.join(", "));
    }
}

fn clustered(machine: &Machine) -> bool {
    machine.cpus.windows(2).any(|w| w[0].cluster == w[1].cluster && w[0].place.core != w[1].place.core)
}

fn draw_node(out: &mut String, node: u32, cpus: &[&Cpu]) {
    let mut llcs: BTreeMap<(u32, u32), Vec<&Cpu>> = BTreeMap::new();
    for cpu in cpus {
        llcs.entry((cpu.place.package, cpu.place.llc)).or_default().push(cpu);
    }
    let _ = writeln!(out, "\nnode {node}");
    let mut last_package = None;
    for ((package, llc), cpus) in &llcs {
        if last_package != Some(*package) {
            let _ = writeln!(out, "  socket {package}");
            last_package = Some(*package);
        }
        let head = format!("    L3 {llc:>3} | ");
        let mut line = head.clone();
        for word in cluster_words(cpus) {
            if line.len() > head.len() && line.len() + word.len() > WIDTH {
                let _ = writeln!(out, "{}", line.trim_end());
                line = format!("{}| ", " ".repeat(head.len() - 2));
            }
            line.push_str(&word);
            line.push(' ');
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// One word per cluster. A core is its number or `[its threads]`; a cluster of several cores is in parentheses.
fn cluster_words(cpus: &[&Cpu]) -> Vec<String> {
    let mut clusters: BTreeMap<u32, BTreeMap<u32, Vec<&Cpu>>> = BTreeMap::new();
    for cpu in cpus {
        clusters.entry(cpu.cluster).or_default().entry(cpu.place.core).or_default().push(cpu);
    }
    let core_word = |threads: &Vec<&Cpu>| {
        let numbers: Vec<String> = threads.iter().map(|c| c.place.cpu.to_string()).collect();
        let word = if threads.len() == 1 { numbers.join(" ") } else { format!("[{}]", numbers.join(" ")) };
        match threads[0].place.capacity {
            1024 => word,
            capacity => format!("{word}@{capacity}"),
        }
    };
    clusters
        .values()
        .map(|cores| {
            let words: Vec<String> = cores.values().map(core_word).collect();
            if words.len() == 1 { words.concat() } else { format!("({})", words.join(" ")) }
        })
        .collect()
}

fn draw_distances(out: &mut String, machine: &Machine) {
    let nodes = machine.nodes();
    if nodes < 2 {
        return;
    }
    out.push_str("\ndistances\n");
    if nodes > 24 {
        let _ = writeln!(out, "  {nodes} x {nodes}: see --json");
        return;
    }
    let header: String = (0..nodes).map(|n| format!("{n:>4}")).collect();
    let _ = writeln!(out, "  node{header}");
    for (node, row) in machine.distances.iter().enumerate() {
        let cells: String = row.iter().map(|d| format!("{d:>4}")).collect();
        let _ = writeln!(out, "  {node:>4}{cells}");
    }
}

#[cfg(test)]
mod tests {
    use crate::load;

    #[test]
    fn the_picture_shows_nodes_caches_and_threads() {
        let text = super::picture(&load("quad-smt").unwrap());
        assert!(text.starts_with("quad-smt: 1 socket x 4 cores x 2 threads = 8 CPUs, 1 node\n"), "{text}");
        assert!(text.contains("L3   0 | [0 1] [2 3] [4 5] [6 7]\n"), "{text}");
        let text = super::picture(&load("bulldozer-64").unwrap());
        assert!(text.contains("L3   7 | (56 57) (58 59) (60 61) (62 63)\n"), "{text}");
        assert!(text.contains("     0  10  16  16  22"), "{text}");
    }

    #[test]
    fn no_line_is_too_wide() {
        for spec in ["8192", "64x64x2", "epyc-2x64-smt"] {
            let text = super::picture(&load(spec).unwrap());
            assert!(text.lines().all(|l| l.len() <= 110), "{spec}");
        }
    }
}
