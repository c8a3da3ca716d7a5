//! Tasks that come into being during the run.

use super::Task;
use crate::region::FORKED;
use crate::sys;
use crate::world::World;
use schedlab_base::{Error, Nanos};
use std::sync::atomic::Ordering;
use std::thread;

/// The stack of a task's thread.
const STACK: usize = 128 << 10;

/// A thread for a task.
pub(crate) fn spawn(world: &'static World, run: impl FnOnce() + Send + 'static) {
    if let Err(e) = thread::Builder::new().stack_size(STACK).spawn(run) {
        world.fail(
            &Error::not_permitted(format!("cannot start a thread: {e}"))
                .mend("run fewer tasks, or raise the limits: ulimit -u, kernel.threads-max, the cgroup's pids.max"),
        );
    }
}

/// A task that is created when it starts, in this group.
pub(crate) fn begin(world: &'static World, at: usize, started: Nanos, group: u32) {
    match Task::prepare(world, at, group) {
        Ok(task) => task.run(started),
        Err(error) => world.fail(&error),
    }
    world.leave();
}

/// Creates a task from a template, as a thread of the calling task's process, whose group this is.
pub(super) fn fork(world: &'static World, template: u32, group: u32) {
    let number = world.region.forks()[template as usize].fetch_add(1, Ordering::AcqRel);
    let at = world.load().tasks.len() + world.region.control().forked.fetch_add(1, Ordering::AcqRel) as usize;
    let Some(slot) = world.region.slots().get(at) else {
        world.fail(&Error::input(format!("the workload has forked {FORKED} tasks")).mend("let it fork less often"));
    };
    slot.template.store(template, Ordering::Relaxed);
    slot.number.store(number, Ordering::Release);
    world.living.fetch_add(1, Ordering::AcqRel);
    spawn(world, move || begin(world, at, sys::monotonic(), group));
}
