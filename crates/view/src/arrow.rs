//! Answers as Arrow IPC streams of one batch.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema};
use std::collections::HashMap;
use std::sync::Arc;

/// A stream of these columns, which have the same length, with text beside them.
///
/// # Panics
/// When the columns have different lengths, which is a bug.
#[must_use]
pub fn stream(columns: Vec<(&str, ArrayRef)>, beside: &[(&str, String)]) -> Vec<u8> {
    let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), false);
    let fields: Vec<Field> = columns.iter().map(field).collect();
    let beside: HashMap<String, String> = beside.iter().map(|(key, text)| ((*key).to_owned(), text.clone())).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, beside));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).expect("the columns have one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).expect("memory can be written to");
    writer.write(&batch).expect("memory can be written to");
    writer.into_inner().expect("memory can be written to")
}

/// Whole numbers as the answers have lists of them: `3,5-9`.
#[must_use]
pub fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Reads such a list; none if it is not one, or has more than `most` numbers.
#[must_use]
pub fn parse_ranges(text: &str, most: usize) -> Option<Vec<u64>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first >= (most - numbers.len().min(most)) as u64 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_written_and_read() {
        assert_eq!(ranges([3, 5, 6, 7, 9]), "3,5-7,9");
        assert_eq!(parse_ranges("3,5-7,9", 5), Some(vec![3, 5, 6, 7, 9]));
        for bad in ["", "x", "7-5", "1-6", "0-18446744073709551615", "1,", "-1", "3,5-8,9"] {
            assert_eq!(parse_ranges(bad, 5), None, "{bad}");
        }
    }
}
