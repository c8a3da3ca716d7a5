use std::{collections::BTreeMap, fmt};

mod part;

pub struct First(part::Part, BTreeMap<u8, fmt::Error>);
