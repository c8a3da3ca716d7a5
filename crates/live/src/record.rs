//! A run, and the recording of it.

use crate::figures::Execution;
use crate::named::Named;
use crate::runner::Runner;
use crate::world::Options;
use schedlab_base::{Meta, Result};
use schedlab_capture::{Ending, Output, Progress, Recorded, Recorder};
use std::cell::RefCell;

/// How a run is recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// What is run, for the trace: the workload's name.
    pub label: String,
    /// The kernel's buffer for each CPU in KiB (default: 8 MiB, less if memory is scarce).
    pub buffer_kib: Option<u64>,
    /// Whether interrupts are recorded, too.
    pub irq: bool,
    /// What else the trace should say about the run.
    pub notes: Vec<(String, String)>,
    /// Whether the recorder does as little as it can while the run goes on, so that a killed run leaves nothing.
    pub quiet: bool,
}

/// Runs a load while this kernel's scheduling is recorded. The trace begins when the tasks are released, and ends when
/// the time is over or all of them have ended. `open` creates the output when the metadata is known.
///
/// # Errors
/// When a right is missing, the machine lacks what the load asks for, the output fails, or the run ends early.
pub fn record<O: Output>(
    options: Options,
    recording: Recording,
    open: impl FnOnce(&Meta) -> Result<O>,
    progress: impl FnMut(Progress),
) -> Result<(O::Done, Recorded, Execution)> {
    let duration = options.duration;
    let runner = Runner::new(options)?;
    let recorder = Recorder::new(schedlab_capture::Options {
        processes: runner.processes(),
        duration,
        buffer_kib: recording.buffer_kib,
        irq: recording.irq,
        quiet: recording.quiet,
        label: Some(recording.label),
        ..schedlab_capture::Options::default()
    })?;
    let runner = RefCell::new(runner);
    let calibration = runner.borrow().calibration();
    let recorded = recorder.record_from(
        || runner.borrow_mut().start().map(Some),
        |meta| {
            let mut meta = meta.clone();
            meta.notes.extend(recording.notes);
            meta.notes.insert("ns_per_loop".to_owned(), format!("{:.4}", calibration.ns_per_loop));
            open(&meta).map(|output| Named::new(output, &runner))
        },
        progress,
    );
    // An error of the run explains one of the recording.
    let execution = runner.into_inner().finish();
    let (done, mut recorded) = match (recorded, &execution) {
        (Err(_), Err(error)) => return Err(error.clone()),
        (recorded, _) => recorded?,
    };
    // The supervisor ends the run at the same moment as the recorder the recording.
    if recorded.ending == Ending::Processes && duration.is_some_and(|duration| recorded.duration_ns >= duration) {
        recorded.ending = Ending::Duration;
    }
    Ok((done, recorded, execution?))
}
