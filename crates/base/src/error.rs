//! The error shown to a user: one message that says where it happened, what is wrong and how to fix it.

use crate::visible::OneLine;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// A result whose error is meant for the user.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of failure. It decides the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bad input or usage: exit status 2.
    Input,
    /// What is to be set is nothing that is there: exit status 2.
    Absent,
    /// The machine does not support it, or the user lacks the rights: exit status 4.
    NotPermitted,
    /// The system failed during the operation (disk full, a file vanished): exit status 2.
    System,
}

/// A failure. It is displayed as `file:line: key: what; fix`.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: Kind,
    file: Option<PathBuf>,
    line: Option<u64>,
    key: Option<String>,
    what: String,
    mend: Option<String>,
}

impl Error {
    /// Creates an error of the given kind; `what` is a lower-case fragment that says what is wrong.
    pub fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, file: None, line: None, key: None, what: what.into(), mend: None }))
    }

    /// Bad input or usage.
    pub fn input(what: impl Into<String>) -> Self {
        Self::new(Kind::Input, what)
    }

    /// What is to be set is nothing that is there.
    pub fn absent(what: impl Into<String>) -> Self {
        Self::new(Kind::Absent, what)
    }

    /// A missing right. Use [`Error::mend`] to say how to get it.
    pub fn not_permitted(what: impl Into<String>) -> Self {
        Self::new(Kind::NotPermitted, what)
    }

    /// A failure of the system: `what` says what was being done.
    pub fn system(what: impl Into<String>, cause: &dyn fmt::Display) -> Self {
        Self::new(Kind::System, format!("{}: {cause}", what.into()))
    }

    /// Adds the file. The innermost file is kept.
    #[must_use]
    pub fn file(mut self, file: impl AsRef<Path>) -> Self {
        self.0.file.get_or_insert_with(|| file.as_ref().to_path_buf());
        self
    }

    /// Adds the line, counted from 1. The innermost line is kept.
    #[must_use]
    pub fn line(mut self, line: u64) -> Self {
        self.0.line.get_or_insert(line);
        self
    }

    /// Adds the key, as a dotted path. The innermost key is kept.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.0.key.get_or_insert_with(|| key.into());
        self
    }

    /// Adds how to fix it. The innermost fix is kept.
    #[must_use]
    pub fn mend(mut self, mend: impl Into<String>) -> Self {
        self.0.mend.get_or_insert_with(|| mend.into());
        self
    }

    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Whether something is not possible here, rather than wrong: what needs it can be left out.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self.0.kind, Kind::NotPermitted | Kind::Absent)
    }

    /// The exit status of a command that ends with this error.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match self.0.kind {
            Kind::Input | Kind::Absent | Kind::System => 2,
            Kind::NotPermitted => 4,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &self.0;
        // Names and keys come from files that others wrote.
        let f = &mut OneLine(f);
        if let Some(file) = &e.file {
            write!(f, "{}:", file.display())?;
            if let Some(line) = e.line {
                write!(f, "{line}:")?;
            }
            write!(f, " ")?;
        } else if let Some(line) = e.line {
            write!(f, "line {line}: ")?;
        }
        if let Some(key) = &e.key {
            write!(f, "{key}: ")?;
        }
        write!(f, "{}", e.what)?;
        if let Some(mend) = &e.mend {
            write!(f, "; {mend}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// The known name closest to `name`, if it is close enough for `name` to be a typing mistake.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Time and memory grow with the product of the two lengths, and nobody mistypes a name this long.
    const MAX_NAME: usize = 100;
    known
        .into_iter()
        .filter(|k| k.len() <= MAX_NAME && name.len() <= MAX_NAME)
        .map(|k| (strsim::damerau_levenshtein(&name.to_lowercase(), &k.to_lowercase()), k))
        .filter(|(distance, k)| *distance <= 1 + k.len().max(name.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, k)| k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_says_where_what_and_the_fix() {
        let e =
            Error::input("\"rum\" is no event").mend("did you mean \"run\"?").key("tasks.a.rum").line(3).file("w.json");
        assert_eq!(e.to_string(), "w.json:3: tasks.a.rum: \"rum\" is no event; did you mean \"run\"?");
        assert_eq!(e.file("other").to_string().split(':').next(), Some("w.json"));
    }

    #[test]
    fn a_message_is_one_line_whatever_it_quotes() {
        let e = Error::input("\"\u{202e}x\" is odd").key("tasks.\x1b[31m").mend("a\nb").file("w\u{7}.json");
        assert_eq!(e.to_string(), "w\\u0007.json: tasks.\\u001b[31m: \"\\u202ex\" is odd; a\\u000ab");
    }

    #[test]
    fn only_a_close_name_is_suggested() {
        assert_eq!(nearest("durration", ["duration", "delay"]), Some("duration"));
        assert_eq!(nearest("zzz", ["duration", "delay"]), None);
    }
}
