//! Reads the records of the data section in sequence, from any reader.

use super::blocks::{BLOCK, Blocks, Place};
use super::cursor::u32_at;
use schedlab_base::{Error, Result};
use std::fs::File;
use std::io::{ErrorKind, Read};

/// The size of `perf_event_header`: a 32-bit type, 16 bits of `misc`, and the 16-bit size of the whole record.
pub(super) const HEADER: usize = 8;

/// One record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// The bytes after the header.
    pub(super) body: &'a [u8],
}

impl<'a> Record<'a> {
    /// The record that these bytes begin with; `None` if they do not have all of it, or begin with none.
    #[inline(always)]
    pub(super) fn first_of(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.first_chunk::<HEADER>()?;
        let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let misc = u16::from_le_bytes([header[4], header[5]]);
        Some(Self { kind, misc, body: bytes.get(HEADER..size_field(header))? })
    }

    /// The size of the whole record.
    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        HEADER + self.body.len()
    }
}

/// The size that a record's header states.
#[inline(always)]
pub(super) fn size_field(header: &[u8; HEADER]) -> usize {
    usize::from(u16::from_le_bytes([header[6], header[7]]))
}

/// The next item of the stream.
#[derive(Debug)]
pub(super) enum Next<'a> {
    /// A record, and its place in [`Stream::blocks`].
    Record(Record<'a>, Place),
    /// The section ends where it should.
    End,
    /// The data ends in the middle of a record, or before the end of the section.
    Cut(&'static str),
}

/// Reads records, a block at a time.
pub(super) struct Stream {
    input: Box<dyn Read + Send>,
    /// The number of bytes of the section still to be read from the input; `None` if the section ends with the input.
    left: Option<u64>,
    /// What was read; the current block from `start` to `end` is still to come.
    pub(super) blocks: Blocks,
    start: usize,
    end: usize,
    /// The position of `start` in the file.
    offset: u64,
}

impl Stream {
    /// Creates a stream that starts at `offset` in its input and has `size` bytes, or goes on to the end.
    pub(super) fn new(input: Box<dyn Read + Send>, offset: u64, size: Option<u64>) -> Self {
        Self { input, left: size, blocks: Blocks::new(), start: 0, end: 0, offset }
    }

    /// The same of a file, which stands at `offset`, and was recorded on so many CPUs.
    pub(super) fn of_file(file: File, offset: u64, size: Option<u64>, cpus: usize) -> Self {
        let again = file.try_clone();
        let stream = Self::new(Box::new(file), offset, size);
        match again {
            Ok(again) => Self { blocks: Blocks::of_file(again, cpus), ..stream },
            Err(_) => stream,
        }
    }

    /// The position of the next record in the file.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// What was read and is still to come, and where it is.
    #[inline]
    pub(super) fn rest(&self) -> (&[u8], Place) {
        (&self.blocks.current[self.start..self.end], self.blocks.place(self.start))
    }

    /// Passes over records at the beginning of that.
    #[inline]
    pub(super) fn advance(&mut self, size: usize) {
        self.start += size;
        self.offset += size as u64;
    }

    /// Reads the next record.
    ///
    /// # Errors
    /// When the file cannot be read, or the next bytes are not a record.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Next<'_>> {
        let (start, end) = (self.start, self.end);
        let header = self.blocks.current[start..end].first_chunk::<HEADER>();
        let size = header.map(size_field).filter(|size| (HEADER..=end - start).contains(size));
        match size {
            Some(size) => Ok(self.cut_off(size)),
            None => self.read_next(),
        }
    }

    /// The next record, all of which is in the block.
    #[inline(always)]
    fn cut_off(&mut self, size: usize) -> Next<'_> {
        let start = self.start;
        self.advance(size);
        let record = Record::first_of(&self.blocks.current[start..start + size]);
        Next::Record(record.expect("all of it is there"), self.blocks.place(start))
    }

    /// Reads the next record when the block does not have all of it.
    #[cold]
    fn read_next(&mut self) -> Result<Next<'_>> {
        let size = match self.look(HEADER)? {
            0 if self.left.is_none_or(|left| left == 0) => return Ok(Next::End),
            n if n < HEADER => return Ok(Next::Cut("the file ends before its last record does")),
            _ => u32_at(&self.blocks.current, self.start + 4).map_or(0, |word| (word >> 16) as usize),
        };
        if size < HEADER {
            if self.look(BLOCK)? > 0 && self.blocks.current[self.start..self.end].iter().all(|b| *b == 0) {
                return Ok(Next::Cut("the rest of the file was never written: it holds zeros"));
            }
            let what = format!("at byte {}: a record of {size} bytes cannot be", self.offset);
            return Err(Error::input(format!("the perf.data is damaged {what}")));
        }
        if self.look(size)? < size {
            return Ok(Next::Cut("the file ends before its last record does"));
        }
        Ok(self.cut_off(size))
    }

    /// The type of the next record, which is not consumed.
    pub(super) fn peek(&mut self) -> Result<Option<u32>> {
        Ok(if self.look(HEADER)? < HEADER { None } else { u32_at(&self.blocks.current, self.start) })
    }

    /// Skips bytes that follow a record and belong to it. Returns `false` if the file ends too early.
    pub(super) fn skip(&mut self, mut size: u64) -> Result<bool> {
        while size > 0 {
            let step = usize::try_from(size).unwrap_or(BLOCK).min(BLOCK);
            let there = self.look(step)?.min(step);
            if there == 0 {
                return Ok(false);
            }
            self.advance(there);
            size -= there as u64;
        }
        Ok(true)
    }

    /// Reads bytes that follow a record and belong to it: all of them, or as many as the file has.
    pub(super) fn take(&mut self, mut size: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while size > 0 {
            let step = usize::try_from(size).unwrap_or(BLOCK).min(BLOCK);
            let there = self.look(step)?.min(step);
            if there == 0 {
                break;
            }
            bytes.extend_from_slice(&self.blocks.current[self.start..self.start + there]);
            self.advance(there);
            size -= there as u64;
        }
        Ok(bytes)
    }

    /// Buffers at least `size` bytes (at most a chunk) if the input has them. Returns the number of bytes buffered.
    #[inline]
    fn look(&mut self, size: usize) -> Result<usize> {
        if self.end - self.start < size {
            self.fill(size)?;
        }
        Ok(self.end - self.start)
    }

    /// Moves what is still to come to the front of the block, or of a new one if records of this one are held.
    fn turn(&mut self) {
        self.blocks.turn(self.start..self.end, self.offset - self.start as u64);
        (self.start, self.end) = (0, self.end - self.start);
    }

    #[cold]
    fn fill(&mut self, size: usize) -> Result<()> {
        if self.start > 0 {
            self.turn();
        }
        while self.end < size {
            let room = (BLOCK - self.end) as u64;
            let most = usize::try_from(self.left.map_or(room, |left| left.min(room))).unwrap_or(BLOCK);
            match self.input.read(&mut self.blocks.current[self.end..self.end + most]) {
                Ok(0) => break,
                Ok(n) => {
                    self.end += n;
                    self.left = self.left.map(|left| left - n as u64);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::system("reading the perf.data", &e)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &[0, 0], &(8 + body.len() as u16).to_le_bytes(), body].concat()
    }

    fn stream(bytes: Vec<u8>, size: Option<u64>) -> Stream {
        Stream::new(Box::new(std::io::Cursor::new(bytes)), 100, size)
    }

    #[test]
    fn records_across_chunks() {
        let many: Vec<u8> = (0..40_000u32).flat_map(|i| record(i, &[i as u8; 60])).collect();
        let mut stream = stream(many.clone(), Some(many.len() as u64));
        for i in 0..40_000 {
            assert_eq!(stream.peek().unwrap(), Some(i));
            let Next::Record(r, _) = stream.next().unwrap() else { panic!("record {i} is missing") };
            assert_eq!((r.kind, r.body), (i, &[i as u8; 60][..]));
        }
        assert!(matches!(stream.next().unwrap(), Next::End));
        assert_eq!(stream.offset(), 100 + many.len() as u64);
    }

    #[test]
    fn missing_bytes_are_a_cut_and_wrong_bytes_an_error() {
        let one = record(9, &[1, 2, 3]);
        assert!(matches!(stream(one[..5].to_vec(), None).next().unwrap(), Next::Cut(_)));
        assert!(matches!(stream(one[..9].to_vec(), None).next().unwrap(), Next::Cut(_)));
        assert!(matches!(stream(vec![], Some(1)).next().unwrap(), Next::Cut(_)));
        assert!(matches!(stream(vec![0; 3000], None).next().unwrap(), Next::Cut(_)));
        assert!(stream([&[0; 8][..], &one].concat(), None).next().is_err());
        assert!(stream(vec![9, 0, 0, 0, 0, 0, 4, 0, 1], None).next().is_err());
    }

    #[test]
    fn payloads_are_read_or_skipped() {
        let bytes = vec![7; 3 * BLOCK + 5];
        assert!(stream(bytes.clone(), None).skip(3 * BLOCK as u64 + 5).unwrap());
        assert!(!stream(bytes.clone(), None).skip(u64::MAX).unwrap());
        assert_eq!(stream(bytes.clone(), None).take(BLOCK as u64 + 1).unwrap().len(), BLOCK + 1);
        assert_eq!(stream(bytes, None).take(u64::MAX).unwrap().len(), 3 * BLOCK + 5);
    }
}
