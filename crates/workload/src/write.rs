//! Writes a workload as rt-app's JSON: strict JSON, with x- keys only where they are used. Equal workloads give equal
//! text.

use crate::model::{MEM_BUFFER_SIZE, MEMORY_BOUND};
use crate::{
    Action, Amount, Global, Group, Hotplug, Interrupt, InterruptKind, MemAccess, Memory, Phase, Placement, Policy,
    Props, Start, Step,
};
use crate::{NO_SESSION, TaskDef, TimerMode, Validation, Workload};
use schedlab_base::{Averages, Computing, Nanos};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// Writes a workload in such a way that [`crate::parse()`] reads back the same workload.
///
/// An event gets a new key (`run`, `run1`, ...) if its key does not begin with the event's name or is already used.
/// A `duration` that is not in whole seconds is written as a fraction, which rt-app cuts off. Times finer than 1 us are
/// written as `{"mean": ..., "sd": ...}`, which rt-app does not support; see [`Workload::round_to_micros`].
#[must_use]
pub fn write(workload: &Workload) -> String {
    let mut top = Map::new();
    let global = global(&workload.global);
    if !global.is_empty() {
        top.insert("global".into(), global.into());
    }
    if !workload.groups.is_empty() {
        let groups = workload.groups.iter().map(|(path, g)| (path.clone(), group(g).into())).collect::<Map<_, _>>();
        top.insert("x-groups".into(), groups.into());
    }
    if !workload.sessions.is_empty() {
        let sessions = workload.sessions.iter().map(|(n, nice)| (n.to_string(), json!({ "nice": nice })));
        top.insert("x-sessions".into(), sessions.collect::<Map<_, _>>().into());
    }
    if let Some(recorded) = &workload.recorded {
        top.insert("x-recorded".into(), json!(recorded));
    }
    if !workload.hotplug.is_empty() {
        top.insert("x-hotplug".into(), workload.hotplug.iter().map(hotplug).collect());
    }
    if !workload.interrupts.is_empty() {
        top.insert("x-irq".into(), workload.interrupts.iter().map(interrupt).collect());
    }
    if let Some(validation) = &workload.validation {
        let Validation { kernel, machine, trust, guesswork, errors } = validation;
        let value = json!({
            "kernel": kernel, "machine": machine, "trust": trust, "guesswork": guesswork, "errors": errors,
        });
        top.insert("x-validation".into(), value);
    }
    let tasks = workload.tasks.iter().map(|task| (task.name.clone(), task_value(task).into())).collect::<Map<_, _>>();
    top.insert("tasks".into(), tasks.into());
    let mut text = String::new();
    layout(&mut text, &top.into(), 0);
    text.push('\n');
    text
}

impl Workload {
    /// Rounds every time to whole microseconds, so that rt-app can read the workload. Within a phase the rounding error
    /// is carried to the next event of the same kind, so that sums are preserved.
    pub fn round_to_micros(&mut self) {
        for phase in self.tasks.iter_mut().flat_map(|task| &mut task.phases) {
            let mut rest: [i64; 3] = [0; 3];
            for step in &mut phase.events {
                let (kind, amount) = match &mut step.what {
                    Action::Run(amount) | Action::Runtime(amount) => (0, amount),
                    Action::Sleep(amount) => (1, amount),
                    Action::Timer { period, .. } => (2, period),
                    _ => continue,
                };
                let wanted = amount.mean.min(i64::MAX as u64 / 2) as i64 + rest[kind];
                let rounded = ((wanted + 500).div_euclid(1000) * 1000).max(0);
                rest[kind] = wanted - rounded;
                amount.mean = rounded.unsigned_abs();
                amount.sd = (amount.sd + 500) / 1000 * 1000;
            }
        }
    }
}

fn micros(ns: Nanos) -> Value {
    if ns.is_multiple_of(1000) { json!(ns / 1000) } else { json!(ns as f64 / 1000.0) }
}

fn put(map: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        map.insert(key.into(), value.into());
    }
}

/// A time in seconds: a whole number where it is one.
fn seconds(ns: Nanos) -> Value {
    let s = 1_000_000_000;
    if ns.is_multiple_of(s) { json!(ns / s) } else { json!(ns as f64 / s as f64) }
}

