//! The pages of the kernel's trace ring buffer, as `trace_pipe_raw` returns them and trace.dat stores them.
//!
//! A page is a header (the time of its first event, and how much of the page is written) and a sequence of records.
//! Each record begins with a 32-bit word: 5 bits of type or length, and 27 bits of time since the previous record
//! (kernel: include/linux/ring_buffer.h). The offsets of the header's fields are read from `events/header_page`.

use schedlab_base::{Error, Nanos, Result};

/// Bit of the commit word: events were lost before this page.
const MISSED: u64 = 1 << 31;
/// Bit of the commit word: the number of lost events is stored after the page's data.
const MISSED_STORED: u64 = 1 << 30;
/// Record types. Smaller values are the length of the payload in words, 0 if a separate word holds the length.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// The number of time bits in a record's first word.
const DELTA_BITS: u32 = 27;
/// The number of time bits in an absolute time stamp. The bits above are those of the time before it.
const STAMP_BITS: u32 = 59;
/// The largest page (kernels have pages of up to 64 KiB, or sub-buffers of several pages).
const MAX_PAGE: usize = 1 << 24;

/// The layout of a page's header, from the file `events/header_page`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    time_at: usize,
    commit_at: usize,
    commit_bytes: usize,
    data_at: usize,
    page_bytes: usize,
    big_endian: bool,
}

impl PageLayout {
    /// Parses the kernel's description of a page; `big_endian` is the byte order of the recording machine.
    ///
    /// # Errors
    /// When a field is missing or the fields contradict each other.
    pub fn parse(header_page: &str, big_endian: bool) -> Result<Self> {
        let (time_at, time_bytes) = field(header_page, "timestamp")?;
        let (commit_at, commit_bytes) = field(header_page, "commit")?;
        let (data_at, data_bytes) = field(header_page, "data")?;
        let page_bytes = data_at.saturating_add(data_bytes);
        let fits = |at: usize, bytes: usize| at.checked_add(bytes).is_some_and(|end| end <= data_at);
        if time_bytes != 8
            || !matches!(commit_bytes, 4 | 8)
            || !fits(time_at, time_bytes)
            || !fits(commit_at, commit_bytes)
            || page_bytes > MAX_PAGE
        {
            return Err(Error::input("header_page does not describe a page of the trace ring buffer"));
        }
        Ok(Self { time_at, commit_at, commit_bytes, data_at, page_bytes, big_endian })
    }

    /// The size of a whole page, including its header.
    #[must_use]
    pub fn page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// The same fields in pages of another size (from 6.8 on each buffer can choose its size).
    #[must_use]
    pub fn with_page_bytes(self, bytes: usize) -> Self {
        Self { page_bytes: bytes.clamp(self.data_at, MAX_PAGE), ..self }
    }

    /// Opens one page. It may be shorter than [`PageLayout::page_bytes`] if all its committed data is there.
    ///
    /// # Errors
    /// When the page is cut short or claims more data than it has room for.
    pub fn page<'a>(&self, bytes: &'a [u8]) -> Result<Page<'a>> {
        if bytes.len() < self.data_at {
            return Err(Error::input(format!("a ring buffer page of {} bytes has no header", bytes.len())));
        }
        let word = Word { big_endian: self.big_endian };
        let commit = word.sized(bytes, self.commit_at, self.commit_bytes) & 0xffff_ffff;
        let used = (commit & !(MISSED | MISSED_STORED)) as usize;
        let data = &bytes[self.data_at..];
        if used > data.len() {
            return Err(Error::input(format!("a ring buffer page claims {used} bytes of {}", data.len())));
        }
        let lost = match (commit & MISSED != 0, commit & MISSED_STORED != 0) {
            (false, _) => None,
            (true, true) if data.len() - used >= self.commit_bytes => Some(word.sized(data, used, self.commit_bytes)),
            (true, _) => Some(0),
        };
        Ok(Page { time: word.u64(bytes, self.time_at), lost, data: &data[..used], word })
    }
}

/// The offset and size of a field in the kernel's description.
fn field(text: &str, name: &str) -> Result<(usize, usize)> {
    let bad = || Error::input(format!("header_page has no usable field \"{name}\""));
    let line = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("field:"))
        .find(|line| {
            line.split(';').next().is_some_and(|declaration| declaration.split_whitespace().last() == Some(name))
        })
        .ok_or_else(bad)?;
    let number = |key: &str| {
        line.split(';')
            .find_map(|part| part.trim().strip_prefix(key))
            .and_then(|n| n.trim().parse().ok())
            .ok_or_else(bad)
    };
    Ok((number("offset:")?, number("size:")?))
}

/// Reads words in the byte order of the recording machine.
#[derive(Clone, Copy, Debug)]
struct Word {
    big_endian: bool,
}

