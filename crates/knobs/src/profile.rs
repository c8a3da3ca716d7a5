//! Values in the forms of other tools: a profile of tuned, a file of sysctl.d, a shell script that can undo itself.

use crate::place::{changed_with, resolve};
use crate::settings::{Setting, Settings};
use crate::spec::Spec;
use schedlab_base::{Error, Result};

/// One value with where it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The knob's name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// The value.
    pub value: String,
    /// What was measured of it.
    pub effects: Vec<String>,
    /// The files whose values the kernel changes with this one.
    pub also: Vec<String>,
}

/// Values with what was measured of all together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// What was measured of all together.
    pub effects: Vec<String>,
    /// The values.
    pub lines: Vec<Line>,
}

/// The functions of the script. Old values are kept in a directory that a reboot empties; it resets the kernel too.
const SCRIPT: &str = r#"
set -eu
state=${SCHEDLAB_UNDO:-/run/schedlab-undo}

# The value in force: of a file that lists all values, the one in brackets or parentheses.
value() {
    sed -n -e 's/.*[[(]\([^])]*\)[])].*/\1/' -e p -e q "$1"
}

# Keeps the old value, unless an earlier run has kept one.
keep() {
    [ -e "$1" ] || return 0
    kept=$(cut -f 1 "$state" 2>/dev/null | grep -cxF -e "$1" || true)
    [ "$kept" != 0 ] || printf '%s\t%s\n' "$1" "$(value "$1")" >>"$state"
}

put() {
    [ -e "$1" ] || { echo "$1: not on this machine, left out" >&2; return 0; }
    printf '%s\n' "$2" >"$1"
}

undo() {
    [ -e "$state" ] || { echo "nothing to undo" >&2; return 0; }
    # Twice, because some values are reset when another is set.
    for round in 1 2; do
        while IFS="$(printf '\t')" read -r file old; do
            [ ! -e "$file" ] || [ "$(value "$file")" = "$old" ] || printf '%s\n' "$old" >"$file" 2>/dev/null || true
        done <"$state"
    done
    failed=0
    while IFS="$(printf '\t')" read -r file old; do
        [ ! -e "$file" ] || [ "$(value "$file")" = "$old" ] || failed=1
    done <"$state"
    [ "$failed" = 0 ] || { echo "some values cannot be put back; they are in $state" >&2; exit 1; }
    rm -f "$state"
}
"#;

impl Profile {
    /// The values of a file, for any machine: devices are taken as they are named.
    ///
    /// # Errors
    /// When the catalogue has no such tunable, or a value is none of its.
    pub fn new(settings: &Settings, specs: &[Spec]) -> Result<Self> {
        let line = |setting: &Setting| {
            let at = |e| settings.at(setting, e);
            let (spec, path) = resolve(specs, &setting.name).map_err(at)?;
            let unknown = || Error::input("it is not set by files like this one");
            let values = spec.values.as_ref().ok_or_else(unknown).map_err(at)?;
            let value = values.limits().check(&setting.value).map_err(at)?;
            let also = changed_with(specs, spec, &setting.name);
            Ok(Line { name: setting.name.clone(), path, value, effects: setting.effects.clone(), also })
        };
        let lines = settings.settings.iter().map(line).collect::<Result<_>>()?;
        Ok(Self { effects: settings.effects.clone(), lines })
    }

    fn head(&self, what: &str) -> String {
        let mut text = format!("# {what}\n# written by schedlab tunables --profile\n");
        self.effects.iter().for_each(|effect| text += &format!("# effect of all: {effect}\n"));
        text
    }

    /// A profile of tuned, for /etc/tuned/NAME/tuned.conf.
    #[must_use]
    pub fn tuned(&self) -> String {
        let mut text = self.head("A profile of tuned: put it into /etc/tuned/NAME/tuned.conf; tuned-adm profile NAME");
        text += "\n[main]\nsummary=Settings found by schedlab\n";
        let place = |line: &Line| match line.path.strip_prefix("/proc/sys/") {
            Some(rest) => ("sysctl", sysctl(rest)),
            None if line.path.starts_with("/sys/") => ("sysfs", line.path.clone()),
            None => ("", line.path.clone()),
        };
        for section in ["sysctl", "sysfs"] {
            let lines: Vec<_> =
                self.lines.iter().map(|line| (line, place(line))).filter(|(_, p)| p.0 == section).collect();
            if !lines.is_empty() {
                text += &format!("\n[{section}]\n");
                lines.iter().for_each(|(line, (_, key))| text += &format!("{}{key}={}\n", remarks(line), line.value));
            }
        }
        for line in self.lines.iter().filter(|line| place(line).0.is_empty()) {
            text +=
                &format!("\n{}# tuned has no section for it: echo '{}' > {}\n", remarks(line), line.value, line.path);
        }
        text
    }

    /// A file of sysctl.d. What is no sysctl is a comment.
    #[must_use]
    pub fn sysctl(&self) -> String {
        let mut text = self.head("sysctl: put it into /etc/sysctl.d/90-schedlab.conf; sysctl --system sets it");
        for line in &self.lines {
            text += "\n";
            text += &remarks(line);
            text += &match line.path.strip_prefix("/proc/sys/") {
                Some(rest) => format!("{} = {}\n", sysctl(rest), line.value),
                None => format!("# no sysctl, so not set from here: {} = {}\n", line.path, line.value),
            };
        }
        text
    }

