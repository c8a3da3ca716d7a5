//! The command's side of a run: it makes what the processes share, starts the supervisor, and collects what the tasks
//! report.

use crate::children::children;
use crate::figures::{Execution, collect};
use crate::groups::Groups;
use crate::supervise::{self, GO, READY, STARTED, sessions};
use crate::sys::{self, Reaped};
use crate::work::Calibration;
use crate::world::{Options, World};
use schedlab_base::{Error, Nanos, Result, Tid};
use schedlab_capture::Signals;
use schedlab_sim::program::Start;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;

/// A run that is set up: all its tasks exist (or their launchers, where those create them) and sleep.
///
/// When it is dropped, nothing of it is left; and if this process is killed, the supervisor sees to that.
pub struct Runner {
    // This comes before the world that the processes use: they are gone when it is dropped.
    supervisor: Supervisor,
    world: Box<World>,
}

/// The supervisor's process.
struct Supervisor {
    pid: Option<Tid>,
    /// Whether it was killed, and could not see to the end of the run.
    killed: bool,
    socket: Option<UnixStream>,
}

impl Runner {
    /// Makes the groups, the memory, the processes and the threads, and gives the tasks their attributes.
    ///
    /// # Errors
    /// When a right is missing, or the machine lacks what the load asks for. Nothing is left behind then.
    pub fn new(options: Options) -> Result<Self> {
        let failed = |e: io::Error| Error::system("cannot set up the run", &e);
        let groups = Groups::plan(&options.load.groups)?;
        let (notice, notify) = io::pipe().map_err(failed)?;
        let (socket, other) = UnixStream::pair().map_err(failed)?;
        let launchers = sessions(&options.load);
        let expected = if options.load.start == Start::Wake { options.load.tasks.len() } else { launchers };
        let world = Box::new(World::new(options, groups, notify, expected as u32)?);
        // SAFETY: the child never returns from `supervise`, so that the world lives as long as the child. The command
        // forks before it starts threads of its own that might hold a lock.
        #[allow(unsafe_code)]
        let pid = unsafe {
            let world: &'static World = &*std::ptr::from_ref(&*world);
            let ends = (other.try_clone().map_err(failed)?, notice.try_clone().map_err(failed)?);
            sys::fork(move || supervise::supervise(world, ends.0, ends.1)).map_err(failed)?
        };
        drop((other, notice));
        let supervisor = Supervisor { pid: Some(pid), killed: false, socket: Some(socket) };
        let mut runner = Self { supervisor, world };
        runner.expect(READY)?;
        Ok(runner)
    }

    /// Waits for the supervisor to say this.
    fn expect(&mut self, word: u8) -> Result<()> {
        let mut byte = [0];
        let heard = self.supervisor.socket.as_mut().is_some_and(|socket| socket.read_exact(&mut byte).is_ok());
        if heard && byte[0] == word { Ok(()) } else { Err(self.failure()) }
    }

    /// Why the supervisor has ended.
    fn failure(&mut self) -> Error {
        self.supervisor.end();
        self.world.region.failure().unwrap_or_else(unsupervised)
    }

    /// How the loops of this machine were measured.
    #[must_use]
    pub fn calibration(&self) -> Calibration {
        self.world.calibration
    }

    /// The processes of the tasks: those that exist before the start.
    #[must_use]
    pub fn processes(&self) -> Vec<Tid> {
        self.supervisor.pid.map(children).unwrap_or_default()
    }

    /// Starts the run, and returns when that was by the monotonic clock.
    ///
    /// # Errors
    /// When the run cannot start any more.
    pub fn start(&mut self) -> Result<Nanos> {
        if let Some(socket) = &mut self.supervisor.socket
            && socket.write_all(&[GO]).is_err()
        {
            return Err(self.failure());
        }
        self.expect(STARTED)?;
        Ok(self.world.region.span().0)
    }

    /// Waits until the run is over or a signal arrives that ends it.
    ///
    /// # Errors
    /// When signals cannot be taken.
    pub fn wait(&mut self) -> Result<()> {
        let signals = Signals::take().map_err(|e| Error::system("cannot take signals", &e))?;
        let Some(socket) = &mut self.supervisor.socket else { return Ok(()) };
        loop {
            let [over, signalled] = sys::wait_readable([socket.as_raw_fd(), signals.raw_fd()], None);
            while let Some(signal) = signals.next() {
                if signal.number != libc::SIGCHLD {
                    return Ok(());
                }
            }
            if over && !signalled {
                return Ok(());
            }
        }
    }

    /// Ends the run if it has not ended, and collects what the tasks report.
    ///
    /// # Errors
    /// The error that ended the run.
    pub fn finish(mut self) -> Result<Execution> {
        let now = sys::monotonic();
        self.supervisor.end();
        match self.world.region.failure() {
            Some(error) => Err(error),
            None if self.supervisor.killed => Err(unsupervised()),
            None => Ok(collect(&self.world, now)),
        }
    }

    /// The name of the task with this thread id in the workload, and the path of the group that it begins in, if the
    /// workload has groups.
    #[must_use]
    pub(crate) fn task(&self, tid: Tid) -> Option<(String, Option<&str>)> {
        let slots = &self.world.region.slots()[..self.world.used()];
        let at = slots.iter().position(|slot| slot.tid.load(Ordering::Acquire) == tid)?;
        let group = self.world.spec(at).initial.group.and_then(|group| self.world.load().groups.get(group as usize));
        Some((self.world.name(at), group.map(|group| group.path.as_str())))
    }

    /// How the paths of the workload's groups begin in a recording, where the workload has `/`.
    pub(crate) fn group_prefix(&self) -> Option<String> {
        self.world.groups.prefix()
    }
}

/// The error of a run whose supervisor was killed: its tasks died with it.
fn unsupervised() -> Error {
    Error::system("the run ended early", &"its supervisor was killed").mend("run it again")
}

impl Supervisor {
    /// Ends the run. All its processes are gone afterwards.
    fn end(&mut self) {
        self.socket = None;
        if let Some(pid) = self.pid.take() {
            loop {
                match sys::reap(pid, true) {
                    Reaped::None => {}
                    ended => break self.killed = matches!(ended, Reaped::Child(Some(_))),
                }
            }
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end();
    }
}
