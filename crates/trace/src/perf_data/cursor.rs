//! Checked reading of little-endian numbers and strings, front to back.

/// A position in a byte slice. A read past the end gives `None` and never panics.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next `size` bytes.
    pub(super) fn take(&mut self, size: u64) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(usize::try_from(size).ok()?)?;
        self.rest = rest;
        Some(head)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*head))
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u64::from_le_bytes(*head))
    }

    /// The bytes of a string that ends with a NUL.
    pub(super) fn c_string(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|b| *b == 0)?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(text)
    }

    /// A `perf_header_string`: its padded length, then the text, which ends at its first NUL.
    pub(super) fn header_string(&mut self) -> Option<String> {
        let length = self.u32()?;
        let bytes = self.take(u64::from(length))?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// A `perf_header_string_list`. Each string takes at least four bytes, so the list is bounded by the data.
    pub(super) fn header_strings(&mut self) -> Option<Vec<String>> {
        let count = self.u32()?;
        (0..count).map(|_| self.header_string()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

/// The number at this offset.
#[inline(always)]
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

/// The number at this offset.
#[inline(always)]
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}
