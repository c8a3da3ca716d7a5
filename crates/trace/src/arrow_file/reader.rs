//! Reading a trace batch by batch.

use super::body::Batch;
use super::frame::{Frame, Frames};
use super::layout::Layout;
use super::rows::{DICTIONARIES, Rows};
use crate::beside;
use crate::input::{Bytes, Input};
use crate::source::{FileFormat, Options, ReadReport, Source, mistaken};
use arrow_ipc::MessageHeader;
use schedlab_base::{Error, Meta, Result, Sink};
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What a finished file ends with: the continuation mark, and a message of no bytes.
const END_MARK: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// An opened trace file. Memory stays at some batches' size, however long the file and whatever it claims.
pub struct Reader {
    frames: Frames,
    layout: Layout,
    rows: Rows,
    path: Option<PathBuf>,
    /// Whether its bytes are all there, so that reading it never waits.
    all_there: bool,
    ended: bool,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a file and reads its head.
    ///
    /// # Errors
    /// When it cannot be opened, is no trace, or ends before its head does.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::of_input(Input::open(path)?)
    }

    fn of_input(input: Input) -> Result<Self> {
        let (path, bytes) = input.into_parts();
        let (bytes, all_there, open_end): (Box<dyn Read + Send>, bool, bool) = match bytes {
            Bytes::File(file, length) => {
                let mut end = [0; END_MARK.len()];
                let read = length.checked_sub(end.len() as u64).map(|at| file.read_exact_at(&mut end, at));
                let open_end = !matches!(read, Some(Ok(()))) || end != END_MARK;
                (Box::new(file), true, open_end)
            }
            Bytes::Pipe(pipe) => (pipe, false, true),
        };
        let mut reader = Self::new(BufReader::with_capacity(1 << 18, bytes)).map_err(|e| e.file(&path))?;
        (reader.path, reader.all_there) = (Some(path), all_there);
        reader.layout.meta.open_end = open_end;
        Ok(reader)
    }

    /// A reader of any input; the head is read at once.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(mut input: impl Read + Send + 'static) -> Result<Self> {
        let mut magic = Vec::with_capacity(8);
        (&mut input).take(8).read_to_end(&mut magic).map_err(|e| Error::system("cannot read", &e))?;
        if !begins(&magic) {
            return Err(mistaken(&magic).unwrap_or_else(|| {
                Error::input("no trace: it does not begin as an Arrow stream")
                    .mend("give a file that `schedlab record`, `sim` or `import` wrote")
            }));
        }
        let mut frames = Frames::new(Box::new(std::io::Cursor::new(magic).chain(input)));
        match frames.next()? {
            Frame::Message => {}
            Frame::End => return Err(Error::input("an Arrow stream without a schema").mend("give a trace file")),
            Frame::Cut(_) => {
                return Err(Error::input("the file ends before its head does: nothing can be read from it"));
            }
        }
        let message = frames.message()?;
        let schema = message.header_as_schema().ok_or_else(|| frames.damaged("it should be the schema"))?;
        let layout = Layout::read(schema)?;
        Ok(Self { frames, layout, rows: Rows::new(), path: None, all_there: false, ended: false })
    }

    /// What is known of the trace as a whole.
    #[must_use]
    pub fn meta(&self) -> &Meta {
        &self.layout.meta
    }

    /// Reads to the end of the file, handing names and events to the sink.
    ///
    /// # Errors
    /// When the file is damaged; what came before the damage has reached the sink. A file that was cut
    /// off is no error: the report tells.
    pub fn run(&mut self, sink: &mut dyn Sink) -> Result<ReadReport> {
        let mut report = ReadReport::default();
        let done = if self.all_there {
            beside(sink, |sink| self.messages(sink, &mut report))
        } else {
            // What comes is handed on at once.
            self.messages(sink, &mut report)
        };
        match (done, &self.path) {
            (Ok(()), _) => Ok(report),
            (Err(e), Some(path)) => Err(e.file(path)),
            (Err(e), None) => Err(e),
        }
    }

    fn messages(&mut self, sink: &mut dyn Sink, report: &mut ReadReport) -> Result<()> {
        while !self.ended {
            match self.frames.next()? {
                Frame::Message => self.message(sink, report)?,
                Frame::End => {
                    if let Some((_, end)) = self.layout.meta.span.filter(|_| self.layout.meta.open_end) {
                        sink.lasts(end);
                    }
                    self.ended = true;
                }
                Frame::Cut(cut) => {
                    report.cut = Some(cut);
                    self.ended = true;
                }
            }
        }
        Ok(())
    }

    fn message(&mut self, sink: &mut dyn Sink, report: &mut ReadReport) -> Result<()> {
        let (frames, rows) = (&self.frames, &mut self.rows);
        let message = frames.message()?;
        let damaged = |what: String| frames.damaged(&what);
        if message.header_type() == MessageHeader::RecordBatch {
            let batch = message.header_as_record_batch().ok_or_else(|| frames.damaged("its head is empty"))?;
            let batch = Batch::new(batch, frames.body(), self.layout.buffers).map_err(damaged)?;
            return rows.decode(&batch, &self.layout, sink, report).map_err(damaged);
        }
        let Some(dictionary) = message.header_as_dictionary_batch() else {
            return Err(frames.damaged("it is neither rows nor a dictionary"));
        };
        let batch = dictionary.data().ok_or_else(|| frames.damaged("its dictionary is empty"))?;
        for col in DICTIONARIES {
            if self.layout.places[col as usize].and_then(|place| place.dictionary) == Some(dictionary.id()) {
                let batch = Batch::new(batch, frames.body(), 3).map_err(damaged)?;
                rows.define(col, &batch, dictionary.isDelta()).map_err(damaged)?;
            }
        }
        Ok(())
    }
}

impl Source for Reader {
    fn format(&self) -> &'static FileFormat {
        &FORMAT
    }

    fn meta(&self) -> &Meta {
        Reader::meta(self)
    }

    fn run(&mut self, sink: &mut dyn Sink) -> Result<ReadReport> {
        Reader::run(self, sink)
    }
}

/// The format's row in the table of formats.
pub(crate) static FORMAT: FileFormat = FileFormat {
    name: "schedlab trace",
    written_by: "schedlab record, sim, import",
    own: true,
    begins,
    open: |input, _: &Options| Ok(Box::new(Reader::of_input(input)?)),
};

/// An Arrow stream begins with 0xffffffff. A few bytes of that are a trace that was cut, as its frames say.
fn begins(head: &[u8]) -> bool {
    let first = &head[..head.len().min(4)];
    !first.is_empty() && first.iter().all(|byte| *byte == 0xff)
}
