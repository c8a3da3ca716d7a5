//! The guest's side of the memory that it shares with the host: the second memory region of a PCI device, mapped
//! through sysfs. This is the agent's only unsafe code.
#![allow(unsafe_code)]

use crate::mailbox::{BYTES, Memory};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

/// The vendor and the device of QEMU's ivshmem (docs/specs/ivshmem-spec.rst in QEMU's sources).
const VENDOR: &str = "0x1af4";
const DEVICE: &str = "0x1110";

/// The memory.
pub(super) struct Shared {
    start: *mut u8,
}

impl Shared {
    /// Finds and maps it.
    pub(super) fn find() -> Result<Self, String> {
        let device = device(Path::new("/sys/bus/pci/devices"))?;
        let failed = |what: &str, e: &dyn std::fmt::Display| format!("the memory shared with the host: {what}: {e}");
        fs::write(device.join("enable"), "1").map_err(|e| failed("cannot be enabled", &e))?;
        let open = |name: &str| File::options().read(true).write(true).open(device.join(name));
        // Write-combining is fast under KVM; a kernel without it has the plain one.
        let file = open("resource2_wc").or_else(|_| open("resource2")).map_err(|e| failed("cannot be opened", &e))?;
        let (access, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses; it is never unmapped.
        let mapped = unsafe { mmap(std::ptr::null_mut(), BYTES as usize, access, shared, &file, 0) };
        let start = mapped.map_err(|e| failed("cannot be mapped", &e))?.cast();
        Ok(Self { start })
    }
}

/// The folder of the device.
fn device(devices: &Path) -> Result<PathBuf, String> {
    let entries =
        fs::read_dir(devices).map_err(|_| "the kernel shows no PCI devices; it needs CONFIG_PCI and CONFIG_SYSFS")?;
    let is = |folder: &Path, file: &str, value: &str| {
        fs::read_to_string(folder.join(file)).is_ok_and(|text| text.trim() == value)
    };
    let mut folders = entries.flatten().map(|entry| entry.path());
    folders
        .find(|folder| is(folder, "vendor", VENDOR) && is(folder, "device", DEVICE))
        .ok_or_else(|| "the kernel shows no memory shared with the host; it needs CONFIG_PCI".to_owned())
}

impl Memory for Shared {
    fn write(&mut self, at: u64, bytes: &[u8]) {
        assert!(at.checked_add(bytes.len() as u64).is_some_and(|end| end <= BYTES), "it is written within its bounds");
        // What was written before must be there before this is, also where stores are combined.
        fence(Ordering::SeqCst);
        // SAFETY: the range is within the mapping, which nothing of this process refers to.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.start.add(at as usize), bytes.len()) };
        fence(Ordering::SeqCst);
    }

    fn read(&self, at: u64, bytes: &mut [u8]) {
        assert!(at.checked_add(bytes.len() as u64).is_some_and(|end| end <= BYTES), "it is read within its bounds");
        fence(Ordering::SeqCst);
        // SAFETY: the range is within the mapping, which nothing of this process refers to.
        unsafe { std::ptr::copy_nonoverlapping(self.start.add(at as usize), bytes.as_mut_ptr(), bytes.len()) };
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_is_found_by_its_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let add = |name: &str, vendor: &str, device: &str| {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("vendor"), vendor).unwrap();
            fs::write(folder.join("device"), device).unwrap();
            folder
        };
        add("0000:00:01.0", "0x1af4\n", "0x1000\n");
        assert!(device(dir.path()).unwrap_err().contains("CONFIG_PCI"));
        let ours = add("0000:00:02.0", "0x1af4\n", "0x1110\n");
        assert_eq!(device(dir.path()).unwrap(), ours);
        assert!(device(&dir.path().join("none")).unwrap_err().contains("CONFIG_SYSFS"));
    }
}
