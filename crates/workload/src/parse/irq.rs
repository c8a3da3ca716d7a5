//! `x-irq`: what takes time from CPUs without a task.

use super::event::amount;
use crate::json::Json;
use crate::place::{Field, Fields};
use crate::{Interrupt, InterruptKind};
use schedlab_base::{Result, nearest};

const KEYS: &[&str] = &["kind", "cpus", "at_us", "period_us", "duration_us", "random"];

pub(super) fn read(field: &Field) -> Result<Vec<Interrupt>> {
    let Json::List(items) = &field.value.json else {
        return Err(field.at.error("should be a list of { \"kind\", \"period_us\", \"duration_us\" }"));
    };
    let mut all = Vec::with_capacity(items.len());
    for value in items {
        let at = field.at.at_line(value.line);
        let fields = Fields::of(value, &at)?;
        fields.only(KEYS)?;
        let (period, duration) = (fields.need("period_us")?, fields.need("duration_us")?);
        let interrupt = Interrupt {
            kind: fields.read("kind", kind)?.unwrap_or_default(),
            cpus: fields.read("cpus", Field::indices)?,
            at: fields.read("at_us", Field::fine_micros)?.unwrap_or(0),
            period: period.fine_micros()?,
            random: fields.read("random", Field::flag)?.unwrap_or(false),
            duration: amount(&duration)?,
        };
        if interrupt.duration.mean == 0 {
            return Err(duration.at.error("takes no time").mend("write more than 0 us, or leave the entry out"));
        }
        if interrupt.duration.mean >= interrupt.period {
            let what = "leaves the CPU no time: each takes as long as there is from one to the next";
            return Err(period.at.error(what).mend("take a longer period_us or a shorter duration_us"));
        }
        all.push(interrupt);
    }
    Ok(all)
}

fn kind(field: &Field) -> Result<InterruptKind> {
    let name = field.text()?;
    let names = || InterruptKind::ALL.iter().map(|(_, name)| *name);
    InterruptKind::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind).ok_or_else(|| {
        let error = field.at.error(format!("there is no kind \"{name}\""));
        match nearest(name, names()) {
            Some(near) => error.mend(format!("did you mean \"{near}\"?")),
            None => error.mend(format!("there are {}", names().collect::<Vec<_>>().join(", "))),
        }
    })
}
