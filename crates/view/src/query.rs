//! What a request asks for behind the question mark, and what it is sent.

use serde::Serialize;
use std::fmt::Display;
use std::str::FromStr;

/// Why a question cannot be answered: the status, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub u16, pub String);

impl Failure {
    /// The question is wrong.
    pub fn bad(text: impl Into<String>) -> Self {
        Self(400, text.into())
    }

    /// There is no such thing.
    pub fn none(text: impl Into<String>) -> Self {
        Self(404, text.into())
    }
}

impl From<schedlab_base::Error> for Failure {
    fn from(error: schedlab_base::Error) -> Self {
        Self::bad(error.to_string())
    }
}

/// What is sent.
#[derive(Clone, Debug)]
pub enum Body {
    /// A document.
    Json(String),
    /// A stream of a batch.
    Arrow(Vec<u8>),
}

impl Body {
    /// A document.
    pub fn json(value: &impl Serialize) -> Self {
        Self::Json(serde_json::to_string(value).expect("plain data is always JSON"))
    }
}

/// An answer or why there is none.
pub type Answered<T> = Result<T, Failure>;

/// The parts of a query, decoded.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands behind the question mark.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// Every value of this name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(own, value)| own == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// The value of this name.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(own, value)| own == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// A number, if it is given.
    ///
    /// # Errors
    /// When it is no number of this kind.
    pub fn number<T: FromStr>(&self, name: &str) -> Answered<Option<T>> {
        let number = self
            .text(name)
            .map(|text| text.parse().map_err(|_| Failure::bad(format!("{name}={text} is no number that fits"))));
        number.transpose()
    }

    /// A number within bounds, or else this one.
    ///
    /// # Errors
    /// When it is no number, or out of bounds.
    pub fn within<T: FromStr + PartialOrd + Display>(&self, name: &str, or: T, least: T, most: T) -> Answered<T> {
        let number = self.number(name)?.unwrap_or(or);
        if number < least || number > most {
            return Err(Failure::bad(format!("{name}={number} is not within {least} to {most}")));
        }
        Ok(number)
    }

    /// A number that must be given.
    ///
    /// # Errors
    /// When it is missing or no number of this kind.
    pub fn needed<T: FromStr>(&self, name: &str) -> Answered<T> {
        self.number(name)?.ok_or_else(|| Failure::bad(format!("{name} is missing")))
    }
}
