//! The run queues by eBPF: our own program (`bpf/queues.bpf.c`), which is loaded once and run when the checker looks.
//!
//! The program is attached to no event and pinned nowhere. It exists as long as this process holds its descriptors, so
//! that nothing stays behind however the process ends.

use crate::sys;
use aya::maps::{Array, MapData};
use aya::programs::{Iter, ProgramError, RawTracePoint, RawTracePointRunOptions, TestRun};
use aya::{Btf, EbpfLoader, Pod};
use schedlab_base::{CpuId, CpuList, Error, Result, Tid};
use schedlab_measure::{CpuNow, Looked, WaitingNow};
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::Path;

/// The compiled program; empty if there was no clang to compile it.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/queues.bpf.o"));
/// Why it is empty.
const NO_OBJECT: &str = env!("SCHEDLAB_NO_EBPF");

/// CPUs that one run of the program reads: `BATCH` in the source.
const BATCH: u32 = 64;
/// CPU numbers are below this: `MOST_CPUS` in the source.
const MOST_CPUS: u32 = 8192;
/// The bytes of a waiting task before the words of its allowed CPUs.
const HEAD: usize = 32;
/// The flags of a CPU.
const KNOWN: u32 = 1;
const ONLINE: u32 = 2;
const IDLE: u32 = 4;

/// A CPU as the program writes it.
#[derive(Clone, Copy)]
#[repr(C)]
struct RawCpu {
    flags: u32,
    queued: u32,
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Batch([RawCpu; BATCH as usize]);

// SAFETY: it consists of integers, for which any bytes are valid, and has no padding.
#[allow(unsafe_code)]
unsafe impl Pod for Batch {}

/// The run queues of the running kernel.
pub struct Ebpf {
    program: aya::Ebpf,
    batches: Array<MapData, Batch>,
    /// CPUs have numbers below this.
    possible: u32,
    /// The CPUs that were online when the run queues were last looked for.
    online: String,
    cpus: Vec<CpuNow>,
    waiting: Vec<WaitingNow>,
    bytes: Vec<u8>,
}

impl Ebpf {
    /// Loads the program and finds the run queues.
    ///
    /// # Errors
    /// If schedlab was built without the program, or the kernel does not take it. The message says why.
    pub fn open() -> Result<Self> {
        if OBJECT.is_empty() {
            let mend = "build schedlab where clang is installed (Debian: apt-get install clang)";
            return Err(Error::not_permitted(format!("the eBPF program is missing: {NO_OBJECT}")).mend(mend));
        }
        if !Path::new("/sys/kernel/btf/vmlinux").exists() {
            let mend = "use a kernel built with CONFIG_DEBUG_INFO_BTF";
            return Err(Error::not_permitted("the kernel does not describe its types").mend(mend));
        }
        // Before 5.11, maps count as locked memory. A refusal shows itself when a map is created.
        sys::lift_memory_limit();
        let btf = Btf::from_sys_fs().map_err(|e| refused("read the kernel's types", &e))?;
        let possible = possible().clamp(1, MOST_CPUS);
        let words = possible.div_ceil(64);
        let mut loader = EbpfLoader::new();
        let loading = loader.btf(Some(&btf)).override_global("WORDS", &words, true);
        let mut program = loading.load(OBJECT).map_err(|e| refused("create the eBPF maps", &e))?;
        for name in ["find_queues", "list_waiting"] {
            iterator(&mut program, name)?.load("task", &btf).map_err(|e| not_loaded(name, &e))?;
        }
        reader(&mut program)?.load().map_err(|e| not_loaded("read_queues", &e))?;
        let batches = program.take_map("batches").ok_or_else(|| missing("batches"))?;
        let batches = Array::try_from(batches).map_err(|e| refused("use an eBPF map", &e))?;
        let (cpus, waiting, bytes, online) = (Vec::new(), Vec::new(), Vec::new(), String::new());
        let mut found = Self { program, batches, possible, online, cpus, waiting, bytes };
        found.cpus(false)?;
        if found.cpus.is_empty() {
            let mend = "the kernel needs CONFIG_FAIR_GROUP_SCHED; a container does not see its threads";
            return Err(Error::not_permitted("no run queue was found").mend(mend));
        }
        Ok(found)
    }

    /// Runs an iterator over all tasks; what it writes is in `bytes`.
    fn iterate(&mut self, name: &'static str) -> Result<()> {
        let program = iterator(&mut self.program, name)?;
        let failed = |e: &dyn std::error::Error| refused("go through the tasks by eBPF", e);
        let link = program.attach().map_err(|e| failed(&e))?;
        let mut file = program.take_link(link).map_err(|e| failed(&e))?.into_file().map_err(|e| failed(&e))?;
        self.bytes.clear();
        loop {
            match file.read_to_end(&mut self.bytes) {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(failed(&e)),
            }
        }
    }

