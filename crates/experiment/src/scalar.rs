//! A value that a file may write as a number or as a text.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// A number or a text.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number; kept apart so that it prints as it was written.
    Int(i64),
    /// Any other number; finite.
    Float(f64),
    /// A text.
    Text(String),
}

impl Scalar {
    /// Its number, if it is one.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Int(n) => Some(*n as f64),
            Self::Float(x) => Some(*x),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(n) => n.fmt(f),
            Self::Float(x) => x.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number or a text")
            }

            fn visit_i64<E: de::Error>(self, n: i64) -> Result<Scalar, E> {
                Ok(Scalar::Int(n))
            }

            fn visit_u64<E: de::Error>(self, n: u64) -> Result<Scalar, E> {
                i64::try_from(n).map(Scalar::Int).map_err(|_| E::custom("the number is too large"))
            }

            fn visit_f64<E: de::Error>(self, x: f64) -> Result<Scalar, E> {
                if x.is_finite() { Ok(Scalar::Float(x)) } else { Err(E::custom("the number is not finite")) }
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_owned()))
            }
        }
        reader.deserialize_any(Visitor)
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "A number or a text.", "type": ["number", "string"] })
    }
}