    /// A shell script; `--undo` puts back what it changed.
    #[must_use]
    pub fn sh(&self) -> String {
        let mut text =
            format!("#!/bin/sh\n{}", self.head("Sets what schedlab found; with --undo it puts the old values back"));
        text += SCRIPT;
        text +=
            "\ncase ${1:-} in\n--undo) undo; exit ;;\n'') ;;\n*) echo \"usage: $0 [--undo]\" >&2; exit 2 ;;\nesac\n";
        text += "\n";
        for path in self.lines.iter().flat_map(|line| std::iter::once(&line.path).chain(&line.also)) {
            text += &format!("keep {}\n", quoted(path));
        }
        for line in &self.lines {
            text += &format!("\n{}put {} {}\n", remarks(line), quoted(&line.path), quoted(&line.value));
        }
        text
    }
}

/// The comments above a line.
fn remarks(line: &Line) -> String {
    line.effects.iter().map(|effect| format!("# effect: {}\n", effect.replace(['\n', '\r'], " "))).collect()
}

/// The name of a sysctl, `vm.swappiness`. One whose parts have dots, as those of VLANs do, stays with slashes.
fn sysctl(path: &str) -> String {
    if path.contains('.') { path.to_owned() } else { path.replace('/', ".") }
}

/// A word for the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tree;
    use std::path::Path;
    use std::process::Command;

    fn profile(root: &str) -> Profile {
        let line = |path: &str, value: &str, effect: &str| Line {
            name: path.to_owned(),
            path: format!("{root}{path}"),
            value: value.to_owned(),
            effects: if effect.is_empty() { Vec::new() } else { vec![effect.to_owned()] },
            also: Vec::new(),
        };
        Profile {
            effects: vec!["run time -7 %".to_owned()],
            lines: vec![
                line("/proc/sys/vm/swappiness", "10", "run time -4 %"),
                line("/sys/block/vda/queue/scheduler", "none", ""),
                line("/proc/irq/24/smp_affinity_list", "0-1", ""),
                line("/proc/sys/net/ipv4/tcp_rmem", "4096 8192 16384", ""),
            ],
        }
    }

    #[test]
    fn each_form_has_the_values_in_its_own_way() {
        let all = profile("");
        let tuned = all.tuned();
        assert!(tuned.contains("[sysctl]\n# effect: run time -4 %\nvm.swappiness=10\n"), "{tuned}");
        assert!(tuned.contains("net.ipv4.tcp_rmem=4096 8192 16384\n"), "{tuned}");
        assert!(tuned.contains("[sysfs]\n/sys/block/vda/queue/scheduler=none\n"), "{tuned}");
        assert!(tuned.contains("# effect of all: run time -7 %") && tuned.contains("> /proc/irq/24/smp_affinity_list"));
        let sysctl = all.sysctl();
        assert!(sysctl.contains("\n# effect: run time -4 %\nvm.swappiness = 10\n"), "{sysctl}");
        assert!(sysctl.contains("# no sysctl, so not set from here: /sys/block/vda/queue/scheduler = none"));
        assert_eq!(self::sysctl("net/ipv4/conf/eth0.7/rp_filter"), "net/ipv4/conf/eth0.7/rp_filter");
    }

    #[test]
    fn the_script_sets_and_undoes() {
        let before = [
            ("proc/sys/vm/swappiness", "60\n"),
            ("sys/block/vda/queue/scheduler", "[none] mq-deadline\n"),
            ("proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
        ];
        let dir = tree(&before);
        let read = |path: &str| std::fs::read_to_string(dir.path().join(path)).unwrap();
        let script = dir.path().join("tune.sh");
        std::fs::write(&script, profile(dir.path().to_str().unwrap()).sh()).unwrap();
        let run = |args: &[&str]| {
            let undo = dir.path().join("undo");
            let out = Command::new("sh").arg(&script).args(args).env("SCHEDLAB_UNDO", &undo).output().unwrap();
            (out.status.code(), String::from_utf8(out.stderr).unwrap(), Path::exists(&undo))
        };
        for _ in 0..2 {
            let (status, said, kept) = run(&[]);
            assert!(
                status == Some(0) && said.contains("irq/24/smp_affinity_list: not on this machine") && kept,
                "{said}"
            );
            assert_eq!(read("proc/sys/vm/swappiness"), "10\n");
        }
        assert_eq!(run(&["--undo"]), (Some(0), String::new(), false));
        assert_eq!(read("proc/sys/vm/swappiness"), "60\n");
        assert_eq!(read("sys/block/vda/queue/scheduler"), "none\n");
        assert_eq!(
            read("proc/sys/net/ipv4/tcp_rmem").split_whitespace().collect::<Vec<_>>(),
            ["4096", "131072", "6291456"]
        );
        assert_eq!(run(&["--undo"]).1, "nothing to undo\n");
        assert_eq!(run(&["--nonsense"]).0, Some(2));
    }
}
