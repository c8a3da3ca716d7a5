//! CFS.

use super::{Entity, Queue, Reference, rounded, truncated, weight};

/// CFS as of 2.6.32 if `old`, otherwise as of 6.1.
pub struct Cfs {
    q: Queue,
    old: bool,
    min_vruntime: i128,
    next: Option<usize>,
    last: Option<usize>,
}

impl Cfs {
    pub fn new(old: bool) -> Self {
        Self { q: Queue::default(), old, min_vruntime: -(1 << 20), next: None, last: None }
    }

    fn latency(&self) -> i128 {
        if self.old { 5_000_000 } else { 6_000_000 }
    }

    fn least_slice(&self) -> i128 {
        if self.old { 1_000_000 } else { 750_000 }
    }

    /// Returns the number of tasks above which the period is stretched.
    fn many(&self) -> i128 {
        self.latency() / self.least_slice()
    }

    fn virtually(&self, p: usize, time: i128) -> i128 {
        let (weight, inverse) = weight(self.q.all[p].nice);
        match weight {
            1024 => time,
            _ if self.old => rounded(time, 1024, inverse),
            _ => truncated(time, 1024, inverse),
        }
    }

    fn slice(&self, p: usize) -> i128 {
        let joins = !self.q.all[p].queued;
        let number = self.q.queued().len() as i128 + i128::from(joins);
        let period = if number > self.many() { number * self.least_slice() } else { self.latency() };
        let own = self.q.weight(p);
        let load = self.q.load() + if joins { own } else { 0 };
        if self.old {
            return rounded(period, own, 1 + ((1 << 32) - load / 2) / (load + 1));
        }
        truncated(period, own, 0xffff_ffff / load).max(self.least_slice())
    }

    fn leftmost(&self) -> Option<usize> {
        self.q.waiting().into_iter().min_by_key(|p| (self.q.all[*p].vruntime, self.q.all[*p].order))
    }

    fn move_min(&mut self) {
        let runs = self.q.curr.filter(|p| self.old || self.q.all[*p].queued);
        let least = runs.into_iter().chain(self.leftmost()).map(|p| self.q.all[p].vruntime).min();
        self.min_vruntime = self.min_vruntime.max(least.unwrap_or(self.min_vruntime));
    }

    fn account(&mut self, now: i128) {
        if let Some((p, ran)) = self.q.run_since(now) {
            self.q.all[p].vruntime += self.virtually(p, ran);
            self.move_min();
        }
    }

    /// Returns by how much a task must be behind to preempt. As no task wakes another here, 2.6.32 expects each to run
    /// for the granularity, and asks for less only after a long turn (`ADAPTIVE_GRAN`).
    fn granularity(&self) -> i128 {
        const MOST: i128 = 1_000_000;
        let Some(curr) = self.q.curr.filter(|_| self.old) else { return MOST };
        let ran = self.q.all[curr].ran - self.q.all[curr].ran_before;
        (2 * MOST * self.q.queued().len() as i128 - ran).clamp(0, MOST)
    }

    /// Returns how far `p` is behind `of`: by more than the granularity (1), by less (0), or not at all (-1).
    fn behind(&self, of: usize, p: usize) -> i32 {
        let difference = self.q.all[of].vruntime - self.q.all[p].vruntime;
        match difference {
            d if d <= 0 => -1,
            d => i32::from(d > self.virtually(p, self.granularity())),
        }
    }

    fn preempts(&mut self, now: i128, p: usize) {
        let Some(curr) = self.q.curr else {
            self.q.resched = true;
            return;
        };
        let many = self.q.queued().len() as i128 >= self.many();
        if self.old {
            self.account(now);
            self.last = Some(curr);
        }
        if self.q.resched {
            return;
        }
        self.account(now);
        if self.behind(curr, p) == 1 {
            self.q.resched = true;
            if !self.old {
                self.next = Some(p);
                if many {
                    self.last = Some(curr);
                }
            }
        }
    }

