//! Finds the buffers of a batch, checks them against the sizes they claim, and decompresses them.

use super::{MAX_NAME, MAX_ROWS};
use arrow_ipc::{BodyCompressionMethod, CompressionType, RecordBatch};
use zstd::bulk::Decompressor;

/// The most bytes of text in one column of a batch.
const MAX_TEXT: usize = 64 << 20;

/// A batch within its message. Errors are fragments that finish "the message is damaged: ...".
pub(super) struct Batch<'a> {
    batch: RecordBatch<'a>,
    body: &'a [u8],
    compressed: bool,
    /// The number of rows in the batch.
    pub(super) rows: usize,
}

impl<'a> Batch<'a> {
    /// Checks the batch's sizes against the limits; `buffers` is the number of buffers that the schema requires.
    pub(super) fn new(batch: RecordBatch<'a>, body: &'a [u8], buffers: usize) -> Result<Self, String> {
        let rows = usize::try_from(batch.length()).unwrap_or(usize::MAX);
        if rows > MAX_ROWS {
            return Err(format!("it claims {} rows; the limit is {MAX_ROWS}", batch.length()));
        }
        let found = batch.buffers().map_or(0, |b| b.len());
        if found != buffers {
            return Err(format!("it has {found} buffers where the schema asks for {buffers}"));
        }
        let compressed = match batch.compression() {
            None => false,
            Some(c) if c.codec() == CompressionType::ZSTD && c.method() == BodyCompressionMethod::BUFFER => true,
            Some(c) => return Err(format!("its compression {:?} is not read, only zstd or none", c.codec())),
        };
        Ok(Self { batch, body, compressed, rows })
    }

    /// The bytes of a buffer as stored.
    fn stored(&self, index: usize) -> Result<&'a [u8], String> {
        let buffers = self.batch.buffers().ok_or("it has no buffers")?;
        let buffer = if index < buffers.len() { buffers.get(index) } else { return Err("a buffer is missing".into()) };
        let start = usize::try_from(buffer.offset()).ok();
        let end =
            start.zip(usize::try_from(buffer.length()).ok()).and_then(|(start, length)| start.checked_add(length));
        start.zip(end).and_then(|(start, end)| self.body.get(start..end)).ok_or_else(|| {
            format!("buffer {index} (offset {}, {} bytes) lies outside its body", buffer.offset(), buffer.length())
        })
    }

    /// Puts a buffer's bytes into `out`: at least `least`, at most `most`.
    fn load(
        &self,
        index: usize,
        least: usize,
        most: usize,
        inflate: &mut Inflate,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        out.clear();
        let stored = self.stored(index)?;
        match stored.split_first_chunk::<8>() {
            Some((size, data)) if self.compressed => match i64::from_le_bytes(*size) {
                -1 => out.extend_from_slice(&data[..data.len().min(most)]),
                // Some writers pad buffers to 64 bytes.
                size if size < 0 || size as u64 > most as u64 + 64 => {
                    return Err(format!("buffer {index} claims {size} bytes; its rows need {most}"));
                }
                size => inflate.zstd(data, size as usize, out).map_err(|e| format!("buffer {index}: {e}"))?,
            },
            None if self.compressed && !stored.is_empty() => return Err(format!("buffer {index} lacks its size")),
            _ => out.extend_from_slice(&stored[..stored.len().min(most)]),
        }
        if out.len() < least {
            return Err(format!("buffer {index} has {} bytes where its rows need {least}", out.len()));
        }
        Ok(())
    }
}

