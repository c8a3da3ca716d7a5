//! Takes the pages out of the kernel's buffers. Full pages move by splice(); the last page is read.

use crate::sys;
use schedlab_base::{CpuId, Error, Result};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, RawFd};

/// The number of bytes that pass through the pipe at a time: small enough to stay in a cache, and large enough to keep
/// system calls rare.
const CHUNK: usize = 256 << 10;

/// The buffers of all CPUs, and the pipe that their pages pass through.
pub(crate) struct Drain {
    buffers: Vec<(CpuId, File)>,
    reader: PipeReader,
    writer: PipeWriter,
    chunk: Vec<u8>,
    page_bytes: usize,
}

impl Drain {
    /// Creates a drain for these buffers, whose pages have this size.
    pub(crate) fn new(buffers: Vec<(CpuId, File)>, page_bytes: usize) -> Result<Self> {
        let failed = |e: io::Error| Error::system("cannot make the recorder's pipe", &e);
        let (reader, writer) = io::pipe().map_err(failed)?;
        let granted = sys::set_pipe_size(writer.as_fd(), CHUNK).map_err(failed)?;
        let bytes = (granted / page_bytes).max(1) * page_bytes;
        Ok(Self { buffers, reader, writer, chunk: vec![0; bytes], page_bytes })
    }

    /// The number of buffers.
    pub(crate) fn len(&self) -> usize {
        self.buffers.len()
    }

    /// The CPU that the buffer at this index belongs to.
    pub(crate) fn cpu(&self, index: usize) -> CpuId {
        self.buffers[index].0
    }

    /// The descriptors that become readable as the buffers fill.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.buffers.iter().map(|(_, file)| file.as_raw_fd())
    }

    /// Takes at most `limit` bytes from one buffer and passes them on page by page: first the full pages, then the page
    /// that is being written. Returns true if it took everything that was there when it was called.
    pub(crate) fn drain(&mut self, index: usize, limit: usize, mut on_page: impl FnMut(&[u8])) -> Result<bool> {
        let (cpu, file) = &mut self.buffers[index];
        let failed = |e: io::Error| Error::system(format!("cannot read the trace buffer of CPU {cpu}"), &e);
        let mut taken = 0;
        while let Some(bytes) = sys::splice(file.as_fd(), self.writer.as_fd(), self.chunk.len()).map_err(failed)? {
            let chunk = &mut self.chunk[..bytes];
            self.reader.read_exact(chunk).map_err(failed)?;
            chunk.chunks(self.page_bytes).for_each(&mut on_page);
            taken += bytes;
            if taken >= limit {
                return Ok(false);
            }
        }
        self.read_page(index, on_page).map(|_| true)
    }

    /// Takes everything in one buffer. Call it only when nothing is written any more.
    pub(crate) fn drain_rest(&mut self, index: usize, mut on_page: impl FnMut(&[u8])) -> Result<()> {
        self.drain(index, usize::MAX, &mut on_page)?;
        while self.read_page(index, &mut on_page)? {}
        Ok(())
    }

    /// Takes the rest of one page by copying it. Returns false if there is none.
    fn read_page(&mut self, index: usize, mut on_page: impl FnMut(&[u8])) -> Result<bool> {
        let (cpu, file) = &mut self.buffers[index];
        let page = &mut self.chunk[..self.page_bytes];
        match file.read(page) {
            Ok(0) => Ok(false),
            Ok(bytes) => {
                on_page(&page[..bytes]);
                Ok(true)
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(false),
            Err(e) => Err(Error::system(format!("cannot read the trace buffer of CPU {cpu}"), &e)),
        }
    }
}
