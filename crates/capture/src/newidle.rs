//! How often a newly idle CPU balances here: `sched_domain.newidle_ratio`, which a kernel learns while it runs
//! ("sched/fair: Proportional newidle balance"). No file shows it, so a program of eBPF reads it.

use crate::bpf::{self, CURRENT_TASK, Place, READ_KERNEL, address, call, exit, op};
use crate::btf::Btf;
use schedlab_base::{CpuList, Nanos};
use std::io;
use std::path::Path;

/// The name of the tunable that the ratio stands for.
pub(crate) const NAME: &str = "newidle_ratio";
/// A kernel that has not run for so long has learnt nothing yet.
const YOUNG: Nanos = 60_000_000_000;
/// The flag of domains that newly idle CPUs balance (`SD_BALANCE_NEWIDLE`).
const BALANCE_NEWIDLE: u32 = 1;
/// The most levels of domains that are looked at.
const LEVELS: usize = 8;

/// The mean over all domains of these CPUs, out of 1024. `None` if the kernel knows no such ratio or is young.
///
/// # Errors
/// When eBPF cannot read it.
pub(crate) fn ratio(root: &Path, cpus: &CpuList, up: Nanos) -> io::Result<Option<u32>> {
    if up < YOUNG {
        return Ok(None);
    }
    let Ok(btf) = std::fs::read(root.join("sys/kernel/btf/vmlinux")) else { return Ok(None) };
    let Some(fields) = Fields::of(btf) else { return Ok(None) };
    let mut found = Vec::new();
    for level in 0..LEVELS {
        let [flags, ratio] = [fields.flags, fields.ratio].map(|field| fields.program(level, field));
        let (flags, ratio) = (bpf::load(Place::RawTracepoint, &flags)?, bpf::load(Place::RawTracepoint, &ratio)?);
        let mut exists = false;
        for cpu in cpus.iter() {
            // One that is no longer online is refused.
            let Ok(has) = bpf::run(&flags, cpu) else { continue };
            exists |= has != 0;
            if has & BALANCE_NEWIDLE != 0 {
                found.push(bpf::run(&ratio, cpu)?);
            }
        }
        if !exists {
            break;
        }
    }
    let sum: u64 = found.iter().map(|ratio| u64::from(*ratio)).sum();
    Ok(sum.checked_div(found.len() as u64).map(|mean| mean.min(1024) as u32))
}

/// Where the way from the running task to its CPU's domains leads.
struct Fields {
    /// From a task to its queue, from there to that of the CPU, and from there to the lowest domain.
    way: [u32; 3],
    parent: u32,
    flags: u32,
    ratio: u32,
}

impl Fields {
    fn of(btf: Vec<u8>) -> Option<Self> {
        let btf = Btf::new(btf)?;
        let task = btf.offset("task_struct", "se")? + btf.offset("sched_entity", "cfs_rq")?;
        let domain = |field| btf.offset("sched_domain", field);
        Some(Self {
            way: [task, btf.offset("cfs_rq", "rq")?, btf.offset("rq", "sd")?],
            parent: domain("parent")?,
            flags: domain("flags")?,
            ratio: domain(NAME)?,
        })
    }

    /// A program that returns a field of 4 bytes of its CPU's domain at this level, and 0 if there is no such domain.
    /// Reading through a null pointer gives 0.
    fn program(&self, level: usize, field: u32) -> Vec<u64> {
        let pointers = self.way.into_iter().chain(std::iter::repeat_n(self.parent, level)).map(|offset| (offset, 8));
        // r0 = the running task
        let mut program = vec![call(CURRENT_TASK)];
        for (offset, bytes) in pointers.chain([(field, 4)]) {
            program.push(op(0x7a, 10, 0, -8, 0)); // *(u64 *)(r10 - 8) = 0
            program.extend(address(3, 0, offset as i32));
            program.extend(address(1, 10, -8));
            program.push(op(0xb7, 2, 0, 0, bytes)); // r2 = bytes
            program.push(call(READ_KERNEL));
            program.push(op(0x79, 0, 10, -8, 0)); // r0 = *(u64 *)(r10 - 8)
        }
        program.push(exit());
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where this kernel has the ratio and shows it.
    #[test]
    fn this_kernel_has_a_ratio_or_a_reason() {
        let cpus = crate::online();
        match ratio(Path::new("/"), &cpus, YOUNG) {
            Ok(Some(ratio)) => assert!(ratio <= 1024, "{ratio}"),
            Ok(None) => {}
            Err(why) => assert_eq!(why.kind(), io::ErrorKind::PermissionDenied, "{why}"),
        }
        assert_eq!(ratio(Path::new("/"), &cpus, 0).ok().flatten(), None, "a young kernel");
        assert_eq!(ratio(Path::new("/nowhere"), &cpus, YOUNG).ok().flatten(), None);
    }
}
