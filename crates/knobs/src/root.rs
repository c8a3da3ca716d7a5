//! The kernel's files, under `/` or under a directory that stands in for it.

use schedlab_capture::Debugfs;
use std::cell::OnceCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Where debugfs is mounted. Paths in the journal and in messages have this, wherever it is reached.
const DEBUGFS: &str = "/sys/kernel/debug/";
/// The longest value that is read, in bytes.
const LONGEST: u64 = 1 << 16;

/// The root of the kernel's files.
pub struct Root {
    dir: PathBuf,
    debugfs: OnceCell<Result<Debugfs, String>>,
}

impl Root {
    /// This directory; `/` for the machine itself.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), debugfs: OnceCell::new() }
    }

    /// Whether it is the machine itself.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.dir == Path::new("/")
    }

    /// Where a file of the kernel is reached: debugfs also where it is not mounted.
    #[must_use]
    pub fn place(&self, path: &str) -> PathBuf {
        if let Some(rest) = path.strip_prefix(DEBUGFS)
            && let Ok(debugfs) = self.debugfs.get_or_init(|| Debugfs::open(&self.dir))
        {
            return debugfs.dir().join(rest);
        }
        self.dir.join(path.trim_start_matches('/'))
    }

    /// The value in a file, with single spaces between its words.
    ///
    /// # Errors
    /// When it cannot be read, or is no text.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        File::open(self.place(path))?.take(LONGEST).read_to_string(&mut text)?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// The value that is in force: of a file that lists all values, the one in brackets or parentheses.
    ///
    /// # Errors
    /// Those of [`Root::read`].
    pub fn value(&self, path: &str) -> io::Result<String> {
        let text = self.read(path)?;
        Ok(chosen(&text).map_or(text.clone(), str::to_owned))
    }

    /// Writes a value, as `echo VALUE > FILE` does.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).truncate(true).open(self.place(path))?;
        file.write_all(format!("{value}\n").as_bytes())
    }

    /// Whether a value could be written, found without writing one: the file is opened for writing and closed again.
    /// The kernel acts on what is written to these files, not on their being opened; the file is not truncated either.
    ///
    /// # Errors
    /// Why not.
    pub fn may_write(&self, path: &str) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.place(path)).map(drop)
    }

    /// Whether a file is there.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// The names in a directory, sorted with numbers in their order.
    #[must_use]
    pub fn names(&self, dir: &str) -> Vec<String> {
        let entries = fs::read_dir(self.place(dir)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_key(|name| natural(name));
        names
    }
}

/// A key that sorts `cpu2` before `cpu10`: each run of digits counts as a number.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut key = vec![(String::new(), 0u64)];
    for c in name.chars() {
        let (text, number) = key.last_mut().expect("it is never empty");
        match c.to_digit(10) {
            Some(digit) => *number = number.saturating_mul(10).saturating_add(digit.into()),
            None if *number == 0 => text.push(c),
            None => key.push((c.to_string(), 0)),
        }
    }
    key
}

/// The word in brackets or parentheses.
fn chosen(text: &str) -> Option<&str> {
    let inside = |word: &'_ str, open, close| -> Option<(usize, usize)> {
        let start = word.find(open)?;
        Some((start + 1, start + word[start..].find(close)?))
    };
    let (from, to) = inside(text, '[', ']').or_else(|| inside(text, '(', ')'))?;
    text.get(from..to)
}

/// Whether an error means that rights are missing, or that the kernel forbids it.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::EROFS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_in_force_stands_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), Some("mq-deadline"));
        assert_eq!(chosen("none voluntary (full) lazy"), Some("full"));
        assert_eq!(chosen("60"), None);
        assert_eq!(chosen("[60"), None);
    }

    #[test]
    fn a_shorter_value_replaces_a_longer_one() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("x"), "4096\t131072  6291456\n").unwrap();
        let root = Root::new(dir.path());
        assert_eq!(root.value("/x").unwrap(), "4096 131072 6291456");
        root.may_write("/x").unwrap();
        assert_eq!(root.value("/x").unwrap(), "4096 131072 6291456", "asking changes nothing");
        root.write("/x", "7").unwrap();
        assert_eq!(fs::read_to_string(dir.path().join("x")).unwrap(), "7\n");
        assert!(root.write("/y", "7").is_err() && !root.has("/y"), "no file is made");
    }

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "sda", "cpu1"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(Root::new(dir.path()).names("/"), ["cpu1", "cpu2", "cpu10", "sda"]);
    }
}