fn global(global: &Global) -> Map<String, Value> {
    let mut map = Map::new();
    put(&mut map, "duration", global.duration.map(seconds));
    put(&mut map, "calibration", global.calibration_ns);
    let policy = Some(global.default_policy).filter(|policy| *policy != Policy::Other);
    put(&mut map, "default_policy", policy.map(Policy::name));
    put(&mut map, "pi_enabled", Some(true).filter(|_| global.pi_enabled));
    put(&mut map, "mem_buffer_size", Some(global.mem_buffer_size).filter(|size| *size != MEM_BUFFER_SIZE));
    put(&mut map, "cumulative_slack", Some(true).filter(|_| global.cumulative_slack));
    put(&mut map, "io_device", global.io_device.clone());
    let start = match global.start {
        Start::Wake => None,
        Start::Fork => Some("fork"),
        Start::Threads => Some("threads"),
    };
    put(&mut map, "x-start", start);
    let placement = Some(global.placement).filter(|placement| *placement != Placement::Scheduler);
    put(&mut map, "x-placement", placement.map(Placement::word));
    put(&mut map, "x-until", global.until.clone());
    map
}

fn group(group: &Group) -> Map<String, Value> {
    let mut map = Map::new();
    put(&mut map, "weight", group.weight);
    put(&mut map, "shares", group.shares);
    put(&mut map, "quota_us", group.quota.map(micros));
    put(&mut map, "period_us", group.period.map(micros));
    put(&mut map, "burst_us", group.burst.map(micros));
    put(&mut map, "idle", Some(1).filter(|_| group.idle));
    map
}

fn hotplug(change: &Hotplug) -> Value {
    json!({ "at_us": micros(change.at), "cpu": change.cpu, "online": change.online })
}

fn interrupt(interrupt: &Interrupt) -> Value {
    let name = InterruptKind::ALL.iter().find(|(kind, _)| *kind == interrupt.kind).map(|(_, name)| *name);
    let mut map = Map::new();
    put(&mut map, "kind", name);
    put(&mut map, "cpus", interrupt.cpus.clone());
    put(&mut map, "at_us", Some(micros(interrupt.at)).filter(|_| interrupt.at > 0));
    put(&mut map, "period_us", Some(micros(interrupt.period)));
    put(&mut map, "random", Some(true).filter(|_| interrupt.random));
    put(&mut map, "duration_us", Some(amount(interrupt.duration)));
    map.into()
}

fn task_value(task: &TaskDef) -> Map<String, Value> {
    let mut map = Map::new();
    put(&mut map, "instance", Some(task.instances).filter(|n| *n != 1));
    put(&mut map, "delay", Some(micros(task.delay)).filter(|_| task.delay > 0));
    put(&mut map, "x-stagger", Some(micros(task.stagger)).filter(|_| task.stagger > 0));
    put(&mut map, "x-user", task.user);
    let session = task.session.map(|n| if n == NO_SESSION { -1 } else { i64::from(n) });
    put(&mut map, "x-session", session);
    put(&mut map, "x-cpu", task.cpu);
    let averages = |of: Averages| json!({"runnable": of.runnable, "running": of.running});
    put(&mut map, "x-averages", task.averages.map(averages));
    put(&mut map, "x-lifetime", task.lifetime.map(micros));
    put(&mut map, "x-work", Some(task.computing).filter(|work| *work != Computing::Loops).map(Computing::word));
    props(&mut map, &task.props);
    match task.phases.as_slice() {
        [phase] if stands_inline(task, phase) => {
            if task.loops.is_some() {
                put(&mut map, "loop", Some(loops(phase.loops)));
            }
            events(&mut map, &phase.events);
        }
        phases => {
            put(&mut map, "loop", task.loops);
            map.insert("phases".into(), phase_values(phases).into());
        }
    }
    map
}

/// Whether the events can be written in the task itself. There `loop` belongs to the phase, and a missing one means for
/// ever.
fn stands_inline(task: &TaskDef, phase: &Phase) -> bool {
    let once = |loops: Option<u64>| loops == Some(1);
    phase.name.is_empty()
        && phase.props == Props::default()
        && (once(task.loops) || (task.loops.is_none() && once(phase.loops)))
}

fn loops(loops: Option<u64>) -> Value {
    loops.map_or(json!(-1), |n| json!(n))
}

