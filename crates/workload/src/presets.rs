//! Built-in workloads with parameters: `li:tasks=10,nice=5`.

use crate::{Action, Amount, Phase, Props, Step, TaskDef, TimerMode, Workload};
use schedlab_base::{CpuList, Error, Nanos, Result, nearest, parse_duration};

mod linpack;
mod make;
mod nas;
mod schbench;
mod stream;
mod tpch;

pub use nas::{NAS, Program};

/// A parameter of a preset.
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// Its default value.
    pub default: &'static str,
    /// A one-line description.
    pub meaning: &'static str,
}

/// A preset.
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// A one-line description.
    pub meaning: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    build: fn(&Given) -> Result<Workload>,
}

const fn param(name: &'static str, default: &'static str, meaning: &'static str) -> Param {
    Param { name, default, meaning }
}

/// All presets.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "li",
        meaning: "endless loops: tasks that never sleep",
        params: &[
            param("tasks", "1", "how many"),
            param("nice", "0", "their nice value, -20..19"),
            param("stagger", "0s", "from the start of one to the start of the next"),
        ],
        build: li,
    },
    Preset {
        name: "cf",
        meaning: "a fixed load: tasks that compute for a number of rounds of 1 s, then end",
        params: &[
            param("tasks", "1", "how many"),
            param("seconds", "10", "the rounds of 1 s of CPU time that each computes"),
            param("nice", "0", "their nice value, -20..19"),
            param("stagger", "0s", "from the start of one to the start of the next"),
        ],
        build: cf,
    },
    Preset {
        name: "messaging",
        meaning: "like hackbench: groups of senders, each sending to every receiver of its group",
        params: &[
            param("groups", "10", "how many groups"),
            param("fds", "20", "senders in a group, and receivers"),
            param("loops", "100", "messages from each sender to each receiver"),
        ],
        build: messaging,
    },
    Preset {
        name: "periodic",
        meaning: "tasks that compute and then wait for their timer",
        params: &[
            param("tasks", "1", "how many"),
            param("run", "2ms", "computing in each period"),
            param("period", "10ms", "the timer's period"),
            param("nice", "0", "their nice value, -20..19"),
        ],
        build: periodic,
    },
    nas::PRESET,
    make::PRESET,
    linpack::PRESET,
    schbench::PRESET,
    stream::PRESET,
    tpch::PRESET,
];

/// The parameter that may be given as a bare first value: `nas:lu` means `nas:program=lu`.
const UNNAMED: &str = "program";

/// The preset with this name.
#[must_use]
pub(crate) fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Builds a preset from `name` or `name:key=value,key=value`.
///
/// # Errors
/// When the preset or a parameter is unknown, or a value is out of range.
pub fn build(spec: &str) -> Result<Workload> {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let preset = find(name).ok_or_else(|| Error::input(format!("there is no preset \"{name}\"")))?;
    let mut workload = (preset.build)(&Given::read(preset, rest)?).map_err(|e| e.key(spec))?;
    workload.name = name.to_owned();
    Ok(workload)
}

