//! Loads a workload from what the user names, a file or a preset.

use crate::{Workload, json, parse, parse_strictly, presets};
use schedlab_base::{Error, Result, nearest};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Loads the workload that `spec` names: a preset with parameters (`li:tasks=10,nice=5`), or a file of rt-app's JSON. A
/// preset's name always means the preset; `./li` is a file.
///
/// # Errors
/// When there is no such preset or file, or its content is wrong.
pub fn load(spec: &str) -> Result<Workload> {
    load_by(spec, parse)
}

/// [`load`], except that a key that is not known is an error, as in [`parse_strictly`].
///
/// # Errors
/// Those of [`load`], and when a key is not known.
pub fn load_strictly(spec: &str) -> Result<Workload> {
    load_by(spec, parse_strictly)
}

fn load_by(spec: &str, parse: fn(&[u8], &Path) -> Result<Workload>) -> Result<Workload> {
    let name = spec.split(':').next().unwrap_or(spec);
    if presets::find(name).is_some() {
        return presets::build(spec);
    }
    let path = Path::new(spec);
    if !path.exists() {
        return Err(unknown(spec, name));
    }
    let mut text = Vec::new();
    let limit = json::MAX_BYTES as u64 + 1;
    File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut text))
        .map_err(|e| Error::system("cannot read the workload", &e).file(path))?;
    Ok(Workload { file: Some(path.to_owned()), ..parse(&text, path)? })
}

fn unknown(spec: &str, name: &str) -> Error {
    let error = Error::input(format!("there is no workload file or preset \"{spec}\""));
    let names = presets::PRESETS.iter().map(|preset| preset.name);
    match nearest(name, names.clone()) {
        Some(near) => error.mend(format!("did you mean the preset \"{near}\"?")),
        None => error.mend(format!("name a file, or a preset: {}", names.collect::<Vec<_>>().join(", "))),
    }
}