impl Word {
    /// Both reads are in bounds: the callers have checked.
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let raw: [u8; 4] = bytes[at..at + 4].try_into().expect("four bytes");
        if self.big_endian { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) }
    }

    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let raw: [u8; 8] = bytes[at..at + 8].try_into().expect("eight bytes");
        if self.big_endian { u64::from_be_bytes(raw) } else { u64::from_le_bytes(raw) }
    }

    fn sized(self, bytes: &[u8], at: usize, size: usize) -> u64 {
        if size == 4 { u64::from(self.u32(bytes, at)) } else { self.u64(bytes, at) }
    }

    /// A record's first word: its type or length, and the time since the previous record.
    fn record(self, bytes: &[u8], at: usize) -> (u32, u64) {
        let word = self.u32(bytes, at);
        if self.big_endian {
            (word >> DELTA_BITS, u64::from(word & ((1 << DELTA_BITS) - 1)))
        } else {
            (word & 31, u64::from(word >> 5))
        }
    }
}

/// One page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The time from which the first record's delta counts.
    pub time: Nanos,
    /// Set if events were lost before this page: their number, or 0 if the kernel does not say.
    pub lost: Option<u64>,
    data: &'a [u8],
    word: Word,
}

impl<'a> Page<'a> {
    /// Its records, in order.
    #[must_use]
    pub fn records(&self) -> Records<'a> {
        Records { time: self.time, at: 0, data: self.data, word: self.word }
    }
}

/// Iterates over the records of a page, as pairs of time and raw payload. A payload begins with the event's id.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    time: Nanos,
    at: usize,
    data: &'a [u8],
    word: Word,
}

