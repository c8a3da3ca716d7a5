//! A JSON reader that is as lenient as json-c, which rt-app uses: it accepts comments, trailing commas, single quotes
//! and duplicate keys. It keeps the line of every key and value, and the order of keys.
//!
//! Each case was tried with json-c 0.16 to see what it accepts and refuses; `tests/json_c.rs` has these cases.

use hashbrown::{DefaultHashBuilder, HashTable};
use schedlab_base::{Error, Result};
use std::borrow::Cow;
use std::hash::BuildHasher;

/// The largest document that is read, in bytes.
pub(crate) const MAX_BYTES: usize = 128 << 20;
/// The deepest nesting of values, which is json-c's own limit.
pub(crate) const MAX_DEPTH: usize = 32;

/// The largest number of values in a document, including those in lists and objects. It bounds the memory that a
/// document takes to 1 GiB.
const MAX_VALUES: usize = 4 << 20;
/// The largest number of remarks about a document. One more counts the rest.
const MAX_REMARKS: usize = 1000;
/// An object with fewer members is searched for a key one by one.
const FEW: usize = 16;

/// A value and the line on which it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<'t> {
    /// The line, counted from 1.
    pub line: u64,
    /// The value itself.
    pub json: Json<'t>,
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'t> {
    /// `null`, which rt-app treats like a missing key.
    Null,
    /// `true` or `false`, in upper or lower case.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that does not fit into 64 bits.
    Huge,
    /// Any other number, including `NaN` and `Infinity`.
    Float(f64),
    /// A string. Bytes that are not UTF-8 become U+FFFD.
    Text(Cow<'t, str>),
    /// An array.
    List(Vec<Value<'t>>),
    /// An object: its members in the order in which their keys first appear, each key once.
    Object(Vec<Member<'t>>),
}

impl Json<'_> {
    /// The name of its type in messages.
    #[must_use]
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Int(_) => "a whole number",
            Self::Huge => "a number beyond 64 bits",
            Self::Float(_) => "a fractional number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<'t> {
    /// Its key.
    pub key: Cow<'t, str>,
    /// The line of the last occurrence of the key, whose value is used.
    pub line: u64,
    /// Its value.
    pub value: Value<'t>,
}

/// A remark about a document that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The line.
    pub line: u64,
    /// The dotted path of the key; empty for the document.
    pub key: String,
    /// What is unusual.
    pub what: String,
}

