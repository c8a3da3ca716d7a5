//! Events. The beginning of the key decides which event it is, so `run1` and `run_a` are both `run`.

use crate::json::Json;
use crate::place::{Field, Fields};
use crate::{Action, Amount, MemAccess, Step, TimerMode};
use schedlab_base::{Error, Nanos, Result};

/// The shortest mean time that is not 0, in ns. A mean of a single nanosecond would simulate for ever.
const LEAST_MEAN: Nanos = 100;

type Read = fn(&Field) -> Result<Action>;

/// The events with the beginnings of their keys. A longer beginning comes before a shorter one that it starts with.
pub(super) const EVENTS: &[(&str, Read)] = &[
    ("runtime", |f| amount(f).map(Action::Runtime)),
    ("run", |f| amount(f).map(Action::Run)),
    ("sleep", |f| amount(f).map(Action::Sleep)),
    ("timer", timer),
    ("lock", |f| name(f).map(Action::Lock)),
    ("unlock", |f| name(f).map(Action::Unlock)),
    ("wait", |f| condition(f, &[]).map(|(cond, mutex)| Action::Wait { cond, mutex })),
    ("signal", |f| woken(f).map(Action::Signal)),
    ("broad", |f| woken(f).map(Action::Broadcast)),
    ("sync", |f| condition(f, &["x-sync"]).map(|(cond, mutex)| Action::Sync { cond, mutex })),
    ("barrier", |f| name(f).map(Action::Barrier)),
    ("suspend", suspend),
    ("resume", |f| woken(f).map(Action::Resume)),
    ("memrun", memrun),
    ("mem", |f| bytes(f).map(Action::Mem)),
    ("iorun", |f| bytes(f).map(Action::IoRun)),
    ("yield", |_| Ok(Action::Yield)),
    ("fork", |f| name(f).map(Action::Fork)),
    ("sem_post", |f| woken(f).map(Action::SemPost)),
    ("sem_wait", |f| name(f).map(Action::SemWait)),
    ("x-ask", |f| woken(f).map(Action::Ask)),
    ("x-answer", |f| woken(f).map(Action::Answer)),
    ("x-await", |_| Ok(Action::Await)),
    ("x-jobs", |f| name(f).map(Action::Jobs)),
    ("x-exec", |_| Ok(Action::Exec)),
    ("x-timeout", |f| f.micros().map(Action::Timeout)),
    ("x-spin-barrier", spin_barrier),
    ("x-spin-lock", |f| name(f).map(Action::SpinLock)),
    ("x-spin-unlock", |f| name(f).map(Action::SpinUnlock)),
];

/// The events whose value may say `x-sync`.
const WAKING: &[&str] = &["signal", "broad", "sync", "resume", "sem_post", "x-ask", "x-answer"];

/// The event that a key stands for.
pub(super) fn event_of(key: &str) -> Option<(&'static str, Read)> {
    EVENTS.iter().find(|(name, _)| key.starts_with(name)).copied()
}

/// Reads the events among the members of a task or phase, in their order.
pub(super) fn read_all(fields: &Fields) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    for member in fields.members {
        if let Some((event, read)) = event_of(&member.key) {
            let field = Field { value: &member.value, at: fields.at.of(member) };
            let hint = |e: Error| e.mend(format!("the key makes it the event \"{event}\""));
            let what = read(&field).map_err(hint)?;
            let sync = WAKING.contains(&event) && is_sync(&field).map_err(hint)?;
            steps.push(Step { key: member.key.to_string(), line: member.line, what, sync });
        }
    }
    if steps.is_empty() {
        let names: Vec<&str> = EVENTS.iter().map(|(name, _)| *name).filter(|name| !name.starts_with("x-")).collect();
        return Err(fields.at.error("has no events").mend(format!("give at least one of {}", names.join(", "))));
    }
    Ok(steps)
}

/// Reads microseconds, or `{"mean", "sd"}` to draw from.
pub(super) fn amount(field: &Field) -> Result<Amount> {
    if !matches!(field.value.json, Json::Object(_)) {
        return Ok(Amount { mean: field.micros()?, sd: 0 });
    }
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(&["mean", "sd"])?;
    let sd = fields.read("sd", Field::fine_micros)?.unwrap_or(0);
    let field = fields.need("mean")?;
    let mean = field.fine_micros()?;
    if (1..LEAST_MEAN).contains(&mean) {
        return Err(field
            .at
            .error(format!("{} us is shorter than anything a task does", mean as f64 / 1e3))
            .mend("give 0.1 us or more, or 0"));
    }
    Ok(Amount { mean, sd })
}

