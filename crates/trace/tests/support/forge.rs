//! Takes a perf.data apart and reassembles it in other ways.

use super::data;
use std::ops::Range;

const FILE_HEADER: usize = 104;

/// The parts of the recording under tests/data.
pub struct Parts {
    pub file: Vec<u8>,
    pub attrs: Vec<(Vec<u8>, Vec<u8>)>,
    pub data: Range<usize>,
    pub tracing_data: Vec<u8>,
}

fn number(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

impl Parts {
    pub fn load() -> Self {
        let file = std::fs::read(data("pipes.perf.data")).unwrap();
        let section = |at: usize| number(&file, at)..number(&file, at) + number(&file, at + 8);
        let size = number(&file, 16);
        let attrs = file[section(24)].chunks_exact(size).map(|entry| {
            let (attr, ids) = entry.split_at(size - 16);
            (attr.to_vec(), file[number(ids, 0)..number(ids, 0) + number(ids, 8)].to_vec())
        });
        let data = section(40);
        // The formats are the first feature.
        Self { attrs: attrs.collect(), tracing_data: file[section(data.end)].to_vec(), data, file: file.clone() }
    }

    /// The records of the data section, each with its header.
    pub fn records(&self) -> Vec<&[u8]> {
        let mut rest = &self.file[self.data.clone()];
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (record, behind) = rest.split_at(usize::from(u16::from_le_bytes([rest[6], rest[7]])));
            records.push(record);
            rest = behind;
        }
        records
    }

    /// The same recording as perf would have written it to a pipe.
    pub fn pipe(&self, records: &[Vec<u8>]) -> Vec<u8> {
        let mut out = [&b"PERFILE2"[..], &16u64.to_le_bytes()].concat();
        for (attr, ids) in &self.attrs {
            out.extend(record(64, &[&attr[..], ids].concat()));
        }
        let padding = self.tracing_data.len().next_multiple_of(8) - self.tracing_data.len();
        out.extend(record(66, &((self.tracing_data.len() + padding) as u32).to_le_bytes()));
        out.extend(&self.tracing_data);
        out.extend(&[0; 8][..padding]);
        records.iter().for_each(|r| out.extend(r));
        out
    }

    /// The same file as a killed perf leaves it: the size of the data is missing, and nothing follows the data.
    pub fn killed(&self) -> Vec<u8> {
        let mut file = self.file[..self.data.end].to_vec();
        file[48..56].fill(0);
        file
    }

    /// Writes the formats to a folder laid out like tracefs.
    pub fn formats_folder(&self, folder: &std::path::Path) {
        let text = String::from_utf8_lossy(&self.tracing_data);
        for (at, _) in text.match_indices("name: sched_") {
            let name = text[at + 6..].lines().next().unwrap();
            let end = text[at..].find("print fmt:").and_then(|p| Some(p + text[at + p..].find('\n')?)).unwrap();
            let sub = folder.join("sched").join(name);
            std::fs::create_dir_all(&sub).unwrap();
            std::fs::write(sub.join("format"), &text[at..at + end + 1]).unwrap();
        }
    }
}

/// Builds a record of this kind.
pub fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &[0, 0], &((8 + body.len()) as u16).to_le_bytes(), body].concat()
}

/// The records compressed as `perf record -z` does it: all but the ends of rounds in one zstd stream. With `second`,
/// they are in records of the second kind (Linux 6.16), which state their length and are padded.
pub fn compressed(records: &[&[u8]], second: bool) -> Vec<Vec<u8>> {
    let mut plain = Vec::new();
    let mut out = Vec::new();
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    for part in records {
        if part[..4] != 68u32.to_le_bytes() {
            plain.extend_from_slice(part);
            continue;
        }
        pack(&mut encoder, &mut plain, second, &mut out);
        out.push(part.to_vec());
    }
    pack(&mut encoder, &mut plain, second, &mut out);
    out
}

fn pack(
    encoder: &mut zstd::stream::write::Encoder<'static, Vec<u8>>,
    plain: &mut Vec<u8>,
    second: bool,
    out: &mut Vec<Vec<u8>>,
) {
    use std::io::Write;
    // perf passes on what a buffer holds, wherever records end, so cut them in the middle.
    for piece in plain.chunks(1000) {
        encoder.write_all(piece).unwrap();
        encoder.flush().unwrap();
        let packed = std::mem::take(encoder.get_mut());
        out.push(if second {
            let padding = packed.len().next_multiple_of(8) - packed.len();
            record(83, &[&(packed.len() as u64).to_le_bytes()[..], &packed, &[0; 8][..padding]].concat())
        } else {
            record(81, &packed)
        });
    }
    plain.clear();
}
