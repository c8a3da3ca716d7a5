//! The samples of a recording's events: which event one is of, and what it holds.

use super::attr::{Attr, Layout};
use super::cursor::{u32_at, u64_at};
use schedlab_base::{CpuId, Error, Nanos, Result, Tid};

/// A tracepoint's record, when and on which CPU it was written, and the process and thread that ran there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'a> {
    pub(super) time: Nanos,
    pub(super) cpu: CpuId,
    pub(super) tgid: Tid,
    pub(super) tid: Tid,
    pub(super) raw: &'a [u8],
}

/// What to do with the samples of an event.
pub(super) enum Samples {
    /// They are passed over.
    Other,
    /// They have the usual layout.
    Usual,
    /// They have this one.
    Of(Box<Layout>),
}

impl Samples {
    /// Of each event.
    pub(super) fn of(attrs: &[Attr], layouts: Vec<Option<Layout>>, id_at: Option<usize>) -> Vec<Self> {
        let samples = |(attr, layout): (&Attr, Option<Layout>)| match layout {
            Some(layout) if id_at.is_none() || attr.tracepoint().is_some() => {
                if layout == Layout::USUAL {
                    Self::Usual
                } else {
                    Self::Of(Box::new(layout))
                }
            }
            _ => Self::Other,
        };
        attrs.iter().zip(layouts).map(samples).collect()
    }

    /// What a sample holds; `None` if it is too short, or passed over.
    #[inline(always)]
    pub(super) fn read<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        match self {
            Self::Usual => read(&Layout::USUAL, body),
            Self::Of(layout) => read(layout, body),
            Self::Other => None,
        }
    }
}

#[inline(always)]
fn read<'a>(layout: &Layout, body: &'a [u8]) -> Option<Sample<'a>> {
    let (time, cpu, raw) = (u64_at(body, layout.time)?, u32_at(body, layout.cpu)?, layout.raw(body)?);
    let task = layout.task.and_then(|at| Some((u32_at(body, at)?, u32_at(body, at + 4)?)));
    let (tgid, tid) = task.map_or((0, 0), |(tgid, tid)| (tgid as Tid, tid as Tid));
    Some(Sample { time, cpu, tgid, tid, raw })
}

/// The offset of the event id in samples; `None` if all samples are tracepoint samples with the same layout, so that
/// the id is not needed.
pub(super) fn id_place(attrs: &[Attr], layouts: &[Option<Layout>]) -> Result<Option<usize>> {
    let mut sampled = attrs.iter().zip(layouts).filter(|(attr, _)| !attr.is_dummy());
    let alike = layouts.first().is_some_and(|first| sampled.all(|(a, l)| a.tracepoint().is_some() && l == first));
    if alike && !attrs[0].is_dummy() {
        return Ok(None);
    }
    let first = attrs.first().and_then(Attr::id_at);
    if first.is_none() || attrs.iter().any(|a| a.id_at() != first) {
        return Err(Error::input("the perf.data's samples do not say which event they are of"));
    }
    Ok(first)
}

/// The ids by which samples and other records name their events.
#[derive(Default)]
pub(super) struct EventIds {
    /// Each with its event's index in `attrs`, sorted by id.
    all: Vec<(u64, u32)>,
    /// The events of the first id and those after it, because the kernel counts them. Unused ones have none.
    first: u64,
    near: Vec<Option<u32>>,
}

impl EventIds {
    /// As many ids are looked up without a search.
    const NEAR: u64 = 1 << 12;

    pub(super) fn of(attrs: &[Attr]) -> Self {
        let ids = attrs.iter().enumerate().flat_map(|(i, attr)| attr.ids.iter().map(move |id| (*id, i as u32)));
        let mut ids = Self { all: ids.collect(), ..Self::default() };
        ids.all.sort_unstable();
        ids.first = ids.all.first().map_or(0, |(id, _)| *id);
        for (id, event) in ids.all.iter().take_while(|(id, _)| id - ids.first < Self::NEAR) {
            let at = (id - ids.first) as usize;
            ids.near.resize(at + 1, None);
            ids.near[at] = Some(*event);
        }
        ids
    }

    #[inline(always)]
    pub(super) fn event(&self, id: u64) -> Option<usize> {
        let near = usize::try_from(id.wrapping_sub(self.first)).ok().and_then(|at| self.near.get(at));
        match near {
            Some(event) => event.map(|event| event as usize),
            None => self.search(id),
        }
    }

    #[cold]
    fn search(&self, id: u64) -> Option<usize> {
        let found = self.all.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.all[found].1 as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_near_and_far() {
        let attr = |ids: &[u64]| {
            let mut attr = Attr::tracepoint_for_tests(0, false);
            attr.ids = ids.to_vec();
            attr
        };
        let ids = EventIds::of(&[attr(&[71, 72, 75]), attr(&[73, u64::MAX]), attr(&[70_000, 70])]);
        let events = [0, 69, 70, 71, 72, 73, 74, 75, 76, 70_000, 70_001, u64::MAX].map(|id| ids.event(id));
        let (a, b, c) = (Some(0), Some(1), Some(2));
        assert_eq!(events, [None, None, c, a, a, b, None, a, None, c, None, b]);
        assert_eq!(EventIds::of(&[]).event(0), None);
    }
}
