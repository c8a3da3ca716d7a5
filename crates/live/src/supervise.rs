//! The supervisor: a process that starts the launchers, lets the run begin, and ends it, whatever happens to any other
//! process of the run.
//!
//! It has a higher priority than the tasks where it may, outlives the command that started it, and makes and removes
//! the groups. The launchers die with it, and the tasks with their launchers.

use crate::children::children;
use crate::hotplug;
use crate::launch;
use crate::region::Slot;
use crate::sync;
use crate::sys::{self, Reaped};
use crate::world::World;
use schedlab_base::{Error, Nanos, Tid};
use schedlab_capture::{SchedAttr, Signals};
use std::collections::BTreeMap;
use std::fs;
use std::io::{PipeReader, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What the command says to the supervisor.
pub(crate) const GO: u8 = b'g';
/// What the supervisor says: all tasks are ready, and the run has started.
pub(crate) const READY: u8 = b'r';
pub(crate) const STARTED: u8 = b's';

/// The longest time until all tasks are ready.
const SETUP: Nanos = 120_000_000_000;
/// From the decision to start until the start, and more of it for each task that then goes to sleep until its own.
const LEAD: Nanos = 2_000_000;
const LEAD_EACH: Nanos = 30_000;

/// The supervisor's body, in the process that was forked for it.
pub(crate) fn supervise(world: &'static World, mut command: UnixStream, mut notice: PipeReader) -> ! {
    let signals = stand_apart(&[command.as_raw_fd(), notice.as_raw_fd(), world.notify.as_raw_fd()]);
    if let Err(error) = world.groups.make(&world.load().groups) {
        world.region.fail(&error);
        world.groups.remove();
        sys::exit(0)
    }
    let mut launchers = launch_all(world, &signals);
    let mut state = State::SettingUp { until: sys::monotonic() + SETUP };
    let mut switches = hotplug::Switches::new(&world.load().hotplug);
    loop {
        let until = match state {
            State::SettingUp { until } => Some(until),
            State::Running { until } => Some(until.min(switches.next())).filter(|until| *until != Nanos::MAX),
            State::Ready => None,
        };
        let fds = [command.as_raw_fd(), notice.as_raw_fd(), signals.raw_fd()];
        let [spoken, noticed, signalled] = sys::wait_readable(fds, until);
        if signalled && (ended_by_signal(&signals) | reap(world, &mut launchers)) {
            break;
        }
        if noticed {
            let mut bytes = [0; 64];
            let _ = notice.read(&mut bytes);
        }
        if world.region.failure().is_some() {
            break;
        }
        let mut byte = [0];
        if spoken && !command.read(&mut byte).is_ok_and(|n| n == 1 && byte[0] == GO) {
            break;
        }
        state = match state {
            State::SettingUp { .. } if world.region.control().ready.load(Ordering::Acquire) >= world.expected => {
                say(&mut command, READY);
                State::Ready
            }
            State::SettingUp { until } if sys::monotonic() >= until => {
                world
                    .region
                    .fail(&Error::system("the run did not start", &"its tasks were not ready within 2 minutes"));
                break;
            }
            State::Ready if spoken => {
                let until = start(world);
                say(&mut command, STARTED);
                switches.begin(world.region.control().start.load(Ordering::Acquire));
                State::Running { until }
            }
            State::Running { until } if sys::monotonic() >= until => break,
            state => state,
        };
        if let Err(error) = switches.due(sys::monotonic()) {
            world.region.fail(&error);
            break;
        }
    }
    note_cpu_times(world);
    kill_all(&launchers);
    world.groups.remove();
    sys::exit(0)
}

/// Makes this process independent of the command, but for these descriptors, and more important than the tasks.
fn stand_apart(keep: &[RawFd]) -> Signals {
    sys::set_name("schedlab-super");
    sys::new_session();
    sys::detach_standard_streams();
    sys::close_all_but(keep);
    sys::adopt_orphans();
    let Ok(signals) = Signals::take() else { sys::exit(1) };
    stand_out(true);
    signals
}

/// Gives this process the highest real-time priority, or takes it back. Without the right to it, the supervisor
/// competes with the tasks. They also look at the time themselves.
fn stand_out(on: bool) {
    let _ = if on { SchedAttr::fifo(99) } else { SchedAttr::default() }.set();
}

/// How far the run is.
#[derive(Clone, Copy)]
enum State {
    SettingUp { until: Nanos },
    Ready,
    Running { until: Nanos },
}

fn say(command: &mut UnixStream, byte: u8) {
    // If the command has gone, the next look at the socket says so.
    let _ = command.write_all(&[byte]);
}

/// One launcher for each session, and which tasks it starts.
fn launch_all(world: &'static World, signals: &Signals) -> Vec<Tid> {
    let mut sessions: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, task) in world.load().tasks.iter().enumerate() {
        sessions.entry(task.session.unwrap_or(0)).or_default().push(at);
    }
    let supervisor = sys::pid();
    let mut launchers = Vec::new();
    for members in sessions.values() {
        // SAFETY: this process has one thread.
        #[allow(unsafe_code)]
        let forked = unsafe {
            sys::fork(|| {
                sys::die_with(supervisor);
                sys::new_session();
                signals.restore();
                launch::launcher(world, members)
            })
        };
        match forked {
            Ok(child) => launchers.push(child),
            Err(e) => world.region.fail(&Error::system("cannot fork a process for the tasks", &e)),
        }
    }
    launchers
}

