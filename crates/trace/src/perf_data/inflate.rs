//! Records that `perf record -z` compressed: one zstd stream, cut into records of its own.

use super::stream::Record;
use schedlab_base::{Error, Result};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// The number of bytes decompressed at once.
const CHUNK: usize = 1 << 18;
/// A record of at most 64 KiB never held more than perf's buffer for one CPU (`--mmap-pages`). One that expands beyond
/// this is a decompression bomb.
const SWELL_MAX: usize = 1 << 28;
/// perf's levels (1 to 22) need windows of at most 2^27 bytes.
const WINDOW_LOG_MAX: u32 = 27;
const HEADER: usize = 8;

/// The decompressor, and the incomplete record at the end of its last output.
pub(super) struct Inflate {
    decoder: Decoder<'static>,
    plain: Vec<u8>,
}

impl Inflate {
    pub(super) fn new() -> Result<Self> {
        let mut decoder = Decoder::new().map_err(|e| Error::system("starting zstd", &e))?;
        decoder
            .set_parameter(zstd::zstd_safe::DParameter::WindowLogMax(WINDOW_LOG_MAX))
            .map_err(|e| Error::system("starting zstd", &e))?;
        Ok(Self { decoder, plain: Vec::new() })
    }

    /// Decompresses one record and passes on every record that is now complete.
    pub(super) fn feed(&mut self, packed: &[u8], mut take: impl FnMut(Record) -> Result<()>) -> Result<()> {
        let mut input = InBuffer::around(packed);
        let mut swell = 0;
        loop {
            let kept = self.plain.len();
            self.plain.resize(kept + CHUNK, 0);
            let mut output = OutBuffer::around(&mut self.plain[kept..]);
            self.decoder
                .run(&mut input, &mut output)
                .map_err(|e| Error::input(format!("the perf.data's compressed records are damaged: {e}")))?;
            let got = output.pos();
            self.plain.truncate(kept + got);
            swell += got;
            if swell > SWELL_MAX {
                return Err(Error::input("the perf.data's compressed records swell beyond what perf can have written"));
            }
            self.hand_on(&mut take)?;
            if input.pos() == packed.len() && got < CHUNK {
                return Ok(());
            }
        }
    }

    fn hand_on(&mut self, take: &mut impl FnMut(Record) -> Result<()>) -> Result<()> {
        let mut rest = &self.plain[..];
        while let Some((header, _)) = rest.split_first_chunk::<HEADER>() {
            let size = usize::from(u16::from_le_bytes([header[6], header[7]]));
            if size < HEADER {
                let what = format!("the perf.data is damaged: a compressed record of {size} bytes cannot be");
                return Err(Error::input(what));
            }
            let Some((record, behind)) = rest.split_at_checked(size) else { break };
            let kind = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_le_bytes([header[4], header[5]]);
            take(Record { kind, misc, body: &record[HEADER..] })?;
            rest = behind;
        }
        let done = self.plain.len() - rest.len();
        self.plain.drain(..done);
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
                let mut take = |r: Record| {
                    assert_eq!((r.kind, r.body), (next, &next.to_le_bytes()[..]));
                    next += 1;
                    Ok(())
                };
                inflate.feed(part, &mut take).unwrap();
            }
            assert_eq!(next, 5000);
        }
    }

    #[test]
    fn damage_and_bombs_are_refused() {
        let mut inflate = Inflate::new().unwrap();
        assert!(inflate.feed(b"no zstd at all", |_| Ok(())).is_err());
        let zeros = zstd::encode_all(&vec![0; 1 << 20][..], 1).unwrap();
        assert!(Inflate::new().unwrap().feed(&zeros, |_| Ok(())).is_err());
        let body = vec![1; 65_000];
        let bomb: Vec<u8> = std::iter::repeat_with(|| record(1, &body)).take(5000).flatten().collect();
        let packed = zstd::encode_all(&bomb[..], 19).unwrap();
        let error = Inflate::new().unwrap().feed(&packed, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("swell"), "{error}");
    }
}
