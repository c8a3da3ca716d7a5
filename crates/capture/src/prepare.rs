//! What a recording needs before it begins: buffers, events, the processes to follow, and the head of the trace.

use crate::calls;
use crate::changes;
use crate::instance::Instance;
use crate::procfs;
use crate::restore;
use crate::tracefs::{Tracefs, read_text, refused};
use schedlab_base::{Coverage, CpuPlace, Error, Meta, Nanos, Partial, Result, Target, Tid};
use schedlab_trace::format::{Decoder, Format};
use schedlab_trace::ring_buffer::PageLayout;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// The size of a CPU's buffer, unless memory is scarce or the user sets another size.
const BUFFER_KIB: u64 = 8192;
/// The smallest and the largest buffer that can be requested.
const BUFFER_RANGE_KIB: std::ops::RangeInclusive<u64> = 64..=1 << 20;

/// What to record, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The command to record. It starts when recording is on, and the recording ends when it ends.
    pub command: Vec<OsString>,
    /// The processes that the recording is about, with all their threads and descendants.
    pub processes: Vec<Tid>,
    /// Whether to record these processes alone, and not the rest of the machine.
    pub only: bool,
    /// Whether to record the time that interrupts take from CPUs, too.
    pub irq: bool,
    /// Whether to record the frequencies of CPUs, too.
    pub freq: bool,
    /// Whether to record what tasks sleep for, too.
    pub why: bool,
    /// The real-time priority of the recorder, 1 to 99; it is an ordinary task where there is none.
    pub realtime: Option<u32>,
    /// The longest duration of the recording.
    pub duration: Option<Nanos>,
    /// The kernel buffer for each CPU in KiB (default: 8 MiB, less if memory is scarce).
    pub buffer_kib: Option<u64>,
    /// Whether to send the command's standard output to standard error.
    pub command_to_stderr: bool,
    /// Whether the recorder does as little as it can until the end: it writes nothing out before.
    pub quiet: bool,
    /// Whether recording begins at once, on whatever CPU the recorder is. Otherwise it first finds out by a nap on each
    /// CPU whether this machine hides idle tasks.
    pub at_once: bool,
    /// What `processes` are, in place of their ids: a workload and its name.
    pub label: Option<String>,
}

/// The same size of a buffer for each CPU in KiB, if it can be requested.
///
/// # Errors
/// When it is too small or too large.
pub fn buffer_in_range(kib: u64) -> Result<u64> {
    if BUFFER_RANGE_KIB.contains(&kib) {
        return Ok(kib);
    }
    Err(Error::input(format!("a buffer of {kib} KiB for each CPU is out of range")).mend("choose from 64K to 1G"))
}

/// The buffer size for each CPU in KiB: the requested one, or a size that takes a small part of the memory.
pub(crate) fn buffer_kib(asked: Option<u64>, cpus: u64) -> Result<u64> {
    if let Some(kib) = asked {
        return buffer_in_range(kib).map_err(|e| e.key("--buffer"));
    }
    let share = procfs::available_kib().map_or(BUFFER_KIB, |kib| kib / 16 / cpus.max(1));
    Ok(share.clamp(256, BUFFER_KIB))
}

/// Restricts the instance to these processes, their descendants, and the children that they will fork. Returns the
/// threads.
pub(crate) fn follow(instance: &Instance, proc: &Path, processes: &[Tid]) -> Result<BTreeSet<Tid>> {
    // This comes first, so that threads created during the listing are followed from the beginning.
    instance.write("options/event-fork", "1")?;
    let mut known = BTreeSet::new();
    loop {
        let threads = procfs::family(&procfs::tasks(proc, &[]), processes);
        let new: Vec<Tid> = threads.difference(&known).copied().collect();
        if new.is_empty() {
            return Ok(known);
        }
        instance.append("set_event_pid", &new.iter().map(|tid| format!("{tid}\n")).collect::<String>())?;
        known.extend(new);
    }
}

