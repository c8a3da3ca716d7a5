//! A file that is still being written.

use schedlab_base::{Error, Result};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

/// How often more is looked for.
const PAUSE: Duration = Duration::from_millis(50);

/// The last bytes of a complete Arrow stream.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Reads a file to its end and waits there for more, until what it has read ends as an Arrow stream does.
#[derive(Debug)]
pub struct Tail {
    file: File,
    last: [u8; 8],
}

impl Tail {
    /// Opens the file.
    ///
    /// # Errors
    /// When that fails.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| Error::input(format!("cannot be read: {e}")).file(path))?;
        Ok(Self { file, last: [0; 8] })
    }
}

impl Read for Tail {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.file.read(buffer)?;
            if count > 0 {
                let kept = count.min(8);
                self.last.rotate_left(kept);
                self.last[8 - kept..].copy_from_slice(&buffer[count - kept..count]);
                return Ok(count);
            }
            if buffer.is_empty() || self.last == END {
                return Ok(0);
            }
            std::thread::sleep(PAUSE);
        }
    }
}