fn phase_values(phases: &[Phase]) -> Map<String, Value> {
    let taken = phases.iter().map(|phase| phase.name.clone()).collect();
    let mut keys = Keys { taken, next: HashMap::new() };
    let mut map = Map::new();
    for phase in phases {
        let mut value = Map::new();
        put(&mut value, "loop", Some(loops(phase.loops)).filter(|_| phase.loops != Some(1)));
        props(&mut value, &phase.props);
        events(&mut value, &phase.events);
        let fits = !phase.name.is_empty() && !map.contains_key(&phase.name);
        let name = if fits { phase.name.clone() } else { keys.fresh("phase") };
        map.insert(name, value.into());
    }
    map
}

/// The keys used in an object, and the next number to try for each stem.
struct Keys {
    taken: HashSet<String>,
    next: HashMap<&'static str, u64>,
}

impl Keys {
    /// Returns `stem`, or the first free one of `stem1`, `stem2`, ..., and marks it as used.
    fn fresh(&mut self, stem: &'static str) -> String {
        let n = self.next.entry(stem).or_insert(0);
        loop {
            let key = if *n == 0 { stem.to_owned() } else { format!("{stem}{n}") };
            *n += 1;
            if self.taken.insert(key.clone()) {
                return key;
            }
        }
    }
}

fn props(map: &mut Map<String, Value>, props: &Props) {
    put(map, "policy", props.policy.map(Policy::name));
    put(map, "priority", props.priority);
    put(map, "dl-runtime", props.dl_runtime.map(micros));
    put(map, "dl-period", props.dl_period.map(micros));
    put(map, "dl-deadline", props.dl_deadline.map(micros));
    put(map, "util_min", props.util_min);
    put(map, "util_max", props.util_max);
    put(map, "cpus", props.cpus.clone());
    put(map, "nodes_membind", props.nodes_membind.clone());
    put(map, "taskgroup", props.taskgroup.clone());
    put(map, "x-working-set", props.working_set);
    put(map, "x-memory", props.memory.as_ref().map(memory));
    put(map, "x-clock-poll", props.clock_poll.map(micros));
    put(map, "x-reclaim", props.reclaim);
}

fn memory(memory: &Memory) -> Value {
    let node = match memory.nodes.as_slice() {
        [] => json!("first-touch"),
        [(node, 1)] => json!(node),
        nodes => nodes.iter().map(|(node, part)| (node.to_string(), json!(part))).collect::<Map<_, _>>().into(),
    };
    let mut value = json!({ "bytes": memory.bytes, "node": node });
    if memory.pinned {
        value["pinned"] = json!(true);
    }
    if memory.shared {
        value["shared"] = json!(true);
    }
    if memory.bound != MEMORY_BOUND {
        value["bound"] = json!(memory.bound);
    }
    value
}

fn events(map: &mut Map<String, Value>, steps: &[Step]) {
    // An event that needs a new key must not take one that a later member has.
    let mut keys = Keys { taken: map.keys().cloned().collect(), next: HashMap::new() };
    let fits = |step: &Step, keys: &mut Keys| {
        crate::parse::is_event(&step.key, name_of(&step.what)) && keys.taken.insert(step.key.clone())
    };
    let own: Vec<bool> = steps.iter().map(|step| fits(step, &mut keys)).collect();
    for (step, own) in steps.iter().zip(own) {
        let key = if own { step.key.clone() } else { keys.fresh(name_of(&step.what)) };
        let value = value_of(&step.what);
        map.insert(key, if step.sync { synced(value) } else { value });
    }
}

