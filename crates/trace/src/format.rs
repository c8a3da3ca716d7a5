//! The `format` files of tracefs, which describe where each field of a tracepoint's record is, and the decoding of raw
//! records with their help.
//!
//! The order, the size and even the kind of a field differ between kernels (`comm` was a fixed array and is a
//! `__data_loc` string today), so no field is ever read at a fixed offset.

mod decoder;
mod interrupts;
mod names;
mod plan;
mod states;

pub use decoder::Decoder;

use schedlab_base::{Error, Result};

/// The longest record: a page of the ring buffer, or the largest 16-bit record size of perf.
const RECORD_MAX: u32 = 1 << 16;

/// How a field's value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// In place: a number.
    Inline,
    /// In place: an array of a fixed length.
    Array,
    /// A 32-bit word that holds the offset of the data from the start of the record, and its length << 16
    /// (`__data_loc`).
    DataLoc,
    /// The same, but the offset counts from the end of the word (`__rel_loc`, since 5.17).
    RelLoc,
}

/// One field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name. The names of fields that every event has begin with `common_`.
    pub name: String,
    /// Its offset from the start of the record, in bytes.
    pub offset: u32,
    /// Its size in the fixed part of the record, in bytes.
    pub size: u32,
    /// Whether it is a signed number.
    pub(crate) signed: bool,
    /// How the value is stored.
    pub shape: Shape,
}

/// The layout of one event's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// The event's name without its system: `sched_switch`.
    pub name: String,
    /// The id in the `common_type` field of its records. It differs from kernel to kernel.
    pub id: u16,
    /// Its fields, the common ones first.
    pub(crate) fields: Vec<Field>,
    /// The text of `print fmt:`; empty if there is none.
    pub(crate) print_fmt: String,
}

impl Format {
    /// Parses the text of a `format` file.
    ///
    /// # Errors
    /// When the name, the id or the fields are missing, or a field lies outside any record.
    pub fn parse(text: &str) -> Result<Self> {
        let (mut name, mut id, mut fields, mut print_fmt) = (None, None, Vec::new(), String::new());
        for (number, line) in text.lines().enumerate() {
            let at = |e: Error| e.line(number as u64 + 1);
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("name:") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("ID:") {
                id = Some(
                    rest.trim().parse().map_err(|_| at(Error::input(format!("\"{}\" is no event id", rest.trim()))))?,
                );
            } else if line.starts_with("field:") || line.starts_with("field special:") {
                fields.push(parse_field(line).map_err(at)?);
            } else if let Some(rest) = line.strip_prefix("print fmt:") {
                rest.trim().clone_into(&mut print_fmt);
            }
        }
        let name = name.ok_or_else(|| Error::input("an event's format has no line \"name:\""))?;
        let id = id.ok_or_else(|| Error::input("an event's format has no line \"ID:\"").key(&name))?;
        Ok(Self { name, id, fields, print_fmt })
    }

    /// The field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }

    /// The field with this name, which the event must have.
    ///
    /// # Errors
    /// When there is no such field.
    pub(crate) fn need(&self, name: &str) -> Result<&Field> {
        self.field(name)
            .ok_or_else(|| Error::input(format!("the event's format has no field \"{name}\"")).key(&self.name))
    }
}

/// Parses `field:TYPE NAME;  offset:N;  size:N;  signed:N;` (kernels before 2.6.33 leave `signed` out).
fn parse_field(line: &str) -> Result<Field> {
    let bad = |what: &str| Error::input(format!("the field line \"{line}\" {what}"));
    let (mut declaration, mut offset, mut size, mut signed) = ("", None, None, false);
    for part in line.split(';') {
        let Some((key, value)) = part.split_once(':') else { continue };
        let value = value.trim();
        let number = || value.parse::<u32>().map_err(|_| bad("has a bad number"));
        match key.trim() {
            "field" | "field special" => declaration = value,
            "offset" => offset = Some(number()?),
            "size" => size = Some(number()?),
            "signed" => signed = number()? != 0,
            _ => {}
        }
    }
    let offset = offset.ok_or_else(|| bad("has no offset"))?;
    let size = size.ok_or_else(|| bad("has no size"))?;
    if offset.checked_add(size).is_none_or(|end| end > RECORD_MAX) {
        return Err(bad("lies outside any record"));
    }
    let name = field_name(declaration).ok_or_else(|| bad("names no field"))?;
    let shape = if declaration.starts_with("__data_loc") {
        Shape::DataLoc
    } else if declaration.starts_with("__rel_loc") {
        Shape::RelLoc
    } else if declaration.ends_with(']') {
        Shape::Array
    } else {
        Shape::Inline
    };
    if matches!(shape, Shape::DataLoc | Shape::RelLoc) && size != 4 {
        return Err(bad("points to its data by a word that is not 4 bytes long"));
    }
    Ok(Field { name, offset, size, signed, shape })
}

/// The name in a declaration: `pid_t pid`, `char comm[16]`, `__data_loc char[] comm`.
fn field_name(declaration: &str) -> Option<String> {
    let word = declaration.split_whitespace().next_back()?;
    let name = word.split('[').next()?.trim_start_matches('*');
    (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_read() {
        let format = Format::parse(
            "name: sched_migrate_task\nID: 371\nformat:\n\
             \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
             \tfield:__data_loc char[] comm;\toffset:8;\tsize:4;\tsigned:0;\n\
             \tfield:char other[TASK_COMM_LEN];\toffset:12;\tsize:16;\tsigned:0;\n\n\
             print fmt: \"comm=%s\", __get_str(comm)\n",
        )
        .unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sched_migrate_task", 371));
        let comm = format.need("comm").unwrap();
        assert_eq!((comm.offset, comm.size, comm.shape), (8, 4, Shape::DataLoc));
        assert_eq!(format.need("other").unwrap().shape, Shape::Array);
        assert!(format.need("common_pid").unwrap().signed);
        assert!(format.print_fmt.starts_with("\"comm=%s\""));
    }

    #[test]
    fn a_broken_format_is_refused_with_its_line() {
        let line = |l: &str| Format::parse(&format!("name: x\nID: 1\nformat:\n{l}\n")).unwrap_err().to_string();
        assert!(line("\tfield:int a;\toffset:4294967295;\tsize:4;").contains("outside"));
        assert!(line("\tfield:int a;\toffset:x;\tsize:4;").starts_with("line 4:"));
        assert!(line("\tfield:;\toffset:0;\tsize:4;").contains("names no field"));
        assert!(line("\tfield:__data_loc char[] a;\toffset:0;\tsize:2;").contains("4 bytes"));
        assert!(Format::parse("ID: 4\n").is_err());
        assert!(Format::parse("name: a\nID: 70000\n").is_err());
    }
}
