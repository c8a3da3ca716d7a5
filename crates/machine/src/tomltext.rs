//! Reads TOML text strictly. Every error names the file, line and key, and suggests the known name nearest to an
//! unknown one.

use schedlab_base::{Error, Result, nearest};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The largest file that is read, in bytes. Machines and experiments are a page or two.
const MAX_BYTES: u64 = 4 << 20;

/// A TOML text and the name of its file.
#[derive(Clone, Debug)]
pub struct TomlText {
    /// The file's path, used in messages.
    pub file: PathBuf,
    /// The content.
    pub(crate) text: String,
}

/// One step from a table or array to one of its entries.
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl TomlText {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file cannot be read, is larger than 4 MiB, or is not UTF-8.
    pub fn open(file: &Path) -> Result<Self> {
        use std::io::Read;
        let opened = std::fs::File::open(file).map_err(|e| Error::system("cannot open", &e).file(file))?;
        let mut text = String::new();
        opened
            .take(MAX_BYTES + 1)
            .read_to_string(&mut text)
            .map_err(|e| Error::system("cannot read", &e).file(file).mend("the file must be TOML in UTF-8"))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(Error::input("is larger than 4 MiB").mend("give a TOML file of a few pages").file(file));
        }
        Ok(Self { file: file.to_path_buf(), text })
    }

    /// A text that stands for the file with this name.
    #[must_use]
    pub fn new(file: impl AsRef<Path>, text: impl Into<String>) -> Self {
        Self { file: file.as_ref().to_path_buf(), text: text.into() }
    }

    /// The content.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Deserializes the text as `T`, whose structs must deny unknown fields.
    ///
    /// # Errors
    /// When the text is not TOML, a key is unknown or missing, or a value has the wrong type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        let fail = |error: &toml::de::Error, key: Option<String>| self.explain(error, key);
        let reader = toml::Deserializer::parse(&self.text).map_err(|e| fail(&e, None))?;
        serde_path_to_error::deserialize(reader).map_err(|e| {
            let path = e.path().to_string();
            fail(e.inner(), (path != ".").then_some(path))
        })
    }

    /// An error at the value of the dotted path (`kernels[1].set`), or at the nearest table above it.
    #[must_use]
    pub fn error(&self, path: &str, what: impl Into<String>) -> Error {
        let error = Error::input(what).file(&self.file);
        let error = if path.is_empty() { error } else { error.key(path) };
        match self.offset_of(path) {
            Some(offset) => error.line(self.line_at(offset)),
            None => error,
        }
    }

    /// Turns serde's message into an error for the user.
    fn explain(&self, error: &toml::de::Error, key: Option<String>) -> Error {
        let (what, mend) = reword(error.message());
        let mut explained = Error::input(what).file(&self.file);
        if let Some(span) = error.span() {
            explained = explained.line(self.line_at(span.start));
        }
        if let Some(key) = key {
            explained = explained.key(key);
        }
        match mend {
            Some(mend) => explained.mend(mend),
            None => explained,
        }
    }

    fn line_at(&self, offset: usize) -> u64 {
        let end = offset.min(self.text.len());
        1 + self.text.as_bytes()[..end].iter().filter(|b| **b == b'\n').count() as u64
    }

    fn offset_of(&self, path: &str) -> Option<usize> {
        let root = DeTable::parse(&self.text).ok()?.into_inner();
        let mut steps = steps_of(path).into_iter();
        let Some(Step::Key(first)) = steps.next() else { return None };
        let (key, mut here) = root.get_key_value(first).map(|(k, v)| (k.span().start, v))?;
        let mut offset = key;
        for step in steps {
            let next = match (step, here.get_ref()) {
                (Step::Key(name), DeValue::Table(table)) => table.get_key_value(name).map(|(k, v)| (k.span().start, v)),
                (Step::Index(i), DeValue::Array(array)) => array.get(i).map(|v| (v.span().start, v)),
                _ => None,
            };
            let Some((at, value)) = next else { break };
            (offset, here) = (at, value);
        }
        Some(offset)
    }
}

