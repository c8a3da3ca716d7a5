//! How the tunables of the catalogue are set on a running machine: the rows of `machine.csv`.

use super::{Entry, find};
use schedlab_base::{Error, Release};
use schedlab_knobs::{Here, Spec, Values};
use serde::Deserialize;
use std::sync::LazyLock;

/// What is known of a tunable's file on a machine.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    /// Its name in the catalogue.
    pub(super) name: String,
    /// The group that a user allows or not.
    pub(super) group: String,
    /// How much a wrong value can harm: `low`, `medium`, `high`.
    pub(super) level: String,
    /// The values that are accepted, as `schedlab_knobs::Values` reads them; empty: it is not set as a file.
    pub(super) values: String,
    /// The tunables that the kernel changes with it, separated by spaces.
    changes: String,
    /// What can stand in for it: the words of `schedlab_knobs::Here::instead`.
    instead: String,
}

/// All rows.
pub(super) fn rows() -> &'static [Row] {
    static ALL: LazyLock<Vec<Row>> = LazyLock::new(|| {
        let mut reader = csv::Reader::from_reader(include_str!("machine.csv").as_bytes());
        reader.deserialize().map(|row| row.expect("the catalogue is well-formed")).collect()
    });
    &ALL
}

/// The row of an entry.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    rows().iter().find(|row| row.name == name)
}

/// What a machine with this release may have. Without a release the newest rules hold.
///
/// # Panics
/// When the catalogue is not well-formed, which a test excludes.
#[must_use]
pub fn specs(release: Option<Release>) -> Vec<Spec> {
    let release = release.unwrap_or(schedlab_base::v(u16::MAX, 0));
    let spec = |row: &'static Row| {
        let entry = super::entries().iter().find(|entry| entry.name == row.name).expect("each row has its entry");
        Spec {
            name: &entry.name,
            group: row.group.parse().expect("a group"),
            risk: row.level.parse().expect("a level"),
            path: &entry.path,
            unit: &entry.unit,
            meaning: &entry.meaning,
            harm: &entry.risk,
            default: &entry.default,
            values: Values::parse(&row.values, release).expect("the values are well-formed"),
            changes: row.changes.split_whitespace().collect(),
            instead: &row.instead,
        }
    };
    rows().iter().map(spec).collect()
}

/// What to say of a name that a machine does not have, if the catalogue knows it: in which releases it exists, what
/// took its place, and what stands in for it on this machine. `None` if the catalogue does not know it.
#[must_use]
pub fn absent(here: &Here, name: &str) -> Option<Error> {
    let last = name.rsplit(':').next().unwrap_or(name);
    let entry = find(last)?;
    let what = match here.release {
        _ if entry.location == "syscall" || entry.path.contains("<pid>") => {
            "it belongs to each process and not to the machine, so it is given to a command when that is started"
                .to_owned()
        }
        Some(release) if entry.is_in(release) => match name.split_once(':') {
            Some((label, last)) => format!("this machine has no {label} with a {last}"),
            None => format!("this machine does not have it, although Linux {release} can"),
        },
        Some(release) => format!("this machine's Linux {release} does not have it: it exists {}", entry.span()),
        None => format!("this machine does not have it: it exists {}", entry.span()),
    };
    let in_place = entry.successors().map(|next: &Entry| format!("{} took its place ({})", next.name, next.span()));
    let instead = row(&entry.name).and_then(|row| here.instead(&row.instead));
    let mends: Vec<String> = in_place.chain(instead.map(|text| format!("in its place: {text}"))).collect();
    let error = Error::input(what);
    Some(if mends.is_empty() { error } else { error.mend(mends.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::entries;
    use schedlab_base::v;
    use schedlab_sched::kernels::KERNELS;

    #[test]
    fn every_row_is_well_formed_for_every_release() {
        for row in rows() {
            let entry = entries().iter().find(|entry| entry.name == row.name);
            let entry = entry.unwrap_or_else(|| panic!("{} has no entry", row.name));
            assert!(
                rows().iter().filter(|other| other.name == row.name).count() == 1,
                "{} stands there twice",
                row.name
            );
            for change in row.changes.split_whitespace() {
                assert!(rows().iter().any(|other| other.name == change), "{} changes {change}", row.name);
            }
            let file = entry.path.starts_with("/proc/sys/")
                || entry.path.starts_with("/sys/")
                || entry.path.starts_with("/proc/irq");
            assert!(row.values.is_empty() || file && !entry.path.contains(' '), "{}: {}", row.name, entry.path);
        }
        let releases = KERNELS.iter().filter_map(|kernel| kernel.release);
        for release in releases.map(Some).chain([None]) {
            assert_eq!(specs(release).len(), rows().len());
        }
    }

    #[test]
    fn whatever_is_set_by_a_file_of_the_machine_has_its_row() {
        let kinds = ["sched.features", "sched.ext"];
        for entry in entries().iter().filter(|e| !kinds.contains(&e.subsystem.as_str())) {
            let file = ["sysctl", "debugfs", "sysfs"].contains(&entry.location.as_str());
            let machine = file && !entry.path.contains("<g>") && !entry.note.contains("not a tunable");
            assert!(!machine || row(&entry.name).is_some(), "{} has no row in machine.csv", entry.name);
        }
    }

    #[test]
    fn the_range_is_that_of_the_release() {
        let swappiness = |release| specs(Some(release)).into_iter().find(|s| s.name == "vm.swappiness").unwrap().values;
        assert_ne!(swappiness(v(5, 7)), swappiness(v(5, 8)));
    }
}
