//! What the image of a kernel says about itself (Documentation/arch/x86/boot.rst in the kernel's sources).

use schedlab_base::{Error, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The release in the header of a bzImage, as `uname -r` will print it.
///
/// # Errors
/// When the file cannot be read, is no kernel for x86 with 64 bits, or not all of one.
pub(crate) fn release(path: &Path) -> Result<String> {
    const HEADER: usize = 0x238;
    const SETUP: u64 = 0x200;
    let failed = |e: std::io::Error| Error::system("cannot be read", &e).file(path);
    let odd = || Error::input("is no kernel for x86").mend("name a bzImage, such as /boot/vmlinuz-*").file(path);
    let meta = std::fs::metadata(path).map_err(failed)?;
    // Whoever opens a FIFO waits for somebody who writes to it.
    if !meta.is_file() {
        return Err(odd());
    }
    let file = File::open(path).map_err(failed)?;
    let mut header = [0; HEADER];
    if file.read_exact_at(&mut header, 0).is_err() || &header[0x202..0x206] != b"HdrS" {
        return Err(odd());
    }
    let short = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    // The setup code has so many sectors beside the first; the rest is counted in units of 16 bytes.
    let setup = if header[0x1f1] == 0 { 4 } else { u64::from(header[0x1f1]) };
    let rest = u32::from_le_bytes([header[0x1f4], header[0x1f5], header[0x1f6], header[0x1f7]]);
    let whole = (setup + 1) * 512 + u64::from(rest) * 16;
    if meta.len() < whole {
        let what = format!("is not all of a kernel: {} of {whole} bytes are there", meta.len());
        return Err(Error::input(what).mend("copy or build it again").file(path));
    }
    // From version 2.12 of the protocol on (Linux 3.8), a flag says that the kernel has 64 bits.
    if short(0x206) >= 0x20c && short(0x236) & 1 == 0 {
        return Err(Error::input("is no kernel for 64 bits").mend("build it with CONFIG_64BIT").file(path));
    }
    let at = SETUP + u64::from(short(0x20e));
    let mut text = [0; 256];
    let length = file.read_at(&mut text, at).map_err(failed)?;
    let text = text[..length].split(|byte| *byte == 0 || *byte == b' ').next().unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| odd())?;
    if at == SETUP || text.is_empty() { Err(odd()) } else { Ok(text.to_owned()) }
}
