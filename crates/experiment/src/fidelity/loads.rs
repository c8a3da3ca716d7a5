//! The loads by which a simulator and a real kernel are compared, each for a machine of so many CPUs.
//!
//! Every task begins at a time that the seed draws, so that runs differ as those of a real machine do. Bursts take 500
//! us at least. A real task that looked at its CPU clock in a burst would make the kernel account it, and so end its
//! slice earlier; those that never sleep do not look at it at all.

use schedlab_base::{Nanos, Result};
use schedlab_workload::Workload;
use std::path::Path;

/// A load.
#[derive(Debug)]
pub(super) struct Load {
    /// Its name.
    pub(super) name: &'static str,
    /// What it is.
    pub(super) meaning: &'static str,
    tasks: fn(u32) -> String,
    /// Members beside the tasks.
    rest: &'static str,
}

impl Load {
    /// The load for a machine of so many CPUs.
    pub(super) fn workload(&self, cpus: u32) -> Result<Workload> {
        let text = format!(r#"{{ "tasks": {{ {} }}{} }}"#, (self.tasks)(cpus), self.rest);
        let mut workload = schedlab_workload::parse(text.as_bytes(), Path::new(self.name))?;
        workload.name = self.name.to_owned();
        workload.file = None;
        Ok(workload)
    }
}

/// What is run in both.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject<'a> {
    /// A load of this file.
    Known(&'static Load),
    /// A workload of the user's.
    Own(&'a Workload),
}

impl Subject<'_> {
    /// Its name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Known(load) => load.name,
            Self::Own(workload) => &workload.name,
        }
    }

    /// The workload for a machine of so many CPUs.
    pub(super) fn workload(&self, cpus: u32) -> Result<Workload> {
        match self {
            Self::Known(load) => load.workload(cpus),
            Self::Own(workload) => Ok((*workload).clone()),
        }
    }
}

/// Some tasks that begin at a random time and then do `events` for ever.
fn tasks(name: &str, instances: u32, props: &str, events: &str) -> String {
    format!(
        r#""{name}": {{ "instance": {instances}, "loop": 1, {props} "phases": {{
            "begin": {{ "sleep": {{ "mean": 20000, "sd": 8000 }} }}, "go": {{ "loop": -1, {events} }} }} }}"#
    )
}

const HOG: &str = r#""run": 100000"#;
const SLEEPER: &str = r#""run": { "mean": 2000, "sd": 300 }, "sleep": { "mean": 8000, "sd": 1000 }"#;

