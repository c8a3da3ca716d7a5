//! Short descriptions of workloads for people.

use crate::write::name_of;
use crate::{Action, Amount, Phase, Step, TaskDef};
use schedlab_base::Nanos;
use std::fmt;

/// The number of events of a phase that are listed.
const SHOWN: usize = 8;

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", time(self.mean))?;
        if self.sd > 0 { write!(f, "±{}", time(self.sd)) } else { Ok(()) }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let event = name_of(self);
        match self {
            Self::Run(amount) | Self::Runtime(amount) | Self::Sleep(amount) => write!(f, "{event} {amount}"),
            Self::Timeout(length) => write!(f, "{event} {}", time(*length)),
            Self::Timer { period, .. } => write!(f, "{event} {period}"),
            Self::Wait { cond: name, .. } | Self::Sync { cond: name, .. } => write!(f, "{event} {name}"),
            Self::Mem(bytes) | Self::IoRun(bytes) => write!(f, "{event} {bytes} B"),
            Self::MemRun { size, .. } => write!(f, "{event} in {size} B"),
            Self::Yield | Self::Exec | Self::Await => write!(f, "{event}"),
            Self::HybridBarrier { name, spin } => write!(f, "{event} {name} for {}", time(*spin)),
            Self::Lock(name)
            | Self::Unlock(name)
            | Self::Signal(name)
            | Self::Broadcast(name)
            | Self::Barrier(name)
            | Self::Suspend(name)
            | Self::Resume(name)
            | Self::Fork(name)
            | Self::Jobs(name)
            | Self::SemPost(name)
            | Self::SemWait(name)
            | Self::Ask(name)
            | Self::Answer(name)
            | Self::SpinBarrier(name)
            | Self::SpinLock(name)
            | Self::SpinUnlock(name) => write!(f, "{event} {name}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        if self.sync { write!(f, " (x-sync)") } else { Ok(()) }
    }
}

impl Phase {
    /// The phase in one line: `light, 100 times: run 1ms, timer 10ms`.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut parts: Vec<String> = self.events.iter().take(SHOWN).map(Step::to_string).collect();
        if self.events.len() > SHOWN {
            parts.push(format!("and {} more", self.events.len() - SHOWN));
        }
        let how_often = times(self.loops);
        let head = match (self.name.is_empty(), how_often.is_empty()) {
            (true, true) => String::new(),
            (true, false) => format!("{how_often}: "),
            (false, true) => format!("{}: ", self.name),
            (false, false) => format!("{}, {how_often}: ", self.name),
        };
        format!("{head}{}", parts.join(", "))
    }
}

impl TaskDef {
    /// How often the task repeats its phases: `for ever`, `10 times`, or an empty string for once.
    #[must_use]
    pub fn how_often(&self) -> String {
        times(self.loops)
    }
}

fn times(loops: Option<u64>) -> String {
    match loops {
        None => "for ever".to_owned(),
        Some(1) => String::new(),
        Some(n) => format!("{n} times"),
    }
}

/// A time in the largest unit that keeps the number short: `2ms`, `1.5us`.
#[must_use]
pub fn time(ns: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    for (unit, name) in units {
        if ns >= unit {
            let thousandths = (u128::from(ns) * 1000 + u128::from(unit) / 2) / u128::from(unit);
            let (whole, rest) = (thousandths / 1000, thousandths % 1000);
            let fraction = format!("{rest:03}");
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            return format!("{whole}{point}{fraction}{name}");
        }
    }
    if ns == 0 { "0".to_owned() } else { format!("{ns}ns") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let cases = [
            (0, "0"),
            (40, "40ns"),
            (1500, "1.5us"),
            (2_000_000, "2ms"),
            (16_666_700, "16.667ms"),
            (90_000_000_000, "90s"),
        ];
        for (ns, text) in cases {
            assert_eq!(time(ns), text);
        }
    }
}
