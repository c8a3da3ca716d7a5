//! Reading a trace batch by batch.

use super::body::Batch;
use super::frame::{Frame, Frames};
use super::layout::Layout;
use super::rows::Rows;
use super::schema::Col;
use crate::open::{ReadReport, Source};
use arrow_ipc::MessageHeader;
use schedlab_base::{Error, Meta, Result, Sink};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// An opened trace file. Memory stays at some batches' size, however long the file and whatever it claims.
pub struct Reader {
    frames: Frames,
    layout: Layout,
    rows: Rows,
    path: Option<PathBuf>,
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
        let path = path.as_ref();
        let cannot = |e: std::io::Error| Error::input(format!("cannot be opened: {e}")).file(path);
        let file = File::open(path).map_err(cannot)?;
        if file.metadata().map_err(cannot)?.is_dir() {
            return Err(Error::input("is a directory").mend("name a trace file").file(path));
        }
        let mut reader = Self::new(BufReader::with_capacity(1 << 18, file)).map_err(|e| e.file(path))?;
        reader.path = Some(path.to_path_buf());
        Ok(reader)
    }

    /// A reader of any input; the head is read at once.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn new(mut input: impl Read + 'static) -> Result<Self> {
        let mut magic = Vec::with_capacity(8);
        (&mut input).take(8).read_to_end(&mut magic).map_err(|e| Error::system("cannot read", &e))?;
        check_magic(&magic)?;
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
        Ok(Self { frames, layout, rows: Rows::new(), path: None, ended: false })
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
        let done = self.messages(sink, &mut report);
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
                Frame::End => self.ended = true,
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
        for col in [Col::Event, Col::State] {
            if self.layout.places[col as usize].and_then(|place| place.dictionary) == Some(dictionary.id()) {
                let batch = Batch::new(batch, frames.body(), 3).map_err(damaged)?;
                rows.define(col, &batch, dictionary.isDelta()).map_err(damaged)?;
            }
        }
        Ok(())
    }
}

impl Source for Reader {
    fn meta(&self) -> &Meta {
        Reader::meta(self)
    }

    fn run(&mut self, sink: &mut dyn Sink) -> Result<ReadReport> {
        Reader::run(self, sink)
    }
}

/// Tells an empty file and the formats that are easily mistaken for a trace.
fn check_magic(magic: &[u8]) -> Result<()> {
    let (what, mend) = match magic {
        [] => ("the file is empty", "a recording that was killed at once leaves nothing"),
        [0xff, 0xff, 0xff, 0xff, ..] => return Ok(()),
        // A few bytes of a trace are a trace that was cut; the frames tell.
        [0xff, ..] if magic.iter().all(|&byte| byte == 0xff) => return Ok(()),
        m if m.starts_with(b"ARROW1") => {
            ("an Arrow IPC file, not a stream", "write it as a stream (pyarrow.ipc.new_stream)")
        }
        m if m.starts_with(b"PERFILE2") => ("a perf.data file, not a trace of schedlab's", "use `schedlab import`"),
        m if m.starts_with(b"PAR1") => ("a Parquet file, not a trace", "give the Arrow stream that it was made from"),
        _ => (
            "no trace: it does not begin as an Arrow stream",
            "give a file that `schedlab record`, `sim` or `import` wrote",
        ),
    };
    Err(Error::input(what).mend(mend))
}
