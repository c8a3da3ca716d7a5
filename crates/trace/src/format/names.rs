//! The names of tasks as last seen, so that only a change is passed on.

use schedlab_base::{NameRecord, Nanos, Tid};

/// No kernel gives out a thread id from here on (PID_MAX_LIMIT).
pub(super) const TID_END: i64 = 1 << 22;

const PAGE: usize = 1 << 10;

/// A dense table from thread id to the sixteen bytes last seen, in pages that come into being with their tasks.
#[derive(Default)]
pub(super) struct Names {
    pages: Vec<Option<Box<[u128; PAGE]>>>,
}

impl Names {
    /// The task bears the name in these bytes: passes a record on if that is news.
    #[inline(always)]
    pub(super) fn see(&mut self, time: Nanos, tid: Tid, raw: u128, on_name: &mut impl FnMut(&NameRecord)) {
        let index = tid as usize;
        if let Some(Some(page)) = self.pages.get(index / PAGE) {
            if page[index % PAGE] == raw {
                return;
            }
        }
        self.changed(time, tid, raw, on_name);
    }

    /// The slow path: new bytes, which may yet spell the old name, for the kernel does not always
    /// clear what lies behind a name's end.
    #[cold]
    #[inline(never)]
    fn changed(&mut self, time: Nanos, tid: Tid, raw: u128, on_name: &mut impl FnMut(&NameRecord)) {
        let index = tid as usize;
        if tid <= 0 || index >= TID_END as usize {
            return; // the idle tasks share tid 0 and bear a name for each CPU
        }
        if self.pages.len() <= index / PAGE {
            self.pages.resize_with(index / PAGE + 1, || None);
        }
        let page = self.pages[index / PAGE].get_or_insert_with(|| Box::new([0; PAGE]));
        let seen = &mut page[index % PAGE];
        let news = spelt(*seen) != spelt(raw);
        *seen = raw;
        if news {
            let bytes = raw.to_le_bytes();
            let comm = String::from_utf8_lossy(&bytes[..length(raw)]).into_owned();
            on_name(&NameRecord { time, tid, tgid: None, comm, cgroup: None });
        }
    }
}

/// The bytes before the first NUL.
fn length(raw: u128) -> usize {
    raw.to_le_bytes().iter().position(|b| *b == 0).unwrap_or(16)
}

/// The same with what follows the name cleared.
fn spelt(raw: u128) -> u128 {
    match length(raw) {
        16 => raw,
        n => raw & ((1 << (8 * n)) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(name: &[u8; 16]) -> u128 {
        u128::from_le_bytes(*name)
    }

    #[test]
    fn only_a_change_is_passed_on() {
        let mut names = Names::default();
        let mut seen = Vec::new();
        let mut see = |time, tid, raw| names.see(time, tid, raw, &mut |n| seen.push((n.time, n.tid, n.comm.clone())));
        see(1, 7, bytes(b"bash\0\0\0\0\0\0\0\0\0\0\0\0"));
        see(2, 7, bytes(b"bash\0\0\0\0\0\0\0\0\0\0\0\0"));
        see(3, 7, bytes(b"bash\0rubbish\0\0\0\0"));
        see(4, 7, bytes(b"sixteen-letters!"));
        see(5, 0, bytes(b"swapper/1\0\0\0\0\0\0\0"));
        see(6, (TID_END - 1) as i32, bytes(b"z\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
        see(7, -1, bytes(b"z\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
        let last = (6, (TID_END - 1) as i32, "z".to_owned());
        assert_eq!(seen, [(1, 7, "bash".to_owned()), (4, 7, "sixteen-letters!".to_owned()), last]);
    }
}
