//! Debian's kernels by Debian's own tools: apt finds, fetches and checks them, from the sources that the machine is
//! configured with, and dpkg unpacks them.

use schedlab_base::{Error, Result};
use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One version of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// Of the package's file.
    pub(super) sha256: String,
}

/// The newest cloud kernel of this release that apt knows.
///
/// # Errors
/// When there is no apt, or it knows none.
pub(super) fn newest(release: &str) -> Result<Package> {
    let pattern = format!(r"^linux-image-{}\.[0-9][-.+~a-z0-9]*-cloud-amd64$", release.replace('.', r"\."));
    let listed = output(Command::new("apt-cache").args(["search", "--names-only", &pattern]))?;
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let none = || {
        Error::input(format!("apt knows no kernel {release} (linux-image-{release}.*-cloud-amd64)")).mend(
            "bring its lists up to date, as root: apt-get update; Debian 12 has 6.1, and 6.12 in bookworm-backports \
             or its updates; Debian 13 has 6.12",
        )
    };
    if names.is_empty() {
        return Err(none());
    }
    let shown = output(Command::new("apt-cache").arg("show").args(&names))?;
    let mut best: Option<Package> = None;
    for package in packages(&shown) {
        let newer = match &best {
            Some(best) => compare(&package.version, &best.version)? == Ordering::Greater,
            None => true,
        };
        if newer {
            best = Some(package);
        }
    }
    best.ok_or_else(none)
}

/// The packages in the output of `apt-cache show`.
fn packages(shown: &str) -> impl Iterator<Item = Package> + '_ {
    shown.split("\n\n").filter_map(|paragraph| {
        let field = |key: &str| {
            let line = paragraph.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
            line.map(|value| value.trim().to_owned())
        };
        Some(Package { name: field("Package")?, version: field("Version")?, sha256: field("SHA256")? })
    })
}

/// Compares two versions as dpkg does.
fn compare(a: &str, b: &str) -> Result<Ordering> {
    let greater = Command::new("dpkg").args(["--compare-versions", a, "gt", b]).stdin(Stdio::null()).status();
    match greater.map_err(|e| missing("dpkg", &e))?.code() {
        Some(0) => Ok(Ordering::Greater),
        _ => Ok(Ordering::Less),
    }
}

/// Downloads a package into this folder.
///
/// # Errors
/// When apt fails, or what it fetched does not agree with the archive's signed lists.
pub(super) fn download(package: &Package, folder: &Path) -> Result<PathBuf> {
    let mut command = Command::new("apt-get");
    command.args(["download", "-qq", "-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=60"]);
    // The folder is the user's own, where apt's user may not write.
    command.args(["-o", "APT::Sandbox::User="]);
    command.arg(format!("{}={}", package.name, package.version)).current_dir(folder);
    output(&mut command)?;
    let entries = std::fs::read_dir(folder).map_err(|e| Error::system("cannot be read", &e).file(folder))?;
    let mut files = entries.flatten().map(|entry| entry.path());
    files
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .ok_or_else(|| Error::input(format!("apt-get download {} has left no package", package.name)).file(folder))
}

/// Unpacks a package into a new folder, and finds the kernel's image.
///
/// # Errors
/// When dpkg fails, or there is no image.
pub(super) fn unpack(package: &Path, folder: &Path) -> Result<PathBuf> {
    output(Command::new("dpkg-deb").arg("--extract").arg(package).arg(folder))?;
    let boot = folder.join("boot");
    let entries = std::fs::read_dir(&boot).map_err(|e| Error::system("cannot be read", &e).file(&boot))?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")))
        .ok_or_else(|| Error::input("holds no kernel").file(package))
}

/// What a command prints.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.env("LC_ALL", "C").stdin(Stdio::null()).output().map_err(|e| missing(&name, &e))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let line = said.lines().map(str::trim).rfind(|line| line.starts_with("E:") || line.contains("error:"));
    let why = line.or(said.lines().last()).unwrap_or("it does not say why");
    Err(Error::input(format!("{name} failed: {why}")))
}

fn missing(program: &str, e: &std::io::Error) -> Error {
    let mend = "on other distributions than Debian, name an image: vm:/boot/vmlinuz-...";
    Error::not_permitted(format!("{program} cannot be run: {e}")).mend(mend)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_without_a_checksum_are_left_out() {
        let shown = "Package: a\nVersion: 1-2\nSHA256: 00ff\nDescription-en: x\n Version: 9\n\n\
                     Package: b\nVersion: 2\n\nPackage: c\nVersion: 3\nSHA256: 01\n";
        let found: Vec<_> = packages(shown).map(|p| (p.name, p.version, p.sha256)).collect();
        let row = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(found, [row("a", "1-2", "00ff"), row("c", "3", "01")]);
    }

    #[test]
    fn versions_compare_as_dpkg_compares_them() {
        if Command::new("dpkg").arg("--version").output().is_err() {
            eprintln!("skipped: there is no dpkg here");
            return;
        }
        assert_eq!(compare("6.12.117-1~deb12u1", "6.12.13-1").unwrap(), Ordering::Greater);
        assert_eq!(compare("6.1.9-1", "6.1.10-1").unwrap(), Ordering::Less);
    }

    #[test]
    fn a_failing_tool_is_quoted() {
        let message = output(Command::new("sh").args(["-c", "echo W: x >&2; echo E: no net >&2; exit 1"])).unwrap_err();
        assert_eq!(message.to_string(), "sh failed: E: no net");
        assert_eq!(output(&mut Command::new("/nonexistent/apt")).unwrap_err().exit_status(), 4);
    }
}
