//! What a perf.data holds before its records: its events, their formats, and the origin of the trace.

use super::attr::Attr;
use super::coverage::Signs;
use super::cursor::{Cursor, u32_at, u64_at};
use super::features::{self, Features};
use super::header::{Head, Section};
use super::session::kind;
use super::stream::{Next, Stream};
use super::tracing_data::{self, Formats};
use schedlab_base::{Error, Meta, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Where this kernel's formats are, in case a file without formats was recorded on this kernel.
const TRACEFS_EVENTS: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];
/// The longest list of events, and the largest number of ids (one for each event and CPU).
const ATTRS_MAX: u64 = 1 << 12;
const IDS_MAX: u64 = 1 << 20;
/// The longest feature. The formats are the longest in practice and take some 100 KB.
const FEATURE_MAX: u64 = 64 << 20;
/// The longest attr (`perf_event_attr` began with 64 bytes and has 136 since Linux 6.2).
const ATTR_SIZE_MAX: u64 = 4096;
/// In a file, the place of an attr's ids follows the attr.
const IDS_SECTION: u64 = 16;

/// What is known before the records begin.
#[derive(Default)]
pub(super) struct Prelude {
    attrs: Vec<Attr>,
    formats: Option<Formats>,
    features: Features,
}

impl Prelude {
    /// Reads the sections of a file.
    pub(super) fn of_file(file: &mut File, length: u64, head: &Head) -> Result<Self> {
        let &Head::File { attr_size, attrs, data, features } = head else { return Ok(Self::default()) };
        let mut prelude = Self::default();
        let mut sections = Sections { file, length };
        prelude.read_attrs(&mut sections, attr_size, attrs)?;
        if data.size > 0 {
            let behind = data.offset.checked_add(data.size);
            let behind =
                behind.ok_or_else(|| Error::input("the perf.data is damaged: its data ends beyond any file"))?;
            prelude.read_features(&mut sections, behind, features)?;
        }
        Ok(prelude)
    }

    fn read_attrs(&mut self, sections: &mut Sections, attr_size: u64, attrs: Section) -> Result<()> {
        let damaged = || Error::input("the perf.data is damaged: its list of events cannot be read");
        let size = attr_size.checked_sub(IDS_SECTION).filter(|size| (64..=ATTR_SIZE_MAX).contains(size));
        let size = size.ok_or_else(damaged)?;
        if attrs.size / attr_size > ATTRS_MAX {
            return Err(damaged());
        }
        let list = sections.read(attrs)?.ok_or_else(damaged)?;
        let mut ids_left = IDS_MAX;
        for entry in list.chunks_exact(attr_size as usize) {
            let (attr, ids) = entry.split_at(size as usize);
            let place = Section::read(&mut Cursor::new(ids)).ok_or_else(damaged)?;
            ids_left = ids_left.checked_sub(place.size / 8).ok_or_else(damaged)?;
            let ids = sections.read(place)?.ok_or_else(damaged)?;
            let ids = ids.chunks_exact(8).filter_map(|id| u64_at(id, 0)).collect();
            self.attrs.push(Attr::read(attr, ids).ok_or_else(damaged)?);
        }
        Ok(())
    }

    /// The places of the features follow the data, in the order of their bits. A file that was cut has lost them.
    fn read_features(&mut self, sections: &mut Sections, behind: u64, bits: [u64; 4]) -> Result<()> {
        let set = (0..256u64).filter(|bit| bits[(bit / 64) as usize] & (1 << (bit % 64)) != 0);
        for (index, feature) in set.enumerate() {
            let place = behind.saturating_add(index as u64 * 16);
            let Some(place) = sections.read(Section { offset: place, size: 16 })? else { return Ok(()) };
            let Some(section) = Section::read(&mut Cursor::new(&place)) else { return Ok(()) };
            if let Some(data) = sections.read(section)? {
                self.feature(feature, &data)?;
            }
        }
        Ok(())
    }

    fn feature(&mut self, feature: u64, data: &[u8]) -> Result<()> {
        match feature {
            features::id::TRACING_DATA => self.formats = Some(tracing_data::formats(data)?),
            features::id::DIR_FORMAT => {
                return Err(Error::input("the perf.data is one of a folder of files, as perf record --threads writes")
                    .mend("record without --threads"));
            }
            _ => self.features.take(feature, data),
        }
        Ok(())
    }