/// The event's name, with which its key begins.
pub(crate) fn name_of(action: &Action) -> &'static str {
    match action {
        Action::Run(_) => "run",
        Action::Runtime(_) => "runtime",
        Action::Sleep(_) => "sleep",
        Action::Timeout(_) => "x-timeout",
        Action::Timer { .. } => "timer",
        Action::Lock(_) => "lock",
        Action::Unlock(_) => "unlock",
        Action::Wait { .. } => "wait",
        Action::Signal(_) => "signal",
        Action::Broadcast(_) => "broad",
        Action::Sync { .. } => "sync",
        Action::Barrier(_) => "barrier",
        Action::Suspend(_) => "suspend",
        Action::Resume(_) => "resume",
        Action::Mem(_) => "mem",
        Action::MemRun { .. } => "memrun",
        Action::IoRun(_) => "iorun",
        Action::Yield => "yield",
        Action::Exec => "x-exec",
        Action::Fork(_) => "fork",
        Action::Jobs(_) => "x-jobs",
        Action::SemPost(_) => "sem_post",
        Action::SemWait(_) => "sem_wait",
        Action::Ask(_) => "x-ask",
        Action::Answer(_) => "x-answer",
        Action::Await => "x-await",
        Action::SpinBarrier(_) | Action::HybridBarrier { .. } => "x-spin-barrier",
        Action::SpinLock(_) => "x-spin-lock",
        Action::SpinUnlock(_) => "x-spin-unlock",
    }
}

fn amount(amount: Amount) -> Value {
    if amount.sd == 0 && amount.mean.is_multiple_of(1000) {
        micros(amount.mean)
    } else {
        json!({ "mean": micros(amount.mean), "sd": micros(amount.sd) })
    }
}

/// The value of an event with `x-sync`.
fn synced(value: Value) -> Value {
    let mut value = if value.is_object() { value } else { json!({ "ref": value }) };
    value["x-sync"] = json!(true);
    value
}

fn value_of(action: &Action) -> Value {
    match action {
        Action::Run(time) | Action::Runtime(time) | Action::Sleep(time) => amount(*time),
        Action::Timeout(length) => micros(*length),
        Action::Timer { name, period, mode, .. } => {
            let mut value = json!({ "ref": name, "period": amount(*period) });
            if *mode == TimerMode::Absolute {
                value["mode"] = json!("absolute");
            }
            value
        }
        Action::Wait { cond, mutex } | Action::Sync { cond, mutex } => json!({ "ref": cond, "mutex": mutex }),
        Action::Mem(bytes) | Action::IoRun(bytes) => json!(bytes),
        Action::MemRun { access, size, count, stride, random, shared } => {
            let kind = match access {
                MemAccess::Read => "read",
                MemAccess::Write => "write",
                MemAccess::Chase => "chase",
            };
            let pattern = if *random { "random" } else { "sequential" };
            let mut value = json!({ "type": kind, "size": size, "count": count, "stride": stride, "pattern": pattern });
            if let Some(name) = shared {
                value["ref"] = json!(name);
            }
            value
        }
        Action::Yield | Action::Exec | Action::Await => json!(""),
        Action::HybridBarrier { name, spin } => json!({ "ref": name, "for": micros(*spin) }),
        Action::Lock(name)
        | Action::Unlock(name)
        | Action::Signal(name)
        | Action::Broadcast(name)
        | Action::Barrier(name)
        | Action::Suspend(name)
        | Action::Resume(name)
        | Action::Fork(name)
        | Action::Jobs(name)
        | Action::SemPost(name)
        | Action::SemWait(name)
        | Action::Ask(name)
        | Action::Answer(name)
        | Action::SpinBarrier(name)
        | Action::SpinLock(name)
        | Action::SpinUnlock(name) => json!(name),
    }
}

/// Formats a value with one member per line, but with small objects and lists of plain values on one line.
fn layout(text: &mut String, value: &Value, depth: usize) {
    const WIDTH: usize = 80;
    let Value::Object(members) = value else {
        return text.push_str(&one_line(value));
    };
    if depth > 1 && members.values().all(|v| !v.is_object()) {
        let line = one_line(value);
        if line.len() <= WIDTH {
            return text.push_str(&line);
        }
    }
    text.push('{');
    for (n, (key, value)) in members.iter().enumerate() {
        text.push_str(if n == 0 { "\n" } else { ",\n" });
        text.push_str(&"\t".repeat(depth + 1));
        text.push_str(&format!("{}: ", json!(key)));
        layout(text, value, depth + 1);
    }
    text.push('\n');
    text.push_str(&"\t".repeat(depth));
    text.push('}');
}

fn one_line(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let parts: Vec<String> = members.iter().map(|(k, v)| format!("{}: {}", json!(k), one_line(v))).collect();
            if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join(", ")) }
        }
        Value::Array(items) => format!("[{}]", items.iter().map(one_line).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}
