//! Storage for spans, groups and rings while domains are built. Each distinct value is stored once.

use super::flags::Flags;
use super::model::{Group, GroupId, Kind, Params, Span, SpanId};
use schedlab_base::CpuId;
use schedlab_sim::CpuSet;
use std::collections::BTreeMap;

/// The values that the domains of different CPUs share.
#[derive(Default)]
pub(super) struct Pool {
    pub spans: Vec<Span>,
    pub groups: Vec<Group>,
    pub rings: Vec<Box<[GroupId]>>,
    pub kinds: Vec<Kind>,
    span_ids: BTreeMap<CpuSet, SpanId>,
    group_ids: BTreeMap<(u8, SpanId, SpanId), GroupId>,
    ring_ids: BTreeMap<Box<[GroupId]>, u32>,
    cuts: BTreeMap<(SpanId, SpanId), SpanId>,
}

impl Pool {
    /// The id of a set of CPUs, which is stored if it is new.
    pub fn span(&mut self, set: CpuSet) -> SpanId {
        if let Some(id) = self.span_ids.get(&set) {
            return *id;
        }
        let id = SpanId(self.spans.len() as u32);
        self.spans.push(Span { cpus: set.iter().collect(), set: set.clone() });
        self.span_ids.insert(set, id);
        id
    }

    /// The id of the set of these CPUs.
    pub fn of(&mut self, cpus: &[CpuId]) -> SpanId {
        self.span(CpuSet::of(cpus))
    }

    /// The span with an id.
    pub fn get(&self, id: SpanId) -> &Span {
        &self.spans[id.0 as usize]
    }

    /// The number of CPUs of a span.
    pub fn weight(&self, id: SpanId) -> u32 {
        self.get(id).weight()
    }

    /// Whether all CPUs of `inner` are in `outer`.
    pub fn subset(&self, inner: SpanId, outer: SpanId) -> bool {
        inner == outer || self.get(inner).set.is_subset(&self.get(outer).set)
    }

    /// The intersection of two spans. Results are cached because the same pairs come up often.
    pub fn and(&mut self, a: SpanId, b: SpanId) -> SpanId {
        if a == b {
            return a;
        }
        if let Some(id) = self.cuts.get(&(a, b)) {
            return *id;
        }
        let both = self.get(a).set.and(&self.get(b).set);
        let id = self.span(both);
        self.cuts.insert((a, b), id);
        id
    }

    /// The union of two spans.
    pub fn or(&mut self, a: SpanId, b: SpanId) -> SpanId {
        let either = self.get(a).set.or(&self.get(b).set);
        self.span(either)
    }

    /// For each CPU, the span of all CPUs with the same `key`. CPUs without a key get the empty span.
    pub fn classes(&mut self, cpus: u32, key: impl Fn(CpuId) -> Option<u64>) -> Vec<SpanId> {
        let mut members: BTreeMap<u64, Vec<CpuId>> = BTreeMap::new();
        for cpu in 0..cpus {
            if let Some(key) = key(cpu) {
                members.entry(key).or_default().push(cpu);
            }
        }
        let ids: BTreeMap<u64, SpanId> = members.into_iter().map(|(key, cpus)| (key, self.of(&cpus))).collect();
        let none = self.of(&[]);
        (0..cpus).map(|cpu| key(cpu).map_or(none, |key| ids[&key])).collect()
    }

    /// The group of a level with this span and mask. If the group is new, `make` computes its capacity and flags.
    pub fn group(&mut self, level: u8, span: SpanId, mask: SpanId, make: impl FnOnce() -> (u32, Flags)) -> GroupId {
        if let Some(id) = self.group_ids.get(&(level, span, mask)) {
            return *id;
        }
        let id = GroupId(self.groups.len() as u32);
        let (capacity, flags) = make();
        self.groups.push(Group { span, mask, capacity, flags, level });
        self.group_ids.insert((level, span, mask), id);
        id
    }

    /// The index of a ring of groups, which is stored if it is new.
    pub fn ring(&mut self, groups: Vec<GroupId>) -> u32 {
        let groups = groups.into_boxed_slice();
        if let Some(id) = self.ring_ids.get(&groups) {
            return *id;
        }
        let id = self.rings.len() as u32;
        self.rings.push(groups.clone());
        self.ring_ids.insert(groups, id);
        id
    }

    /// The index of a level's name and parameters, which are stored if they are new.
    pub fn kind(&mut self, name: &'static str, params: Params) -> u16 {
        let kind = Kind { name, params };
        let at = self.kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
            self.kinds.push(kind);
            self.kinds.len() - 1
        });
        at as u16
    }
}
