//! Which CPU is drawn in which row: by node, then by number.

use schedlab_base::{CpuId, Meta};
use schedlab_track::{MAX_CPUS, row};

/// A picture has about so many rows at most; more CPUs share them.
pub const MOST_ROWS: usize = 512;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatRow {
    /// Its CPUs: one, unless there are more CPUs than rows; none where a row is a node.
    pub cpus: Vec<CpuId>,
    /// Their node; none where the trace does not list them.
    pub node: Option<u32>,
}

/// The rows, found by CPU.
#[derive(Clone, Debug)]
pub struct Rows {
    /// From the top down.
    pub rows: Vec<HeatRow>,
    of: Vec<Option<u32>>,
}

impl Rows {
    /// A row for each CPU of the trace; of very many, some side by side in a node share one.
    pub fn new(meta: &Meta) -> Self {
        let mut places: Vec<(u32, CpuId)> =
            meta.cpus.iter().filter(|p| p.cpu < MAX_CPUS).map(|p| (p.node, p.cpu)).collect();
        places.sort_unstable();
        places.dedup_by_key(|(_, cpu)| *cpu);
        let shared = places.len().div_ceil(MOST_ROWS).max(1);
        let mut this = Self { rows: Vec::new(), of: Vec::new() };
        for node in places.chunk_by(|a, b| a.0 == b.0) {
            for cpus in node.chunks(shared) {
                this.add(cpus.iter().map(|(_, cpu)| *cpu).collect(), Some(cpus[0].0));
            }
        }
        this
    }

    /// A row for each node of the trace, found by the node's number.
    pub fn of_nodes(meta: &Meta) -> Self {
        let mut nodes: Vec<u32> = meta.cpus.iter().map(|place| place.node).filter(|node| *node < MAX_CPUS).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut this = Self { rows: Vec::new(), of: Vec::new() };
        for node in nodes.into_iter().take(MOST_ROWS) {
            *row(&mut this.of, node) = Some(this.rows.len() as u32);
            this.rows.push(HeatRow { cpus: Vec::new(), node: Some(node) });
        }
        this
    }

    /// The keys by which rows are found are less than this.
    pub fn keys(&self) -> usize {
        self.of.len()
    }

    /// The row of a CPU.
    #[inline]
    pub fn of(&self, cpu: CpuId) -> Option<usize> {
        self.of.get(cpu as usize).copied().flatten().map(|row| row as usize)
    }

    /// A row for a CPU that the trace does not list, as far as there may be more; whether there may.
    #[cold]
    pub fn admit(&mut self, cpu: CpuId) -> bool {
        let room = cpu < MAX_CPUS && self.rows.len() < MOST_ROWS;
        if room {
            self.add(vec![cpu], None);
        }
        room
    }

    fn add(&mut self, cpus: Vec<CpuId>, node: Option<u32>) {
        for cpu in &cpus {
            *row(&mut self.of, *cpu) = Some(self.rows.len() as u32);
        }
        self.rows.push(HeatRow { cpus, node });
    }
}
