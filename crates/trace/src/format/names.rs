//! Keeps each task's last seen name, so that only changes are reported.

use schedlab_base::{NameRecord, Nanos, Tid};

/// Thread ids of all kernels are below this (PID_MAX_LIMIT).
pub(super) const TID_END: i64 = 1 << 22;

const PAGE: usize = 1 << 10;

/// A dense table from thread id to the name and process last seen, in pages that are allocated on demand.
#[derive(Default)]
pub(super) struct Names {
    pages: Vec<Option<Box<Page>>>,
}

/// The tasks of a range of ids.
type Page = [Known; PAGE];

/// What is known of a task; zero means "not seen yet".
#[derive(Clone, Copy, Default)]
struct Known {
    name: u128,
    tgid: Tid,
}

impl Names {
    /// Notes that the task has the name in these bytes, and reports it if that is new.
    #[inline(always)]
    pub(super) fn see(&mut self, time: Nanos, tid: Tid, raw: u128, on_name: &mut impl FnMut(&NameRecord)) {
        let index = tid as usize;
        if let Some(Some(page)) = self.pages.get(index / PAGE)
            && page[index % PAGE].name == raw
        {
            return;
        }
        self.renamed(time, tid, raw, on_name);
    }

    /// Notes that the task belongs to this process, and reports it if that is new and the task's name is known.
    #[inline(always)]
    pub(super) fn belongs(&mut self, time: Nanos, tid: Tid, tgid: Tid, on_name: &mut impl FnMut(&NameRecord)) {
        let index = tid as usize;
        if let Some(Some(page)) = self.pages.get(index / PAGE)
            && page[index % PAGE].tgid == tgid
        {
            return;
        }
        self.moved(time, tid, tgid, on_name);
    }

    /// The slow path for new bytes. They may still spell the old name, because the kernel does not always clear the
    /// bytes after a name's end.
    #[cold]
    #[inline(never)]
    fn renamed(&mut self, time: Nanos, tid: Tid, raw: u128, on_name: &mut impl FnMut(&NameRecord)) {
        let Some(known) = self.place(tid) else { return };
        let news = spelt(known.name) != spelt(raw);
        known.name = raw;
        if news {
            on_name(&known.record(time, tid));
        }
    }

    #[cold]
    #[inline(never)]
    fn moved(&mut self, time: Nanos, tid: Tid, tgid: Tid, on_name: &mut impl FnMut(&NameRecord)) {
        if !(1..TID_END).contains(&i64::from(tgid)) {
            return; // perf writes -1 for a task that is already dead
        }
        let Some(known) = self.place(tid) else { return };
        known.tgid = tgid;
        if known.name != 0 {
            on_name(&known.record(time, tid));
        }
    }

    /// The task's entry, created if needed. Idle tasks have none: they share tid 0 and have a name for each CPU.
    fn place(&mut self, tid: Tid) -> Option<&mut Known> {
        if !(1..TID_END).contains(&i64::from(tid)) {
            return None;
        }
        let index = tid as usize;
        if self.pages.len() <= index / PAGE {
            self.pages.resize_with(index / PAGE + 1, || None);
        }
        let page = self.pages[index / PAGE].get_or_insert_with(|| Box::new([Known::default(); PAGE]));
        Some(&mut page[index % PAGE])
    }
}

impl Known {
    fn record(&self, time: Nanos, tid: Tid) -> NameRecord {
        let comm = String::from_utf8_lossy(&self.name.to_le_bytes()[..length(self.name)]).into_owned();
        let tgid = (self.tgid != 0).then_some(self.tgid);
        NameRecord { time, tid, tgid, comm, cgroup: None }
    }
}

/// The first sixteen bytes of a name, padded with zeros.
pub(super) fn packed(name: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = name.len().min(16);
    bytes[..length].copy_from_slice(&name[..length]);
    u128::from_le_bytes(bytes)
}

/// The number of bytes before the first NUL.
fn length(raw: u128) -> usize {
    raw.to_le_bytes().iter().position(|b| *b == 0).unwrap_or(16)
}

/// The same bytes with everything after the name cleared.
fn spelt(raw: u128) -> u128 {
    match length(raw) {
        16 => raw,
        n => raw & ((1 << (8 * n)) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_are_reported() {
        let mut names = Names::default();
        let mut seen = Vec::new();
        let mut see = |time, tid, raw| names.see(time, tid, raw, &mut |n| seen.push((n.time, n.tid, n.comm.clone())));
        see(1, 7, packed(b"bash"));
        see(2, 7, packed(b"bash"));
        see(3, 7, packed(b"bash\0rubbish"));
        see(4, 7, packed(b"sixteen-letters!"));
        see(5, 0, packed(b"swapper/1"));
        see(6, (TID_END - 1) as i32, packed(b"z"));
        see(7, -1, packed(b"z"));
        let last = (6, (TID_END - 1) as i32, "z".to_owned());
        assert_eq!(seen, [(1, 7, "bash".to_owned()), (4, 7, "sixteen-letters!".to_owned()), last]);
    }

    #[test]
    fn a_process_learnt_later_is_reported() {
        let mut names = Names::default();
        let mut seen = Vec::new();
        names.belongs(1, 7, 5, &mut |n| seen.push((n.time, n.comm.clone(), n.tgid)));
        names.see(2, 7, packed(b"bash"), &mut |n| seen.push((n.time, n.comm.clone(), n.tgid)));
        names.belongs(3, 7, 5, &mut |n| seen.push((n.time, n.comm.clone(), n.tgid)));
        names.belongs(4, 7, -1, &mut |n| seen.push((n.time, n.comm.clone(), n.tgid)));
        names.belongs(5, 7, 7, &mut |n| seen.push((n.time, n.comm.clone(), n.tgid)));
        assert_eq!(seen, [(2, "bash".to_owned(), Some(5)), (5, "bash".to_owned(), Some(7))]);
    }
}
