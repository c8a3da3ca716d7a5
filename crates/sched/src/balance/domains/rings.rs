//! The groups of the domains of 3.10 and later, in ring order.

use super::model::{GroupId, SpanId};
use super::pool::Pool;
use super::tree::Tree;
use schedlab_base::{CpuId, v};
use std::collections::BTreeMap;

/// A cache of rings and balance masks that have already been built.
#[derive(Default)]
pub(super) struct Rings {
    /// Rings that are shared by all CPUs of a span, by level and span.
    shared: BTreeMap<(usize, SpanId), u32>,
    /// For each level with rings of a CPU's own, the last one built: the CPU's span, the span below, and the ring.
    last: BTreeMap<usize, (SpanId, SpanId, u32)>,
    /// Balance masks, by level and span of the group; before 4.13 also by the CPU whose child domain the group is.
    masks: BTreeMap<(usize, SpanId, Option<CpuId>), SpanId>,
}

impl Rings {
    /// The ring of a CPU's domain, and the position of the CPU's local group in it.
    pub fn of(&mut self, pool: &mut Pool, tree: &Tree<'_>, level: usize, cpu: CpuId) -> (u32, u32) {
        if !tree.levels[level].overlaps() {
            let ring = self.shared(pool, tree, level, cpu, Self::plain);
            return (ring, position(pool, ring, cpu));
        }
        // "sched/topology: Fix building of overlapping sched-groups" (4.13).
        if tree.ask.release >= v(4, 13) {
            return (self.own(pool, tree, level, cpu, Self::overlapping), 0);
        }
        if tree.ask.fixes.group_construction {
            return (self.own(pool, tree, level, cpu, Self::overlapping_fixed), 0);
        }
        let ring = self.shared(pool, tree, level, cpu, Self::overlapping_4_1);
        (ring, start_4_1(pool, ring, cpu))
    }

    fn shared(&mut self, pool: &mut Pool, tree: &Tree<'_>, level: usize, cpu: CpuId, make: Make) -> u32 {
        let key = (level, tree.spans[level][cpu as usize]);
        if let Some(ring) = self.shared.get(&key) {
            return *ring;
        }
        let groups = make(self, pool, tree, level, cpu);
        let ring = pool.ring(groups);
        self.shared.insert(key, ring);
        ring
    }

    /// A ring built from the CPU's own point of view. CPUs are processed in ascending order. A CPU with the same span
    /// and the same local group as the previous one visits the rest of the span in the same order, so it has the same
    /// ring.
    fn own(&mut self, pool: &mut Pool, tree: &Tree<'_>, level: usize, cpu: CpuId, make: Make) -> u32 {
        let at = cpu as usize;
        // A level with overlapping groups is never the lowest.
        let (span, below) = (tree.spans[level][at], tree.spans[level - 1][at]);
        if let Some((s, b, ring)) = self.last.get(&level)
            && (*s, *b) == (span, below)
        {
            return *ring;
        }
        let groups = make(self, pool, tree, level, cpu);
        let ring = pool.ring(groups);
        self.last.insert(level, (span, below, ring));
        ring
    }

    /// Builds groups that do not overlap (`build_sched_groups`): the domains one level below, or single CPUs. All CPUs
    /// of the span share the ring. Its order is decided by the first CPU before 4.13, and by the last one since then.
    fn plain(&mut self, pool: &mut Pool, tree: &Tree<'_>, level: usize, cpu: CpuId) -> Vec<GroupId> {
        let span = pool.get(tree.spans[level][cpu as usize]).clone();
        let ends = if tree.ask.release >= v(4, 13) { span.cpus.last() } else { span.cpus.first() };
        let mut rest = Rest::of(&span.set, *ends.expect("a domain has its own CPU"));
        let mut groups = Vec::new();
        while let Some(i) = rest.next() {
            let below = child(pool, tree, level, i);
            groups.push(group(pool, tree, level, i, below, below));
            rest.cover(pool, below);
        }
        groups
    }

