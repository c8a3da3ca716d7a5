//! The resources by which tasks wait for each other: mutexes, conditions, barriers, semaphores, suspension points,
//! timers.
//!
//! This module only does the bookkeeping; the engine wakes and blocks tasks. Waiters are woken in the order in which
//! they came. A mutex is not handed over: as with glibc's, a woken task tries again and may find the mutex taken. Who
//! took it meanwhile without having waited does not know of those who wait, and wakes nobody when it is done.

use crate::process::Wait;
use crate::program::Load;
use crate::task::TaskId;
use schedlab_base::Nanos;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(crate) struct Mutex {
    pub owner: Option<TaskId>,
    /// Its holder has to wake a waiter.
    pub wanted: bool,
    pub waiters: VecDeque<TaskId>,
    /// Tasks that burn CPU time until it is free.
    pub spinners: VecDeque<TaskId>,
}

#[derive(Debug)]
pub(crate) struct Barrier {
    pub participants: u32,
    pub waiters: Vec<TaskId>,
    pub spinners: Vec<TaskId>,
}

#[derive(Debug, Default)]
pub(crate) struct Semaphore {
    pub count: u64,
    pub waiters: VecDeque<TaskId>,
    /// Who asked a question with its post that nobody has taken yet.
    pub askers: VecDeque<TaskId>,
}

#[derive(Debug)]
pub(crate) struct Resources {
    pub mutexes: Vec<Mutex>,
    pub conds: Vec<VecDeque<TaskId>>,
    pub barriers: Vec<Barrier>,
    pub sems: Vec<Semaphore>,
    pub suspensions: Vec<Vec<TaskId>>,
    /// The next expiry of each shared timer, from its first use on.
    pub timers: Vec<Option<Nanos>>,
    /// How many jobs of each list are taken.
    pub taken: Vec<u64>,
}

impl Resources {
    pub fn new(load: &Load) -> Self {
        Self {
            mutexes: load.mutexes.iter().map(|_| Mutex::default()).collect(),
            conds: load.conds.iter().map(|_| VecDeque::new()).collect(),
            barriers: load
                .barriers
                .iter()
                .map(|(_, n)| Barrier { participants: *n, waiters: Vec::new(), spinners: Vec::new() })
                .collect(),
            sems: load.sems.iter().map(|_| Semaphore::default()).collect(),
            suspensions: load.suspensions.iter().map(|_| Vec::new()).collect(),
            timers: vec![None; load.timers.len()],
            taken: vec![0; load.jobs.len()],
        }
    }

    /// The task does not wait for a semaphore, a mutex or to be resumed any more.
    pub fn forget(&mut self, wait: Wait, p: TaskId) {
        match wait {
            Wait::Sem(s) => self.sems[s as usize].waiters.retain(|q| *q != p),
            Wait::Mutex(m) => self.mutexes[m as usize].waiters.retain(|q| *q != p),
            Wait::Resume(s) => self.suspensions[s as usize].retain(|q| *q != p),
            _ => {}
        }
    }
}
