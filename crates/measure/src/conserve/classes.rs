//! Tasks by where they may run, and how many idle CPUs could be given one that waits.

use schedlab_base::{CpuId, CpuList};
use std::collections::HashMap;

/// More different affinities than this are not told apart: memory stays bounded.
const MOST_CLASSES: usize = 1 << 12;

/// The class of the tasks that may run anywhere.
pub(super) const ANYWHERE: u32 = 0;

const NOBODY: u32 = u32::MAX;

/// A set of CPUs, 64 to a word.
pub(super) type Words = Vec<u64>;

/// Tasks of the same affinity.
#[derive(Debug)]
struct Class {
    cpus: Words,
    size: u32,
    /// It overlaps another class, and neither holds the other.
    crossing: bool,
    /// Its tasks that wait on busy CPUs.
    waiting: u32,
    /// Its place among the active.
    at: usize,
}

/// All classes.
#[derive(Debug, Default)]
pub(super) struct Classes {
    all: Vec<Class>,
    index: HashMap<Words, u32>,
    /// Those with tasks that wait on busy CPUs.
    active: Vec<u32>,
    /// The CPUs that some active class may use.
    cover: Words,
    stale: bool,
    /// The CPUs that there are.
    present: Words,
    // For the matching, kept from one to the next.
    free: Words,
    order: Vec<u32>,
    owner: Vec<u32>,
    seen: Words,
}

fn bits(words: &[u64]) -> impl Iterator<Item = CpuId> + '_ {
    (0..).zip(words).flat_map(|(at, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros())?;
            rest &= rest - 1;
            Some(at * 64 + bit)
        })
    })
}

fn common(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum()
}

impl Classes {
    pub(super) fn new() -> Self {
        let anywhere = Class { cpus: Vec::new(), size: u32::MAX, crossing: false, waiting: 0, at: 0 };
        Self { all: vec![anywhere], stale: true, ..Self::default() }
    }

    /// Makes room for so many words of CPUs.
    pub(super) fn grow(&mut self, words: usize) {
        for class in self.all.iter_mut().skip(1) {
            class.cpus.resize(words, 0);
        }
        // A set keeps its name: its words beyond those that it was first told with are 0.
        self.all[ANYWHERE as usize].cpus.resize(words, u64::MAX);
        for set in [&mut self.cover, &mut self.free, &mut self.seen, &mut self.present] {
            set.resize(words, 0);
        }
        self.owner.resize(words * 64, NOBODY);
        self.stale = true;
    }

    pub(super) fn words(&self) -> usize {
        self.cover.len()
    }

    /// There is this CPU.
    pub(super) fn exists(&mut self, cpu: CpuId) {
        self.present[cpu as usize / 64] |= 1 << (cpu % 64);
    }

    /// The class of this affinity; `None` when there are too many.
    pub(super) fn of(&mut self, list: &CpuList) -> Option<u32> {
        let mut cpus = vec![0; self.words()];
        for &(first, last) in list.ranges() {
            let end = (self.words() * 64) as CpuId;
            for cpu in first..=last.min(end.saturating_sub(1)) {
                cpus[cpu as usize / 64] |= 1 << (cpu % 64);
            }
        }
        if self.present.iter().zip(&cpus).all(|(present, allowed)| present & !allowed == 0) {
            return Some(ANYWHERE);
        }
        let trimmed = cpus.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
        if let Some(&class) = self.index.get(&cpus[..trimmed]) {
            return Some(class);
        }
        if self.all.len() >= MOST_CLASSES {
            return None;
        }
        let mut crossing = false;
        let size = cpus.iter().map(|word| word.count_ones()).sum();
        for other in self.all.iter_mut().skip(1) {
            let both = common(&cpus, &other.cpus);
            if both > 0 && both < size && both < other.size {
                (crossing, other.crossing) = (true, true);
            }
        }
        let class = self.all.len() as u32;
        self.index.insert(cpus[..trimmed].to_vec(), class);
        self.all.push(Class { cpus, size, crossing, waiting: 0, at: 0 });
        Some(class)
    }

