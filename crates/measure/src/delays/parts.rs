//! What ran on a CPU while a task waited for it that waits there no more: a part of the CPU's log.
//!
//! A task leaves such a part behind when it is moved to another queue, or when its wait has ended and is a long one.
//! Few of these waits are told in the end, and adding a part up takes as long as the part is. So only its place in the
//! log is kept, until it is told, or until the log is about to lose it.

use super::sums::{Entry, MEANWHILE, Tally};
use std::ops::Range;

/// The number of a part.
pub(super) type Ticket = u32;

/// When a CPU has this many parts that are not added up, and half of them are still asked for, all of them are.
const MANY: usize = 1024;

#[derive(Debug)]
enum Part {
    /// Its place in the log.
    Open(Range<usize>),
    Sums(Vec<Entry>),
    /// Nobody asks for it any more, but its CPU has not noticed.
    Dropped,
}

/// The parts of all CPUs.
#[derive(Debug, Default)]
pub(super) struct Parts {
    all: Vec<Part>,
    free: Vec<Ticket>,
}

impl Parts {
    fn add(&mut self, part: Part) -> Ticket {
        if let Some(ticket) = self.free.pop() {
            self.all[ticket as usize] = part;
            return ticket;
        }
        self.all.push(part);
        self.all.len() as Ticket - 1
    }

    /// Keeps what is added up already.
    pub(super) fn keep(&mut self, sums: Vec<Entry>) -> Ticket {
        self.add(Part::Sums(sums))
    }

    /// The parts are not asked for again.
    pub(super) fn drop_all(&mut self, tickets: &[Ticket]) {
        for ticket in tickets {
            if let Part::Sums(_) = std::mem::replace(&mut self.all[*ticket as usize], Part::Dropped) {
                self.free.push(*ticket);
            }
        }
    }

    /// What ran in a part that was added up.
    pub(super) fn sums(&self, ticket: Ticket) -> &[Entry] {
        match &self.all[ticket as usize] {
            Part::Sums(sums) => sums,
            Part::Open(_) | Part::Dropped => &[],
        }
    }
}

/// The parts of a CPU's log that are not added up.
#[derive(Clone, Debug, Default)]
pub(super) struct Open(Vec<Ticket>);

impl Open {
    /// Keeps a part of the log.
    pub(super) fn keep(&mut self, span: Range<usize>, log: &[Entry], parts: &mut Parts, tally: &mut Tally) -> Ticket {
        if span.is_empty() {
            return parts.keep(Vec::new());
        }
        if self.0.len() >= MANY {
            self.forget(parts);
            if self.0.len() >= MANY / 2 {
                self.add_up(0, log, parts, tally);
            }
        }
        let ticket = parts.add(Part::Open(span));
        self.0.push(ticket);
        ticket
    }

    /// Adds up the parts that go beyond this entry, because the log changes from there on.
    pub(super) fn add_up(&mut self, from: usize, log: &[Entry], parts: &mut Parts, tally: &mut Tally) {
        self.forget(parts);
        self.0.retain(|ticket| {
            let part = &mut parts.all[*ticket as usize];
            let Part::Open(span) = part else { return false };
            let stays = span.end <= from;
            if !stays {
                tally.add(&log[span.clone()]);
                *part = Part::Sums(tally.take(MEANWHILE));
            }
            stays
        });
    }

    /// Where the parts begin and end.
    pub(super) fn ends(&mut self, parts: &mut Parts) -> Vec<usize> {
        self.forget(parts);
        self.spans(parts).flat_map(|span| [span.start, span.end]).collect()
    }

    /// The entries of the log have moved.
    pub(super) fn move_to(&self, place: impl Fn(usize) -> usize, parts: &mut Parts) {
        for ticket in &self.0 {
            if let Part::Open(span) = &mut parts.all[*ticket as usize] {
                *span = place(span.start)..place(span.end);
            }
        }
    }

    fn spans<'a>(&'a self, parts: &'a Parts) -> impl Iterator<Item = &'a Range<usize>> {
        self.0.iter().filter_map(|ticket| match &parts.all[*ticket as usize] {
            Part::Open(span) => Some(span),
            Part::Sums(_) | Part::Dropped => None,
        })
    }

    /// Forgets the parts that nobody asks for.
    fn forget(&mut self, parts: &mut Parts) {
        let Parts { all, free } = parts;
        self.0.retain(|ticket| {
            let dropped = matches!(all[*ticket as usize], Part::Dropped);
            if dropped {
                free.push(*ticket);
            }
            !dropped
        });
    }
}