/// The parameters that the user gave.
struct Given<'a> {
    preset: &'static Preset,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Given<'a> {
    fn read(preset: &'static Preset, text: &'a str) -> Result<Self> {
        let mut pairs = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let error = |what: String| Error::input(what).key(preset.name);
            let unnamed = preset.params.first().filter(|param| param.name == UNNAMED && pairs.is_empty());
            let Some((key, value)) = part.split_once('=').or_else(|| unnamed.map(|param| (param.name, part))) else {
                return Err(error(format!("the parameter \"{part}\" has no value")).mend("write KEY=VALUE,KEY=VALUE"));
            };
            let names = preset.params.iter().map(|param| param.name);
            if !names.clone().any(|name| name == key) {
                let error = error(format!("has no parameter \"{key}\""));
                return Err(match nearest(key, names.clone()) {
                    Some(near) => error.mend(format!("did you mean \"{near}\"?")),
                    None => error.mend(format!("it has {}", names.collect::<Vec<_>>().join(", "))),
                });
            }
            if pairs.iter().any(|(known, _)| *known == key) {
                return Err(error(format!("the parameter \"{key}\" is given twice")));
            }
            pairs.push((key, value));
        }
        Ok(Self { preset, pairs })
    }

    fn text(&self, key: &str) -> &str {
        let given = self.pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
        let default = || self.preset.params.iter().find(|param| param.name == key).map(|param| param.default);
        given.or_else(default).expect("a preset asks for its own parameters")
    }

    fn number(&self, key: &str, least: i64, most: i64) -> Result<i64> {
        let text = self.text(key);
        let number = text.parse().ok().filter(|n| (least..=most).contains(n));
        number.ok_or_else(|| Error::input(format!("{key}={text} is no whole number in {least}..{most}")))
    }

    fn tasks(&self) -> Result<u32> {
        Ok(self.number("tasks", 1, crate::parse::MAX_TASKS as i64)? as u32)
    }

    /// A list of CPUs. Its parts are joined by `+` here (`0-7+16`); an empty list means all CPUs.
    fn cpus(&self) -> Result<Option<Vec<u32>>> {
        let text = self.text("cpus");
        if text.is_empty() {
            return Ok(None);
        }
        let wrong = || Error::input(format!("cpus={text} is no list of CPUs")).mend("write 8-23, or 0-7+16-23");
        let list: CpuList = text.replace('+', ",").parse().map_err(|_| wrong())?;
        Ok(Some(list.iter().collect()))
    }

    fn nice(&self) -> Result<Props> {
        let nice = self.number("nice", -20, 19)? as i32;
        Ok(Props { priority: Some(nice).filter(|nice| *nice != 0), ..Props::default() })
    }

    /// A duration in whole microseconds, which the workload's file can express.
    fn time(&self, key: &str) -> Result<Nanos> {
        let time = parse_duration(self.text(key)).map_err(|e| Error::input(format!("{key}: {e}")))?;
        if !time.is_multiple_of(1000) {
            return Err(Error::input(format!("{key}={} is finer than 1us", self.text(key))));
        }
        Ok(time)
    }
}

fn step(key: &str, what: Action) -> Step {
    Step { key: key.to_owned(), line: 0, what, sync: false }
}

/// A step that wakes another task through a socket (`wake_up_interruptible_sync_poll`).
fn through_socket(key: &str, what: Action) -> Step {
    Step { sync: true, ..step(key, what) }
}

fn exactly(mean: Nanos) -> Amount {
    Amount { mean, sd: 0 }
}

fn alone(task: TaskDef) -> Workload {
    Workload { tasks: vec![task], ..Workload::default() }
}

const SECOND: Nanos = 1_000_000_000;

fn li(given: &Given) -> Result<Workload> {
    let events = vec![step("run", Action::Run(exactly(SECOND)))];
    Ok(alone(TaskDef {
        name: "li".to_owned(),
        instances: given.tasks()?,
        stagger: given.time("stagger")?,
        props: given.nice()?,
        phases: vec![Phase { events, ..Phase::default() }],
        ..TaskDef::default()
    }))
}

fn cf(given: &Given) -> Result<Workload> {
    let events = vec![step("run", Action::Run(exactly(SECOND)))];
    let rounds = given.number("seconds", 1, 1_000_000_000)?.unsigned_abs();
    Ok(alone(TaskDef {
        name: "cf".to_owned(),
        instances: given.tasks()?,
        stagger: given.time("stagger")?,
        loops: Some(1),
        props: given.nice()?,
        phases: vec![Phase { loops: Some(rounds), events, ..Phase::default() }],
        ..TaskDef::default()
    }))
}