    pub(super) fn allows(&self, class: u32, cpu: CpuId) -> bool {
        self.all[class as usize].cpus.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Whether a task of the class that waits on `cpu` could run on another.
    pub(super) fn leaves(&self, class: u32, cpu: CpuId) -> bool {
        let Class { size, .. } = self.all[class as usize];
        size > u32::from(self.allows(class, cpu))
    }

    /// One more of the class waits on a busy CPU.
    #[inline]
    pub(super) fn add(&mut self, number: u32) {
        let class = &mut self.all[number as usize];
        class.waiting += 1;
        if class.waiting == 1 {
            class.at = self.active.len();
            self.active.push(number);
            self.stale = true;
        }
    }

    /// One fewer.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) {
        let class = &mut self.all[number as usize];
        class.waiting -= 1;
        if class.waiting == 0 {
            let at = class.at;
            self.active.swap_remove(at);
            if let Some(&moved) = self.active.get(at) {
                self.all[moved as usize].at = at;
            }
            self.stale = true;
        }
    }

    /// Whether no task waits that could run elsewhere.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.active.is_empty()
    }

    /// The CPUs that some waiting task may use.
    #[inline]
    pub(super) fn cover(&mut self) -> &[u64] {
        if self.stale {
            self.stale = false;
            self.cover.fill(0);
            for &class in &self.active {
                for (word, more) in self.cover.iter_mut().zip(&self.all[class as usize].cpus) {
                    *word |= more;
                }
            }
        }
        &self.cover
    }

    /// How many of the idle CPUs could each be given a waiting task of its own: the size of a largest matching.
    pub(super) fn matching(&mut self, idle: &[u64]) -> u32 {
        match self.active[..] {
            [] => 0,
            [only] => {
                let class = &self.all[only as usize];
                common(&class.cpus, idle).min(class.waiting)
            }
            _ if self.active.iter().any(|class| self.all[*class as usize].crossing) => self.exact(idle),
            _ => self.nested(idle),
        }
    }

    /// Where of any two classes one holds the other or they share no CPU: the smallest first, each takes what it can.
    fn nested(&mut self, idle: &[u64]) -> u32 {
        self.order.clear();
        self.order.extend_from_slice(&self.active);
        let all = &self.all;
        self.order.sort_unstable_by_key(|class| all[*class as usize].size);
        self.free.copy_from_slice(idle);
        let mut matched = 0;
        for class in &self.order {
            let class = &all[*class as usize];
            let mut left = class.waiting;
            for (free, cpus) in self.free.iter_mut().zip(&class.cpus) {
                while left > 0 && *free & cpus != 0 {
                    *free &= !(1 << (*free & cpus).trailing_zeros());
                    left -= 1;
                    matched += 1;
                }
            }
        }
        matched
    }

    /// By augmenting paths.
    fn exact(&mut self, idle: &[u64]) -> u32 {
        self.owner.fill(NOBODY);
        let most = idle.iter().map(|word| word.count_ones()).sum();
        let mut matched = 0;
        for at in 0..self.active.len() {
            let class = self.active[at];
            for _ in 0..self.all[class as usize].waiting.min(most) {
                self.seen.fill(0);
                if !augment(&self.all, class, idle, &mut self.seen, &mut self.owner) {
                    break;
                }
                matched += 1;
            }
        }
        matched
    }
}

/// Finds a CPU for one more task of the class, moving others where that helps.
fn augment(all: &[Class], class: u32, idle: &[u64], seen: &mut [u64], owner: &mut [u32]) -> bool {
    for word in 0..idle.len() {
        loop {
            let open = all[class as usize].cpus[word] & idle[word] & !seen[word];
            if open == 0 {
                break;
            }
            let bit = open.trailing_zeros();
            seen[word] |= 1 << bit;
            let cpu = word * 64 + bit as usize;
            if owner[cpu] == NOBODY || augment(all, owner[cpu], idle, seen, owner) {
                owner[cpu] = class;
                return true;
            }
        }
    }
    false
}

/// The CPUs of a set.
pub(super) fn members(words: &[u64]) -> impl Iterator<Item = CpuId> + '_ {
    bits(words)
}
