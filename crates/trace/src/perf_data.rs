//! Reads perf.data, as `perf sched record` writes it into a file or a pipe (`-o -`).
//!
//! Every field is found by the formats embedded in the file. The layout is described in the kernel's
//! tools/perf/Documentation/perf.data-file-format.txt and include/uapi/linux/perf_event.h.
//!
//! A file that perf was killed over has no length in its header and lacks what comes last in a file,
//! the formats among it; its records are read all the same if the formats can be had elsewhere
//! ([`Options::formats`]).

mod attr;
mod blocks;
mod coverage;
mod cursor;
mod features;
mod header;
mod inflate;
mod output;
mod prelude;
mod samples;
mod session;
mod stream;
mod topology;
mod tracing_data;
mod window;

use crate::input::{Bytes, Input};
use crate::source::{Cut, FileFormat, Findings, Options, Progress, ReadReport, Source};
use cursor::u64_at;
use header::{FILE_SIZE, Head, PIPE_SIZE, is_perf_data};
use inflate::Inflate;
use output::Output;
use prelude::Prelude;
use schedlab_base::{Error, Meta, Result, Sink};
use session::{Session, kind};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use stream::{Next, Stream};
use window::Due;

/// Progress is told every so many bytes.
const PROGRESS_EVERY: u64 = 4 << 20;

/// The format's row in the table of formats.
pub(crate) static FORMAT: FileFormat = FileFormat {
    name: "perf.data",
    written_by: "perf sched record, also -z and -o -",
    own: false,
    begins: is_perf_data,
    open: |input, options| Ok(Box::new(PerfData::read(input, options)?)),
};

/// An opened perf.data.
pub struct PerfData {
    path: PathBuf,
    stream: Stream,
    inflate: Option<Inflate>,
    session: Session,
    meta: Meta,
    total: u64,
    /// perf never wrote the file's length.
    unfinished: bool,
    foreign_formats: Option<PathBuf>,
    progress: Option<Progress>,
    done: bool,
}