/// Splits `a.b[2].c` into its steps.
fn steps_of(path: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for part in path.split('.').filter(|p| !p.is_empty()) {
        let mut pieces = part.split('[');
        if let Some(name) = pieces.next().filter(|n| !n.is_empty()) {
            steps.push(Step::Key(name));
        }
        steps.extend(pieces.filter_map(|p| p.trim_end_matches(']').parse().ok()).map(Step::Index));
    }
    steps
}

/// What is wrong and how to fix it, from serde's message ``unknown field `x`, expected one of `a`, `b` ``.
fn reword(message: &str) -> (String, Option<String>) {
    let message = message.trim().lines().collect::<Vec<_>>().join("; ");
    if let Some(reworded) = mismatch(&message) {
        return reworded;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let noun = if message.starts_with("unknown field") {
        "key"
    } else if message.starts_with("unknown variant") {
        "known value"
    } else {
        return (message, None);
    };
    let Some(name) = quoted.next() else { return (message, None) };
    let known: Vec<&str> = quoted.collect();
    let mend = match (nearest(name, known.iter().copied()), known.is_empty()) {
        (Some(near), _) => Some(format!("did you mean \"{near}\"?")),
        (None, false) => Some(format!("known here: {}", known.join(", "))),
        (None, true) => None,
    };
    (format!("\"{name}\" is no {noun}"), mend)
}

/// What a value is and what it should be, from `invalid type: map, expected a sequence`.
fn mismatch(message: &str) -> Option<(String, Option<String>)> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let kinds = ["integer ", "floating point ", "boolean ", "string "];
    let found = match found {
        "map" => "a table",
        "sequence" => "a list",
        other => kinds.iter().find_map(|kind| other.strip_prefix(kind)).unwrap_or(other).trim_matches('`'),
    };
    let most = |bits: u32| format!("a whole number of 0 to {}", u64::MAX >> (64 - bits));
    let should = match expected {
        "u8" => most(8),
        "u16" => most(16),
        "u32" => most(32),
        "u64" | "usize" => most(63),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a string" => "text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    };
    let is_one_of_several = found == "a table" && should == "a list";
    let mend = is_one_of_several.then(|| "the tables of a list begin with double brackets, [[ ]]".to_owned());
    Some((format!("is {found}, but should be {should}"), mend))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Outer {
        name: String,
        #[serde(default)]
        inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Inner {
        size: u32,
    }

    fn error(text: &str) -> String {
        TomlText::new("m.toml", text).read::<Outer>().unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_names_file_line_key_and_the_nearest() {
        assert_eq!(
            error("name = \"a\"\n[[inner]]\nsize = 1\n[[inner]]\nsise = 2\n"),
            "m.toml:5: inner[1].sise: \"sise\" is no key; did you mean \"size\"?"
        );
    }

    #[test]
    fn a_wrong_type_names_its_place() {
        let message = error("name = \"a\"\n\n[[inner]]\nsize = \"big\"\n");
        assert_eq!(message, "m.toml:4: inner[0].size: is \"big\", but should be a whole number of 0 to 4294967295");
        let message = error("name = \"a\"\n[[inner]]\nsize = -1\n");
        assert_eq!(message, "m.toml:3: inner[0].size: is -1, but should be a whole number of 0 to 4294967295");
        let message = error("name = 1.5\n");
        assert_eq!(message, "m.toml:1: name: is 1.5, but should be text in quotes");
        let message = error("name = \"a\"\n[inner]\nsize = 1\n");
        assert!(message.contains("inner: is a table, but should be a list; the tables of a list"), "{message}");
    }

    #[test]
    fn a_missing_key_and_broken_toml_are_reported() {
        assert!(error("inner = []").contains("missing field `name`"));
        assert!(error("name = \"a\"\nx = = 1\n").starts_with("m.toml:2:"));
    }

    #[test]
    fn an_error_at_a_path_has_its_line() {
        let doc = TomlText::new("m.toml", "a = 1\n[[b]]\nc = 2\n[[b]]\nc = 3\n");
        assert_eq!(doc.error("b[1].c", "too big").to_string(), "m.toml:5: b[1].c: too big");
        assert_eq!(doc.error("b[1].gone", "lacking").to_string(), "m.toml:4: b[1].gone: lacking");
    }
}