    /// Finds the run queues of all CPUs, at first and whenever CPUs came or went.
    fn find(&mut self) -> Result<()> {
        let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        if self.online != online || online.is_empty() {
            self.iterate("find_queues")?;
            self.online = online;
        }
        Ok(())
    }
}

impl Looked for Ebpf {
    type Error = Error;

    fn cpus(&mut self, _: bool) -> Result<&[CpuNow]> {
        self.find()?;
        self.cpus.clear();
        for first in (0..self.possible).step_by(BATCH as usize) {
            let mut options = RawTracePointRunOptions::new();
            options.args[0] = first.into();
            reader(&mut self.program)?.test_run(options).map_err(|e| refused("run the eBPF program", &e))?;
            let Batch(batch) = self.batches.get(&0, 0).map_err(|e| refused("read an eBPF map", &e))?;
            for (cpu, raw) in (first..).zip(batch) {
                if raw.flags & (KNOWN | ONLINE) == KNOWN | ONLINE {
                    // A CPU that is between two tasks is not idle.
                    let queued = if raw.flags & IDLE != 0 { 0 } else { raw.queued.max(1) };
                    self.cpus.push(CpuNow { cpu, queued });
                }
            }
        }
        Ok(&self.cpus)
    }

    fn waiting(&mut self) -> Result<&[WaitingNow]> {
        self.iterate("list_waiting")?;
        let words = self.possible.div_ceil(64) as usize;
        let mut displaced: Vec<CpuId> = Vec::new();
        self.waiting.clear();
        for record in self.bytes.chunks_exact(HEAD + 8 * words) {
            let task = waiting(record, self.possible);
            // The checker itself has that CPU. Without it, one of the tasks would run: perhaps this one.
            let has_ours = word(record, 12) != 0;
            if has_ours && !displaced.contains(&task.cpu) && task.allowed.as_ref().is_some_and(is_free) {
                displaced.push(task.cpu);
                continue;
            }
            self.waiting.push(task);
        }
        Ok(&self.waiting)
    }
}

/// Whether the list has more than one CPU.
fn is_free(cpus: &CpuList) -> bool {
    cpus.iter().nth(1).is_some()
}

fn word(record: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

/// A waiting task as the program writes it.
fn waiting(record: &[u8], possible: u32) -> WaitingNow {
    let name = record[16..HEAD].split(|byte| *byte == 0).next().unwrap_or_default();
    let has = |cpu: &CpuId| {
        record[HEAD + *cpu as usize / 64 * 8..][..8]
            .try_into()
            .is_ok_and(|word| u64::from_ne_bytes(word) >> (cpu % 64) & 1 == 1)
    };
    WaitingNow {
        tid: word(record, 0) as Tid,
        name: String::from_utf8_lossy(name).into_owned(),
        cpu: word(record, 8),
        allowed: Some((0..possible).filter(has).collect()),
    }
}

/// The number of CPUs that there can be: one more than the highest of them.
fn possible() -> u32 {
    let text = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    let list: CpuList = text.trim().parse().unwrap_or_default();
    list.ranges().last().map_or(MOST_CPUS, |(_, last)| last + 1)
}

fn iterator<'a>(program: &'a mut aya::Ebpf, name: &'static str) -> Result<&'a mut Iter> {
    program.program_mut(name).and_then(|found| found.try_into().ok()).ok_or_else(|| missing(name))
}

fn reader(program: &mut aya::Ebpf) -> Result<&mut RawTracePoint> {
    let name = "read_queues";
    program.program_mut(name).and_then(|found| found.try_into().ok()).ok_or_else(|| missing(name))
}

fn missing(what: &str) -> Error {
    Error::not_permitted(format!("the eBPF program was built without {what}")).mend("build schedlab again")
}

/// An error with its causes, each once: some errors name theirs themselves. The log of the verifier has many lines, of
/// which this is the first.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut why = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !why.contains(&text) {
            why = format!("{why}: {text}");
        }
        cause = error.source();
    }
    why.lines().next().unwrap_or_default().to_owned()
}

/// The error of an operation, with its cause.
fn refused(doing: &str, error: &dyn std::error::Error) -> Error {
    let why = with_causes(error);
    let error = Error::not_permitted(format!("cannot {doing}: {why}"));
    if sys::effective_user() == 0 {
        error.mend("the kernel is too old (5.10 is needed), locked down, or built without it; or use --by proc")
    } else {
        error.mend("eBPF needs root: run it with sudo")
    }
}