/// How many sessions, and so launchers, a load has.
pub(crate) fn sessions(load: &schedlab_sim::program::Load) -> usize {
    load.tasks.iter().map(|task| task.session.unwrap_or(0)).collect::<std::collections::BTreeSet<_>>().len()
}

/// Lets the run start. Returns when it ends.
fn start(world: &World) -> Nanos {
    let (control, tasks) = (world.region.control(), &world.load().tasks);
    let later = tasks.iter().filter(|task| task.start > 0).count() as Nanos;
    let begin = sys::monotonic() + LEAD + later * LEAD_EACH;
    let end = world.options.duration.map_or(Nanos::MAX, |duration| begin.saturating_add(duration));
    control.start.store(begin, Ordering::Release);
    control.end.store(end, Ordering::Release);
    sync::set(&control.armed);
    sys::sleep_until(begin);
    if world.load().start == schedlab_sim::program::Start::Wake {
        for (slot, _) in world.region.slots().iter().zip(tasks).filter(|(_, task)| task.start == 0) {
            sync::set(&slot.go);
        }
    }
    end
}

/// Notes how much CPU time each task has used that has not ended.
fn note_cpu_times(world: &World) {
    let living = |slot: &&Slot| slot.tid.load(Ordering::Acquire) != 0 && slot.ended.load(Ordering::Acquire) == 0;
    for slot in world.region.slots()[..world.used()].iter().filter(living) {
        let stat = fs::read_to_string(format!("/proc/{}/schedstat", slot.tid.load(Ordering::Acquire)));
        if let Some(time) = stat.ok().and_then(|text| text.split_whitespace().next()?.parse().ok()) {
            slot.cpu_after.store(time, Ordering::Relaxed);
        }
    }
}

fn ended_by_signal(signals: &Signals) -> bool {
    let mut ended = false;
    while let Some(signal) = signals.next() {
        ended |= signal.number != libc::SIGCHLD;
    }
    ended
}

/// Reaps children that have ended. Whether the run is over: all launchers have ended, or one was killed.
fn reap(world: &World, launchers: &mut Vec<Tid>) -> bool {
    while let Ok(Some(child)) = sys::ended_child() {
        let Reaped::Child(signal) = reap_ended(child) else { continue };
        let before = launchers.len();
        launchers.retain(|launcher| *launcher != child);
        if let (Some(signal), true) = (signal, launchers.len() < before) {
            world.region.fail(&launch::killed(signal));
        }
    }
    launchers.is_empty()
}

/// Reaps a child that has ended.
///
/// The kernel tells of a child's end before its last thread is gone, whose entries in /proc it then frees. Who reaps
/// the child meanwhile waits for that in a loop (`shrink_dcache_parent`), so that thread must be able to get this CPU.
fn reap_ended(child: Tid) -> Reaped {
    stand_out(false);
    let reaped = sys::reap(child, false);
    stand_out(true);
    reaped
}

/// Kills the launchers, and whatever of their descendants is left then.
fn kill_all(launchers: &[Tid]) {
    launchers.iter().for_each(|launcher| sys::kill(*launcher));
    let own = sys::pid();
    loop {
        match sys::ended_child() {
            Ok(Some(child)) => _ = reap_ended(child),
            Ok(None) => {
                children(own).into_iter().for_each(sys::kill);
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return,
        }
    }
}
