//! Finds the machine that a user names.

use crate::file::MachineFile;
use crate::model::Machine;
use crate::presets::{self, PRESETS};
use schedlab_base::{Error, Result, nearest};
use std::path::Path;

/// Loads the machine that `spec` names: a preset, a shorthand (`N`, `SxC` or `SxCxT` for sockets x cores x threads on
/// one node), `host` (this machine), or the path of a TOML file.
///
/// # Errors
/// When `spec` is none of these, the file is wrong, or such a machine is impossible.
pub fn load(spec: &str) -> Result<Machine> {
    let spec = spec.trim();
    if let Some(preset) = presets::find(spec) {
        return Ok(preset.machine());
    }
    if spec == "host" {
        return crate::host();
    }
    if spec.starts_with(|c: char| c.is_ascii_digit() || c == '-') && !spec.contains(['.', '/']) {
        return shorthand(spec);
    }
    let path = Path::new(spec);
    if path.extension().is_some_and(|e| e == "toml") || spec.contains('/') || path.is_file() {
        return MachineFile::open(path);
    }
    Err(unknown(spec))
}

fn unknown(spec: &str) -> Error {
    let names = PRESETS.iter().map(|p| p.name);
    let mend = match nearest(spec, names.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!(
            "give a preset ({}), a shorthand (4, 2x6, 4x15x2), host, or a .toml file",
            names.collect::<Vec<_>>().join(", ")
        ),
    };
    Error::input(format!("\"{spec}\" is no machine")).mend(mend)
}

fn shorthand(spec: &str) -> Result<Machine> {
    let mend = "write CPUs, sockets x cores, or sockets x cores x threads: 4, 2x6, 4x15x2";
    let bad = || Error::input(format!("\"{spec}\" is no machine")).mend(mend);
    let parts: Vec<u32> = spec.split(['x', 'X']).map(|p| p.parse().map_err(|_| bad())).collect::<Result<_>>()?;
    let (sockets, cores, threads) = match parts[..] {
        [cores] => (1, cores, 1),
        [sockets, cores] => (sockets, cores, 1),
        [sockets, cores, threads] => (sockets, cores, threads),
        _ => return Err(bad()),
    };
    MachineFile::flat(spec, sockets, cores, threads)
        .build()
        .map_err(|e| Error::input(format!("the machine \"{spec}\" cannot be: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error(spec: &str) -> String {
        load(spec).unwrap_err().to_string()
    }

    #[test]
    fn presets_and_shorthands_load() {
        for (spec, cpus) in [("up", 1), ("1", 1), ("4", 4), ("2x6", 12), ("4x15x2", 120), ("64x64x2", 8192)] {
            assert_eq!(load(spec).unwrap().cpus.len(), cpus, "{spec}");
        }
    }

    #[test]
    fn unknown_machines_are_refused_with_the_fix() {
        assert_eq!(error("z80"), "\"z80\" is no machine; did you mean \"z800\"?");
        assert!(error("0").contains("no fewer than one"));
        assert!(error("-4").contains("write CPUs"));
        assert!(error("8193").contains("at most 8192"));
        assert!(error("4294967296x9").contains("is no machine"));
        assert!(error("2x2x2x2").contains("write CPUs"));
        assert!(error("gone.toml").contains("gone.toml: cannot open"));
    }

    #[test]
    fn a_file_needs_only_sockets_cores_and_threads() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, "sockets = 2\ncores = 2\nthreads = 1\ndistances = [[10, 21], [21, 10]]\n").unwrap();
        let machine = load(path.to_str().unwrap()).unwrap();
        assert_eq!((machine.name.as_str(), machine.cpus.len(), machine.nodes()), ("mine", 4, 2));
        assert_eq!(machine.costs, crate::Costs::measured());
    }

    #[test]
    fn a_files_error_names_file_line_and_key() {
        let text = "sockets = 2\ncores = 6\nthreads = 1\ndistances = [[10, 21], [22, 10]]\n";
        let message = MachineFile::parse(&crate::tomltext::TomlText::new("m.toml", text)).unwrap_err().to_string();
        assert!(message.starts_with("m.toml:4: distances: from node 0 to 1 it is 21"), "{message}");
        let text = "sockets = 2\ncorse = 6\nthreads = 1\n";
        let message = MachineFile::parse(&crate::tomltext::TomlText::new("m.toml", text)).unwrap_err().to_string();
        assert_eq!(message, "m.toml:2: corse: \"corse\" is no key; did you mean \"cores\"?");
    }

    proptest! {
        #[test]
        fn no_spec_panics(spec in "[0-9x.a-z/ -]{0,24}") {
            let _ = load(&spec);
        }

        #[test]
        fn no_mutated_file_panics(at in 0usize..400, byte in any::<u8>(), cut in 0usize..400) {
            let mut text = presets::find("bulldozer-64").unwrap().file().to_toml().into_bytes();
            let n = text.len();
            text[at % n] = byte;
            text.truncate(n - cut % n);
            let text = String::from_utf8_lossy(&text).into_owned();
            let _ = MachineFile::parse(&crate::tomltext::TomlText::new("m.toml", text));
        }
    }
}
