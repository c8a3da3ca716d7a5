//! The events that perf recorded (`perf_event_attr`), and where the fields of their samples are.

use super::cursor::{Cursor, u32_at, u64_at};

/// The bits of `sample_type`, in the order in which a sample holds their fields, up to the raw data.
mod sample {
    pub(super) const IP: u64 = 1 << 0;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const RAW: u64 = 1 << 10;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// The bits of `read_format`.
mod read {
    pub(super) const TOTAL_TIME_ENABLED: u64 = 1 << 0;
    pub(super) const TOTAL_TIME_RUNNING: u64 = 1 << 1;
    pub(super) const ID: u64 = 1 << 2;
    pub(super) const GROUP: u64 = 1 << 3;
    pub(super) const LOST: u64 = 1 << 4;
}

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const SOFTWARE_DUMMY: u64 = 9;
const FLAG_ENABLE_ON_EXEC: u64 = 1 << 12;
const FLAG_SAMPLE_ID_ALL: u64 = 1 << 18;
const FLAG_USE_CLOCKID: u64 = 1 << 25;
/// The first published size of a `perf_event_attr`. Every later one is larger.
const SIZE_MIN: usize = 64;
const CLOCKID_AT: usize = 92;

/// One recorded event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attr {
    kind: u32,
    config: u64,
    sample_type: u64,
    read_format: u64,
    sample_id_all: bool,
    /// It was opened for a command that had yet to start, and counts for its tasks alone.
    pub(super) enable_on_exec: bool,
    /// The requested clock, in the numbering of `clock_gettime`.
    pub(super) clockid: Option<i32>,
    /// The ids that its samples refer to it by.
    pub(super) ids: Vec<u64>,
}

impl Attr {
    /// Reads the kernel's structure; `None` if there are too few bytes.
    pub(super) fn read(bytes: &[u8], ids: Vec<u64>) -> Option<Self> {
        if bytes.len() < SIZE_MIN {
            return None;
        }
        let flags = u64_at(bytes, 40)?;
        let clockid = u32_at(bytes, CLOCKID_AT).filter(|_| flags & FLAG_USE_CLOCKID != 0).map(u32::cast_signed);
        Some(Self {
            kind: u32_at(bytes, 0)?,
            config: u64_at(bytes, 8)?,
            sample_type: u64_at(bytes, 24)?,
            read_format: u64_at(bytes, 32)?,
            sample_id_all: flags & FLAG_SAMPLE_ID_ALL != 0,
            enable_on_exec: flags & FLAG_ENABLE_ON_EXEC != 0,
            clockid,
            ids,
        })
    }

    /// Reads a `PERF_RECORD_HEADER_ATTR`: the structure, which states its own size, followed by the ids.
    pub(super) fn read_record(body: &[u8]) -> Option<Self> {
        let size = match u32_at(body, 4)? as usize {
            0 => SIZE_MIN,
            n => n,
        };
        let (attr, ids) = body.split_at_checked(size)?;
        Self::read(attr, ids.chunks_exact(8).filter_map(|c| u64_at(c, 0)).collect())
    }

    /// A tracepoint that was opened so many times.
    #[cfg(test)]
    pub(super) fn tracepoint_for_tests(opened: usize, enable_on_exec: bool) -> Self {
        let (kind, sample_id_all, ids) = (TYPE_TRACEPOINT, true, vec![0; opened]);
        Self { kind, config: 1, sample_type: 0, read_format: 0, sample_id_all, enable_on_exec, clockid: None, ids }
    }

    /// The tracepoint's id, if it is a tracepoint.
    pub(super) fn tracepoint(&self) -> Option<u64> {
        (self.kind == TYPE_TRACEPOINT).then_some(self.config)
    }

    /// Whether it never has samples. perf adds such an event to receive the records of names and forks.
    pub(super) fn is_dummy(&self) -> bool {
        self.kind == TYPE_SOFTWARE && self.config == SOFTWARE_DUMMY
    }

    /// The layout of its samples; `None` if they lack the time, the CPU or the raw data.
    pub(super) fn layout(&self) -> Option<Layout> {
        let place = |bit: u64| (self.sample_type & bit != 0).then(|| self.before(bit));
        Some(Layout {
            time: place(sample::TIME)?,
            cpu: place(sample::CPU)?,
            task: place(sample::TID),
            variable: place(sample::RAW)?,
            read_format: (self.sample_type & sample::READ != 0).then_some(self.read_format),
            callchain: self.sample_type & sample::CALLCHAIN != 0,
        })
    }

    /// Whether its records hold its id at a place that does not depend on their layout: first in a sample, last in any
    /// other record.
    pub(super) fn has_identifier(&self) -> bool {
        self.sample_type & sample::IDENTIFIER != 0
    }

    /// The offset of the event id in its samples.
    pub(super) fn id_at(&self) -> Option<usize> {
        if self.sample_type & sample::IDENTIFIER != 0 {
            Some(0)
        } else {
            (self.sample_type & sample::ID != 0).then(|| self.before(sample::ID))
        }
    }

    /// The total size of the fixed fields that precede the field of this bit.
    fn before(&self, bit: u64) -> usize {
        use sample::{ADDR, CPU, ID, IDENTIFIER, IP, PERIOD, RAW, STREAM_ID, TID, TIME};
        const ORDER: [u64; 10] = [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD, RAW];
        8 * ORDER.iter().take_while(|b| **b != bit).filter(|b| self.sample_type & **b != 0).count()
    }