/// Reads a document. Like json-c it ignores what follows the end of the document, but adds a remark.
///
/// # Errors
/// When json-c would refuse the document, or it has more than 128 MiB or 4 Mi values. The error names the line and key.
pub fn read(text: &[u8]) -> Result<(Value<'_>, Vec<Remark>)> {
    if text.len() > MAX_BYTES {
        return Err(Error::input(format!("larger than {} MiB", MAX_BYTES >> 20)).mend("split the workload"));
    }
    let mut reader = Reader {
        text,
        at: 0,
        line: 1,
        path: Vec::new(),
        values: 0,
        remarks: Vec::new(),
        twice: 0,
        hashes: DefaultHashBuilder::default(),
    };
    let value = reader.value()?;
    if reader.blank().is_err() || reader.peek().is_some() {
        let what = "text after the end of the document is ignored".to_owned();
        reader.remarks.push(Remark { line: reader.line, key: String::new(), what });
    }
    if reader.twice > 0 {
        let what = format!("{} more keys are given twice", reader.twice);
        reader.remarks.push(Remark { line: reader.line, key: String::new(), what });
    }
    Ok((value, reader.remarks))
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
    path: Vec<Cow<'a, str>>,
    /// How many values were read.
    values: usize,
    remarks: Vec<Remark>,
    /// How many duplicate keys have no remark of their own.
    twice: u64,
    /// Hashes keys, with a seed of this document's own.
    hashes: DefaultHashBuilder,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        self.line += u64::from(byte == b'\n');
        Some(byte)
    }

    fn error(&self, what: impl Into<String>) -> Error {
        let error = Error::input(what).line(self.line);
        if self.path.is_empty() { error } else { error.key(self.path.join(".")) }
    }

    /// Describes the input at the current position, for a message.
    fn found(&self) -> String {
        match self.peek() {
            None => "the end of the file".to_owned(),
            Some(byte @ 0x20..=0x7e) => format!("'{}'", char::from(byte)),
            Some(byte @ 0x80..) => format!("byte {byte:#x}"),
            Some(byte) => format!("control character {byte:#x}"),
        }
    }

    /// Skips white space and comments.
    fn blank(&mut self) -> Result<()> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r' | b'\n') => _ = self.next(),
                Some(b'/') => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) -> Result<()> {
        let start = self.line;
        match self.text.get(self.at + 1) {
            Some(b'/') => {
                while self.next().is_some_and(|b| b != b'\n') {}
                Ok(())
            }
            Some(b'*') => {
                self.at += 2;
                loop {
                    match self.next() {
                        Some(b'*') if self.peek() == Some(b'/') => {
                            self.at += 1;
                            return Ok(());
                        }
                        Some(_) => {}
                        None => return Err(self.error(format!("the comment of line {start} has no end")).mend("*/")),
                    }
                }
            }
            _ => Err(self.error("'/' starts no comment").mend("write // or /* */")),
        }
    }

    fn value(&mut self) -> Result<Value<'a>> {
        self.blank()?;
        let line = self.line;
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.error(format!("more than {MAX_VALUES} values")).mend("split the workload"));
        }
        let json = match self.peek() {
            Some(b'{') => Json::Object(self.object()?),
            Some(b'[') => Json::List(self.list()?),
            Some(b'"' | b'\'') => Json::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word()?,
            _ => return Err(self.error(format!("a value is missing before {}", self.found()))),
        };
        Ok(Value { line, json })
    }

    fn deeper(&mut self, key: Cow<'a, str>) -> Result<()> {
        if self.path.len() + 1 >= MAX_DEPTH {
            return Err(self.error(format!("nested more than {MAX_DEPTH} deep")));
        }
        self.path.push(key);
        Ok(())
    }

    fn object(&mut self) -> Result<Vec<Member<'a>>> {
        self.at += 1;
        let mut members: Vec<Member> = Vec::new();
        // Where the member with a key is, of an object with more than a few.
        let mut index: HashTable<usize> = HashTable::new();
        loop {
            self.blank()?;
            // json-c accepts a comma before the closing brace, but not a single comma in an empty object.
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(members);
            }
            let member = self.member()?;
            let hash_of = |member: &Member| self.hashes.hash_one(&member.key);
            let known = match members.len() {
                ..FEW => members.iter().position(|known| known.key == member.key),
                _ => index.find(hash_of(&member), |at| members[*at].key == member.key).copied(),
            };
            if let Some(at) = known {
                self.remark_twice(&members[at], &member);
                members[at] = member;
            } else {
                members.push(member);
                let new = match members.len() {
                    ..FEW => 0..0,
                    FEW => 0..FEW,
                    n => n - 1..n,
                };
                new.for_each(|at| _ = index.insert_unique(hash_of(&members[at]), at, |at| hash_of(&members[*at])));
            }
            self.comma(b'}')?;
        }
    }

    fn remark_twice(&mut self, old: &Member, new: &Member) {
        if self.remarks.len() >= MAX_REMARKS {
            self.twice += 1;
            return;
        }
        let path: Vec<&str> = self.path.iter().map(|key| &**key).chain([&*new.key]).collect();
        self.remarks.push(Remark {
            line: new.line,
            key: path.join("."),
            what: format!("given on line {} too; the last value holds, at the first one's place", old.line),
        });
    }

    fn member(&mut self) -> Result<Member<'a>> {
        if !matches!(self.peek(), Some(b'"' | b'\'')) {
            let what = format!("a key in quotes is missing before {}", self.found());
            return Err(self.error(what));
        }
        let line = self.line;
        let key = self.string()?;
        self.blank()?;
        if self.peek() != Some(b':') {
            let what = format!("the key \"{key}\" has no value: {} where ':' should be", self.found());
            return Err(self.error(what).mend(format!("write \"{key}\": and a value")));
        }
        self.at += 1;
        self.deeper(key)?;
        let value = self.value()?;
        let key = self.path.pop().expect("pushed three lines above");
        Ok(Member { key, line, value })
    }

    /// Takes the comma after an element, unless the closing bracket follows.
    fn comma(&mut self, close: u8) -> Result<()> {
        self.blank()?;
        match self.peek() {
            Some(b',') => self.at += 1,
            Some(byte) if byte == close => {}
            _ => {
                let what = format!("{} where ',' or '{}' should be", self.found(), char::from(close));
                return Err(self.error(what));
            }
        }
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<Value<'a>>> {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.blank()?;
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(values);
            }
            self.deeper(values.len().to_string().into())?;
            values.push(self.value()?);
            self.path.pop();
            self.comma(b']')?;
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>> {
        let start = self.line;
        let quote = self.next();
        // Nearly every string has nothing in it that stands for something else.
        let rest = &self.text[self.at..];
        let plain = rest.iter().position(|byte| Some(*byte) == quote || matches!(byte, b'\\' | b'\n'));
        if let Some(length) = plain.filter(|at| Some(rest[*at]) == quote) {
            self.at += length + 1;
            return Ok(String::from_utf8_lossy(&rest[..length]));
        }
        let mut bytes = Vec::new();
        loop {
            match self.next() {
                byte if byte == quote => return Ok(String::from_utf8_lossy(&bytes).into_owned().into()),
                Some(b'\\') => self.escape(&mut bytes)?,
                Some(byte) => bytes.push(byte),
                None => return Err(self.error(format!("the string of line {start} has no end"))),
            }
        }
    }

    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.push(match self.next() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let c = self.unicode()?;
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => {
                return Err(self
                    .error("no such escape in a string")
                    .mend("known are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u"));
            }
        });
        Ok(())
    }

    /// Reads the four digits of `\uXXXX`, and the second half of a surrogate pair. A single half becomes U+FFFD.
    fn unicode(&mut self) -> Result<char> {
        let first = self.hex4()?;
        if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with(b"\\u") {
            let before = self.at;
            self.at += 2;
            let second = self.hex4()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex4(&mut self) -> Result<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else { return Err(self.error("\\u wants four hexadecimal digits")) };
            self.at += 1;
            code = code * 16 + digit;
        }
        Ok(code)
    }

    /// The characters up to the first one that cannot be part of a number or a word.
    fn token(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.' | b'_');
        let len = rest.iter().position(|b| !part(b)).unwrap_or(rest.len());
        self.at += len;
        std::str::from_utf8(&rest[..len]).expect("only ASCII was taken")
    }

    fn number(&mut self) -> Result<Json<'a>> {
        let token = self.token();
        let digits = token.strip_prefix('-').unwrap_or(token);
        if digits.eq_ignore_ascii_case("infinity") {
            return Ok(Json::Float(f64::NEG_INFINITY));
        }
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return Ok(token.parse().map_or(Json::Huge, Json::Int));
        }
        // json-c accepts an exponent without digits.
        let trimmed = token.trim_end_matches(['+', '-']).trim_end_matches(['e', 'E']);
        let plausible = digits.starts_with(|c: char| c.is_ascii_digit());
        match trimmed.parse() {
            Ok(number) if plausible => Ok(Json::Float(number)),
            _ => Err(self.error(format!("\"{}\" is no number", clip(token)))),
        }
    }

    fn word(&mut self) -> Result<Json<'a>> {
        let word = self.token();
        Ok(match word.to_ascii_lowercase().as_str() {
            "null" => Json::Null,
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            "nan" => Json::Float(f64::NAN),
            "infinity" => Json::Float(f64::INFINITY),
            _ => {
                let what = format!("{} is no value", clip(word));
                return Err(self.error(what).mend("a string stands in quotes"));
            }
        })
    }
}