fn periodic(given: &Given) -> Result<Workload> {
    let period = given.time("period")?;
    if period == 0 {
        return Err(Error::input("period=0 never waits").mend("give a time, as in period=10ms"));
    }
    let timer =
        Action::Timer { name: "unique".to_owned(), unique: true, period: exactly(period), mode: TimerMode::Relative };
    let events = vec![step("run", Action::Run(exactly(given.time("run")?))), step("timer", timer)];
    Ok(alone(TaskDef {
        name: "periodic".to_owned(),
        instances: given.tasks()?,
        props: given.nice()?,
        phases: vec![Phase { events, ..Phase::default() }],
        ..TaskDef::default()
    }))
}

/// The CPU time to send or receive one message of 100 bytes over a socket pair.
const MESSAGE_COST: Nanos = 1_000;
/// The number of messages that fit into a receiver's socket before its senders must wait: 212,992 bytes
/// (`wmem_default`) of buffers that count as 768 bytes each.
const SOCKET_ROOM: u64 = 277;
/// The largest `groups` and `fds` of `messaging`.
const MESSAGING_MOST: i64 = 200;

/// Models hackbench. All tasks meet at a barrier. Then each sender sends a message to each receiver in turn, `loops`
/// times, and waits while the receiver's socket is full. Each receiver takes messages until it has received all of its
/// own.
fn messaging(given: &Given) -> Result<Workload> {
    let groups = given.number("groups", 1, MESSAGING_MOST)?;
    let fds = given.number("fds", 1, MESSAGING_MOST)?;
    let loops = given.number("loops", 1, 1_000_000_000)?.unsigned_abs();
    if groups * fds * fds > 1_000_000 {
        return Err(Error::input("groups * fds * fds is more than 1000000").mend("take fewer groups or fds"));
    }
    let mut workload = Workload::default();
    for group in 0..groups {
        let phase = Phase { name: "send".to_owned(), loops: Some(loops), events: send(group, fds), ..Phase::default() };
        workload.tasks.push(TaskDef {
            name: format!("send-{group}"),
            instances: fds as u32,
            loops: Some(1),
            phases: vec![ready(), phase],
            ..TaskDef::default()
        });
        for fd in 0..fds {
            workload.tasks.push(receiver(group, fd, loops * fds.unsigned_abs()));
        }
    }
    Ok(workload)
}

fn ready() -> Phase {
    Phase {
        name: "ready".to_owned(),
        events: vec![step("barrier", Action::Barrier("go".to_owned()))],
        ..Phase::default()
    }
}

fn send(group: i64, fds: i64) -> Vec<Step> {
    let mut events = Vec::new();
    for fd in 0..fds {
        events.push(step(&format!("sem_wait{fd}"), Action::SemWait(format!("room-{group}-{fd}"))));
        events.push(step(&format!("run{fd}"), Action::Run(exactly(MESSAGE_COST))));
        events.push(through_socket(&format!("sem_post{fd}"), Action::SemPost(format!("message-{group}-{fd}"))));
    }
    events
}

fn receiver(group: i64, fd: i64, messages: u64) -> TaskDef {
    let (room, message) = (format!("room-{group}-{fd}"), format!("message-{group}-{fd}"));
    let open = Phase {
        name: "open".to_owned(),
        loops: Some(SOCKET_ROOM.min(messages)),
        events: vec![step("sem_post", Action::SemPost(room.clone()))],
        ..Phase::default()
    };
    let events = vec![
        step("sem_wait", Action::SemWait(message)),
        step("run", Action::Run(exactly(MESSAGE_COST))),
        through_socket("sem_post", Action::SemPost(room)),
    ];
    let receive = Phase { name: "receive".to_owned(), loops: Some(messages), events, ..Phase::default() };
    TaskDef {
        name: format!("receive-{group}-{fd}"),
        loops: Some(1),
        phases: vec![open, ready(), receive],
        ..TaskDef::default()
    }
}
