//! From what the user names, a file or a preset, to a workload.

use crate::{Workload, json, parse, presets};
use schedlab_base::{Error, Result, nearest};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads the workload that `spec` names: a preset with its parameters (`li:tasks=10,nice=5`) or a file of rt-app's
/// JSON. A name that a preset has is the preset's; `./li` is a file.
///
/// # Errors
/// When there is neither such a preset nor such a file, or what it says is wrong.
pub fn load(spec: &str) -> Result<Workload> {
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
    parse(&text, path)
}

fn unknown(spec: &str, name: &str) -> Error {
    let error = Error::input(format!("there is no workload file or preset \"{spec}\""));
    let names = presets::PRESETS.iter().map(|preset| preset.name);
    match nearest(name, names.clone()) {
        Some(near) => error.mend(format!("did you mean the preset \"{near}\"?")),
        None => error.mend(format!("name a file, or a preset: {}", names.collect::<Vec<_>>().join(", "))),
    }
}