impl<'a> Records<'a> {
    /// Takes `bytes` of the data from `at` on and moves past them.
    fn take(&mut self, at: usize, bytes: usize) -> Result<&'a [u8]> {
        let end = at.checked_add(bytes).filter(|end| *end <= self.data.len());
        let Some(end) = end else {
            let left = self.data.len().saturating_sub(at);
            self.at = self.data.len();
            return Err(Error::input(format!("a ring buffer record of {bytes} bytes where {left} are left")));
        };
        self.at = end;
        Ok(&self.data[at..end])
    }

    /// The word after a record's first one.
    fn second(&mut self) -> Result<u32> {
        self.take(self.at + 4, 4).map(|bytes| self.word.u32(bytes, 0))
    }

    fn step(&mut self) -> Result<Option<(Nanos, &'a [u8])>> {
        while self.at + 4 <= self.data.len() {
            let (kind, delta) = self.word.record(self.data, self.at);
            match kind {
                PADDING if delta == 0 => break,
                PADDING => {
                    // The record was discarded after it had been reserved. Its time still counts.
                    let at = self.at + 4;
                    let bytes = self.second()? as usize;
                    self.take(at, bytes.max(4))?;
                    self.time = self.time.wrapping_add(delta);
                }
                TIME_EXTEND => {
                    let high = u64::from(self.second()?);
                    self.time = self.time.wrapping_add((high << DELTA_BITS) + delta);
                }
                TIME_STAMP => {
                    let stamp = (u64::from(self.second()?) << DELTA_BITS) + delta;
                    self.time = (self.time >> STAMP_BITS << STAMP_BITS) | stamp;
                }
                words => {
                    self.time = self.time.wrapping_add(delta);
                    let payload = if words == 0 {
                        let bytes = self.second()? as usize;
                        // The length includes its own word.
                        let bytes = bytes.checked_sub(4).ok_or_else(|| {
                            self.at = self.data.len();
                            Error::input("a ring buffer record shorter than its own length")
                        })?;
                        self.take(self.at, bytes.saturating_add(3) & !3)?
                    } else {
                        self.take(self.at + 4, words as usize * 4)?
                    };
                    return Ok(Some((self.time, payload)));
                }
            }
        }
        self.at = self.data.len();
        Ok(None)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<(Nanos, &'a [u8])>;

    /// The next record; after an error there are no more.
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn layout() -> PageLayout {
        PageLayout::parse(HEADER, false).unwrap()
    }

    fn page(time: u64, flags: u64, words: &[u32], behind: &[u8]) -> Vec<u8> {
        let mut bytes = time.to_le_bytes().to_vec();
        bytes.extend(((words.len() as u64 * 4) | flags).to_le_bytes());
        words.iter().for_each(|w| bytes.extend(w.to_le_bytes()));
        bytes.extend(behind);
        bytes.resize(4096, 0);
        bytes
    }

    fn head(kind: u32, delta: u32) -> u32 {
        delta << 5 | kind
    }

    fn read(bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let page = layout().page(bytes).unwrap();
        page.records().map(|r| r.map(|(t, p)| (t, p.to_vec())).unwrap()).collect()
    }

    #[test]
    fn the_kernels_page_description_is_parsed() {
        assert_eq!(layout().page_bytes(), 4096);
        let narrow = HEADER.replace("offset:8;\tsize:8", "offset:8;\tsize:4");
        assert_eq!(PageLayout::parse(&narrow, true).unwrap().commit_bytes, 4);
        for broken in ["", "field: char data; offset:16; size:4080;", &HEADER.replace("size:4080", "size:99999999999")]
        {
            assert!(PageLayout::parse(broken, false).is_err(), "{broken}");
        }
    }

    #[test]
    fn deltas_time_extends_and_stamps_move_the_clock() {
        let bytes = page(
            1000,
            0,
            &[
                head(1, 5),
                0xaaaa_aaaa,
                head(TIME_EXTEND, 3),
                2, // + 2 << 27 + 3
                head(2, 1),
                1,
                2,
                head(TIME_STAMP, 7),
                4, // = 4 << 27 + 7
                head(1, 0),
                9,
            ],
            &[],
        );
        let extended = 1005 + (2 << 27) + 3 + 1;
        assert_eq!(
            read(&bytes),
            vec![
                (1005, vec![0xaa; 4]),
                (extended, vec![1, 0, 0, 0, 2, 0, 0, 0]),
                ((4 << 27) + 7, 9u32.to_le_bytes().to_vec()),
            ]
        );
    }

    #[test]
    fn an_absolute_stamp_keeps_the_clocks_top_bits() {
        let top = 3 << STAMP_BITS;
        let bytes = page(top + 5, 0, &[head(TIME_STAMP, 7), 4, head(1, 1), 0], &[]);
        assert_eq!(read(&bytes)[0].0, top + (4 << 27) + 8);
    }

    #[test]
    fn long_and_discarded_records_are_skipped() {
        let mut words = vec![head(0, 1), 4 + 116];
        words.extend(0..29u32);
        words.extend([head(PADDING, 2), 8, 0xdead, head(1, 1), 7, head(PADDING, 0), 0xffff]);
        let got = read(&page(0, 0, &words, &[]));
        assert_eq!(got.len(), 2);
        assert_eq!((got[0].0, got[0].1.len()), (1, 116));
        assert_eq!((got[1].0, got[1].1[0]), (4, 7));
    }

    #[test]
    fn a_loss_has_its_count_where_the_kernel_stores_one() {
        let words = [head(1, 0), 0];
        let lost = |bytes: Vec<u8>| layout().page(&bytes).unwrap().lost;
        assert_eq!(lost(page(0, 0, &words, &[])), None);
        assert_eq!(lost(page(0, MISSED, &words, &[])), Some(0));
        assert_eq!(lost(page(0, MISSED | MISSED_STORED, &words, &1234u64.to_le_bytes())), Some(1234));
        assert_eq!(lost(page(0, MISSED | MISSED_STORED, &[0; 1020], &[])), Some(0), "no room for the count");
    }

    #[test]
    fn big_endian_pages_are_read_alike() {
        let layout = PageLayout::parse(HEADER, true).unwrap();
        let mut bytes = 77u64.to_be_bytes().to_vec();
        bytes.extend(8u64.to_be_bytes());
        bytes.extend((1u32 << DELTA_BITS | 3).to_be_bytes());
        bytes.extend([1, 2, 3, 4]);
        let records: Vec<_> = layout.page(&bytes).unwrap().records().map(Result::unwrap).collect();
        assert_eq!(records, vec![(80, &[1u8, 2, 3, 4][..])]);
    }

    #[test]
    fn inconsistent_pages_are_refused() {
        assert!(layout().page(&[0; 15]).is_err());
        assert!(layout().page(&page(0, 5000, &[], &[])).is_err(), "more data than room");
        for words in [&[head(3, 0), 1][..], &[head(0, 0), 3], &[head(0, 0), u32::MAX], &[head(PADDING, 1), u32::MAX]] {
            let bytes = page(0, 0, words, &[]);
            let records: Vec<_> = layout().page(&bytes).unwrap().records().collect();
            assert!(records.len() == 1 && records[0].is_err(), "{words:?}");
        }
    }

    proptest! {
        #[test]
        fn no_page_panics_or_loops(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..4200),
            used in 0u64..5000,
            big_endian: bool,
        ) {
            let layout = PageLayout::parse(HEADER, big_endian).unwrap();
            if bytes.len() >= 16 {
                bytes[8..16].copy_from_slice(&if big_endian { used.to_be_bytes() } else { used.to_le_bytes() });
            }
            if let Ok(page) = layout.page(&bytes) {
                prop_assert!(page.records().count() <= bytes.len());
            }
        }

        #[test]
        fn no_description_panics(text in "(\tfield: [a-z ]{0,12};\toffset:[0-9]{0,22};\tsize:[0-9]{0,22};\n){0,4}") {
            let _ = PageLayout::parse(&text, false);
        }
    }
}
