//! Launchers: one process for each session, which starts the tasks of that session as the workload says.

use crate::attributes;
use crate::sync;
use crate::sys::{self, Reaped};
use crate::task::{Task, begin, spawn};
use crate::world::World;
use schedlab_base::{Error, Nanos, Tid};
use schedlab_sim::program::{ROOT_GROUP, Start};
use std::sync::atomic::Ordering;

/// Starts the tasks of these slots, and stays until they have ended or the supervisor kills it.
pub(crate) fn launcher(world: &'static World, members: &[usize]) -> ! {
    sys::set_name("schedlab-tasks");
    let bound = || world.options.cpus.as_ref().map_or(Ok(()), |cpus| attributes::bind(cpus));
    if let Err(error) = world.groups.enter().and_then(|()| bound()) {
        world.fail(&error);
    }
    match world.load().start {
        Start::Wake => {
            world.living.store(members.len() as u32, Ordering::Release);
            for &at in members {
                spawn(world, move || wake(world, at));
            }
        }
        Start::Threads => one_by_one(world, members, |at, started| {
            world.living.fetch_add(1, Ordering::AcqRel);
            spawn(world, move || begin(world, at, started, ROOT_GROUP));
        }),
        Start::Fork => {
            let launcher = sys::pid();
            one_by_one(world, members, |at, started| fork_task(world, at, started, launcher));
            wait_for_children(world);
        }
    }
    sys::pause_forever()
}

/// A task that exists before the run, and sleeps until it starts.
fn wake(world: &'static World, at: usize) {
    let task = Task::prepare(world, at, ROOT_GROUP).unwrap_or_else(|error| world.fail(&error));
    let control = world.region.control();
    world.ready();
    let delay = world.spec(at).start;
    if delay == 0 {
        sync::wait_until_set(&world.slot(at).go, None);
    } else {
        sync::wait_until_set(&control.armed, None);
        sys::sleep_until(world.region.span().0.saturating_add(delay));
    }
    task.run(world.region.span().0.saturating_add(delay));
    world.leave();
}

/// Starts each task at its time, those of one time in the order listed.
fn one_by_one(world: &'static World, members: &[usize], start: impl Fn(usize, Nanos)) {
    // The launcher counts as a task until it has started all.
    world.living.store(1, Ordering::Release);
    world.ready();
    sync::wait_until_set(&world.region.control().armed, None);
    let begin = world.region.span().0;
    let mut order: Vec<usize> = members.to_vec();
    order.sort_by_key(|at| world.spec(*at).start);
    for at in order {
        let time = begin.saturating_add(world.spec(at).start);
        if time > sys::monotonic() {
            sys::sleep_until(time);
        }
        start(at, time);
    }
    if world.load().start == Start::Threads {
        world.leave();
    }
}

/// A task that is a process of its own.
fn fork_task(world: &'static World, at: usize, started: Nanos, launcher: Tid) {
    // SAFETY: a launcher that forks has no other threads.
    #[allow(unsafe_code)]
    let forked = unsafe {
        sys::fork(|| {
            sys::die_with(launcher);
            world.living.store(1, Ordering::Release);
            begin(world, at, started, ROOT_GROUP);
            // It has forked tasks, which are threads of this process and end it.
            sys::pause_forever()
        })
    };
    if let Err(e) = forked {
        world.fail(
            &Error::not_permitted(format!("cannot fork a process: {e}"))
                .mend("run fewer tasks, or raise the limits: ulimit -u, kernel.pid_max, the cgroup's pids.max"),
        );
    }
}

/// Ends when all tasks have ended.
fn wait_for_children(world: &'static World) -> ! {
    loop {
        match sys::reap(-1, true) {
            Reaped::Child(Some(signal)) => world.fail(&killed(signal)),
            Reaped::Child(None) | Reaped::None => {}
            Reaped::NoChildren => sys::exit(0),
        }
    }
}

/// The error of a run of which a process was killed.
pub(crate) fn killed(signal: i32) -> Error {
    let what = format!("a process of the workload was killed by signal {signal}");
    Error::system("the run ended early", &what).mend(match signal {
        libc::SIGKILL => "if nobody killed it, it was out of memory: the kernel's log says so",
        _ => "run it again",
    })
}
