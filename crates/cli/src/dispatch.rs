//! Verbs that are programs of their own, as git has them: `schedlab tune ...` becomes `schedlab-tune ...`. They belong
//! to the Python package, because the optimisers and the clusters that they use do.

use schedlab_base::{Error, Result};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The verbs of that kind.
const PROGRAMS: [&str; 3] = ["tune", "sweep", "query"];

/// What one of these verbs is given. The program reads it, so that this is only for the list of verbs.
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct Args {
    /// What the program is given; --help lists it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// The verb and its arguments, if the command line asks for one of these verbs: `--json` may stand before the verb, and
/// `help VERB` is its `--help`.
fn asked(line: impl IntoIterator<Item = OsString>) -> Option<(&'static str, Vec<OsString>)> {
    let mut given = Vec::new();
    let mut line = line.into_iter();
    let mut word = line.next()?;
    while word == "--json" {
        given.push(word);
        word = line.next()?;
    }
    if word == "help" {
        given = vec!["--help".into()];
        word = line.next()?;
    }
    let verb = PROGRAMS.into_iter().find(|verb| word == *verb)?;
    given.extend(line);
    Some((verb, given))
}

/// The program of a verb: beside the running command, or else the first on the path.
fn program(verb: &str, beside: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
    let folders = beside.map(Path::to_owned).into_iter().chain(path.into_iter().flat_map(std::env::split_paths));
    let runs =
        |file: &PathBuf| file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    folders.map(|folder| folder.join(format!("schedlab-{verb}"))).find(runs)
}

/// The package with what a verb needs.
fn package(verb: &str) -> &'static str {
    if verb == "query" { ".[query]" } else { ".[tune]" }
}

/// Becomes the program of such a verb, if the command line asks for one.
///
/// # Errors
/// When the program is not installed, or cannot be run. Otherwise this returns only if another verb is asked for.
pub fn become_program() -> Result<()> {
    match asked(std::env::args_os().skip(1)) {
        Some((verb, given)) => Err(replace(verb, &given)),
        None => Ok(()),
    }
}

/// Runs what clap took for an ordinary verb, for example `schedlab -- tune`.
pub fn run(verb: &str, args: &Args) -> Result<ExitCode> {
    Err(replace(verb, &args.arguments))
}

/// Replaces this process by the program; returns only if that fails.
fn replace(verb: &str, given: &[OsString]) -> Error {
    let this = std::env::current_exe().and_then(|exe| exe.canonicalize());
    let beside = this.as_deref().ok().and_then(Path::parent);
    let Some(program) = program(verb, beside, std::env::var_os("PATH").as_deref()) else {
        return Error::not_permitted(format!("{verb} is part of the Python package, which is not installed here"))
            .mend(format!("in schedlab's sources: pip install '{}'", package(verb)));
    };
    let failure: io::Error = Command::new(&program).args(given).exec();
    Error::system("cannot be run", &failure)
        .file(program)
        .mend(format!("pip install --force-reinstall '{}'", package(verb)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_these_verbs_are_programs_and_their_arguments_stay_as_they_are() {
        let of = |line: &str| {
            let (verb, given) = asked(line.split_whitespace().map(OsString::from))?;
            Some(format!("{verb}: {}", given.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")))
        };
        assert_eq!(of("tune --help").as_deref(), Some("tune: --help"));
        assert_eq!(of("--json sweep s.toml --json").as_deref(), Some("sweep: --json s.toml --json"));
        assert_eq!(of("help tune").as_deref(), Some("tune: --help"));
        assert_eq!(of("tune").as_deref(), Some("tune: "));
        for other in ["", "--json", "stats tune", "help", "help stats", "tunes", "--version"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_program_beside_the_command_comes_before_those_on_the_path() {
        let (beside, path) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let find = || program("tune", Some(beside.path()), Some(path.path().as_os_str()));
        assert_eq!(find(), None);
        let make = |folder: &Path, mode: u32| {
            let file = folder.join("schedlab-tune");
            fs::write(&file, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        let second = make(path.path(), 0o755);
        assert_eq!(find(), Some(second.clone()));
        make(beside.path(), 0o644);
        assert_eq!(find(), Some(second), "a file that nobody may run is no program");
        assert_eq!(find().is_some(), program("tune", None, Some(path.path().as_os_str())).is_some());
        let first = make(beside.path(), 0o755);
        assert_eq!(find(), Some(first));
    }
}