/// The beginning of a long word, for a message.
fn clip(word: &str) -> String {
    let head: String = word.chars().take(40).collect();
    if head.len() < word.len() { head + "..." } else { head }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_value_has_its_line() {
        let (value, _) = read(b"{\n \"a\": 1,\n /* two\n lines */ \"b\":\n [2,\n 3]}").unwrap();
        let Json::Object(members) = &value.json else { panic!("{value:?}") };
        assert_eq!((&*members[0].key, members[0].line, members[0].value.line), ("a", 2, 2));
        assert_eq!((&*members[1].key, members[1].line, members[1].value.line), ("b", 4, 5));
        let Json::List(items) = &members[1].value.json else { panic!("{value:?}") };
        assert_eq!(items[1].line, 6);
    }

    #[test]
    fn errors_name_line_and_path() {
        let message = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            message("{\"tasks\": {\n \"a\": {\n \"suspend\",\n \"run\": 1}}}"),
            "line 3: tasks.a: the key \"suspend\" has no value: ',' where ':' should be; write \"suspend\": and a value"
        );
        assert_eq!(message("{\"a\": [1,\n ,2]}"), "line 2: a.1: a value is missing before ','");
        assert_eq!(message(""), "line 1: a value is missing before the end of the file");
    }

    #[test]
    fn a_duplicate_key_keeps_its_first_place_and_its_last_value() {
        let (value, remarks) = read(b"{\"a\": 1, \"b\": 2,\n \"a\": 3}").unwrap();
        let Json::Object(members) = value.json else { panic!() };
        assert_eq!(members.iter().map(|m| &*m.key).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(members[0].value.json, Json::Int(3));
        assert_eq!(remarks.len(), 1);
        assert_eq!((remarks[0].line, remarks[0].key.as_str()), (2, "a"));
    }
}
