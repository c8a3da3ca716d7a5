//! The frequencies of CPUs, as cpufreq has them. Drivers that leave the choice to the hardware report no changes by
//! events, and what a CPU had before the recording no event says.

use crate::instance::cpu_of;
use schedlab_base::{CpuId, Error, Event, Nanos, Payload, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files are read once in so much time at most.
const EACH: Nanos = 100_000_000;

/// The frequencies at the last look.
pub(crate) struct Frequencies {
    /// The file of each CPU.
    files: BTreeMap<CpuId, PathBuf>,
    last: BTreeMap<CpuId, u32>,
    due: Nanos,
}

impl Frequencies {
    /// Of the CPUs below `sys`, which is `/sys`.
    ///
    /// # Errors
    /// When no CPU has a frequency that the kernel knows.
    pub(crate) fn new(sys: &Path) -> Result<Self> {
        let entries = fs::read_dir(sys.join("devices/system/cpu")).into_iter().flatten().flatten();
        let file = |entry: fs::DirEntry| {
            let file = entry.path().join("cpufreq/scaling_cur_freq");
            Some((cpu_of(&entry.file_name())?, file.is_file().then_some(file)?))
        };
        let files: BTreeMap<CpuId, PathBuf> = entries.filter_map(file).collect();
        if files.is_empty() {
            return Err(Error::not_permitted(
                "the kernel does not know its CPUs' frequencies: it has no cpufreq driver",
            )
            .mend("record without --freq; in a virtual machine only its host knows them"));
        }
        Ok(Self { files, last: BTreeMap::new(), due: 0 })
    }

    /// What has changed since the last look.
    pub(crate) fn look(&mut self, time: Nanos) -> Vec<Event> {
        if time < self.due {
            return Vec::new();
        }
        self.due = time + EACH;
        let mut found = Vec::new();
        for (&cpu, file) in &self.files {
            let now = fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok());
            if let Some(khz) = now.filter(|khz| self.last.insert(cpu, *khz) != Some(*khz)) {
                found.push(Event { time, cpu, what: Payload::Frequency { target: cpu, khz } });
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequency_is_told_when_it_has_changed() {
        let dir = tempfile::tempdir().unwrap();
        let write = |cpu: &str, khz: &str| {
            let folder = dir.path().join("devices/system/cpu").join(cpu).join("cpufreq");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("scaling_cur_freq"), khz).unwrap();
        };
        fs::create_dir_all(dir.path().join("devices/system/cpu/cpufreq")).unwrap();
        let error = Frequencies::new(dir.path()).err().expect("no CPU has a frequency").to_string();
        assert!(error.contains("no cpufreq driver"), "{error}");
        write("cpu0", "800000\n");
        write("cpu11", "3100000\n");
        let mut all = Frequencies::new(dir.path()).unwrap();
        let event = |time, cpu, khz| Event { time, cpu, what: Payload::Frequency { target: cpu, khz } };
        assert_eq!(all.look(5), [event(5, 0, 800_000), event(5, 11, 3_100_000)]);
        write("cpu11", "900000\n");
        assert_eq!(all.look(EACH), []);
        assert_eq!(all.look(EACH + 5), [event(EACH + 5, 11, 900_000)]);
        assert_eq!(all.look(3 * EACH), []);
    }
}
