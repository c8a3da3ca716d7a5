//! QEMU's arguments for a machine.

use schedlab_base::{CpuList, CpuPlace, Error, Result};
use schedlab_machine::Machine;

/// The most CPUs that QEMU's PC has.
const MOST_CPUS: usize = 255;

/// Sockets, last-level caches in each, cores on each, threads of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    sockets: usize,
    dies: usize,
    cores: usize,
    threads: usize,
}

/// The CPU: an Intel one. Linux reads threads, caches and dies from it as QEMU has set them, which it does not from
/// AMD's before 6.9.
pub(crate) const CPU: &str = "Nehalem";

/// The arguments for the machine's CPUs, nodes and distances, with this much memory. A die has a last-level cache of
/// its own. With `even_turns` there is one more CPU, as [`turns`] says.
///
/// # Errors
/// When QEMU cannot have this machine.
pub(crate) fn arguments(machine: &Machine, memory_mib: u64, even_turns: bool) -> Result<Vec<String>> {
    let shape = shape(machine)?;
    let spare = even_turns && has_spare(machine);
    let mut arguments = if spare { turns(shape) } else { shape.at_once() };
    arguments.extend(["-m".to_owned(), format!("{memory_mib}M")]);
    let nodes = machine.nodes();
    if nodes < 2 {
        return Ok(arguments);
    }
    // Nodes need not be equal, but their memories must add up to all of it.
    let share = memory_mib / nodes as u64;
    for node in 0..nodes {
        let first = if node == 0 { memory_mib - share * (nodes as u64 - 1) } else { share };
        arguments.extend(["-object".to_owned(), format!("memory-backend-ram,id=node{node},size={first}M")]);
        let own = cpus_of(machine, node);
        // All CPUs that there could be must have a node. The last has those that Linux does not see.
        let unseen = if spare && node + 1 == nodes { shape.per_socket() } else { 0 };
        let count = machine.cpus.len() as u32;
        let list = CpuList::from_iter(own.chain(count..count + unseen as u32)).to_string();
        let own = list.split(',').filter(|part| !part.is_empty()).map(|part| format!(",cpus={part}"));
        let own: String = own.collect();
        arguments.extend(["-numa".to_owned(), format!("node,nodeid={node},memdev=node{node}{own}")]);
    }
    for (from, row) in machine.distances.iter().enumerate() {
        for (to, distance) in row.iter().enumerate().filter(|(to, _)| *to != from) {
            arguments.extend(["-numa".to_owned(), format!("dist,src={from},dst={to},val={distance}")]);
        }
    }
    Ok(arguments)
}

fn cpus_of(machine: &Machine, node: usize) -> impl Iterator<Item = u32> + '_ {
    machine.cpus.iter().map(|cpu| &cpu.place).filter(move |place| place.node as usize == node).map(|place| place.cpu)
}

/// Whether a guest can have this machine.
///
/// # Errors
/// When it cannot, with the reason.
pub fn fits(machine: &Machine) -> Result<()> {
    shape(machine).map(drop)
}

impl Shape {
    fn per_socket(self) -> usize {
        self.dies * self.cores * self.threads
    }

    /// All CPUs from the start on.
    fn at_once(self) -> Vec<String> {
        let Self { sockets, dies, cores, threads } = self;
        let cpus = sockets * self.per_socket();
        vec!["-smp".to_owned(), format!("{cpus},sockets={sockets},dies={dies},cores={cores},threads={threads}")]
    }
}

/// Whether there is room for the CPU that [`turns`] adds.
pub(crate) fn has_spare(machine: &Machine) -> bool {
    let cpus = machine.cpus.len();
    cpus > 1 && cpus + cpus / machine.sockets().max(1) <= MOST_CPUS
}

/// The CPUs one by one, the second of them one that Linux shall not see (`nr_cpus=`) and never starts.
///
/// With counted instructions QEMU 7.2 runs the CPUs in the order in which they were made, each until the next timer is
/// due. The one after it then finds the timer due, runs its handler, and loses its turn: with two CPUs at work, the
/// second may never run at all, and while Linux before 6.5 starts a second CPU, it never does. A CPU that does not run
/// loses nothing, so it is put there. Its socket comes after those of the machine, and so does its number.
fn turns(shape: Shape) -> Vec<String> {
    let Shape { sockets, dies, cores, threads } = shape;
    let most = (sockets + 1) * shape.per_socket();
    let mut arguments = vec![
        "-smp".to_owned(),
        format!("1,sockets={},dies={dies},cores={cores},threads={threads},maxcpus={most}", sockets + 1),
    ];
    let mut add = |socket: usize, die: usize, core: usize, thread: usize| {
        let place = format!("socket-id={socket},die-id={die},core-id={core},thread-id={thread}");
        arguments.extend(["-device".to_owned(), format!("{CPU}-x86_64-cpu,{place}")]);
    };
    add(sockets, 0, 0, 0);
    for cpu in 1..sockets * shape.per_socket() {
        let (thread, rest) = (cpu % threads, cpu / threads);
        let (core, rest) = (rest % cores, rest / cores);
        add(rest / dies, rest % dies, core, thread);
    }
    arguments
}