impl PerfData {
    /// Opens a file, or a named pipe.
    ///
    /// # Errors
    /// When it cannot be read, is no perf.data of a kind that is read, or holds no scheduling events.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::read(Input::open(path)?, &Options::default())
    }

    /// Reads a file, or what `perf sched record -o -` writes into a pipe.
    ///
    /// # Errors
    /// As [`PerfData::open`].
    pub fn read(input: Input, options: &Options) -> Result<Self> {
        let (name, bytes) = input.into_parts();
        let source = match bytes {
            Bytes::File(file, length) => Self::of_file(file, length, &name, options),
            Bytes::Pipe(pipe) => Self::of_pipe(pipe, &name, options),
        };
        source.map_err(|e| e.file(&name))
    }

    fn of_pipe(mut pipe: Box<dyn Read + Send>, name: &Path, options: &Options) -> Result<Self> {
        let mut head = Vec::new();
        let read = pipe.by_ref().take(PIPE_SIZE as u64).read_to_end(&mut head);
        read.map_err(|e| Error::input(format!("cannot be read: {e}")))?;
        Head::check_pipe(&head)?;
        Self::of_stream(pipe, 0, name, options)
    }

    /// What follows the head of the pipe's format.
    fn of_stream(input: Box<dyn Read + Send>, total: u64, path: &Path, options: &Options) -> Result<Self> {
        let mut stream = Stream::new(input, PIPE_SIZE as u64, None);
        let prelude = Prelude::of_pipe(&mut stream)?;
        Self::new(path, stream, prelude, total, false, options)
    }

    fn of_file(mut file: File, length: u64, path: &Path, options: &Options) -> Result<Self> {
        let mut bytes = Vec::new();
        let seek = |file: &mut File, to: u64| {
            file.seek(SeekFrom::Start(to)).map_err(|e| Error::system("reading the perf.data", &e))
        };
        (&mut file)
            .take(FILE_SIZE as u64)
            .read_to_end(&mut bytes)
            .map_err(|e| Error::system("reading the perf.data", &e))?;
        let head = Head::read(&bytes)?;
        let Head::File { data, .. } = &head else {
            seek(&mut file, PIPE_SIZE as u64)?;
            return Self::of_stream(Box::new(file), length, path, options);
        };
        let prelude = Prelude::of_file(&mut file, length, &head)?;
        seek(&mut file, data.offset)?;
        let unfinished = data.size == 0;
        let size = if unfinished { length.saturating_sub(data.offset) } else { data.size };
        let stream = Stream::of_file(file, data.offset, Some(size), prelude.cpus());
        Self::new(path, stream, prelude, length, unfinished, options)
    }

    fn new(
        path: &Path,
        stream: Stream,
        prelude: Prelude,
        total: u64,
        unfinished: bool,
        options: &Options,
    ) -> Result<Self> {
        let meta = prelude.meta();
        let (attrs, formats, foreign_formats) = prelude.with_formats(options.formats.as_deref())?;
        let session = Session::new(attrs, formats)?;
        Ok(Self {
            path: path.to_path_buf(),
            stream,
            inflate: None,
            session,
            meta,
            total,
            unfinished,
            foreign_formats,
            progress: None,
            done: false,
        })
    }

    /// Reads all records; says where and why they ended before the end.
    fn records(&mut self, out: &mut Output) -> Result<Option<Cut>> {
        let mut next_progress = PROGRESS_EVERY;
        loop {
            let (bytes, place) = self.stream.rest();
            let (size, held) = self.session.samples(bytes, place, false);
            self.stream.advance(size);
            self.stream.blocks.hold(held);
            if self.session.is_full() || self.stream.blocks.are_many() {
                self.pass_on(Due::Half, out)?;
                continue;
            }
            let offset = self.stream.offset();
            let cut = |what: &str| Some(Cut { offset, what: what.to_owned() });
            let (record, place) = match self.stream.next()? {
                Next::Record(record, place) => (record, place),
                Next::Cut(what) => return Ok(cut(what)),
                Next::End if self.unfinished => {
                    return Ok(cut("perf was killed before it finished the file: what it still held is missing"));
                }
                Next::End => return Ok(None),
            };
            // Some of perf's own records are followed by data that their size does not count.
            let mut behind = 0;
            match record.kind {
                kind::AUXTRACE => behind = u64_at(record.body, 0).unwrap_or(0),
                kind::TRACING_DATA => behind = prelude::tracing_data_size(record.body),
                kind::FINISHED_ROUND => self.pass_on(Due::Round, out)?,
                kind::COMPRESSED | kind::COMPRESSED2 => {
                    let packed = inflate::packed(record)?;
                    match &mut self.inflate {
                        Some(inflate) => inflate.feed(packed),
                        none => none.insert(Inflate::new()?).feed(packed),
                    }
                    self.compressed(out)?;
                }
                _ => {
                    if self.session.record(record, place, false, out) {
                        self.stream.blocks.hold(1);
                    }
                    if self.session.is_full() {
                        self.pass_on(Due::Half, out)?;
                    }
                }
            }
            if behind > 0 && !self.stream.skip(behind)? {
                return Ok(cut("the file ends before its last record does"));
            }
            if offset >= next_progress {
                next_progress = offset + PROGRESS_EVERY;
                if let Some(progress) = &mut self.progress {
                    progress(self.stream.offset(), self.total);
                }
            }
        }
    }

    /// Takes the records that were compressed in one.
    fn compressed(&mut self, out: &mut Output) -> Result<()> {
        while let Some(inflate) = &mut self.inflate {
            let (bytes, place) = inflate.rest();
            let (size, held) = self.session.samples(bytes, place, true);
            inflate.advance(size);
            inflate.blocks.hold(held);
            if self.session.is_full() || inflate.blocks.are_many() || self.stream.blocks.are_many() {
                self.pass_on(Due::Half, out)?;
                continue;
            }
            let Some((record, place)) = inflate.next()? else { break };
            if self.session.record(record, place, true, out) {
                inflate.blocks.hold(1);
            }
            if self.session.is_full() {
                self.pass_on(Due::Half, out)?;
            }
        }
        Ok(())
    }

    fn pass_on(&mut self, due: Due, out: &mut Output) -> Result<()> {
        let packed = self.inflate.as_mut().map(|inflate| &mut inflate.blocks);
        self.session.pass_on(due, &mut self.stream.blocks, packed, out)
    }
}

impl Source for PerfData {
    fn format(&self) -> &'static FileFormat {
        &FORMAT
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn run(&mut self, sink: &mut dyn Sink) -> Result<ReadReport> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(ReadReport::default());
        }
        let mut out = self.session.output(sink);
        let cut = self.records(&mut out).map_err(|e| e.file(&self.path))?;
        let packed = self.inflate.as_mut().map(|inflate| &mut inflate.blocks);
        self.session.finish(&mut self.stream.blocks, packed, &mut out).map_err(|e| e.file(&self.path))?;
        let (events, names) = (out.events, out.names);
        if let Some(progress) = &mut self.progress {
            progress(self.total, self.total);
        }
        let found = self.findings();
        Ok(ReadReport { events, names, skipped: found.other + found.malformed, kinds: self.session.passed_over(), cut })
    }
    fn on_progress(&mut self, progress: Progress) {
        self.progress = Some(progress);
    }

    fn findings(&self) -> Findings {
        self.session.findings()
    }

    fn foreign_formats(&self) -> Option<&Path> {
        self.foreign_formats.as_deref()
    }
}