fn hogs(name: &str, instances: u32, props: &str) -> String {
    tasks(name, instances, &format!(r#""x-clock-poll": 0, {props}"#), HOG)
}

fn join(parts: &[String]) -> String {
    parts.join(", ")
}

/// All loads.
pub(super) const LOADS: &[Load] = &[
    Load {
        name: "hogs",
        meaning: "half as many again as there are CPUs",
        tasks: |n| hogs("hog", n + n.div_ceil(2), ""),
        rest: "",
    },
    Load {
        name: "nice",
        meaning: "on each CPU's behalf a hog of nice 0 and one of nice 5",
        tasks: |n| join(&[hogs("nice-0", n, ""), hogs("nice-5", n, r#""priority": 5,"#)]),
        rest: "",
    },
    Load {
        name: "idle-policy",
        meaning: "hogs of SCHED_IDLE beside ordinary tasks that sleep",
        tasks: |n| join(&[hogs("idle", n, r#""policy": "SCHED_IDLE","#), tasks("sleeper", n, "", SLEEPER)]),
        rest: "",
    },
    Load {
        name: "sleepers",
        meaning: "a hog for each CPU, and as many tasks that compute for 2 ms and sleep for 8 ms",
        tasks: |n| join(&[hogs("hog", n, ""), tasks("sleeper", n, "", SLEEPER)]),
        rest: "",
    },
    Load {
        name: "light",
        meaning: "tasks that use a quarter of the machine and sleep in between",
        tasks: |n| tasks("task", n, "", r#""run": { "mean": 1000, "sd": 200 }, "sleep": { "mean": 3000, "sd": 500 }"#),
        rest: "",
    },
    Load {
        name: "pipeline",
        meaning: "pipelines of three stages that wake each other, one for each CPU",
        tasks: |n| join(&(0..n).map(pipeline).collect::<Vec<_>>()),
        rest: "",
    },
    Load {
        name: "schbench",
        meaning: "a task that hands out requests to four workers for each CPU, which compute for 5 ms each",
        tasks: |n| {
            let serve =
                r#""sem_post": "idle", "sem_wait": "request", "sleep": 200, "run": { "mean": 5000, "sd": 1000 }"#;
            let hand_out = r#""sem_wait": "idle", "run": 500, "sem_post": "request""#;
            join(&[tasks("message", 1, "", hand_out), tasks("worker", 4 * n, "", serve)])
        },
        rest: "",
    },
    Load {
        name: "pinned",
        meaning: "three hogs bound to CPU 0 beside one free hog for each other CPU",
        tasks: |n| {
            let bound = hogs("bound", 3, r#""cpus": [0],"#);
            if n == 1 { bound } else { join(&[bound, hogs("free", n - 1, "")]) }
        },
        rest: "",
    },
    Load {
        name: "fifo",
        meaning: "a task of SCHED_FIFO that uses a fifth of a CPU, beside hogs",
        tasks: |n| {
            let props = r#""policy": "SCHED_FIFO", "priority": 10,"#;
            join(&[hogs("hog", 2 * n, ""), tasks("fifo", 1, props, SLEEPER)])
        },
        rest: "",
    },
    Load {
        name: "groups",
        meaning: "three cgroups of weight 100, 300 and 600, each with a hog for each CPU",
        tasks: |n| {
            let of = |name: &str| hogs(name, n, &format!(r#""taskgroup": "/{name}","#));
            join(&[of("low"), of("middle"), of("high")])
        },
        rest: r#", "x-groups":
            { "/low": { "weight": 100 }, "/middle": { "weight": 300 }, "/high": { "weight": 600 } }"#,
    },
];

fn pipeline(n: u32) -> String {
    let (full, room) = (|stage: u32| format!("full-{n}-{stage}"), |stage: u32| format!("room-{n}-{stage}"));
    let source = format!(
        r#""sem_wait": "{}", "run": {{ "mean": 3000, "sd": 600 }}, "sem_post": "{}",
           "sleep": {{ "mean": 9000, "sd": 2000 }}"#,
        room(1),
        full(1)
    );
    let middle = format!(
        r#""sem_post": "{}", "sem_wait": "{}", "run": {{ "mean": 5000, "sd": 1000 }}, "sem_post1": "{}""#,
        room(1),
        full(1),
        full(2)
    );
    let sink = format!(r#""sem_wait": "{}", "run": {{ "mean": 2000, "sd": 400 }}"#, full(2));
    let of = |stage: &str, events: &str| tasks(&format!("{stage}-{n}"), 1, "", events);
    join(&[of("source", &source), of("middle", &middle), of("sink", &sink)])
}

/// The tasks of [`WAKE_UPS`] and [`CALLS`] that do nothing but wake up, compute for so long, and sleep.
pub(super) const PULSES: [&str; 2] = ["bound", "pulse"];
/// The one of [`CALLS`] that wakes another one before it sleeps.
pub(super) const WAKER: &str = "waker";
/// The one of [`FORKS`] that forks before it sleeps, and what it forks: that computes twice, and sleeps in between.
pub(super) const FORKER: &str = "forker";
pub(super) const FORKED: &str = "forked";
pub(super) const PULSE: Nanos = 200_000;

/// Tasks that compute for [`PULSE`] on the first CPU, do something more, and sleep for some 8 ms: long enough for an
/// idle CPU to stop its tick, as in the loads that sleep.
fn pulse(name: &str, instances: u32, props: &str, more: &str) -> String {
    let run = PULSE / 1000;
    tasks(name, instances, props, &format!(r#""run": {run}, {more} "sleep": {{ "mean": 8000, "sd": 1500 }}"#))
}

const FIRST_CPU: &str = r#""cpus": [0],"#;
const IDLE_ON_THE_FIRST_CPU: &str = r#""policy": "SCHED_IDLE", "cpus": [0],"#;

/// Binds a task to one CPU.
fn on(cpu: u32) -> String {
    format!(r#""cpus": [{cpu}],"#)
}

/// What shows the costs of a machine's wake-ups: tasks that wake up on idle CPUs by timers, one that preempts another,
/// and one that preempts the task that woke it.
const WAKE_UPS: Load = Load {
    name: "calibration",
    meaning: "",
    tasks: |n| {
        // Some ms apart, as in the loads: sooner, the kernel's code would still be in the caches.
        let call = |n| format!(r#""run{n}": 5000, "sem_post{n}": "call", "#);
        let calls: String = (0..4).map(call).collect();
        let victim = tasks("idle", 1, IDLE_ON_THE_FIRST_CPU, &(calls + r#""sleep": 20000"#));
        let called = tasks("called", 1, FIRST_CPU, r#""sem_wait": "call", "run": 100"#);
        let mut all = vec![pulse(PULSES[0], 1, FIRST_CPU, ""), victim, called];
        // A pulse that is free seldom wakes up on the CPU of the victim.
        if n > 1 {
            all.insert(0, pulse(PULSES[1], n.div_ceil(2), "", ""));
        }
        join(&all)
    },
    rest: "",
};

/// What shows what tasks pay for system calls, and how an idle CPU is woken by another one. Apart from [`WAKE_UPS`]: a
/// virtual machine leaves idle the sooner the more it has to do.
const CALLS: Load = Load {
    name: "calibration of calls",
    meaning: "",
    tasks: |n| {
        let waker = pulse(WAKER, 1, FIRST_CPU, r#""sem_post": "poke","#);
        let poked = tasks("poked", 1, IDLE_ON_THE_FIRST_CPU, r#""sem_wait": "poke", "run": 50"#);
        let mut all = vec![pulse(PULSES[0], 1, FIRST_CPU, ""), waker, poked];
        // Not all machines show how each of their CPUs leaves idle.
        for (near, far) in [(0, 1), (1, 0)].into_iter().filter(|_| n > 1) {
            let asks = format!(r#""run": 300, "sem_post": "ask-{far}", "sleep": {{ "mean": 15000, "sd": 2000 }}"#);
            let asked = format!(r#""sem_wait": "ask-{far}", "run": 50"#);
            all.push(tasks(&format!("asks-{far}"), 1, &on(near), &asks));
            all.push(tasks(&format!("asked-{far}"), 1, &on(far), &asked));
        }
        join(&all)
    },
    rest: "",
};

/// What shows how long a task takes to preempt another one on a CPU, if it is woken from another CPU.
const FROM_AFAR: Load = Load {
    name: "calibration from afar",
    meaning: "",
    tasks: |_| {
        let calls = r#""run": 300, "sem_post": "call", "sleep": { "mean": 8000, "sd": 1500 }"#;
        join(&[
            hogs("idle", 1, &format!(r#""policy": "SCHED_IDLE", {}"#, on(1))),
            tasks("calls", 1, FIRST_CPU, calls),
            tasks("called", 1, &on(1), r#""sem_wait": "call", "run": 100"#),
        ])
    },
    rest: "",
};

/// What shows what it takes to fork a task, and to be one.
const FORKS: Load = Load {
    name: "calibration of forks",
    meaning: "",
    tasks: |_| {
        let run = PULSE / 1000;
        join(&[
            pulse(FORKER, 1, "", &format!(r#""fork": "{FORKED}","#)),
            format!(r#""{FORKED}": {{ "instance": 0, "loop": 1, "run": {run}, "sleep": 2000, "run1": {run} }}"#),
        ])
    },
    rest: "",
};

/// The loads of a calibration of a machine with so many CPUs, for loads that fork or do not.
pub(super) fn calibration(cpus: usize, forks: bool) -> Vec<&'static Load> {
    let from_afar = (cpus > 1).then_some(&FROM_AFAR);
    [&WAKE_UPS, &CALLS].into_iter().chain(from_afar).chain(forks.then_some(&FORKS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_is_a_workload_on_any_machine() {
        for cpus in [1, 2, 12] {
            for load in LOADS.iter().chain(calibration(cpus as usize, true)) {
                let workload = load.workload(cpus).unwrap_or_else(|e| panic!("{}: {e}", load.name));
                assert!(workload.warnings.is_empty(), "{}: {:?}", load.name, workload.warnings);
            }
        }
    }
}