    /// The layout of the trailer of records that are not samples.
    pub(super) fn trailer(&self) -> Trailer {
        use sample::{CPU, ID, IDENTIFIER, STREAM_ID, TID, TIME};
        const ORDER: [u64; 6] = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
        if !self.sample_id_all {
            return Trailer::default();
        }
        let from = |bit: u64| {
            let count = ORDER.iter().skip_while(|b| **b != bit).filter(|b| self.sample_type & **b != 0).count();
            (self.sample_type & bit != 0).then_some(8 * count)
        };
        let size = 8 * ORDER.iter().filter(|b| self.sample_type & **b != 0).count();
        Trailer { size, time: from(TIME), cpu: from(CPU) }
    }
}

/// The offsets of the sample fields that are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) time: usize,
    pub(super) cpu: usize,
    pub(super) task: Option<usize>,
    /// Where the fields of variable size begin. The raw data is the last one of interest.
    variable: usize,
    read_format: Option<u64>,
    callchain: bool,
}

impl Layout {
    /// That of nearly all recordings. What is loaded from places that are known when this is compiled is loaded faster.
    pub(super) const USUAL: Self =
        Self { time: 24, cpu: 32, task: Some(16), variable: 48, read_format: None, callchain: false };

    /// The tracepoint's record within a sample.
    #[inline(always)]
    pub(super) fn raw<'a>(&self, sample: &'a [u8]) -> Option<&'a [u8]> {
        let at =
            if self.read_format.is_some() || self.callchain { self.behind_variable(sample)? } else { self.variable };
        let size = u32_at(sample, at)? as usize;
        sample.get(at + 4..)?.get(..size)
    }

    /// Where the raw data begins in a sample that holds counter values or a call chain before it.
    fn behind_variable(&self, sample: &[u8]) -> Option<usize> {
        let mut from = Cursor::new(sample.get(self.variable..)?);
        if let Some(format) = self.read_format {
            let times = u64::from((format & (read::TOTAL_TIME_ENABLED | read::TOTAL_TIME_RUNNING)).count_ones());
            let each = 1 + u64::from((format & (read::ID | read::LOST)).count_ones());
            let values = if format & read::GROUP != 0 { from.u64()?.checked_mul(each)? } else { each };
            from.take(values.checked_add(times)?.checked_mul(8)?)?;
        }
        if self.callchain {
            let count = from.u64()?;
            from.take(count.checked_mul(8)?)?;
        }
        Some(sample.len() - from.rest().len())
    }
}

/// Where a record that is not a sample holds its time and CPU, counted from the end of the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) size: usize,
    time: Option<usize>,
    cpu: Option<usize>,
}

impl Trailer {
    /// The record's time; 0 if it has none.
    pub(super) fn time(&self, body: &[u8]) -> u64 {
        self.time.and_then(|from_end| u64_at(body, body.len().checked_sub(from_end)?)).unwrap_or(0)
    }

    /// The record's CPU; 0 if it has none.
    pub(super) fn cpu(&self, body: &[u8]) -> u32 {
        self.cpu.and_then(|from_end| u32_at(body, body.len().checked_sub(from_end)?)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(sample_type: u64, read_format: u64) -> Attr {
        Attr { sample_type, read_format, ..Attr::tracepoint_for_tests(0, false) }
    }

    fn words(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    #[test]
    fn every_bit_moves_the_fields_after_it() {
        let all = attr(0x107cf, 0);
        let layout = all.layout().unwrap();
        assert_eq!((layout.task, layout.time, layout.cpu, layout.variable), (Some(16), 24, 56, 72));
        assert_eq!(all.id_at(), Some(0));
        let few = attr(sample::TIME | sample::CPU | sample::RAW | sample::ID, 0);
        let layout = few.layout().unwrap();
        assert_eq!((layout.task, layout.time, layout.cpu, layout.variable), (None, 0, 16, 24));
        assert_eq!(few.id_at(), Some(8));
        assert_eq!(attr(sample::TIME | sample::RAW, 0).layout(), None);
    }

    #[test]
    fn counters_and_call_chains_are_skipped() {
        let kind = sample::TIME | sample::CPU | sample::READ | sample::CALLCHAIN | sample::RAW;
        let raw = [4, 0, 0, 0, 1, 2, 3, 4];
        // A group of two counters, each with its id and its losses, and both times; then three addresses.
        let group = attr(kind, 31).layout().unwrap();
        let mut bytes = words(&[7, 3, 2, 10, 11, 20, 21, 22, 30, 31, 32, 3, 1, 2, 3]);
        bytes.extend(raw);
        assert_eq!(group.raw(&bytes), Some(&[1, 2, 3, 4][..]));
        let single = attr(kind, read::ID).layout().unwrap();
        let mut bytes = words(&[7, 3, 20, 21, 0]);
        bytes.extend(raw);
        assert_eq!(single.raw(&bytes), Some(&[1, 2, 3, 4][..]));
        assert_eq!(single.raw(&words(&[7, 3, 20, 21, u64::MAX])), None);
        assert_eq!(group.raw(&words(&[7, 3, u64::MAX])), None);
    }

    #[test]
    fn a_trailer_is_read_from_the_end() {
        let trailer = attr(sample::TID | sample::TIME | sample::CPU | sample::IDENTIFIER, 0).trailer();
        let body = words(&[99, 0, 123, 5, 1]);
        assert_eq!((trailer.size, trailer.time(&body), trailer.cpu(&body)), (32, 123, 5));
        assert_eq!(trailer.time(&[1, 2]), 0);
    }
}
