//! What the image of a kernel says about itself (Documentation/arch/x86/boot.rst in the kernel's sources).

use schedlab_base::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The release in the header of a bzImage, as `uname -r` will print it.
///
/// # Errors
/// When the file cannot be read, or is no kernel for x86.
pub(crate) fn release(path: &Path) -> Result<String> {
    const MAGIC: usize = 0x202;
    const VERSION: usize = 0x20e;
    const SETUP: u64 = 0x200;
    let failed = |e: std::io::Error| Error::system("cannot be read", &e).file(path);
    let odd = || Error::input("is no kernel for x86").mend("name a bzImage, such as /boot/vmlinuz-*").file(path);
    let file = File::open(path).map_err(failed)?;
    let mut header = [0; 0x210];
    file.read_exact_at(&mut header, 0).map_err(|_| odd())?;
    if &header[MAGIC..MAGIC + 4] != b"HdrS" {
        return Err(odd());
    }
    let at = SETUP + u64::from(u16::from_le_bytes([header[VERSION], header[VERSION + 1]]));
    let mut text = [0; 256];
    let length = file.read_at(&mut text, at).map_err(failed)?;
    let text = text[..length].split(|byte| *byte == 0 || *byte == b' ').next().unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| odd())?;
    if at == SETUP || text.is_empty() { Err(odd()) } else { Ok(text.to_owned()) }
}