    /// Reads perf's own records at the start of a pipe, up to the first record of the kernel.
    pub(super) fn of_pipe(stream: &mut Stream) -> Result<Self> {
        let mut prelude = Self::default();
        let own = |kind| {
            kind >= kind::USER_START
                && ![kind::FINISHED_ROUND, kind::AUXTRACE, kind::COMPRESSED, kind::COMPRESSED2].contains(&kind)
        };
        while stream.peek()?.is_some_and(own) {
            let Next::Record(record, _) = stream.next()? else { break };
            match record.kind {
                kind::HEADER_ATTR => {
                    let attr = Attr::read_record(record.body);
                    let attr =
                        attr.ok_or_else(|| Error::input("the perf.data is damaged: an event's record is too short"))?;
                    prelude.attrs.push(attr);
                    if prelude.attrs.len() as u64 > ATTRS_MAX {
                        return Err(Error::input("the perf.data is damaged: the number of events is impossible"));
                    }
                }
                kind::FEATURE => {
                    if let Some(feature) = u64_at(record.body, 0) {
                        prelude.feature(feature, &record.body[8..])?;
                    }
                }
                kind::TRACING_DATA => {
                    let size = tracing_data_size(record.body);
                    if size > FEATURE_MAX {
                        return Err(Error::input("the perf.data is damaged: its formats of events are too long"));
                    }
                    prelude.formats = Some(tracing_data::formats(&stream.take(size)?)?);
                }
                _ => {}
            }
        }
        Ok(prelude)
    }

    /// How many CPUs it was recorded on, as far as is known: each has its part of a round.
    pub(super) fn cpus(&self) -> usize {
        self.attrs.iter().map(|attr| attr.ids.len()).max().unwrap_or(0)
    }

    /// The trace's metadata.
    pub(super) fn meta(&self) -> Meta {
        let (words, online) = (self.features.command_line(), self.features.online());
        let partial = Signs { attrs: &self.attrs, words, online }.partial();
        Meta { partial, ..self.features.meta(self.attrs.iter().find_map(|a| a.clockid)) }
    }

    /// The events and their formats. If the file has no formats, those in `folder` are used, or this kernel's if it has
    /// every event of the file under the same id. The folder is returned if it was used.
    pub(super) fn with_formats(self, folder: Option<&Path>) -> Result<(Vec<Attr>, Formats, Option<PathBuf>)> {
        if !self.attrs.iter().any(|a| a.tracepoint().is_some()) {
            return Err(Error::input("the perf.data holds no tracepoints, and so no scheduling events")
                .mend("record them: perf sched record -- COMMAND"));
        }
        if let Some(formats) = self.formats {
            return Ok((self.attrs, formats, None));
        }
        if let Some(folder) = folder {
            return Ok((self.attrs, tracing_data::formats_in(folder)?, Some(folder.to_path_buf())));
        }
        for folder in TRACEFS_EVENTS.map(Path::new) {
            let formats = tracing_data::formats_in(folder).unwrap_or_default();
            let known = |id: u64| formats.scheduling.iter().any(|f| u64::from(f.id) == id);
            if self.attrs.iter().filter_map(Attr::tracepoint).all(known) {
                return Ok((self.attrs, formats, Some(folder.to_path_buf())));
            }
        }
        Err(Error::input("the perf.data has lost the formats of its events, which lie at the end of a whole file")
            .mend("give those of its kernel with --formats: a copy of its /sys/kernel/tracing/events"))
    }
}

/// The number of bytes that follow a `PERF_RECORD_HEADER_TRACING_DATA`.
pub(super) fn tracing_data_size(body: &[u8]) -> u64 {
    u64::from(u32_at(body, 0).unwrap_or(0))
}

/// Reads sections that lie within the file and are no longer than any feature.
struct Sections<'a> {
    file: &'a mut File,
    length: u64,
}

impl Sections<'_> {
    fn read(&mut self, section: Section) -> Result<Option<Vec<u8>>> {
        let inside = section.offset.checked_add(section.size).is_some_and(|end| end <= self.length);
        if !inside || section.size > FEATURE_MAX {
            return Ok(None);
        }
        let failed = |e: std::io::Error| Error::system("reading the perf.data", &e);
        self.file.seek(SeekFrom::Start(section.offset)).map_err(failed)?;
        let mut bytes = Vec::with_capacity(section.size as usize);
        (&mut *self.file).take(section.size).read_to_end(&mut bytes).map_err(failed)?;
        Ok((bytes.len() as u64 == section.size).then_some(bytes))
    }
}
