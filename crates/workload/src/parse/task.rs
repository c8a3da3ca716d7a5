//! Tasks and their phases.

use super::{MAX_TASKS, Remarks, event, keys, props};
use crate::json::Json;
use crate::place::{At, Field, Fields};
use crate::plan::{Fault, Plan};
use crate::{Memory, Phase, Policy, Props, TaskDef};
use schedlab_base::{Averages, Computing, Error, Result};

/// The longest name of a task, in bytes. A trace takes names of up to 4096 bytes, the instance's number included.
const MAX_NAME: usize = 255;

/// Reads `tasks`. `default` is `default_policy`.
pub(super) fn read_all(tasks: &Field, default: Policy, remarks: &mut Remarks) -> Result<Vec<TaskDef>> {
    let fields = Fields::of(tasks.value, &tasks.at)?;
    let mut defs = Vec::with_capacity(fields.members.len());
    for member in fields.members {
        let at = tasks.at.of(member);
        let fields = Fields::of(&member.value, &at)?;
        if member.key.is_empty() {
            return Err(at.error("a task has no name").mend("the key of a task is its name"));
        }
        if member.key.len() > MAX_NAME {
            let what = format!("the name of a task has {} bytes, more than {MAX_NAME}", member.key.len());
            return Err(tasks.at.error(what).mend("choose a shorter name; the kernel shows 15 characters"));
        }
        defs.push(read(&member.key, &fields, default, remarks)?);
    }
    let total: u64 = defs.iter().map(|def| u64::from(def.instances)).sum();
    if total == 0 {
        return Err(tasks.at.error("no task starts").mend("give one task at least, with \"instance\" 1 or more"));
    }
    if total > MAX_TASKS {
        return Err(tasks.at.error(format!("{total} tasks are more than {MAX_TASKS}")));
    }
    Ok(defs)
}

fn read(name: &str, fields: &Fields, default: Policy, remarks: &mut Remarks) -> Result<TaskDef> {
    keys::check_task(fields, remarks)?;
    let mut def = TaskDef {
        name: name.to_owned(),
        instances: fields.read("instance", |f| f.int_in(0..=MAX_TASKS as i64))?.unwrap_or(1) as u32,
        delay: fields.read("delay", Field::micros)?.unwrap_or(0),
        stagger: fields.read("x-stagger", Field::micros)?.unwrap_or(0),
        loops: None,
        props: props::read(fields)?,
        phases: Vec::new(),
        user: fields.read("x-user", Field::index)?,
        session: fields.read("x-session", session)?,
        cpu: fields.read("x-cpu", Field::index)?,
        averages: fields.read("x-averages", averages)?,
        lifetime: fields.read("x-lifetime", Field::micros)?,
        computing: fields.read("x-work", |f| f.word(Computing::WORDS))?.unwrap_or_default(),
    };
    if let (Some(field), Some(Memory { shared: true, .. })) = (fields.get("x-work"), &def.props.memory) {
        return Err(field.at.error("computes in memory of its own").mend("leave out \"shared\" of \"x-memory\""));
    }
    props::read_past(fields, default, &mut def.props, remarks)?;
    let loops = fields.read("loop", |f| loops(f, remarks))?;
    match fields.get("phases") {
        Some(field) => {
            for member in fields.members.iter().filter(|m| event::event_of(&m.key).is_some() && m.key != "runtime") {
                remarks.add(&fields.at.of(member), "an event beside \"phases\" is ignored, as in rt-app");
            }
            def.loops = loops.unwrap_or(None);
            if def.loops == Some(0) {
                remarks.add(fields.at, "\"loop\": 0: the task ends as soon as it starts");
            }
            def.phases = read_phases(&field, remarks)?;
        }
        // The events are in the task itself: its `loop` applies to the phase, and without `loop` it repeats for ever.
        None => {
            def.loops = loops.map(|_| 1);
            let props = Props::default();
            let loops = loops.unwrap_or(Some(1));
            refuse_zero(loops, fields.at)?;
            def.phases = vec![Phase { name: String::new(), loops, props, events: event::read_all(fields)? }];
        }
    }
    Plan::of(default, &def).map_err(|fault| place_fault(&fault, fields))?;
    Ok(def)
}

/// Turns a fault into an error at the line of the property, in the phase or the task.
fn place_fault(fault: &Fault, fields: &Fields) -> Error {
    let phases = fault.phase.and_then(|n| Some((fields.get("phases")?, n)));
    if let Some((field, n)) = &phases
        && let Json::Object(members) = &field.value.json
        && let Some(phase) = members.get(*n)
    {
        let at = field.at.of(phase);
        if let Ok(fields) = Fields::of(&phase.value, &at) {
            return fault.error(&fields.get(fault.key).map_or(at, |f| f.at));
        }
    }
    fault.error(&fields.get(fault.key).map_or(*fields.at, |f| f.at))
}

fn read_phases(field: &Field, remarks: &mut Remarks) -> Result<Vec<Phase>> {
    let fields = Fields::of(field.value, &field.at)?;
    if fields.members.is_empty() {
        return Err(field.at.error("has no phases").mend("give one at least: { \"NAME\": { events } }"));
    }
    let mut phases = Vec::with_capacity(fields.members.len());
    for member in fields.members {
        let at = field.at.of(member);
        let fields = Fields::of(&member.value, &at)?;
        keys::check_phase(&fields, remarks)?;
        let loops = fields.read("loop", |f| loops(f, remarks))?.unwrap_or(Some(1));
        refuse_zero(loops, &at)?;
        phases.push(Phase {
            name: member.key.to_string(),
            loops,
            props: props::read(&fields)?,
            events: event::read_all(&fields)?,
        });
    }
    Ok(phases)
}

/// A session's number; -1 for a task that is in none.
fn averages(field: &Field) -> Result<Averages> {
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(&["runnable", "running"])?;
    let runnable = fields.need("runnable")?.int_in(0..=i64::from(Averages::ALWAYS))?;
    let running = fields.need("running")?.int_in(0..=runnable)?;
    Ok(Averages { runnable: runnable as u32, running: running as u32 })
}

fn session(field: &Field) -> Result<u32> {
    if field.int()? == -1 { Ok(crate::NO_SESSION) } else { field.index() }
}

/// A loop count; `None` is for ever.
fn loops(field: &Field, remarks: &mut Remarks) -> Result<Option<u64>> {
    if let Json::Int(n) = field.value.json
        && n < -1
    {
        remarks.add(&field.at, format!("{n} is for ever, as -1"));
        return Ok(None);
    }
    Ok(u64::try_from(field.int()?).ok())
}

/// rt-app counts up to the number of loops and so never reaches 0. It is unclear what the author of a 0 wanted.
fn refuse_zero(loops: Option<u64>, at: &At) -> Result<()> {
    if loops == Some(0) {
        let error = at.error("\"loop\": 0 is no number of loops (rt-app would go on for ever)");
        return Err(error.mend("-1 is for ever, 1 is once"));
    }
    Ok(())
}