/// The machine's shape, if it is one that QEMU has.
fn shape(machine: &Machine) -> Result<Shape> {
    let cpus = machine.cpus.len();
    let no = |what: String, mend: &str| {
        Err(Error::input(format!("no guest can have the machine \"{}\": {what}", machine.name)).mend(mend))
    };
    if cpus > MOST_CPUS {
        return no(format!("it has {cpus} CPUs, and QEMU's PC at most {MOST_CPUS}"), "choose a smaller machine");
    }
    let places = || machine.cpus.iter().map(|cpu| &cpu.place);
    if places().any(|place| place.capacity != machine.cpus[0].place.capacity) {
        return no("its CPUs differ in capacity".to_owned(), "choose one whose CPUs are alike, or the simulator");
    }
    if !machine.partitions.is_empty() {
        return no("it is partitioned by cpusets".to_owned(), "leave the partitions out, or choose the simulator");
    }
    let (sockets, llcs, cores, threads) = (machine.sockets(), machine.llcs(), machine.cores(), machine.threads());
    let dies = llcs / sockets.max(1);
    let shape = Shape { sockets, dies, cores: cores / llcs.max(1), threads };
    let regular = shape.sockets * shape.dies * shape.cores * shape.threads == cpus;
    let per_llc = shape.cores * shape.threads;
    let expected = |cpu: usize| (cpu / threads.max(1), cpu / per_llc.max(1), cpu / (per_llc * dies).max(1));
    let actual: Vec<_> = places().map(|place| (place.core, place.llc, place.package)).collect();
    let same = |at: usize, with: usize| {
        let (a, b) = (actual[at], actual[with]);
        let (c, d) = (expected(at), expected(with));
        (a.0 == b.0, a.1 == b.1, a.2 == b.2) == (c.0 == d.0, c.1 == d.1, c.2 == d.2)
    };
    if !regular || !(1..cpus).all(|cpu| same(cpu, cpu - 1) && same(cpu, 0)) {
        let what = "its sockets, caches or cores are not all alike, or its CPUs are numbered in another order";
        return no(what.to_owned(), "QEMU numbers first the threads of a core, then the cores, then the sockets");
    }
    Ok(shape)
}

/// What a guest lacks of the machine that was asked for.
pub(crate) fn remarks(machine: &Machine) -> Vec<String> {
    let shares = |cpu: &schedlab_machine::Cpu| {
        machine.cpus.iter().any(|other| other.cluster == cpu.cluster && other.place.core != cpu.place.core)
    };
    if machine.cpus.iter().any(shares) {
        vec!["no guest has clusters: each core has an L2 of its own".to_owned()]
    } else {
        Vec::new()
    }
}