    /// Builds overlapping groups as since 4.13 (`build_overlap_sched_groups`): the domains one level below that cover
    /// the span, starting from the CPU. A group that reaches beyond the span is replaced by a domain further below
    /// since "sched/topology: fix the issue groups don't span domain->span for NUMA diameter > 2" (5.13).
    fn overlapping(&mut self, pool: &mut Pool, tree: &Tree<'_>, level: usize, cpu: CpuId) -> Vec<GroupId> {
        let span = tree.spans[level][cpu as usize];
        let mut rest = Rest::of(&pool.get(span).set, cpu);
        let mut groups = Vec::new();
        while let Some(i) = rest.next() {
            if !tree.has(level, i) {
                rest.skip(i);
                continue;
            }
            let mut from = level;
            let reaches_in = tree.ask.release >= v(5, 13);
            if reaches_in && from > 0 && !pool.subset(tree.spans[from - 1][i as usize], span) {
                from = descend(pool, tree, from, i, span);
            }
            let below = if from > 0 { tree.spans[from - 1][i as usize] } else { tree.spans[0][i as usize] };
            let mask = self.mask(pool, tree, from, below);
            groups.push(group(pool, tree, from, i, below, mask));
            rest.cover(pool, below);
            rest.skip(i);
        }
        groups
    }

    /// Builds overlapping groups as before 4.13: starting from the span's lowest CPU for every CPU, so that two distant
    /// nodes can end up together in every group.
    fn overlapping_4_1(&mut self, pool: &mut Pool, tree: &Tree<'_>, level: usize, cpu: CpuId) -> Vec<GroupId> {
        self.upwards(pool, tree, level, cpu, None)
    }

    /// Builds overlapping groups with the paper's fix: the CPU's own group comes first.
    fn overlapping_fixed(&mut self, pool: &mut Pool, tree: &Tree<'_>, level: usize, cpu: CpuId) -> Vec<GroupId> {
        self.upwards(pool, tree, level, cpu, Some(cpu))
    }

    fn upwards(
        &mut self,
        pool: &mut Pool,
        tree: &Tree<'_>,
        level: usize,
        cpu: CpuId,
        mut own: Option<CpuId>,
    ) -> Vec<GroupId> {
        let span = pool.get(tree.spans[level][cpu as usize]).set.clone();
        let mut rest = Rest::of(&span, 0);
        let mut groups = Vec::new();
        while let Some(i) = own.take().or_else(|| rest.next()) {
            if tree.has(level, i) {
                let below = child(pool, tree, level, i);
                let mask = self.mask_4_12(pool, tree, level, i, tree.spans[level][cpu as usize]);
                groups.push(group(pool, tree, level, i, below, mask));
                rest.cover(pool, below);
            }
            rest.skip(i);
        }
        groups
    }

    /// The balance mask of a group from 4.13 on (`build_balance_mask`): the CPUs whose own child domain is the group.
    fn mask(&mut self, pool: &mut Pool, tree: &Tree<'_>, level: usize, below: SpanId) -> SpanId {
        let gets_here = |cpu: CpuId| tree.has(level, cpu) && level > 0 && tree.spans[level - 1][cpu as usize] == below;
        *self.masks.entry((level, below, None)).or_insert_with(|| those(pool, below, gets_here))
    }

    /// The balance mask of a group before 4.13 (`build_group_mask`): the CPUs of the group that have the
    /// level at all, limited to the span for which the group was first built from CPU `i`.
    fn mask_4_12(&mut self, pool: &mut Pool, tree: &Tree<'_>, level: usize, i: CpuId, span: SpanId) -> SpanId {
        let below = child(pool, tree, level, i);
        let within = pool.get(span).set.clone();
        let gets_here = |cpu: CpuId| tree.has(level, cpu) && within.contains(cpu);
        *self.masks.entry((level, below, Some(i))).or_insert_with(|| those(pool, below, gets_here))
    }
}

