//! The frames of an Arrow IPC stream. Messages are read one by one, and none may be larger than the format allows.

use crate::source::Cut;
use arrow_ipc::{Message, MetadataVersion, root_as_message};
use schedlab_base::{Error, Result};
use std::io::{ErrorKind, Read};

/// The largest message head. The schema with the metadata of a machine of some thousand CPUs takes 1 MB.
const MAX_HEAD: usize = 16 << 20;

/// The largest message body, as stored.
const MAX_BODY: i64 = 256 << 20;

/// What came next in the stream.
pub(super) enum Frame {
    /// A message: its parts are [`Frames::message`] and [`Frames::body`].
    Message,
    /// The end marker.
    End,
    /// The file ends early.
    Cut(Cut),
}

/// Reads messages. The buffers are reused for each message.
pub(super) struct Frames {
    input: Box<dyn Read + Send>,
    offset: u64,
    start: u64,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Frames {
    pub(super) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input, offset: 0, start: 0, head: Vec::new(), body: Vec::new() }
    }

    /// The current message's head.
    pub(super) fn message(&self) -> Result<Message<'_>> {
        root_as_message(&self.head).map_err(|e| {
            // The lines that follow list the parser's own steps.
            let text = e.to_string();
            self.damaged(&format!("its head is invalid ({})", text.lines().next().unwrap_or_default().trim_end()))
        })
    }

    /// The current message's body.
    pub(super) fn body(&self) -> &[u8] {
        &self.body
    }

    /// An error in the current message.
    pub(super) fn damaged(&self, what: &str) -> Error {
        Error::input(format!("the message at byte {} is damaged: {what}", self.start))
    }

    /// Reads the next message.
    pub(super) fn next(&mut self) -> Result<Frame> {
        self.start = self.offset;
        let mut word = [0u8; 4];
        match self.fill(&mut word)? {
            0 => {
                return Ok(self.cut(
                    "the end mark is missing: the writing was not finished, and what it had not flushed is lost",
                ));
            }
            1..4 => return Ok(self.cut_inside()),
            _ => {}
        }
        if word == [0; 4] {
            return self.zeros();
        }
        if word != [0xff; 4] {
            return Err(self.damaged("it does not begin as an Arrow message"));
        }
        if self.fill(&mut word)? < 4 {
            return Ok(self.cut_inside());
        }
        let head = u32::from_le_bytes(word) as usize;
        if head == 0 {
            return self.end();
        }
        if head > MAX_HEAD {
            return Err(self.damaged(&format!("its head claims {head} bytes, more than the limit of {MAX_HEAD}")));
        }
        let buffer = std::mem::take(&mut self.head);
        self.head = self.take(buffer, head as u64)?;
        if self.head.len() < head {
            return Ok(self.cut_inside());
        }
        let body = self.body_length()?;
        let buffer = std::mem::take(&mut self.body);
        self.body = self.take(buffer, body)?;
        Ok(if (self.body.len() as u64) < body { self.cut_inside() } else { Frame::Message })
    }

    fn body_length(&self) -> Result<u64> {
        let message = self.message()?;
        if message.version() != MetadataVersion::V5 {
            return Err(self.damaged("its Arrow metadata version is not 5"));
        }
        match message.bodyLength() {
            length @ 0..=MAX_BODY => Ok(length as u64),
            other => Err(self.damaged(&format!("its body claims {other} bytes; the limit is {MAX_BODY}"))),
        }
    }

    /// Reads up to `length` bytes. Memory grows only as bytes arrive.
    fn take(&mut self, mut buffer: Vec<u8>, length: u64) -> Result<Vec<u8>> {
        buffer.clear();
        (&mut self.input).take(length).read_to_end(&mut buffer).map_err(|e| Error::system("cannot read", &e))?;
        self.offset += buffer.len() as u64;
        Ok(buffer)
    }

    /// Fills the buffer as far as the input goes, and returns the number of bytes read.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.input.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::system("cannot read", &e)),
            }
        }
        self.offset += filled as u64;
        Ok(filled)
    }

    /// Checks that nothing follows the end marker.
    fn end(&mut self) -> Result<Frame> {
        let mut byte = [0];
        if self.fill(&mut byte)? == 0 {
            return Ok(Frame::End);
        }
        Err(Error::input(format!("something follows the end mark at byte {}", self.start))
            .mend("two traces in one file? read them one by one"))
    }

    /// A file system leaves zeros in place of a message when the machine loses power.
    fn zeros(&mut self) -> Result<Frame> {
        let mut rest = vec![0; 1 << 16];
        let n = self.fill(&mut rest)?;
        if rest[..n].iter().any(|&byte| byte != 0) {
            return Err(self.damaged("it does not begin as an Arrow message"));
        }
        Ok(self.cut("zeros stand where the next batch should: what came after is lost"))
    }

    fn cut_inside(&self) -> Frame {
        self.cut("the file ends in the middle of a batch: that batch is lost")
    }

    fn cut(&self, what: &str) -> Frame {
        Frame::Cut(Cut { offset: self.start, what: what.to_owned() })
    }
}
