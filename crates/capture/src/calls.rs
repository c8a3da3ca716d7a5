//! What tasks sleep for: the system call in which each of them does.
//!
//! The kernel reports the beginning of the system calls in which tasks usually sleep (`raw_syscalls:sys_enter`,
//! filtered by number). A task that leaves its CPU asleep is in the last one that it began. Which kind of file a `read`
//! waits for, the event does not say; /proc does, as long as the task lives.

use schedlab_base::{Event, Nanos, Payload, Sleep, TaskState, Tid};
use schedlab_trace::format::{Format, Shape};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The event, as system and name.
pub(crate) const EVENT: (&str, &str) = ("raw_syscalls", "sys_enter");

/// How long a file descriptor is believed to be what it was.
const BELIEVED: Nanos = 1_000_000_000;
/// So many descriptors are remembered.
const MOST_FILES: usize = 1 << 14;

/// What a system call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    /// Always the same.
    For(Sleep),
    /// The file whose descriptor is the first argument.
    OnFile,
}

/// The system calls in which tasks sleep.
const CALLS: &[(i64, Waits)] = &{
    use Waits::{For, OnFile};
    [
        (libc::SYS_nanosleep, For(Sleep::Timer)),
        (libc::SYS_clock_nanosleep, For(Sleep::Timer)),
        (libc::SYS_futex, For(Sleep::Futex)),
        (libc::SYS_futex_waitv, For(Sleep::Futex)),
        (libc::SYS_read, OnFile),
        (libc::SYS_readv, OnFile),
        (libc::SYS_pread64, OnFile),
        (libc::SYS_preadv, OnFile),
        (libc::SYS_preadv2, OnFile),
        (libc::SYS_write, OnFile),
        (libc::SYS_writev, OnFile),
        (libc::SYS_pwrite64, OnFile),
        (libc::SYS_pwritev, OnFile),
        (libc::SYS_pwritev2, OnFile),
        (libc::SYS_splice, OnFile),
        (libc::SYS_fsync, OnFile),
        (libc::SYS_fdatasync, OnFile),
        (libc::SYS_syncfs, OnFile),
        (libc::SYS_flock, OnFile),
        (libc::SYS_ioctl, OnFile),
        (libc::SYS_sync, For(Sleep::File)),
        (libc::SYS_recvfrom, For(Sleep::Socket)),
        (libc::SYS_recvmsg, For(Sleep::Socket)),
        (libc::SYS_recvmmsg, For(Sleep::Socket)),
        (libc::SYS_sendto, For(Sleep::Socket)),
        (libc::SYS_sendmsg, For(Sleep::Socket)),
        (libc::SYS_sendmmsg, For(Sleep::Socket)),
        (libc::SYS_accept, For(Sleep::Socket)),
        (libc::SYS_accept4, For(Sleep::Socket)),
        (libc::SYS_connect, For(Sleep::Socket)),
        (libc::SYS_ppoll, For(Sleep::Poll)),
        (libc::SYS_pselect6, For(Sleep::Poll)),
        (libc::SYS_epoll_pwait, For(Sleep::Poll)),
        (libc::SYS_epoll_pwait2, For(Sleep::Poll)),
        (libc::SYS_wait4, For(Sleep::Child)),
        (libc::SYS_waitid, For(Sleep::Child)),
        (libc::SYS_clone, For(Sleep::Child)),
        (libc::SYS_clone3, For(Sleep::Child)),
        (libc::SYS_rt_sigsuspend, For(Sleep::Signal)),
        (libc::SYS_rt_sigtimedwait, For(Sleep::Signal)),
        (libc::SYS_semop, For(Sleep::Ipc)),
        (libc::SYS_semtimedop, For(Sleep::Ipc)),
        (libc::SYS_msgrcv, For(Sleep::Ipc)),
        (libc::SYS_msgsnd, For(Sleep::Ipc)),
        (libc::SYS_mq_timedreceive, For(Sleep::Ipc)),
        (libc::SYS_mq_timedsend, For(Sleep::Ipc)),
        (libc::SYS_io_getevents, For(Sleep::Io)),
        (libc::SYS_io_uring_enter, For(Sleep::Io)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_poll, For(Sleep::Poll)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_select, For(Sleep::Poll)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_epoll_wait, For(Sleep::Poll)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_pause, For(Sleep::Signal)),
        #[cfg(target_arch = "x86_64")]
        (libc::SYS_vfork, For(Sleep::Child)),
    ]
};

/// The filter of the event that lets only these calls pass.
pub(crate) fn filter() -> String {
    CALLS.iter().map(|(number, _)| format!("id == {number}")).collect::<Vec<_>>().join(" || ")
}

/// A call that a task began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    sleep: Sleep,
    /// Whether a task in it that cannot be interrupted waits for the same.
    uninterruptible: bool,
    /// The descriptor of the file that it waits for, if that could not be looked up.
    unknown: Option<u64>,
}