/// A decompressor, reused from batch to batch.
pub(super) struct Inflate(Decompressor<'static>);

impl Inflate {
    pub(super) fn new() -> Self {
        Self(Decompressor::new().expect("zstd gives a context as long as there is memory"))
    }

    fn zstd(&mut self, data: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), String> {
        // A frame that holds more than the buffer has room for fails, whatever size it states. So does any frame that
        // does not have the claimed size. The bytes need not be zeroed first.
        out.clear();
        out.reserve_exact(size);
        let got = self.0.decompress_to_buffer(data, out).map_err(|e| e.to_string());
        match got? {
            n if n == size => Ok(()),
            n => Err(format!("{n} bytes came out where {size} were claimed")),
        }
    }
}

/// One column of a batch.
#[derive(Default)]
pub(super) struct Column {
    values: Vec<u8>,
    valid: Vec<u8>,
    text: Vec<u8>,
}

impl Column {
    /// Loads an integer column, or the indices of a dictionary column. If a nullable column has no value in any row,
    /// its values are not read.
    pub(super) fn load(
        &mut self,
        batch: &Batch<'_>,
        buffer: usize,
        (width, nullable): (usize, bool),
        inflate: &mut Inflate,
    ) -> Result<(), String> {
        self.load_validity(batch, buffer, inflate)?;
        if nullable && self.lacks_all() {
            return Ok(());
        }
        let size = batch.rows * width;
        batch.load(buffer + 1, size, size, inflate, &mut self.values)?;
        self.values.truncate(size);
        Ok(())
    }

    /// Fills in for a column that the file does not have: no row has a value.
    pub(super) fn lack(&mut self, rows: usize) {
        self.valid.clear();
        self.valid.resize(rows.div_ceil(8).max(1), 0);
    }

    /// Fills in for a column that nobody looks at: every row has a zero.
    pub(super) fn fill(&mut self, rows: usize, width: usize) {
        self.valid.clear();
        self.values.clear();
        self.values.resize(rows * width, 0);
    }

    /// Loads a text column.
    pub(super) fn load_text(&mut self, batch: &Batch<'_>, buffer: usize, inflate: &mut Inflate) -> Result<(), String> {
        self.load_validity(batch, buffer, inflate)?;
        if self.lacks_all() {
            return Ok(());
        }
        let size = (batch.rows + 1) * 4;
        // In a batch without rows the single offset may be absent.
        let least = if batch.rows == 0 { 0 } else { size };
        batch.load(buffer + 1, least, size, inflate, &mut self.values)?;
        // Each text is bounded by the longest name.
        batch.load(buffer + 2, 0, MAX_TEXT.min(batch.rows * MAX_NAME), inflate, &mut self.text)
    }

    /// The validity of 64 rows, a bit for each; none is set for rows beyond the batch's end, unless all rows are valid.
    pub(super) fn valid_word(&self, word: usize) -> u64 {
        if self.valid.is_empty() {
            return u64::MAX;
        }
        let bytes = self.valid.get(8 * word..).unwrap_or_default();
        match bytes.first_chunk::<8>() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        }
    }

    /// Whether no row has a value.
    pub(super) fn lacks_all(&self) -> bool {
        !self.valid.is_empty() && self.valid.iter().all(|byte| *byte == 0)
    }

    fn load_validity(&mut self, batch: &Batch<'_>, buffer: usize, inflate: &mut Inflate) -> Result<(), String> {
        let size = batch.rows.div_ceil(8);
        batch.load(buffer, 0, size, inflate, &mut self.valid)?;
        if !self.valid.is_empty() && self.valid.len() < size {
            return Err(format!("buffer {buffer} has {} bytes where its rows need {size}", self.valid.len()));
        }
        Ok(())
    }

    /// Whether the row has a value.
    #[inline]
    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.valid.is_empty() || self.valid.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1)
    }

    /// The values as arrays of `N` bytes, including those of rows without a value.
    #[inline]
    pub(super) fn values<const N: usize>(&self) -> &[[u8; N]] {
        self.values.as_chunks::<N>().0
    }

    /// The text of a row; `None` where it has none.
    pub(super) fn text(&self, row: usize) -> Result<Option<&str>, String> {
        if !self.is_valid(row) {
            return Ok(None);
        }
        let offset = |at: usize| self.values::<4>().get(at).map(|&bytes| i32::from_le_bytes(bytes) as usize);
        let range = offset(row).zip(offset(row + 1)).ok_or("a text lacks its offsets")?;
        let bytes = self.text.get(range.0..range.1).ok_or("a text lies outside its buffer")?;
        std::str::from_utf8(bytes).map(Some).map_err(|_| "a text is not UTF-8".to_owned())
    }
}