/// Where the guest's CPUs are not in the places that the machine gives them: the first such difference.
pub(crate) fn difference(machine: &Machine, seen: &[CpuPlace], distances: &[Vec<u32>]) -> Option<String> {
    if seen.len() != machine.cpus.len() {
        return Some(format!("the guest started {} of {} CPUs", seen.len(), machine.cpus.len()));
    }
    if machine.nodes() > 1 && distances != machine.distances {
        return Some(format!("the guest sees the node distances {distances:?}, not {:?}", machine.distances));
    }
    type Level = (&'static str, fn(&CpuPlace) -> u32);
    let levels: [Level; 4] =
        [("core", |p| p.core), ("last-level cache", |p| p.llc), ("socket", |p| p.package), ("node", |p| p.node)];
    for (name, of) in levels {
        for (first, second) in (0..seen.len()).flat_map(|second| (0..second).map(move |first| (first, second))) {
            let wanted = of(&machine.cpus[first].place) == of(&machine.cpus[second].place);
            let is = of(&seen[first]) == of(&seen[second]);
            if wanted != is {
                let verb = if is { "shares" } else { "does not share" };
                let (first, second) = (seen[first].cpu, seen[second].cpu);
                return Some(format!("in the guest, CPU {second} {verb} the {name} of CPU {first}"));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spec: &str) -> String {
        arguments(&schedlab_machine::load(spec).unwrap(), 2048, false).unwrap().join(" ")
    }

    #[test]
    fn flat_machines_need_no_nodes() {
        assert_eq!(of("1"), "-smp 1,sockets=1,dies=1,cores=1,threads=1 -m 2048M");
        assert_eq!(of("quad-smt"), "-smp 8,sockets=1,dies=1,cores=4,threads=2 -m 2048M");
        assert!(of("2x6x2").starts_with("-smp 24,sockets=2,dies=1,cores=6,threads=2 "));
    }

    #[test]
    fn for_even_turns_the_second_cpu_is_one_that_never_runs() {
        let of = |spec: &str| arguments(&schedlab_machine::load(spec).unwrap(), 64, true).unwrap().join(" ");
        let cpu = |socket, core, thread| {
            format!("-device Nehalem-x86_64-cpu,socket-id={socket},die-id=0,core-id={core},thread-id={thread} ")
        };
        let smp = "-smp 1,sockets=2,dies=1,cores=1,threads=2,maxcpus=4 ";
        assert_eq!(of("1x1x2"), format!("{smp}{}{}-m 64M", cpu(1, 0, 0), cpu(0, 0, 1)));
        let nodes = of("z800");
        assert!(nodes.contains("memdev=node0,cpus=0-5 ") && nodes.contains("memdev=node1,cpus=6-17 "), "{nodes}");
        assert_eq!(of("1"), "-smp 1,sockets=1,dies=1,cores=1,threads=1 -m 64M");
        assert!(of("1x200").starts_with("-smp 200,"), "there is no room for 400");
    }

    #[test]
    fn nodes_have_their_cpus_memory_and_distances() {
        let text = of("z800");
        assert!(
            text.contains("-object memory-backend-ram,id=node0,size=1024M -numa node,nodeid=0,memdev=node0,cpus=0-5")
        );
        assert!(text.contains("-numa node,nodeid=1,memdev=node1,cpus=6-11 -numa dist,src=0,dst=1,val="));
        assert!(of("bulldozer-64").matches("-numa dist").count() == 8 * 7);
    }

    #[test]
    fn memory_that_cannot_be_shared_evenly_is_still_all_there() {
        let machine = schedlab_machine::load("bulldozer-64").unwrap();
        let text = arguments(&machine, 1003, false).unwrap().join(" ");
        let sizes = text.split("size=").skip(1).map(|rest| rest.split('M').next().unwrap().parse::<u64>().unwrap());
        assert_eq!(sizes.sum::<u64>(), 1003);
    }

    #[test]
    fn what_qemu_cannot_have_is_refused_with_the_reason() {
        let refused = |spec: &str| {
            arguments(&schedlab_machine::load(spec).unwrap(), 2048, false).map_err(|e| e.to_string()).unwrap_err()
        };
        assert!(refused("big-little-4+4").contains("differ in capacity"));
        assert!(refused("huge-4096").contains("4096 CPUs, and QEMU's PC at most 255"));
        let mut odd = schedlab_machine::load("2x2").unwrap();
        odd.cpus.pop();
        assert!(arguments(&odd, 64, false).unwrap_err().to_string().contains("not all alike"));
        let mut interleaved = schedlab_machine::load("2x2").unwrap();
        for (cpu, package) in interleaved.cpus.iter_mut().zip([0, 1, 0, 1]) {
            (cpu.place.package, cpu.place.llc) = (package, package);
        }
        assert!(arguments(&interleaved, 64, false).unwrap_err().to_string().contains("another order"));
    }

    #[test]
    fn a_guest_is_held_against_the_machine() {
        let machine = schedlab_machine::load("z800").unwrap();
        let mut seen: Vec<CpuPlace> = machine.cpus.iter().map(|cpu| cpu.place.clone()).collect();
        assert_eq!(difference(&machine, &seen, &machine.distances), None);
        assert!(difference(&machine, &seen, &[]).unwrap().contains("distances"));
        seen[7].llc = seen[0].llc;
        let text = difference(&machine, &seen, &machine.distances).unwrap();
        assert_eq!(text, "in the guest, CPU 7 shares the last-level cache of CPU 0");
        seen.pop();
        assert_eq!(difference(&machine, &seen, &machine.distances).unwrap(), "the guest started 11 of 12 CPUs");
    }
}
