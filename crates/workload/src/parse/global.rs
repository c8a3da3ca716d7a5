//! `global`, and the `resources` that rt-app no longer needs.

use super::{Remarks, keys};
use crate::json::Json;
use crate::place::{At, Field, Fields};
use crate::{Global, MEM_BUFFER_SIZE, Placement, Policy, Start, TaskDef};
use schedlab_base::{Nanos, Result, nearest};

const STARTS: &[(&str, Start)] = &[("wake", Start::Wake), ("fork", Start::Fork), ("threads", Start::Threads)];

pub(super) fn read(fields: &Fields, remarks: &mut Remarks) -> Result<Global> {
    keys::check_global(fields, remarks)?;
    for key in ["lock_pages", "gnuplot"] {
        fields.read(key, Field::flag)?;
    }
    for key in ["logdir", "log_basename"] {
        fields.read(key, |f| f.text().map(drop))?;
    }
    fields.read("log_size", |f| log_size(f, remarks))?;
    fields.read("ftrace", ftrace)?;
    Ok(Global {
        duration: fields.read("duration", |f| duration(f, remarks))?.flatten(),
        calibration_ns: fields.read("calibration", calibration)?.flatten(),
        default_policy: fields.read("default_policy", |f| f.word(Policy::WORDS))?.unwrap_or_default(),
        pi_enabled: fields.read("pi_enabled", Field::flag)?.unwrap_or(false),
        mem_buffer_size: fields
            .read("mem_buffer_size", |f| f.int_in(1..=i64::from(i32::MAX)))?
            .map_or(MEM_BUFFER_SIZE, i64::unsigned_abs),
        cumulative_slack: fields.read("cumulative_slack", Field::flag)?.unwrap_or(false),
        io_device: fields.read("io_device", |f| f.text().map(str::to_owned))?.filter(|path| path != "/dev/null"),
        start: fields.read("x-start", |f| f.word(STARTS))?.unwrap_or_default(),
        placement: fields.read("x-placement", |f| f.word(Placement::WORDS))?.unwrap_or_default(),
        until: None,
    })
}

/// Reads `x-until`, which names one of the tasks.
pub(super) fn until(fields: &Fields, tasks: &[TaskDef]) -> Result<Option<String>> {
    fields.read("x-until", |field| {
        let name = field.text()?;
        match tasks.iter().find(|task| task.name == name) {
            Some(task) if task.instances > 0 || tasks.iter().any(|parent| parent.forks(name)) => Ok(name.to_owned()),
            Some(_) => Err(field
                .at
                .error(format!("\"{name}\" has no instance and no task forks it, so that it never ends"))
                .mend("name a task that starts")),
            None => {
                let error = field.at.error(format!("there is no task \"{name}\""));
                Err(match nearest(name, tasks.iter().map(|task| task.name.as_str())) {
                    Some(near) => error.mend(format!("did you mean \"{near}\"?")),
                    None => error.mend("name one of the keys of tasks"),
                })
            }
        }
    })
}

fn duration(field: &Field, remarks: &mut Remarks) -> Result<Option<Nanos>> {
    if let Json::Float(s) = field.value.json {
        let ns = (s * 1e9).round();
        let fits = (1.0..i64::MAX as f64).contains(&ns);
        return if fits {
            Ok(Some(ns as Nanos))
        } else {
            Err(field.at.error(format!("{s} s is no time that can be run")))
        };
    }
    match field.int_or("a number of seconds")? {
        -1 => Ok(None),
        0 => {
            remarks.add(&field.at, "0 sets no limit, as in rt-app");
            Ok(None)
        }
        s if s < 0 => Err(field.at.error(format!("{s} is negative")).mend("give seconds, or -1 for no limit")),
        s => match s.checked_mul(1_000_000_000) {
            Some(ns) => Ok(Some(ns.unsigned_abs())),
            None => Err(field.at.error(format!("{s} s is too long a time"))),
        },
    }
}

/// A number is in ns per loop. A string names the CPU to calibrate on, which only matters when rt-app runs.
fn calibration(field: &Field) -> Result<Option<u64>> {
    match &field.value.json {
        Json::Text(cpu) => {
            let digits = cpu.strip_prefix("CPU").unwrap_or("");
            if digits.starts_with(|c: char| c.is_ascii_digit()) {
                Ok(None)
            } else {
                Err(field.at.error(format!("\"{cpu}\" names no CPU")).mend("write \"CPU0\", or the ns of a loop"))
            }
        }
        _ => Ok(Some(field.int_in(0..=i64::from(i32::MAX))?.unsigned_abs()).filter(|ns| *ns > 0)),
    }
}

fn log_size(field: &Field, remarks: &mut Remarks) -> Result<()> {
    if let Json::Text(mode) = &field.value.json {
        if !["disable", "file", "auto"].contains(&&**mode) {
            remarks.add(
                &field.at,
                format!("\"{mode}\" is not \"disable\", \"file\" or \"auto\"; rt-app logs nothing then"),
            );
        }
        return Ok(());
    }
    field.int_in(0..=i64::from(i32::MAX >> 20)).map(drop)
}

fn ftrace(field: &Field) -> Result<()> {
    if matches!(field.value.json, Json::Bool(_)) {
        return Ok(());
    }
    const CATEGORIES: [&str; 7] = ["main", "task", "run", "loop", "event", "stats", "none"];
    for category in field.text()?.split(',').filter(|c| !c.is_empty()) {
        if !CATEGORIES.iter().any(|known| known.eq_ignore_ascii_case(category)) {
            let error = field.at.error(format!("\"{category}\" is no category"));
            return Err(error.mend(format!("known are {}", CATEGORIES.join(", "))));
        }
    }
    Ok(())
}

/// Checks the legacy `resources`: their types must be known. Everything else follows from how they are used.
pub(super) fn check_resources(field: &Field) -> Result<()> {
    // rt-app skips `resources` that are not an object.
    let Json::Object(members) = &field.value.json else { return Ok(()) };
    const TYPES: [&str; 8] = ["mutex", "wait", "signal", "broadcast", "sync", "sleep", "run", "timer"];
    for member in members {
        let at: At = field.at.of(member);
        let kind = Fields::of(&member.value, &at)?.need("type")?;
        kind.word(&TYPES.map(|name| (name, ())))?;
    }
    Ok(())
}