/// Reads the calls, and says for each sleep in which it is.
pub(crate) struct Calls {
    event: u16,
    /// Where in a record the task, the number of the call and its first argument are.
    at: [usize; 3],
    /// Calls that are not applied yet.
    begun: Vec<(Nanos, Tid, Call)>,
    /// The call that each task began last.
    last: HashMap<Tid, Call>,
    /// What files are, by task and descriptor, and when that was looked up.
    files: HashMap<(Tid, u64), (Option<Sleep>, Nanos)>,
    /// Who forked each task.
    parents: HashMap<Tid, Tid>,
    proc: PathBuf,
}

impl Calls {
    /// Creates a reader of records with this format; `None` if it is of another event or has other fields.
    pub(crate) fn new(format: &Format, proc: &Path) -> Option<Self> {
        let field = |name: &str, size: u32| {
            format.field(name).filter(|f| f.size >= size && f.shape != Shape::DataLoc).map(|f| f.offset as usize)
        };
        let at = [field("common_pid", 4)?, field("id", 8)?, field("args", 8)?];
        (format.name == EVENT.1).then(|| Self {
            event: format.id,
            at,
            begun: Vec::new(),
            last: HashMap::new(),
            files: HashMap::new(),
            parents: HashMap::new(),
            proc: proc.to_path_buf(),
        })
    }