fn bytes(field: &Field) -> Result<u64> {
    field.count()
}

fn name(field: &Field) -> Result<String> {
    let name = field.text()?;
    if name.is_empty() {
        return Err(field.at.error("names nothing"));
    }
    Ok(name.to_owned())
}

/// Reads a name, or `{"ref", "x-sync"}`: what an event wakes the waiters of.
fn woken(field: &Field) -> Result<String> {
    if !matches!(field.value.json, Json::Object(_)) {
        return name(field);
    }
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(&["ref", "x-sync"])?;
    name(&fields.need("ref")?)
}

/// Whether the object of an event that wakes others says `x-sync`.
fn is_sync(field: &Field) -> Result<bool> {
    if !matches!(field.value.json, Json::Object(_)) {
        return Ok(false);
    }
    Ok(Fields::of(field.value, &field.at)?.read("x-sync", Field::flag)?.unwrap_or(false))
}

/// Reads a name, or `{"ref", "for"}`: a waiter that has spun in vain for this many us goes to sleep.
fn spin_barrier(field: &Field) -> Result<Action> {
    if !matches!(field.value.json, Json::Object(_)) {
        return name(field).map(Action::SpinBarrier);
    }
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(&["ref", "for"])?;
    Ok(Action::HybridBarrier { name: name(&fields.need("ref")?)?, spin: fields.need("for")?.micros()? })
}

/// rt-app ignores the value of a `suspend`, so any value is accepted. A name may matter: see `suspend.rs`.
fn suspend(field: &Field) -> Result<Action> {
    Ok(Action::Suspend(field.text().unwrap_or_default().to_owned()))
}

/// Reads `{"ref", "mutex"}`, beside keys `of_ours`. A missing name is "unknown", as in rt-app.
fn condition(field: &Field, of_ours: &[&'static str]) -> Result<(String, String)> {
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(&[&["ref", "mutex"], of_ours].concat())?;
    let part = |key| Ok(fields.read(key, name)?.unwrap_or_else(|| "unknown".to_owned()));
    Ok((part("ref")?, part("mutex")?))
}

fn timer(field: &Field) -> Result<Action> {
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(&["ref", "period", "mode"])?;
    let name = fields.read("ref", |f| f.text().map(str::to_owned))?.unwrap_or_else(|| "unknown".to_owned());
    let modes = [("relative", TimerMode::Relative), ("absolute", TimerMode::Absolute)];
    Ok(Action::Timer {
        unique: name.starts_with("unique"),
        name,
        period: fields.read("period", amount)?.unwrap_or_default(),
        mode: fields.read("mode", |f| f.word(&modes))?.unwrap_or_default(),
    })
}

fn memrun(field: &Field) -> Result<Action> {
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(&["type", "size", "count", "stride", "pattern", "ref"])?;
    let types = [("read", MemAccess::Read), ("write", MemAccess::Write), ("chase", MemAccess::Chase)];
    let access = fields.need("type")?.word(&types)?;
    let size = fields.need("size")?.int_in(1..=i64::from(i32::MAX))?.unsigned_abs();
    let stride = fields.read("stride", |f| f.int_in(1..=i64::from(i32::MAX)))?.map_or(64, i64::unsigned_abs);
    let random = fields.read("pattern", |f| f.word(&[("random", true), ("sequential", false)]))?;
    if access == MemAccess::Chase && size / stride < 2 {
        return Err(field.at.error("\"size\" is less than two strides").mend("a chain needs two places at least"));
    }
    Ok(Action::MemRun {
        access,
        size,
        count: fields.need("count")?.count()?,
        stride,
        random: random.unwrap_or(access == MemAccess::Chase),
        shared: fields.read("ref", name)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_matching_beginning_decides() {
        for (key, event) in [
            ("run1", "run"),
            ("run_a", "run"),
            ("runtime0", "runtime"),
            ("runti", "run"),
            ("memrun_x", "memrun"),
            ("memory", "mem"),
            ("broadcast", "broad"),
            ("sem_wait3", "sem_wait"),
            ("x-spin-unlock1", "x-spin-unlock"),
        ] {
            assert_eq!(event_of(key).map(|(name, _)| name), Some(event), "{key}");
        }
        assert!(event_of("ru").is_none() && event_of("loop").is_none() && event_of("Run").is_none());
    }
}
