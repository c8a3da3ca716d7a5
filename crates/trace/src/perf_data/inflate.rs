//! Records that `perf record -z` compressed: one zstd stream, cut into records of its own.

use super::blocks::{BLOCK, Blocks, Place};
use super::cursor::u64_at;
use super::session::kind;
use super::stream::{HEADER, Record, size_field};
use schedlab_base::{Error, Result};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// A record of at most 64 KiB never held more than perf's buffer for one CPU (`--mmap-pages`). One that expands beyond
/// this is a decompression bomb.
const SWELL_MAX: usize = 1 << 28;
/// perf's levels (1 to 22) need windows of at most 2^27 bytes.
const WINDOW_LOG_MAX: u32 = 27;

/// The compressed bytes that a record holds. The later kind of record says how many there are, because it is padded.
///
/// # Errors
/// When it has fewer than it says.
pub(super) fn packed(record: Record<'_>) -> Result<&[u8]> {
    if record.kind == kind::COMPRESSED {
        return Ok(record.body);
    }
    let size = u64_at(record.body, 0).and_then(|n| usize::try_from(n).ok());
    let packed = size.and_then(|n| record.body[8..].get(..n));
    packed.ok_or_else(|| Error::input("the perf.data is damaged: a compressed record is too short"))
}

/// The decompressor, and what came out of it.
pub(super) struct Inflate {
    decoder: Decoder<'static>,
    /// The compressed bytes of the last record, and how many of them are done.
    packed: Vec<u8>,
    done: usize,
    /// How much came out of them, and whether more may.
    swell: usize,
    more: bool,
    /// What came out; the current block from `start` to `end` is still to be looked at.
    pub(super) blocks: Blocks,
    start: usize,
    end: usize,
}

impl Inflate {
    pub(super) fn new() -> Result<Self> {
        let mut decoder = Decoder::new().map_err(|e| Error::system("starting zstd", &e))?;
        decoder
            .set_parameter(zstd::zstd_safe::DParameter::WindowLogMax(WINDOW_LOG_MAX))
            .map_err(|e| Error::system("starting zstd", &e))?;
        let (packed, blocks) = (Vec::new(), Blocks::new());
        Ok(Self { decoder, packed, done: 0, swell: 0, more: false, blocks, start: 0, end: 0 })
    }

    /// Takes the compressed bytes of a record.
    pub(super) fn feed(&mut self, packed: &[u8]) {
        self.packed.clear();
        self.packed.extend_from_slice(packed);
        (self.done, self.swell, self.more) = (0, 0, true);
    }

    /// What came out and is still to be looked at, and where it is.
    pub(super) fn rest(&self) -> (&[u8], Place) {
        (&self.blocks.current[self.start..self.end], self.blocks.place(self.start))
    }

    /// Passes over records at the beginning of that.
    pub(super) fn advance(&mut self, size: usize) {
        self.start += size;
    }

    /// The next record that is complete, and its place in [`Inflate::blocks`]; `None` if more must be fed.
    pub(super) fn next(&mut self) -> Result<Option<(Record<'_>, Place)>> {
        loop {
            let rest = &self.blocks.current[self.start..self.end];
            let size = rest.first_chunk::<HEADER>().map(size_field);
            if let Some(size) = size.filter(|size| *size < HEADER) {
                let what = format!("the perf.data is damaged: a compressed record of {size} bytes cannot be");
                return Err(Error::input(what));
            }
            if let Some(size) = size.filter(|size| *size <= rest.len()) {
                let start = self.start;
                self.start += size;
                let record = Record::first_of(&self.blocks.current[start..]).expect("all of it is there");
                return Ok(Some((record, self.blocks.place(start))));
            }
            if !self.more {
                return Ok(None);
            }
            self.decompress()?;
        }
    }

    /// Decompresses as much as the block has room for.
    #[cold]
    fn decompress(&mut self) -> Result<()> {
        self.blocks.turn(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let mut input = InBuffer::around(&self.packed[self.done..]);
        let mut output = OutBuffer::around(&mut self.blocks.current[self.end..]);
        self.decoder
            .run(&mut input, &mut output)
            .map_err(|e| Error::input(format!("the perf.data's compressed records are damaged: {e}")))?;
        let got = output.pos();
        self.done += input.pos();
        self.end += got;
        self.swell += got;
        if self.swell > SWELL_MAX {
            return Err(Error::input("the perf.data's compressed records swell beyond what perf can have written"));
        }
        self.more = self.done < self.packed.len() || self.end == BLOCK;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        [&kind.to_le_bytes()[..], &[0, 0], &(8 + body.len() as u16).to_le_bytes(), body].concat()
    }

    #[test]
    fn records_cut_anywhere_are_read_whole() {
        let plain: Vec<u8> = (0..5000u32).flat_map(|i| record(i, &i.to_le_bytes())).collect();
        let packed = zstd::encode_all(&plain[..], 1).unwrap();
        for piece in [1, 7, 100, packed.len()] {
            let mut inflate = Inflate::new().unwrap();
            let mut next = 0u32;
            for part in packed.chunks(piece) {
                inflate.feed(part);
                while let Some((r, _)) = inflate.next().unwrap() {
                    assert_eq!((r.kind, r.body), (next, &next.to_le_bytes()[..]));
                    next += 1;
                }
            }
            assert_eq!(next, 5000);
        }
    }

    #[test]
    fn damage_and_bombs_are_refused() {
        assert!(all_of(b"no zstd at all").is_err());
        assert!(all_of(&zstd::encode_all(&vec![0; 1 << 20][..], 1).unwrap()).is_err());
        let body = vec![1; 65_000];
        let bomb: Vec<u8> = std::iter::repeat_with(|| record(1, &body)).take(5000).flatten().collect();
        let error = all_of(&zstd::encode_all(&bomb[..], 19).unwrap()).unwrap_err();
        assert!(error.to_string().contains("swell"), "{error}");
    }

    fn all_of(packed: &[u8]) -> Result<()> {
        let mut inflate = Inflate::new()?;
        inflate.feed(packed);
        while inflate.next()?.is_some() {}
        Ok(())
    }
}