/// The CPUs of a span for which `keeps` holds. Returns the whole span if there are none: the kernel warns about an
/// empty mask, which a group without a level below would have.
fn those(pool: &mut Pool, span: SpanId, keeps: impl Fn(CpuId) -> bool) -> SpanId {
    let cpus: Vec<CpuId> = pool.get(span).cpus.iter().copied().filter(|cpu| keeps(*cpu)).collect();
    if cpus.is_empty() { span } else { pool.of(&cpus) }
}

type Make = fn(&mut Rings, &mut Pool, &Tree<'_>, usize, CpuId) -> Vec<GroupId>;

/// The span one level below: a domain, or the CPU itself.
fn child(pool: &mut Pool, tree: &Tree<'_>, level: usize, cpu: CpuId) -> SpanId {
    if level > 0 { tree.spans[level - 1][cpu as usize] } else { pool.of(&[cpu]) }
}

fn group(pool: &mut Pool, tree: &Tree<'_>, level: usize, cpu: CpuId, span: SpanId, mask: SpanId) -> GroupId {
    let capacity = pool.get(span).cpus.iter().map(|cpu| tree.capacity(pool, *cpu)).sum();
    pool.group(level as u8, span, mask, || (capacity, tree.child_flags(level, cpu)))
}

/// The level of the highest domain whose child lies within `span`, skipping domains that are equal to their child
/// (`find_descended_sibling`).
fn descend(pool: &Pool, tree: &Tree<'_>, level: usize, cpu: CpuId, span: SpanId) -> usize {
    let at = |l: usize| tree.spans[l][cpu as usize];
    let mut level = level;
    while level > 0 && !pool.subset(at(level - 1), span) {
        level -= 1;
    }
    while level > 0 && at(level - 1) == at(level) {
        level -= 1;
    }
    level
}

/// The position of the first group that contains the CPU.
fn position(pool: &Pool, ring: u32, cpu: CpuId) -> u32 {
    let has = |group: &GroupId| pool.get(pool.groups[group.index()].span).contains(cpu);
    pool.rings[ring as usize].iter().position(has).expect("a CPU is in one of its groups") as u32
}

/// The position of the local group before 4.13: the last group of which the CPU is the balance CPU, or otherwise the
/// first that contains the CPU.
fn start_4_1(pool: &Pool, ring: u32, cpu: CpuId) -> u32 {
    let balances = |group: &GroupId| pool.get(pool.groups[group.index()].mask).cpus.first() == Some(&cpu);
    let last = pool.rings[ring as usize].iter().rposition(balances);
    last.map_or_else(|| position(pool, ring, cpu), |at| at as u32)
}

/// The CPUs of a span that no group covers yet, visited in a circle from a starting CPU.
struct Rest {
    words: Vec<u64>,
    cursor: usize,
    wrapped: bool,
}

impl Rest {
    fn of(set: &schedlab_sim::CpuSet, from: CpuId) -> Self {
        Self { words: set.words().to_vec(), cursor: from as usize, wrapped: false }
    }

    fn next(&mut self) -> Option<CpuId> {
        loop {
            let mut word = self.cursor / 64;
            let mut bits = self.words.get(word).map_or(0, |w| w & (u64::MAX << (self.cursor % 64)));
            while bits == 0 && word + 1 < self.words.len() {
                word += 1;
                bits = self.words[word];
            }
            if bits != 0 {
                self.cursor = word * 64 + bits.trailing_zeros() as usize;
                return Some(self.cursor as CpuId);
            }
            if std::mem::replace(&mut self.wrapped, true) {
                return None;
            }
            self.cursor = 0;
        }
    }

    fn cover(&mut self, pool: &Pool, span: SpanId) {
        self.words.iter_mut().zip(pool.get(span).set.words()).for_each(|(word, covered)| *word &= !covered);
    }

    fn skip(&mut self, cpu: CpuId) {
        self.words[cpu as usize / 64] &= !(1 << (cpu % 64));
    }
}
