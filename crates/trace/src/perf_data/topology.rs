//! The places of CPUs, from the topology that perf records.

use super::cursor::Cursor;
use schedlab_base::{CpuId, CpuPlace};

/// No kernel is built for this many CPUs; a CPU number from here on means damage.
const CPU_END: u32 = 1 << 16;
/// The capacity of every CPU, because perf does not record capacities.
const CAPACITY: u32 = 1024;

/// What the topology features say. They may come in any order.
#[derive(Clone, Debug, Default)]
pub(super) struct Topology {
    available: u32,
    online: u32,
    /// The CPUs of each core.
    cores: Vec<Vec<CpuId>>,
    /// The package of each CPU.
    packages: Vec<u32>,
    /// The CPUs of each last-level cache.
    caches: Vec<Vec<CpuId>>,
    /// The number and the CPUs of each node.
    nodes: Vec<(u32, Vec<CpuId>)>,
}

impl Topology {
    /// `HEADER_NRCPUS`.
    pub(super) fn cpu_counts(&mut self, data: &[u8]) -> Option<()> {
        let mut from = Cursor::new(data);
        let (available, online) = (from.u32()?, from.u32()?);
        (online <= available && available <= CPU_END).then_some(())?;
        (self.available, self.online) = (available, online);
        Some(())
    }

    /// How many CPUs were online; 0 if nothing said so.
    pub(super) fn online(&self) -> u32 {
        self.online
    }

    /// `HEADER_CPU_TOPOLOGY`: the siblings in a package, the siblings in a core, then each CPU's core and package.
    pub(super) fn cpus(&mut self, data: &[u8]) -> Option<()> {
        let mut from = Cursor::new(data);
        from.header_strings()?;
        let mut left = CPU_END;
        self.cores = from.header_strings()?.iter().map(|list| parse_list(list, &mut left)).collect::<Option<_>>()?;
        if !from.is_empty() {
            let each = (0..self.available).map(|_| {
                from.u32()?;
                from.u32()
            });
            self.packages = each.collect::<Option<_>>()?;
        }
        Some(())
    }

    /// `HEADER_CACHE`. The caches with the highest level are the last-level caches.
    pub(super) fn cache(&mut self, data: &[u8]) -> Option<()> {
        let mut from = Cursor::new(data);
        (from.u32()? == 1).then_some(())?;
        let (mut highest, mut left) = (0, CPU_END);
        for _ in 0..from.u32()? {
            let level = from.u32()?;
            from.take(12)?; // line size, sets, ways
            let (_kind, _size, cpus) = (from.header_string()?, from.header_string()?, from.header_string()?);
            if level > highest {
                self.caches.clear();
                (highest, left) = (level, CPU_END);
            }
            if level == highest {
                self.caches.push(parse_list(&cpus, &mut left)?);
            }
        }
        Some(())
    }

    /// `HEADER_NUMA_TOPOLOGY`.
    pub(super) fn numa(&mut self, data: &[u8]) -> Option<()> {
        let mut from = Cursor::new(data);
        let mut left = CPU_END;
        for _ in 0..from.u32()? {
            let node = from.u32()?;
            from.take(16)?; // total memory, free memory
            self.nodes.push((node, parse_list(&from.header_string()?, &mut left)?));
        }
        Some(())
    }

    /// The CPUs with their places: those in the lists of cores, or else as many as were online.
    pub(super) fn places(&self) -> Vec<CpuPlace> {
        let known = self.cores.iter().flatten().max().map_or(0, |last| last + 1);
        let mut places: Vec<CpuPlace> = (0..known.max(self.online).min(CPU_END))
            .map(|cpu| CpuPlace { cpu, core: cpu, capacity: CAPACITY, ..CpuPlace::default() })
            .collect();
        for (core, cpus) in self.cores.iter().enumerate() {
            set(&mut places, cpus, |place| place.core = core as u32);
        }
        for (llc, cpus) in self.caches.iter().enumerate() {
            set(&mut places, cpus, |place| place.llc = llc as u32);
        }
        for (node, cpus) in &self.nodes {
            set(&mut places, cpus, |place| place.node = *node);
        }
        for (place, package) in places.iter_mut().zip(&self.packages) {
            place.package = if *package == u32::MAX { 0 } else { *package };
        }
        if !self.cores.is_empty() {
            let online: std::collections::BTreeSet<_> = self.cores.iter().flatten().collect();
            places.retain(|place| online.contains(&place.cpu));
        }
        places
    }
}