/// Enables the events, those of interrupts and frequencies if asked for, and returns their formats. Events that only
/// carry names or signals may be absent, and so may those that are asked for.
pub(crate) fn enable_events(instance: &Instance, options: &Options) -> Result<Vec<Format>> {
    let sched = Decoder::EVENTS.map(|name| ("sched", name, true));
    let names = changes::EVENTS.map(|(system, name)| (system, name, false));
    let mut formats = Vec::new();
    let interrupts = Decoder::INTERRUPTS.into_iter().filter(|_| options.irq);
    let asked = interrupts.chain([Decoder::FREQUENCY].into_iter().filter(|_| options.freq));
    let asked = asked.map(|(system, name)| (system, name, false));
    for (system, name, needed) in sched.into_iter().chain(names).chain(asked) {
        if needed || has_event(instance, system, name) {
            formats.push(enable(instance, system, name)?);
        }
    }
    // Signals that are handled, and a parent's for each child that ends, would only fill the buffers.
    for ((system, name), filter) in std::iter::zip(Decoder::SIGNALS, ["sig != 17", "sa_handler == 0 && sig != 17"]) {
        if has_event(instance, system, name) {
            instance.write(&format!("events/{system}/{name}/filter"), filter)?;
            formats.push(enable(instance, system, name)?);
        }
    }
    Ok(formats)
}

/// Enables the event by which switches are restored, and returns its format; `None` if the kernel has no such event.
pub(crate) fn enable_runtimes(instance: &Instance) -> Result<Option<Format>> {
    let (system, name) = restore::EVENT;
    if !has_event(instance, system, name) {
        return Ok(None);
    }
    instance.write(&format!("events/{system}/{name}/filter"), &restore::filter())?;
    enable(instance, system, name).map(Some)
}

fn has_event(instance: &Instance, system: &str, name: &str) -> bool {
    instance.has(&format!("events/{system}/{name}/enable"))
}

fn enable(instance: &Instance, system: &str, name: &str) -> Result<Format> {
    instance.append("set_event", &format!("{system}:{name}\n"))?;
    Format::parse(&instance.read(&format!("events/{system}/{name}/format"))?)
}

/// Enables the system calls in which tasks sleep, and returns the event's format.
pub(crate) fn enable_calls(instance: &Instance) -> Result<Format> {
    let (system, name) = calls::EVENT;
    if !has_event(instance, system, name) {
        let what = "--why needs the tracepoint raw_syscalls:sys_enter, which this kernel does not have";
        return Err(Error::not_permitted(what).mend("record without --why, or on a kernel with CONFIG_FTRACE_SYSCALLS"));
    }
    instance.write(&format!("events/{system}/{name}/filter"), &calls::filter())?;
    enable(instance, system, name)
}

/// The layout of a buffer's pages.
pub(crate) fn page_layout(tracefs: &Tracefs, instance: &Instance) -> Result<PageLayout> {
    let path = tracefs.root().join("events/header_page");
    let text = read_text(&path).map_err(|e| refused("read the layout of pages", &path, &e))?;
    let layout = PageLayout::parse(&text, cfg!(target_endian = "big"))?;
    // The file describes the pages of the top-level buffer; ours may have another size (since 6.8).
    let ours = instance.read("buffer_subbuf_size_kb").ok().and_then(|kib| kib.trim().parse::<usize>().ok());
    Ok(ours.map_or(layout, |kib| layout.with_page_bytes(kib << 10)))
}

/// What is known about the recording before it begins.
pub(crate) fn meta(options: &Options, cpus: Vec<CpuPlace>, buffer_kib: u64) -> Meta {
    let kernel = |file: &str| {
        fs::read_to_string(Path::new("/proc/sys/kernel").join(file)).map(|s| s.trim().to_owned()).unwrap_or_default()
    };
    let mut notes = BTreeMap::from([
        ("host".to_owned(), kernel("hostname")),
        ("kernel_version".to_owned(), kernel("version")),
        ("buffer_kib_per_cpu".to_owned(), buffer_kib.to_string()),
        ("events".to_owned(), Decoder::EVENTS.join(",")),
        ("recorder_pid".to_owned(), std::process::id().to_string()),
    ]);
    if !options.command.is_empty() {
        let words: Vec<_> = options.command.iter().map(|word| word.to_string_lossy()).collect();
        notes.insert("command".to_owned(), words.join(" "));
    }
    if !options.processes.is_empty() {
        let ids: Vec<_> = options.processes.iter().map(Tid::to_string).collect();
        notes.insert("processes".to_owned(), ids.join(","));
    }
    let target = Target { processes: options.processes.clone(), ..Target::default() };
    let partial = Partial {
        covers: Coverage::Tasks,
        only: format!("{target} and {} children", if target.processes.len() == 1 { "its" } else { "their" }),
    };
    Meta {
        source: "record".to_owned(),
        kernel: kernel("osrelease"),
        machine: "host".to_owned(),
        clock: "mono".to_owned(),
        cpus,
        notes,
        partial: options.only.then_some(partial),
        ..Meta::default()
    }
}
