//! What the tracker says, as it changes what is watched.

use super::{NONE, Task, Use, Wait, Watch};
use crate::affinity::bound_by_name;
use crate::conserve::classes::members;
use schedlab_base::{AffinityRecord, CpuId, Looking, NameRecord, Nanos};
use schedlab_track::{Move, Observer, Occupant, Slot, row};

impl Observer for Watch {
    #[inline]
    fn clock(&mut self, now: Nanos) {
        self.settle(now);
    }

    fn ends(&mut self, end: Nanos) {
        self.settle(end);
        let still: Vec<CpuId> = members(&self.open).collect();
        for cpu in still {
            self.close(cpu, self.now, true);
        }
    }

    fn named(&mut self, task: Slot, record: &NameRecord) {
        if !self.knows(task)
            && let Some(cpu) = bound_by_name(&record.comm)
        {
            self.allow(task, &[cpu].into_iter().collect(), record.time);
        }
    }

    fn allowed(&mut self, task: Slot, record: &AffinityRecord) {
        if !self.exact && self.knows(task) {
            // The affinity changed some time before: perhaps the task could not have run elsewhere.
            self.doubted(task, record.time);
        }
        self.allow(task, &record.cpus, record.time);
    }

    /// A task is born with its parent's affinity, where none was told.
    fn forked(&mut self, parent: Option<Slot>, child: Slot, _: bool, _: Nanos) {
        let Some(parent) = parent else { return };
        let Task { class, known, .. } = *row(&mut self.tasks, parent);
        if known && !row(&mut self.tasks, child).known {
            self.reclass(child, class, true);
        }
    }

    fn looked(&mut self, cpu: CpuId, why: Looking, word: u16, mask: u64) {
        if !why.balances() {
            return;
        }
        self.has_looks = true;
        let Some(cpu) = self.cpus.get_mut(cpu as usize) else { return };
        cpu.looks = cpu.looks.saturating_add(1);
        *row(&mut cpu.looked_at, word.into()) |= mask;
    }

    fn span(&mut self, _: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        let time = u128::from(to.saturating_sub(from));
        match who {
            Occupant::Unknown => self.unknown_time += time,
            Occupant::Idle => self.idle_time += time,
            Occupant::Task(_) => self.busy_time += time,
        }
    }

    fn migrated(&mut self, _: Slot, moved: Move) {
        self.moves += 1;
        if let Some(cpu) = self.cpus.get_mut(moved.to as usize) {
            cpu.moves = cpu.moves.saturating_add(1);
        }
    }

    #[inline]
    fn occupied(&mut self, number: CpuId, who: Occupant, now: Nanos) {
        self.settle(now);
        if number as usize >= self.cpus.len() {
            self.exists(number);
        }
        let used = match who {
            Occupant::Unknown => Use::Unknown,
            Occupant::Idle => Use::Idle,
            Occupant::Task(_) => Use::Busy,
        };
        let cpu = &mut self.cpus[number as usize];
        let was = std::mem::replace(&mut cpu.used, used);
        if was == used {
            return;
        }
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if used == Use::Idle || was == Use::Idle {
            self.idle[word] = if used == Use::Idle { self.idle[word] | bit } else { self.idle[word] & !bit };
            self.changed = true;
        }
        (cpu.used_since, cpu.wasting) = (self.now, self.wasting);
        if cpu.first != NONE && (used == Use::Busy || was == Use::Busy) {
            for slot in self.waiting(number) {
                if used == Use::Busy { self.count(slot) } else { self.discount(slot) }
            }
        }
    }

    #[inline]
    fn queued(&mut self, slot: Slot, number: CpuId, now: Nanos) {
        self.settle(now);
        if number as usize >= self.cpus.len() {
            self.exists(number);
        }
        let first = std::mem::replace(&mut self.cpus[number as usize].first, slot);
        let wasting = self.wasting;
        let task = row(&mut self.tasks, slot);
        task.wasting = wasting;
        debug_assert!(!task.waits, "a task waits on one queue");
        (task.waits, task.cpu, task.since, task.next, task.prev) = (true, number, now.max(self.now), first, NONE);
        if first != NONE {
            self.tasks[first as usize].prev = slot;
        }
        self.count(slot);
    }

    #[inline]
    fn unqueued(&mut self, slot: Slot, now: Nanos) {
        if !self.tasks.get(slot as usize).is_some_and(|task| task.waits) {
            return;
        }
        self.settle(now);
        self.unlink(slot);
        self.discount(slot);
        self.tasks[slot as usize].remember(now);
        self.tasks[slot as usize].waits = false;
    }

    /// What was held against the scheduler on this task's account alone does not count.
    #[cold]
    fn doubted(&mut self, slot: Slot, now: Nanos) {
        self.settle(now);
        let Some(task) = self.tasks.get_mut(slot as usize).filter(|task| task.waits) else { return };
        let since = std::mem::replace(&mut task.since, now.max(self.now));
        task.last = Wait::default();
        // It can have added one CPU to the waste, and no more.
        let before = std::mem::replace(&mut task.wasting, self.wasting);
        self.wasted = self.wasted.saturating_sub((self.wasting - before).into());
        let class = task.class;
        self.found.retain_mut(|found| {
            if found.to > since && found.waited.iter().any(|w| w.slot == slot) {
                found.waited.retain(|w| w.slot != slot);
                found.tasks -= 1;
            }
            !found.waited.is_empty()
        });
        let resting: Vec<CpuId> = members(&self.open).filter(|cpu| self.classes.allows(class, *cpu)).collect();
        for cpu in resting {
            self.start(cpu);
        }
    }

    /// What was held against the scheduler on this CPU's account does not count, since then if that is known.
    #[cold]
    fn misjudged(&mut self, number: CpuId, since: Option<Nanos>, now: Nanos) {
        self.settle(now);
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        let Some(cpu) = self.cpus.get_mut(number as usize) else { return };
        let before = std::mem::replace(&mut cpu.wasting, self.wasting);
        let most = since.map_or(Nanos::MAX, |since| now.saturating_sub(since));
        self.wasted = self.wasted.saturating_sub((self.wasting - before).min(most).into());
        if let Some(since) = since {
            // What comes to light later does not touch what is certain now.
            cpu.used_since = self.now;
            if self.open[word] & bit != 0 {
                self.close(number, since, false);
            }
        } else {
            let since = cpu.used_since;
            self.found.retain(|found| found.cpu != number || found.to <= since);
        }
        self.open[word] &= !bit;
        self.changed = true;
    }

    #[cold]
    fn forgotten(&mut self, number: CpuId, now: Nanos) {
        self.settle(now);
        if (number as usize) < self.cpus.len() {
            for slot in self.waiting(number) {
                self.unqueued(slot, now);
            }
        }
    }
}