fn set(places: &mut [CpuPlace], cpus: &[CpuId], change: impl Fn(&mut CpuPlace)) {
    for cpu in cpus {
        if let Some(place) = places.get_mut(*cpu as usize) {
            change(place);
        }
    }
}

/// Parses the kernel's list of CPUs: `0-3,8`. An empty text is an empty list. `left` is how many CPUs this list and the
/// following ones may still name, because they partition the machine's CPUs.
fn parse_list(text: &str, left: &mut u32) -> Option<Vec<CpuId>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|p| !p.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (CpuId, CpuId) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last && last < CPU_END).then_some(())?;
        *left = left.checked_sub(last - first + 1)?;
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(texts: &[&str]) -> Vec<u8> {
        let mut data = (texts.len() as u32).to_le_bytes().to_vec();
        texts.iter().for_each(|t| data.extend(string(t)));
        data
    }

    fn string(text: &str) -> Vec<u8> {
        // perf pads every string to a multiple of 64 bytes.
        let mut bytes = 64u32.to_le_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes.resize(4 + 64, 0);
        bytes
    }

    fn numbers(values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn a_machine_with_threads_and_nodes() {
        let mut topology = Topology::default();
        topology.cpu_counts(&numbers(&[4, 4])).unwrap();
        let ids = numbers(&[0, 0, 0, 1, 0, 0, 0, 1]);
        topology.cpus(&[strings(&["0,2", "1,3"]), strings(&["0,2", "1,3"]), ids].concat()).unwrap();
        let node = |n: u32, cpus: &str| [numbers(&[n, 0, 0, 0, 0]), string(cpus)].concat();
        topology.numa(&[numbers(&[2]), node(0, "0,2"), node(1, "1,3")].concat()).unwrap();
        let cache = |level, cpus| [numbers(&[level, 64, 1, 1]), string("Unified"), string("1M"), string(cpus)].concat();
        let caches = [cache(1, "0,2"), cache(1, "1,3"), cache(3, "0,2"), cache(3, "1,3")].concat();
        topology.cache(&[numbers(&[1, 4]), caches].concat()).unwrap();
        let places = topology.places();
        assert_eq!(places.len(), 4);
        let one = CpuPlace { cpu: 3, core: 1, llc: 1, package: 1, node: 1, capacity: 1024 };
        assert_eq!(places[3], one);
        assert_eq!((places[2].core, places[2].package), (0, 0));
    }

    #[test]
    fn cpu_counts_alone_make_a_flat_machine() {
        let mut topology = Topology::default();
        topology.cpu_counts(&numbers(&[8, 3])).unwrap();
        assert_eq!(topology.places().iter().map(|p| p.core).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn absurd_numbers_are_refused() {
        let mut topology = Topology::default();
        assert_eq!(topology.cpu_counts(&numbers(&[u32::MAX, u32::MAX])), None);
        assert_eq!(topology.numa(&numbers(&[u32::MAX, 1])), None);
        let list = |text| parse_list(text, &mut CPU_END.clone());
        assert_eq!(list(" 0-2,5\n"), Some(vec![0, 1, 2, 5]));
        for wild in ["0-4294967295", "3-1", "0-65535,0", "x", "1-", "65536"] {
            assert_eq!(list(wild), None, "{wild}");
        }
    }
}
