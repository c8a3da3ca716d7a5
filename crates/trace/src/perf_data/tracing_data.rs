//! The formats of the tracepoints, embedded in the file or in a folder laid out like tracefs.

use super::cursor::Cursor;
use crate::format::{Decoder, Format};
use schedlab_base::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// The longest format of an event. Real ones have some 3 KB.
const FORMAT_MAX: u64 = 1 << 20;

/// Names of tracepoints by their ids.
pub(super) type Names = BTreeMap<u64, String>;

/// The tracepoints of a kernel.
#[derive(Default)]
pub(super) struct Formats {
    /// The formats of scheduling events, and maybe of others.
    pub(super) scheduling: Vec<Format>,
    /// The names of the tracepoints that are not decoded, by their ids.
    pub(super) others: Names,
}

/// The formats of scheduling events in a `HEADER_TRACING_DATA`.
pub(super) fn formats(data: &[u8]) -> Result<Formats> {
    let short = || Error::input("its formats of events (HEADER_TRACING_DATA) are damaged or incomplete");
    let mut from = Cursor::new(data);
    if from.take(MAGIC.len() as u64).ok_or_else(short)? != MAGIC {
        return Err(short());
    }
    from.c_string().ok_or_else(short)?; // the version: 0.5 or 0.6, alike up to the formats
    let big_endian = from.take(1).ok_or_else(short)?[0] != 0;
    if big_endian {
        return Err(Error::input("its events come from a big-endian machine, which is not read"));
    }
    let (texts, others) = scheduling(&mut from).ok_or_else(short)?;
    Ok(Formats { scheduling: texts.into_iter().map(parse).collect::<Result<_>>()?, others })
}

/// The texts of the scheduling events' formats, and the names of the other events.
fn scheduling<'a>(from: &mut Cursor<'a>) -> Option<(Vec<&'a [u8]>, Names)> {
    from.take(1 + 4)?; // size of a long, size of a page
    for name in [&b"header_page"[..], b"header_event"] {
        (from.c_string()? == name).then_some(())?;
        sized(from)?;
    }
    for _ in 0..from.u32()? {
        sized(from)?; // formats of ftrace's own events
    }
    let (mut texts, mut others) = (Vec::new(), BTreeMap::new());
    for _ in 0..from.u32()? {
        let system = std::str::from_utf8(from.c_string()?).unwrap_or_default();
        for _ in 0..from.u32()? {
            let text = sized(from)?;
            if is_wanted(system, text) {
                texts.push(text);
            } else {
                others.extend(id_and_name(text));
            }
        }
    }
    Some((texts, others))
}

/// A 64-bit size and that many bytes.
fn sized<'a>(from: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let size = from.u64()?;
    from.take(size)
}

/// Whether the text is the format of an event that is decoded. Others are not worth parsing.
fn is_wanted(system: &str, text: &[u8]) -> bool {
    let line = text.split(|b| *b == b'\n').next().unwrap_or_default();
    let name = line.strip_prefix(b"name:").unwrap_or_default();
    std::str::from_utf8(name).is_ok_and(|name| Decoder::wants(system, name.trim()))
}

/// The id and the name that a format begins with.
fn id_and_name(text: &[u8]) -> Option<(u64, String)> {
    let mut lines = text.split(|b| *b == b'\n').map(|line| std::str::from_utf8(line).unwrap_or_default());
    let name = lines.next()?.strip_prefix("name:")?.trim();
    let id = lines.next()?.strip_prefix("ID:")?.trim().parse().ok()?;
    Some((id, name.to_owned()))
}

fn parse(text: &[u8]) -> Result<Format> {
    if text.len() as u64 > FORMAT_MAX {
        return Err(Error::input("an event's format is longer than 1 MiB"));
    }
    Format::parse(&String::from_utf8_lossy(text))
}

/// The formats of all events under `sched/` in a folder such as `/sys/kernel/tracing/events`, of the interrupts, and of
/// signals.
pub(super) fn formats_in(folder: &Path) -> Result<Formats> {
    let group = folder.join("sched");
    let listing = std::fs::read_dir(&group)
        .map_err(|e| Error::input(format!("no formats of events can be read here: {e}")).file(&group))?;
    let mut formats = Vec::new();
    let others = beside().map(|(system, name)| folder.join(system).join(name));
    let paths = listing.flatten().map(|entry| entry.path()).chain(others).map(|event| event.join("format"));
    for path in paths.filter(|path| path.is_file()) {
        let text = std::fs::read(&path).map_err(|e| Error::input(format!("cannot be read: {e}")).file(&path))?;
        formats.push(parse(&text).map_err(|e| e.file(&path))?);
    }
    formats.sort_by_key(|f| f.id);
    let wants = |name: &str| Decoder::EVENTS.contains(&name) || beside().any(|(_, own)| own == name);
    let others = formats.iter().filter(|f| !wants(&f.name));
    Ok(Formats { others: others.map(|f| (u64::from(f.id), f.name.clone())).collect(), scheduling: formats })
}

/// What is decoded beside the scheduler's events.
fn beside() -> impl Iterator<Item = (&'static str, &'static str)> {
    Decoder::INTERRUPTS.into_iter().chain(Decoder::SIGNALS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: sched_process_exec\nID: 9\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";

    fn data() -> Vec<u8> {
        let sized = |text: &str| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
        let mut data = [MAGIC, b"0.6\0\0\x08\0\x10\0\0header_page\0"].concat();
        data.extend(sized("page"));
        data.extend(b"header_event\0");
        data.extend(sized(""));
        data.extend([1, 0, 0, 0]);
        data.extend(sized("name: function\n"));
        data.extend([2, 0, 0, 0]);
        data.extend(b"irq\0\x01\0\0\0");
        data.extend(sized("name: sched_switch\nbut of another system"));
        data.extend(b"sched\0\x02\0\0\0");
        data.extend(sized("name: sched_stat_runtime\nID: 8\nnot of interest"));
        data.extend(sized(TEXT));
        data
    }

    #[test]
    fn the_scheduling_events_are_found() {
        let found = formats(&data()).unwrap();
        assert_eq!(found.others, BTreeMap::from([(8, "sched_stat_runtime".to_owned())]));
        let found = found.scheduling;
        assert_eq!(found.iter().map(|f| (f.name.as_str(), f.id)).collect::<Vec<_>>(), [("sched_process_exec", 9)]);
    }

    #[test]
    fn cut_data_and_absurd_sizes_do_no_harm() {
        let data = data();
        for end in 0..data.len() {
            assert!(formats(&data[..end]).is_err(), "cut at {end}");
        }
        for at in 0..data.len() {
            let mut wild = data.clone();
            wild[at] = 0xff;
            let _ = formats(&wild);
        }
    }
}