    fn forget(&mut self, p: usize) {
        self.next = self.next.filter(|q| *q != p);
        self.last = self.last.filter(|q| *q != p);
    }

    fn place(&mut self, p: usize, vruntime: i128) {
        let entity = &mut self.q.all[p];
        entity.vruntime = entity.vruntime.max(vruntime);
    }
}

impl Reference for Cfs {
    fn new_task(&mut self, now: i128, p: usize, nice: i8, _: Option<i128>, parent: Option<usize>) {
        self.q.grow(p);
        self.account(now);
        let vruntime = parent.map_or(0, |q| self.q.all[q].vruntime);
        self.q.all[p] = Entity { nice, vruntime, ..Entity::default() };
        let debit = self.virtually(p, self.slice(p));
        self.place(p, self.min_vruntime + debit);
        self.q.all[p].queued = true;
        self.q.line_up(p);
        self.preempts(now, p);
    }

    fn wakes(&mut self, now: i128, p: usize) {
        self.account(now);
        self.place(p, self.min_vruntime - self.latency() / 2);
        self.q.all[p].queued = true;
        self.q.line_up(p);
        self.preempts(now, p);
    }

    fn sleeps(&mut self, now: i128, _: bool) {
        self.account(now);
        if let Some(p) = self.q.curr {
            self.forget(p);
            self.q.all[p].queued = false;
            self.move_min();
        }
        self.q.resched = true;
    }

    fn ticks(&mut self, now: i128) {
        self.account(now);
        let Some(p) = self.q.curr else { return };
        let Some(left) = self.leftmost() else { return };
        let slice = self.slice(p);
        let ran = self.q.all[p].ran - self.q.all[p].ran_before;
        if ran > slice {
            self.q.resched = true;
            if !self.old {
                self.forget(p);
            }
        } else if !self.old && ran >= self.least_slice() {
            self.q.resched |= self.q.all[p].vruntime - self.q.all[left].vruntime > slice;
        }
    }

    fn changes(&mut self, now: i128, nice: i8) {
        self.account(now);
        let Some(p) = self.q.curr else { return };
        self.forget(p);
        if self.old {
            self.move_min();
        } else {
            self.q.all[p].ran_before = self.q.all[p].ran;
        }
        let old = std::mem::replace(&mut self.q.all[p].nice, nice);
        let alone = !self.old && self.q.queued().len() == 1;
        self.q.resched |= !alone && (nice > old || (self.old && nice < old));
    }

    fn wants(&self) -> bool {
        self.q.resched
    }

    fn picks(&mut self, now: i128) -> Option<usize> {
        self.account(now);
        self.q.resched = false;
        let prev = self.q.curr.filter(|p| self.q.all[*p].queued);
        if self.old {
            self.q.curr = None;
            prev.into_iter().for_each(|p| self.q.line_up(p));
        }
        let ahead = |a: usize, b: usize| self.q.all[a].vruntime < self.q.all[b].vruntime;
        let waits = self.leftmost();
        let left = match (waits, prev.filter(|_| !self.old)) {
            (Some(left), Some(prev)) if ahead(prev, left) => Some(prev),
            (None, prev) => prev,
            (left, _) => left,
        };
        let mut next = left;
        if let Some(left) = left {
            let near = |buddy: Option<usize>| buddy.filter(|p| self.q.all[*p].queued && self.behind(*p, left) < 1);
            next = match (near(self.next), near(self.last)) {
                (next, Some(last)) if self.old || next.is_none() => Some(last),
                (Some(next), _) => Some(next),
                _ => Some(left),
            };
        }
        if let Some(p) = next.filter(|p| self.old || prev != Some(*p)) {
            if !self.old {
                prev.into_iter().for_each(|p| self.q.line_up(p));
            }
            self.forget(p);
            self.q.all[p].ran_before = self.q.all[p].ran;
            self.q.since = now;
        }
        self.q.curr = next;
        next
    }
}
