//! The optional sections of a perf.data file ("features") that describe the origin of the trace.

use super::cursor::Cursor;
use super::topology::Topology;
use schedlab_base::Meta;
use std::collections::BTreeMap;

/// The numbers of the features that are read.
pub(super) mod id {
    pub(in super::super) const TRACING_DATA: u64 = 1;
    pub(super) const HOSTNAME: u64 = 3;
    pub(super) const OSRELEASE: u64 = 4;
    pub(super) const VERSION: u64 = 5;
    pub(super) const ARCH: u64 = 6;
    pub(super) const NRCPUS: u64 = 7;
    pub(super) const CPUDESC: u64 = 8;
    pub(super) const CMDLINE: u64 = 11;
    pub(super) const CPU_TOPOLOGY: u64 = 13;
    pub(super) const NUMA_TOPOLOGY: u64 = 14;
    pub(super) const CACHE: u64 = 20;
    pub(super) const SAMPLE_TIME: u64 = 21;
    pub(in super::super) const DIR_FORMAT: u64 = 24;
    pub(super) const CLOCK_DATA: u64 = 29;
}

/// What the features have said so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Features {
    hostname: String,
    kernel: String,
    topology: Topology,
    words: Vec<String>,
    notes: BTreeMap<String, String>,
}

impl Features {
    /// Takes one feature. A damaged or uninteresting one is ignored.
    pub(super) fn take(&mut self, feature: u64, data: &[u8]) {
        let mut from = Cursor::new(data);
        let mut note = |key: &str, text: Option<String>| {
            if let Some(text) = text.filter(|t| !t.is_empty()) {
                self.notes.insert(key.to_owned(), text);
            }
        };
        match feature {
            id::HOSTNAME => self.hostname = from.header_string().unwrap_or_default(),
            id::OSRELEASE => self.kernel = from.header_string().unwrap_or_default(),
            id::VERSION => note("perf", from.header_string()),
            id::ARCH => note("architecture", from.header_string()),
            id::CPUDESC => note("cpu", from.header_string()),
            id::CMDLINE => {
                self.words = from.header_strings().unwrap_or_default();
                note("command", Some(self.words.join(" ")));
            }
            id::CLOCK_DATA => note("wall_clock", wall_clock(&mut from)),
            id::SAMPLE_TIME => note("samples", samples(&mut from)),
            id::NRCPUS => drop(self.topology.cpu_counts(data)),
            id::CPU_TOPOLOGY => drop(self.topology.cpus(data)),
            id::NUMA_TOPOLOGY => drop(self.topology.numa(data)),
            id::CACHE => drop(self.topology.cache(data)),
            _ => {}
        }
    }

    /// perf's own command line, in words.
    pub(super) fn command_line(&self) -> &[String] {
        &self.words
    }

    /// How many CPUs were online; 0 if the file does not say.
    pub(super) fn online(&self) -> u32 {
        self.topology.online()
    }

    /// The trace's metadata; `clockid` is the clock that perf was told to use.
    pub(super) fn meta(&self, clockid: Option<i32>) -> Meta {
        Meta {
            source: "import:perf.data".to_owned(),
            kernel: self.kernel.clone(),
            machine: self.hostname.clone(),
            clock: clock_name(clockid),
            // perf records only the times of the first and last sample, not when the recording began and ended.
            span: None,
            cpus: self.topology.places(),
            notes: self.notes.clone(),
            ..Meta::default()
        }
    }
}

/// The times of the first and last sample. perf leaves zeros where it did not look at them.
fn samples(from: &mut Cursor) -> Option<String> {
    let (first, last) = (from.u64()?, from.u64()?);
    (last != 0 && first <= last).then(|| format!("{first} to {last} ns"))
}

/// The pair of a time on the trace's clock and the same time of day.
fn wall_clock(from: &mut Cursor) -> Option<String> {
    let (_version, _clockid) = (from.u32()?, from.u32()?);
    let (wall, clock) = (from.u64()?, from.u64()?);
    Some(format!("{wall} ns since 1970 at {clock}"))
}

/// The clock's name as `perf record -k` takes it. Without `-k` it is perf's own clock.
fn clock_name(clockid: Option<i32>) -> String {
    match clockid {
        None => "perf".to_owned(),
        Some(0) => "realtime".to_owned(),
        Some(1) => "mono".to_owned(),
        Some(4) => "mono_raw".to_owned(),
        Some(7) => "boot".to_owned(),
        Some(11) => "tai".to_owned(),
        Some(other) => format!("clock {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_says_where_the_trace_comes_from() {
        let string = |t: &str| [&(t.len() as u32 + 1).to_le_bytes(), t.as_bytes(), b"\0"].concat();
        let mut features = Features::default();
        features.take(id::HOSTNAME, &string("box"));
        features.take(id::OSRELEASE, &string("6.1.0-13-amd64"));
        features.take(id::CMDLINE, &[&2u32.to_le_bytes()[..], &string("perf"), &string("sched")].concat());
        features.take(id::SAMPLE_TIME, &[5u64.to_le_bytes(), 9u64.to_le_bytes()].concat());
        let meta = features.meta(Some(1));
        assert_eq!(
            (meta.machine.as_str(), meta.kernel.as_str(), meta.clock.as_str()),
            ("box", "6.1.0-13-amd64", "mono")
        );
        assert_eq!((meta.notes["samples"].as_str(), meta.notes["command"].as_str()), ("5 to 9 ns", "perf sched"));
    }

    #[test]
    fn a_damaged_feature_is_ignored() {
        let mut features = Features::default();
        for feature in 0..256 {
            features.take(feature, &[0xff; 7]);
        }
        let meta = features.meta(None);
        assert!(meta.notes.is_empty() && meta.cpus.is_empty() && meta.clock == "perf");
    }
}
