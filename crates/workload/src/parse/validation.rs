//! `x-validation`: how well a model repeats the recording that it was made from.

use crate::Validation;
use crate::json::Json;
use crate::place::{Field, Fields};
use schedlab_base::Result;

const KEYS: &[&str] = &["kernel", "machine", "trust", "guesswork", "errors"];

pub(super) fn read(field: &Field) -> Result<Validation> {
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(KEYS)?;
    let text = |key: &str| fields.need(key)?.text().map(str::to_owned);
    let mut validation = Validation {
        kernel: text("kernel")?,
        machine: text("machine")?,
        trust: text("trust")?,
        ..Validation::default()
    };
    if let Some(list) = fields.get("guesswork") {
        let Json::List(items) = &list.value.json else { return Err(list.at.error("should be a list of strings")) };
        for item in items {
            let Json::Text(text) = &item.json else { return Err(list.at.error("should be a list of strings")) };
            validation.guesswork.push(text.to_string());
        }
    }
    if let Some(errors) = fields.get("errors") {
        for member in Fields::of(errors.value, &errors.at)?.members {
            let error = match member.value.json {
                Json::Float(value) if value.is_finite() => value,
                Json::Int(value) => value as f64,
                Json::Null => continue,
                _ => return Err(errors.at.of(member).error("should be a number: 0.1 is 10% too much")),
            };
            validation.errors.insert(member.key.to_string(), error);
        }
    }
    Ok(validation)
}
