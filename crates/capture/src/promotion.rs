//! Puts the recorder before all ordinary tasks once it gets too little of a CPU to empty the kernel's buffers, and
//! before all real-time ones if that does not help.
//!
//! A recorder that waits for a CPU cannot see that it does. A thread of the highest real-time priority therefore sleeps
//! until a buffer fills, which happens only if there is much to record, and then looks whether the recorder runs.

use crate::drain::Drain;
use crate::instance::Instance;
use crate::procfs;
use crate::sched_attr::SchedAttr;
use crate::sys;
use schedlab_base::{Error, Nanos, Result, Tid};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread watches the recorder when a buffer has filled.
const WATCHED: Duration = Duration::from_millis(20);

/// The real-time priorities that the recorder gets, one after the other: the lowest and the highest.
const PRIORITIES: [u32; 2] = [1, HIGHEST];
const HIGHEST: u32 = 99;

/// Since when the recorder has had each of [`PRIORITIES`].
type Since = Arc<[OnceLock<Nanos>; PRIORITIES.len()]>;

/// A thread that watches over the calling one, the recorder, until this is dropped.
pub(crate) struct Promotion {
    since: Since,
    thread: Option<(PipeWriter, JoinHandle<()>)>,
}

/// What the thread needs.
struct Watch {
    recorder: Tid,
    clock: libc::clockid_t,
    buffers: Vec<RawFd>,
    stop: PipeReader,
    since: Since,
}

impl Promotion {
    /// Starts to watch over this thread, which empties these buffers. It does nothing if the kernel does not say when a
    /// buffer has filled, if it allows no real-time priority, or if the recorder was given another policy or a higher
    /// nice value on purpose.
    ///
    /// # Errors
    /// When the system has no more pipes or threads.
    pub(crate) fn watch(drain: &Drain, instance: &Instance) -> Result<Self> {
        let failed = |e: io::Error| Error::system("cannot watch over the recorder", &e);
        let since = Since::default();
        let ordinary = SchedAttr::of(0).is_ok_and(|attr| attr.policy == libc::SCHED_OTHER as u32 && attr.nice <= 0);
        let clock = sys::clock_of_this_thread();
        let (Some(clock), true, true) = (clock, ordinary, instance.has("buffer_percent")) else {
            return Ok(Self { since, thread: None });
        };
        let (stop, end) = io::pipe().map_err(failed)?;
        let buffers = drain.descriptors().collect();
        let watch = Watch { recorder: sys::this_thread(), clock, buffers, stop, since: Arc::clone(&since) };
        let (begins, begun) = mpsc::channel();
        let run = move || drop(watch.run(begins));
        let thread = std::thread::Builder::new().spawn(run).map_err(failed)?;
        // Nothing is sent.
        let _ = begun.recv();
        Ok(Self { since, thread: Some((end, thread)) })
    }

    /// When the recorder was put before the ordinary tasks, and before the real-time ones, if it was.
    pub(crate) fn since(&self) -> [Option<Nanos>; PRIORITIES.len()] {
        self.since.each_ref().map(|since| since.get().copied())
    }
}

impl Drop for Promotion {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.thread.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

impl Watch {
    /// Gives the recorder one priority after the other, each once it gets too little of a CPU with the one before,
    /// until it has ended. `begins` is dropped once this thread has its own priority.
    fn run(self, begins: mpsc::Sender<()>) -> io::Result<()> {
        SchedAttr::fifo(HIGHEST).set()?;
        drop(begins);
        for (priority, since) in PRIORITIES.into_iter().zip(self.since.iter()) {
            if !self.starves()? {
                break;
            }
            SchedAttr::fifo(priority).set_of(self.recorder)?;
            let _ = since.set(sys::monotonic());
        }
        Ok(())
    }

    /// Sleeps until a buffer has filled, and then looks on, until the recorder gets too little of a CPU. Returns
    /// `false` if it has ended before.
    fn starves(&self) -> io::Result<bool> {
        let stop = self.stop.as_raw_fd();
        loop {
            sys::wait_readable(self.buffers.iter().copied().chain([stop]), Duration::MAX)?;
            let before = self.recorder_ran()?;
            if sys::wait_readable(std::iter::once(stop), WATCHED)? {
                return Ok(false);
            }
            let ran = Duration::from_nanos(self.recorder_ran()?.saturating_sub(before));
            if ran < WATCHED / 2 && self.full()? && procfs::is_runnable(Path::new("/proc/self/task"), self.recorder) {
                return Ok(true);
            }
        }
    }

    /// The CPU time that the recorder has had.
    fn recorder_ran(&self) -> io::Result<Nanos> {
        sys::clock(self.clock)
    }

    /// Whether a buffer waits to be emptied.
    fn full(&self) -> io::Result<bool> {
        sys::wait_readable(self.buffers.iter().copied(), Duration::ZERO)
    }
}