    /// Takes a record, if it is one of these events.
    #[inline]
    pub(crate) fn read(&mut self, time: Nanos, raw: &[u8]) {
        if raw.get(..2) != Some(&self.event.to_le_bytes()) {
            return;
        }
        let long = |at: usize| raw.get(at..at + 8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight")));
        let [task, id, arguments] = self.at;
        let tid = raw.get(task..task + 4).map(|bytes| Tid::from_le_bytes(bytes.try_into().expect("four")));
        if let (Some(tid), Some(id), Some(first)) = (tid, long(id), long(arguments))
            && let Some((_, waits)) = CALLS.iter().find(|(number, _)| *number == id as i64)
        {
            // The file is looked up at once, because the task may end soon.
            let call = match *waits {
                Waits::For(sleep) => {
                    let uninterruptible = matches!(sleep, Sleep::Child | Sleep::File);
                    Call { sleep, uninterruptible, unknown: None }
                }
                Waits::OnFile => {
                    let sleep = self.file(tid, first, time);
                    let unknown = sleep.is_none().then_some(first);
                    Call { sleep: sleep.unwrap_or(Sleep::Io), uninterruptible: true, unknown }
                }
            };
            self.begun.push((time, tid, call));
        }
    }

    /// Puts the calls in the order of their times.
    pub(crate) fn order(&mut self) {
        self.begun.sort_by_key(|(time, ..)| *time);
    }

    /// The events with what each sleep is for, before the switch that begins it.
    pub(crate) fn explain(&mut self, events: &[Event]) -> Vec<Event> {
        let mut explained = Vec::with_capacity(events.len() + events.len() / 4);
        let begun = std::mem::take(&mut self.begun);
        let mut next = begun.iter().peekable();
        for event in events {
            while let Some((_, tid, call)) = next.next_if(|(time, ..)| *time <= event.time) {
                self.last.insert(*tid, *call);
            }
            match event.what {
                Payload::Switch { prev, prev_state, .. } => {
                    let why = self.why(prev, prev_state, event.time);
                    explained.extend(why.map(|why| Event { what: Payload::Sleeps { tid: prev, why }, ..*event }));
                }
                Payload::Exit { tid, .. } => _ = self.last.remove(&tid),
                Payload::Fork { parent, child } => {
                    self.last.remove(&child);
                    self.parents.insert(child, parent);
                }
                _ => {}
            }
            explained.push(*event);
        }
        self.begun = next.copied().collect();
        explained
    }

    /// What a task sleeps for that leaves its CPU in this state. Without a call, and if it waits for what its call does
    /// not explain, such as the disk that holds a page of its memory, that is unknown.
    fn why(&mut self, tid: Tid, state: TaskState, now: Nanos) -> Option<Sleep> {
        let call = *self.last.get(&tid)?;
        let explained = match state {
            TaskState::Sleeping => true,
            TaskState::Uninterruptible => call.uninterruptible,
            _ => false,
        };
        // A task that has ended had most of its files from its parent.
        let inherited = call.unknown.filter(|_| explained).and_then(|descriptor| {
            let parent = *self.parents.get(&tid)?;
            self.file(parent, descriptor, now)
        });
        explained.then_some(inherited.unwrap_or(call.sleep))
    }

    /// What the file with this descriptor is; `None` if the task has no such file any more.
    fn file(&mut self, tid: Tid, descriptor: u64, now: Nanos) -> Option<Sleep> {
        let key = (tid, descriptor);
        if let Some((sleep, _)) = self.files.get(&key).filter(|(_, looked)| now < looked + BELIEVED) {
            return *sleep;
        }
        if self.files.len() >= MOST_FILES {
            self.files.clear();
        }
        let sleep = look(&self.proc.join(format!("{tid}/fd/{descriptor}")));
        self.files.insert(key, (sleep, now));
        sleep
    }
}

/// What the file that this link of /proc leads to is.
fn look(link: &Path) -> Option<Sleep> {
    let (name, kind) = (fs::read_link(link).ok()?, fs::metadata(link).ok()?.file_type());
    let name = name.to_string_lossy();
    let terminal = ["/dev/pts/", "/dev/tty", "/dev/console"].iter().any(|head| name.starts_with(head));
    Some(match () {
        () if kind.is_fifo() => Sleep::Pipe,
        () if kind.is_socket() => Sleep::Socket,
        () if kind.is_char_device() && terminal => Sleep::Terminal,
        () if kind.is_file() && !name.starts_with("anon_inode:") || kind.is_dir() || kind.is_block_device() => {
            Sleep::File
        }
        () if name == "anon_inode:[timerfd]" => Sleep::Timer,
        () => Sleep::Io,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: sys_enter\nID: 21\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n";

    fn record(tid: i32, id: i64, first: u64) -> Vec<u8> {
        let mut raw = vec![21, 0, 0, 0];
        raw.extend(tid.to_le_bytes());
        raw.extend(id.to_le_bytes());
        raw.extend(first.to_le_bytes());
        raw.extend([0; 40]);
        raw
    }

    fn switch(time: Nanos, prev: Tid, prev_state: TaskState) -> Event {
        let what = Payload::Switch { prev, prev_prio: 120, prev_state, next: 0, next_prio: 120 };
        Event { time, cpu: 1, what }
    }

    fn reasons(events: &[Event]) -> Vec<(Nanos, Tid, Sleep)> {
        let reason = |event: &Event| match event.what {
            Payload::Sleeps { tid, why } => Some((event.time, tid, why)),
            _ => None,
        };
        events.iter().filter_map(reason).collect()
    }

    #[test]
    fn a_sleep_is_in_the_call_that_began_last() {
        use TaskState::{Runnable, Sleeping, Uninterruptible};
        let mut calls = Calls::new(&Format::parse(FORMAT).unwrap(), Path::new("/nowhere")).unwrap();
        calls.read(30, &record(7, libc::SYS_futex, 0));
        calls.read(10, &record(7, libc::SYS_nanosleep, 0));
        calls.read(90, &record(7, libc::SYS_wait4, 0));
        // Another event, and a record that is cut off.
        calls.read(10, &[22, 0, 0]);
        calls.read(10, &[21, 0, 0]);
        calls.order();
        let events = [
            switch(5, 7, Sleeping),
            switch(20, 7, Runnable),
            switch(25, 7, Sleeping),
            switch(40, 7, Sleeping),
            switch(50, 7, Uninterruptible),
            switch(60, 8, Sleeping),
        ];
        let explained = calls.explain(&events);
        assert_eq!(reasons(&explained), [(25, 7, Sleep::Timer), (40, 7, Sleep::Futex)]);
        assert_eq!(explained.len(), events.len() + 2);
        assert_eq!(reasons(&calls.explain(&[switch(100, 7, Sleeping)])), [(100, 7, Sleep::Child)]);
        let exit = Event { time: 110, cpu: 1, what: Payload::Exit { tid: 7, prio: 120 } };
        assert_eq!(reasons(&calls.explain(&[exit, switch(120, 7, Sleeping)])), []);
    }

    #[test]
    fn a_read_waits_for_what_the_file_is() {
        let mut calls = Calls::new(&Format::parse(FORMAT).unwrap(), Path::new("/proc")).unwrap();
        let (mine, _theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let (reads, _writes) = std::io::pipe().unwrap();
        let file = fs::File::open("/proc/self/exe").unwrap();
        let me = std::process::id() as Tid;
        let mut on = |descriptor: &dyn std::os::fd::AsRawFd| {
            calls.read(10, &record(me, libc::SYS_read, descriptor.as_raw_fd() as u64));
            reasons(&calls.explain(&[switch(20, me, TaskState::Sleeping)]))[0].2
        };
        assert_eq!([on(&mine), on(&reads), on(&file)], [Sleep::Socket, Sleep::Pipe, Sleep::File]);
        calls.read(30, &record(me, libc::SYS_read, 1 << 20));
        assert_eq!(reasons(&calls.explain(&[switch(40, me, TaskState::Sleeping)])), [(40, me, Sleep::Io)]);
    }

    #[test]
    fn the_filter_names_each_call_once() {
        let filter = filter();
        assert_eq!(filter.split(" || ").collect::<std::collections::BTreeSet<_>>().len(), CALLS.len());
        assert!(filter.len() < 4096, "the kernel takes a page at most");
    }
}