fn not_loaded(name: &str, error: &ProgramError) -> Error {
    match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            let log = verifier_log.to_string();
            let line = log.lines().rev().find(|line| !line.trim().is_empty() && !line.starts_with("processed "));
            let said = line.map_or_else(String::new, |line| format!(" (the verifier says: {})", line.trim()));
            let what = std::io::Error::other(format!("{io_error}{said}"));
            refused(&format!("load the eBPF program {name}"), &what)
        }
        error => refused(&format!("load the eBPF program {name}"), error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_named_once() {
        let cause = || std::io::Error::other("no rights");
        let named = aya::maps::MapError::IoError(cause());
        assert_eq!(with_causes(&cause()), "no rights");
        assert_eq!(with_causes(&named).matches("no rights").count(), 1, "{}", with_causes(&named));
        let outer = aya::EbpfError::MapError(named);
        assert_eq!(with_causes(&outer).matches("no rights").count(), 1, "{}", with_causes(&outer));
    }

    #[test]
    fn a_task_is_read_as_the_program_writes_it() {
        let mut record = Vec::new();
        for number in [7u32, 5, 65, 0] {
            record.extend(number.to_ne_bytes());
        }
        record.extend(b"worker\0rest\0\0\0\0\0");
        record.extend((1u64 | 1 << 63).to_ne_bytes());
        record.extend(0b110u64.to_ne_bytes());
        let task = waiting(&record, 66);
        let allowed = task.allowed.map(|cpus| cpus.to_string());
        assert_eq!((task.tid, task.cpu, task.name.as_str()), (7, 65, "worker"));
        assert_eq!(allowed.as_deref(), Some("0,63,65"), "CPU 66 cannot exist");
    }

    #[test]
    fn the_queues_of_this_machine_are_read_or_it_is_said_why_not() {
        let mut queues = match Ebpf::open() {
            Ok(queues) => queues,
            Err(e) => {
                eprintln!("skipped: {e}");
                assert_eq!(e.exit_status(), 4);
                return;
            }
        };
        let online: CpuList = fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().parse().unwrap();
        let cpus: Vec<CpuId> = queues.cpus(false).unwrap().iter().map(|now| now.cpu).collect();
        assert_eq!(cpus, online.iter().collect::<Vec<_>>());
        queues.waiting().unwrap();
        pinned_threads_wait_where_they_are(&mut queues, cpus[0]);
    }

    /// A look at 128 CPUs, each of which is given the run queue of the first: two runs of the program and two readings
    /// of its map, whatever the machine does. The time is printed, for docs/check-live.md.
    #[test]
    fn a_look_at_128_cpus_is_two_runs_of_the_program() {
        const LOOKS: u64 = 2000;
        let Ok(mut queues) = Ebpf::open() else { return eprintln!("skipped: see the other test") };
        queues.possible = 128;
        let mut addresses: Array<_, u64> =
            Array::try_from(queues.program.take_map("queues").expect("the map")).expect("an array");
        let first = queues.cpus[0].cpu;
        let address = addresses.get(&first, 0).unwrap();
        (0..128).for_each(|cpu| addresses.set(cpu, address, 0).unwrap());
        let before = sys::cpu_time();
        for _ in 0..LOOKS {
            assert_eq!(queues.cpus(false).unwrap().len(), 128);
        }
        let look = (sys::cpu_time() - before) / LOOKS;
        let before = sys::cpu_time();
        for _ in 0..LOOKS / 10 {
            queues.waiting().unwrap();
        }
        let list = (sys::cpu_time() - before) / (LOOKS / 10);
        println!("a look at 128 CPUs takes {look} ns of CPU time, a list of the waiting tasks {list} ns");
    }

    /// Three threads that never sleep, bound to one CPU: two of them wait there whatever else this machine does.
    fn pinned_threads_wait_where_they_are(queues: &mut Ebpf, cpu: CpuId) {
        use schedlab_capture::Mask;
        use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
        let over = AtomicBool::new(false);
        let spinning = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    Mask::only(cpu).set();
                    // From here on it is never asleep: a barrier would leave it to be woken while the queue is read.
                    spinning.fetch_add(1, Ordering::Relaxed);
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            while spinning.load(Ordering::Relaxed) < 3 {
                std::thread::yield_now();
            }
            let queued = queues.cpus(false).unwrap().iter().find(|now| now.cpu == cpu).map(|now| now.queued);
            let waiting = queues.waiting().unwrap();
            let ours =
                |task: &&WaitingNow| task.allowed.as_ref().is_some_and(|cpus| cpus.to_string() == cpu.to_string());
            let ours = waiting.iter().filter(ours).filter(|task| task.cpu == cpu).count();
            over.store(true, Ordering::Relaxed);
            assert!(queued.is_some_and(|queued| queued >= 3), "{queued:?}");
            assert!(ours >= 2, "{ours}");
        });
    }
}
