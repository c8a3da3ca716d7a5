//! Where the columns are in a batch, read from the stream's schema.

use super::schema::{COLUMNS, FIRST_COLUMNS, Type};
use super::{META_KEY, VERSION, VERSION_KEY};
use arrow_ipc::{Endianness, Field, Schema, Type as ArrowType};
use schedlab_base::{Error, Meta, Result, System};

/// Columns nested deeper than this are refused.
const MAX_DEPTH: usize = 8;

/// A column's place in each batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// The index of its first buffer: the validity, followed by the values (or by the offsets and the text).
    pub(super) buffer: usize,
    /// The id of its dictionary, for a dictionary column.
    pub(super) dictionary: Option<i64>,
}

/// The places of all columns that this version knows, in the order of `COLUMNS`, and the trace's metadata.
#[derive(Debug)]
pub(super) struct Layout {
    /// `None` for a column added after version 1.0 that the file does not have.
    pub(super) places: [Option<Place>; COLUMNS.len()],
    pub(super) buffers: usize,
    pub(super) meta: Meta,
}

impl Layout {
    /// Reads the schema. Columns that this version does not know are skipped.
    pub(super) fn read(schema: Schema<'_>) -> Result<Self> {
        if schema.endianness() != Endianness::Little {
            return Err(Error::input("the trace is big-endian").mend("convert it on the machine that wrote it"));
        }
        let meta = read_meta(schema)?;
        let mut found: [Option<Place>; COLUMNS.len()] = [None; COLUMNS.len()];
        let mut buffers = 0;
        for field in schema.fields().into_iter().flatten() {
            let name = field.name().unwrap_or("");
            if let Some(at) = COLUMNS.iter().position(|(known, ..)| *known == name) {
                check_type(field, COLUMNS[at].1)?;
                if found[at].is_some() {
                    return Err(Error::input("the trace has this column twice").key(name));
                }
                found[at] = Some(Place { buffer: buffers, dictionary: field.dictionary().map(|d| d.id()) });
            }
            buffers += count_buffers(field, 0)?;
        }
        if let Some(at) = found[..FIRST_COLUMNS].iter().position(Option::is_none) {
            return Err(Error::input("the trace lacks this column").key(COLUMNS[at].0.to_owned()));
        }
        Ok(Self { places: found, buffers, meta })
    }
}

fn read_meta(schema: Schema<'_>) -> Result<Meta> {
    let value = |key: &str| {
        let pairs = schema.custom_metadata()?;
        pairs.iter().find(|pair| pair.key() == Some(key)).and_then(|pair| pair.value())
    };
    let version = value(VERSION_KEY).ok_or_else(|| {
        Error::input(format!("an Arrow stream, but no trace of schedlab's: its schema lacks {VERSION_KEY}"))
    })?;
    let major = |version: &str| version.split('.').next().and_then(|n| n.parse::<u32>().ok());
    if major(version) != major(VERSION) {
        return Err(Error::input(format!(
            "the trace has version {version:?} of the format; this schedlab reads {VERSION}"
        ))
        .key(VERSION_KEY)
        .mend("read it with the schedlab that wrote it"));
    }
    let meta = value(META_KEY).ok_or_else(|| Error::input("the schema lacks the trace's metadata").key(META_KEY))?;
    let damaged = |what: String| Error::input(format!("the trace's metadata is damaged: {what}")).key(META_KEY);
    let meta: Meta = serde_json::from_str(meta).map_err(|e| damaged(e.to_string()))?;
    match meta.system.as_ref().map(System::check) {
        Some(Err(what)) => Err(damaged(format!("system: {what}"))),
        _ => Ok(meta),
    }
}

fn check_type(field: Field<'_>, wanted: Type) -> Result<()> {
    let int = |int: arrow_ipc::Int<'_>| (int.bitWidth(), int.is_signed());
    let dictionary = field.dictionary();
    let fits = match wanted {
        Type::Int { bytes, signed } => {
            dictionary.is_none() && field.type_as_int().map(int) == Some((8 * bytes as i32, signed))
        }
        Type::Text => dictionary.is_none() && field.type_type() == ArrowType::Utf8,
        Type::Dictionary => {
            field.type_type() == ArrowType::Utf8
                && dictionary.is_some_and(|d| d.indexType().map(int) == Some((8, false)))
        }
    };
    let name = field.name().unwrap_or("").to_owned();
    if fits { Ok(()) } else { Err(Error::input(format!("the column is no {}", describe(wanted))).key(name)) }
}

fn describe(wanted: Type) -> String {
    match wanted {
        Type::Int { bytes, signed } => format!("{}int{}", if signed { "" } else { "u" }, 8 * bytes),
        Type::Text => "utf8".to_owned(),
        Type::Dictionary => "dictionary of utf8 with uint8 indices".to_owned(),
    }
}

/// The number of buffers that a column and its children have in a batch.
fn count_buffers(field: Field<'_>, depth: usize) -> Result<usize> {
    let unsupported = || {
        let name = field.name().unwrap_or("").to_owned();
        Error::input(format!("columns of type {:?} are not read", field.type_type())).key(name)
    };
    if depth > MAX_DEPTH {
        return Err(unsupported());
    }
    if field.dictionary().is_some() {
        return Ok(2);
    }
    let own = match field.type_type() {
        ArrowType::Null => 0,
        ArrowType::Struct_ | ArrowType::FixedSizeList => 1,
        ArrowType::Utf8 | ArrowType::Binary | ArrowType::LargeUtf8 | ArrowType::LargeBinary => 3,
        ArrowType::Int
        | ArrowType::FloatingPoint
        | ArrowType::Bool
        | ArrowType::Decimal
        | ArrowType::Date
        | ArrowType::Time
        | ArrowType::Timestamp
        | ArrowType::Interval
        | ArrowType::Duration
        | ArrowType::FixedSizeBinary
        | ArrowType::List
        | ArrowType::LargeList
        | ArrowType::Map => 2,
        _ => return Err(unsupported()),
    };
    let children = field.children().into_iter().flatten();
    children.map(|child| count_buffers(child, depth + 1)).try_fold(own, |sum, n| n.map(|n| sum + n))
}
