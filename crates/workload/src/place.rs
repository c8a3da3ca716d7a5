//! The place of a value in a document, and typed access to the members of an object.

use crate::json::{Json, Member, Value};
use schedlab_base::{Error, Nanos, Result, nearest};

/// The place of a value: its key, its line, and the place of the object around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    up: Option<&'a At<'a>>,
    key: &'a str,
    pub(crate) line: u64,
}

impl<'a> At<'a> {
    /// The document itself.
    pub(crate) fn root(line: u64) -> Self {
        Self { up: None, key: "", line }
    }

    /// The place of a member.
    pub(crate) fn of(&'a self, member: &'a Member) -> At<'a> {
        At { up: Some(self), key: &member.key, line: member.line }
    }

    /// The same place, but on the line of a list's element.
    pub(crate) fn at_line(self, line: u64) -> Self {
        Self { line, ..self }
    }

    /// The dotted path.
    pub(crate) fn path(&self) -> String {
        match self.up {
            Some(up) if up.up.is_some() => format!("{}.{}", up.path(), self.key),
            _ => self.key.to_owned(),
        }
    }

    /// An error at this place.
    pub(crate) fn error(&self, what: impl Into<String>) -> Error {
        let error = Error::input(what).line(self.line);
        if self.up.is_none() { error } else { error.key(self.path()) }
    }
}

/// The members of an object, and the object's place.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) members: &'a [Member<'a>],
    pub(crate) at: &'a At<'a>,
}

/// The value of a member, and its place.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) value: &'a Value<'a>,
    pub(crate) at: At<'a>,
}

impl<'a> Fields<'a> {
    /// The members of an object.
    ///
    /// # Errors
    /// When the value is not an object.
    pub(crate) fn of(value: &'a Value, at: &'a At<'a>) -> Result<Self> {
        match &value.json {
            Json::Object(members) => Ok(Self { members, at }),
            other => Err(at.error(format!("is {}, but should be an object: {{ ... }}", other.noun()))),
        }
    }

    /// The member with this key. `null` counts as missing, as in rt-app.
    pub(crate) fn get(&self, key: &str) -> Option<Field<'a>> {
        let member = self.members.iter().find(|m| m.key == key)?;
        (member.value.json != Json::Null).then(|| Field { value: &member.value, at: self.at.of(member) })
    }

    /// Like [`Self::get`], but a missing member is an error.
    pub(crate) fn need(&self, key: &str) -> Result<Field<'a>> {
        self.get(key).ok_or_else(|| self.at.error(format!("\"{key}\" is missing")))
    }

    /// Reads an optional member.
    pub(crate) fn read<T>(&self, key: &str, read: impl FnOnce(&Field<'a>) -> Result<T>) -> Result<Option<T>> {
        self.get(key).map(|field| read(&field)).transpose()
    }

    /// Refuses keys that are not among `known`, and suggests the nearest known key.
    pub(crate) fn only(&self, known: &[&str]) -> Result<()> {
        for member in self.members {
            if !known.contains(&&*member.key) {
                let error = self.at.of(member).error("no such key here");
                return Err(match nearest(&member.key, known.iter().copied()) {
                    Some(near) => error.mend(format!("did you mean \"{near}\"?")),
                    None => error.mend(format!("known are {}", known.join(", "))),
                });
            }
        }
        Ok(())
    }
}

impl Field<'_> {
    fn wrong(&self, should: &str) -> Error {
        self.at.error(format!("is {}, but should be {should}", self.value.json.noun()))
    }

    pub(crate) fn int(&self) -> Result<i64> {
        self.int_or("a whole number")
    }

    /// An integer; the error for anything else says what it should be.
    pub(crate) fn int_or(&self, should: &str) -> Result<i64> {
        match self.value.json {
            Json::Int(number) => Ok(number),
            _ => Err(self.wrong(should)),
        }
    }

    /// An integer within the range.
    pub(crate) fn int_in(&self, range: std::ops::RangeInclusive<i64>) -> Result<i64> {
        let number = self.int()?;
        if range.contains(&number) {
            return Ok(number);
        }
        let what = if number < 0 && *range.start() == 0 && *range.end() == i64::MAX {
            format!("{number} is negative")
        } else {
            format!("{number} is not in {}..{}", range.start(), range.end())
        };
        Err(self.at.error(what))
    }

    /// A count or a size, which is not negative.
    pub(crate) fn count(&self) -> Result<u64> {
        Ok(self.int_in(0..=i64::MAX)?.unsigned_abs())
    }

    /// The index of a CPU, node or user: not negative, at most 32 bits.
    pub(crate) fn index(&self) -> Result<u32> {
        Ok(u32::try_from(self.int_in(0..=i64::from(u32::MAX))?).expect("in the range just checked"))
    }

    /// Microseconds, as an integer that is not negative.
    pub(crate) fn micros(&self) -> Result<Nanos> {
        let us = self.int()?;
        if us < 0 {
            return Err(self.at.error(format!("{us} is negative")).mend("a time in us is 0 or more"));
        }
        us.checked_mul(1000).map(i64::unsigned_abs).ok_or_else(|| self.at.error(format!("{us} us is too long a time")))
    }

    /// Microseconds, not negative, possibly with a fraction (to the nanosecond).
    pub(crate) fn fine_micros(&self) -> Result<Nanos> {
        match self.value.json {
            Json::Float(us) if (0.0..9e15).contains(&us) => Ok((us * 1000.0).round() as Nanos),
            Json::Float(us) => Err(self.at.error(format!("{us} is no time in us"))),
            _ => self.micros(),
        }
    }

    pub(crate) fn flag(&self) -> Result<bool> {
        match self.value.json {
            Json::Bool(flag) => Ok(flag),
            _ => Err(self.wrong("true or false")),
        }
    }

    pub(crate) fn text(&self) -> Result<&str> {
        match &self.value.json {
            Json::Text(text) => Ok(text),
            _ => Err(self.wrong("a string")),
        }
    }

    /// A list of distinct indices with at least one element.
    pub(crate) fn indices(&self) -> Result<Vec<u32>> {
        let Json::List(items) = &self.value.json else { return Err(self.wrong("a list of numbers: [0, 1]")) };
        if items.is_empty() {
            return Err(self.at.error("is empty").mend("name at least one, or leave the key out for all"));
        }
        let mut indices = Vec::with_capacity(items.len());
        for value in items {
            indices.push(Field { value, at: self.at.at_line(value.line) }.index()?);
        }
        indices.sort_unstable();
        indices.dedup();
        Ok(indices)
    }

    /// One of several words, as the value it stands for.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let error = self.at.error(format!("\"{text}\" is not known here"));
        Err(match nearest(text, names.iter().copied()) {
            Some(near) => error.mend(format!("did you mean \"{near}\"?")),
            None => error.mend(format!("known are {}", names.join(", "))),
        })
    }
}
