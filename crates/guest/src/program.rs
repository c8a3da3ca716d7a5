//! This program, as a guest can start it: the parts of its file that are loaded, and the libraries that it needs.
//!
//! The installed command is static and needs none. One that a developer builds is linked to the C library; the
//! dynamic linker itself says which files that takes.

use schedlab_base::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest part of a header that is read.
const HEADERS: usize = 1 << 16;
/// Types of program headers (elf(5)).
const LOAD: u32 = 1;
const INTERPRETER: u32 = 3;

/// A program, and files under the paths where it looks for them.
pub(crate) struct Program {
    pub(crate) contents: Vec<u8>,
    pub(crate) libraries: Vec<(PathBuf, Vec<u8>)>,
}

/// Reads the running program.
///
/// # Errors
/// When it cannot be read, or its libraries cannot be found.
pub(crate) fn own() -> Result<Program> {
    let path = Path::new("/proc/self/exe");
    let read = |path: &Path| std::fs::read(path).map_err(|e| Error::system("cannot be read", &e).file(path));
    let mut contents = read(path)?;
    let odd = || Error::input("is no x86-64 program, so that no guest can start it").file(path);
    let parts = Parts::read(&contents).ok_or_else(odd)?;
    contents.truncate(parts.end);
    let mut libraries = Vec::new();
    if let Some(linker) = parts.interpreter {
        for library in needed(&linker, path)? {
            libraries.push((library.clone(), read(&library)?));
        }
        libraries.push((linker.clone(), read(&linker)?));
    }
    Ok(Program { contents, libraries })
}

/// What the headers of an ELF file say.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    /// Where the last part that is loaded ends. Symbols and debugging information come after it.
    end: usize,
    /// The dynamic linker, if the program is not static.
    interpreter: Option<PathBuf>,
}

impl Parts {
    /// `None` if this is no 64-bit x86 program.
    fn read(file: &[u8]) -> Option<Self> {
        let head = &file[..file.len().min(HEADERS)];
        let number = |at: usize, bytes: usize| {
            let mut whole = [0; 8];
            whole[..bytes].copy_from_slice(head.get(at..at + bytes)?);
            Some(u64::from_le_bytes(whole) as usize)
        };
        let x86_64 = 62;
        if !head.starts_with(b"\x7fELF\x02\x01") || number(18, 2)? != x86_64 {
            return None;
        }
        let (first, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        let mut parts = Self { end: 0, interpreter: None };
        for index in 0..count {
            let at = first.checked_add(index * size)?;
            let (kind, offset, bytes) = (number(at, 4)? as u32, number(at + 8, 8)?, number(at + 32, 8)?);
            let end = offset.checked_add(bytes).filter(|end| *end <= file.len())?;
            match kind {
                LOAD => parts.end = parts.end.max(end),
                INTERPRETER => {
                    let name = file[offset..end].split(|byte| *byte == 0).next()?;
                    parts.interpreter = Some(PathBuf::from(std::str::from_utf8(name).ok()?));
                }
                _ => {}
            }
        }
        (parts.end > 0).then_some(parts)
    }
}

/// The libraries that the dynamic linker would load for this program.
fn needed(linker: &Path, program: &Path) -> Result<Vec<PathBuf>> {
    // The link is followed here: to the linker, /proc/self is the linker.
    let program = program.canonicalize().map_err(|e| Error::system("cannot be found", &e).file(program))?;
    let output = Command::new(linker).arg("--list").arg(program).output();
    let output = output.map_err(|e| Error::system("cannot list the libraries that it needs", &e).file(linker))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let listed: Vec<PathBuf> = text
        .lines()
        .filter_map(|line| line.split_once(" => ")?.1.split_whitespace().next())
        .filter(|path| path.starts_with('/'))
        .map(PathBuf::from)
        .collect();
    if output.status.success() && !text.contains("not found") {
        Ok(listed)
    } else {
        Err(Error::input("lacks a library, so that no guest can start it").file("/proc/self/exe"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_its_loaded_parts_and_its_libraries() {
        let whole = std::fs::read("/proc/self/exe").unwrap();
        let program = own().unwrap();
        assert!(program.contents.len() < whole.len(), "debugging information is left out");
        assert_eq!(program.contents, whole[..program.contents.len()]);
        let linker = Parts::read(&whole).unwrap().interpreter;
        assert_eq!(linker.is_some(), program.libraries.iter().any(|(path, _)| Some(path) == linker.as_ref()));
    }

    #[test]
    fn other_files_are_no_programs() {
        assert_eq!(Parts::read(b"#!/bin/sh\n"), None);
        assert_eq!(Parts::read(b""), None);
        let whole = std::fs::read("/proc/self/exe").unwrap();
        for length in [4, 20, 64, 200, 1000] {
            assert_eq!(Parts::read(&whole[..length]), None, "cut off after {length} bytes");
        }
    }
}
