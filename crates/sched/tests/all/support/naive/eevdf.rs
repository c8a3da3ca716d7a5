//! EEVDF.

use super::{Entity, Queue, Reference, truncated, weight};

/// EEVDF as of 6.12 or, `newer`, of 6.18.
#[derive(Default)]
pub struct Eevdf {
    newer: bool,
    q: Queue,
    /// The average virtual runtime when it was last computed: that of an empty queue.
    average: i128,
}

impl Eevdf {
    const SLICE: i128 = 700_000;
    const TICK: i128 = 4_000_000;

    /// EEVDF as of 6.18: protection ends with the least slice, and the weight scales what is left of a request.
    pub fn of_6_18() -> Self {
        Self { newer: true, ..Self::default() }
    }

    fn virtually(&self, p: usize, time: i128) -> i128 {
        let (weight, inverse) = weight(self.q.all[p].nice);
        if weight == 1024 { time } else { truncated(time, 1024, inverse) }
    }

    /// Returns the sum of weight times virtual runtime, and the sum of weights.
    fn sums(&self) -> (i128, i128) {
        let all = self.q.queued();
        (all.iter().map(|p| self.q.weight(*p) * self.q.all[*p].vruntime).sum(), self.q.load())
    }

    fn average(&mut self) -> i128 {
        let (sum, load) = self.sums();
        if load > 0 {
            self.average = sum.div_euclid(load);
        }
        self.average
    }

    /// Returns whether the task has not had more than its share.
    fn eligible(&self, p: usize) -> bool {
        let (sum, load) = self.sums();
        self.q.all[p].vruntime * load <= sum
    }

    fn keeps(&self, p: usize) -> bool {
        if self.newer {
            return self.q.all[p].keeps_until.is_some_and(|until| self.q.all[p].vruntime < until);
        }
        self.q.all[p].keeps_until == Some(self.q.all[p].deadline)
    }

    /// Protects a task that starts to run.
    fn protect(&mut self, p: usize) {
        let task = &self.q.all[p];
        let mut until = task.deadline;
        let least = self.q.queued().into_iter().filter(|q| *q != p).map(|q| self.q.all[q].slice).min();
        if let Some(least) = least.filter(|least| self.newer && *least < task.slice) {
            until = until.min(task.vruntime + self.virtually(p, least));
        }
        self.q.all[p].keeps_until = Some(until);
    }

    fn account(&mut self, now: i128) {
        let Some((p, ran)) = self.q.run_since(now) else { return };
        self.q.all[p].vruntime += self.virtually(p, ran);
        let served = self.q.all[p].vruntime >= self.q.all[p].deadline;
        if served {
            self.q.all[p].deadline = self.q.all[p].vruntime + self.virtually(p, self.q.all[p].slice);
            self.average();
        }
        let alone = self.q.queued().len() == 1;
        self.q.resched |= !alone && (served || (!self.keeps(p) && (self.newer || !self.eligible(p))));
    }

    fn lag(&mut self, p: usize) -> i128 {
        let longest = self.q.queued().into_iter().map(|q| self.q.all[q].slice).max().unwrap_or(0);
        let old = Self::TICK.max(2 * self.q.all[p].slice);
        let most = self.virtually(p, if self.newer { longest + Self::TICK } else { old });
        (self.average() - self.q.all[p].vruntime).clamp(-most, most)
    }

    /// Places a task that joins: as far from the average, with the task included, as it was when it left.
    fn place(&mut self, p: usize, new: bool) {
        let (average, load) = (self.average(), self.q.load());
        let lag = if load > 0 { self.q.all[p].lag * (load + self.q.weight(p)) / load } else { 0 };
        let slice = self.virtually(p, self.q.all[p].slice);
        let entity = &mut self.q.all[p];
        entity.vruntime = average - lag;
        entity.deadline = entity.vruntime + if new { slice / 2 } else { slice };
    }

    /// Returns the eligible task with the earliest deadline; the running task keeps the CPU while its slice is
    /// protected, unless that is to be `ignored`.
    fn best(&self, ignored: bool) -> Option<usize> {
        let all = self.q.queued();
        if all.len() == 1 {
            return Some(all[0]);
        }
        let runs = self.q.curr.filter(|p| self.q.all[*p].queued && self.eligible(*p));
        if let Some(p) = runs.filter(|p| !ignored && self.keeps(*p)) {
            return Some(p);
        }
        let waiting = self.q.waiting().into_iter().filter(|p| self.eligible(*p));
        let best = waiting.min_by_key(|p| (self.q.all[*p].deadline, self.q.all[*p].order));
        match (best, runs) {
            (Some(best), Some(runs)) if self.q.all[runs].deadline < self.q.all[best].deadline => Some(runs),
            (None, runs) => runs,
            (best, _) => best,
        }
    }

    /// Returns whether `p` has a shorter slice than `curr`, and a claim that ends the protection of `curr`.
    fn is_shorter(&self, p: usize, curr: usize) -> bool {
        let (own, theirs) = (&self.q.all[p], &self.q.all[curr]);
        own.slice < theirs.slice && self.eligible(p) && (own.deadline < theirs.deadline || !self.eligible(curr))
    }

    fn leave(&mut self, p: usize) {
        self.q.all[p].lag = self.lag(p);
        self.q.all[p].queued = false;
    }

    fn preempts(&mut self, now: i128, p: usize) {
        if self.q.curr.is_none() {
            self.q.resched = true;
        } else if !self.q.resched {
            self.account(now);
            let curr = self.q.curr.expect("a task runs");
            if self.newer {
                return self.preempts_newer(p, curr);
            }
            if self.is_shorter(p, curr) {
                self.q.all[curr].keeps_until = None;
            }
            self.q.resched |= self.best(false) == Some(p);
        }
    }
}

impl Eevdf {
    fn preempts_newer(&mut self, p: usize, curr: usize) {
        let shorter = self.q.all[p].slice < self.q.all[curr].slice;
        if self.best(shorter) == Some(p) {
            self.q.resched = true;
            if shorter {
                self.q.all[curr].keeps_until = None;
            }
        } else if shorter {
            let least = self.q.queued().into_iter().map(|q| self.q.all[q].slice).min().expect("two are queued");
            let until = self.q.all[curr].vruntime + self.virtually(curr, least);
            self.q.all[curr].keeps_until = self.q.all[curr].keeps_until.map(|old| old.min(until));
        }
    }
}

impl Reference for Eevdf {
    fn new_task(&mut self, now: i128, p: usize, nice: i8, slice: Option<i128>, _: Option<usize>) {
        self.q.grow(p);
        self.account(now);
        self.q.all[p] = Entity { nice, slice: slice.unwrap_or(Self::SLICE), ..Entity::default() };
        self.place(p, true);
        self.q.all[p].queued = true;
        self.q.line_up(p);
        self.preempts(now, p);
    }

    fn wakes(&mut self, now: i128, p: usize) {
        if self.q.all[p].delayed {
            let lag = self.lag(p);
            self.q.all[p].lag = lag;
            if lag > 0 {
                self.q.all[p].lag = 0;
                self.q.all[p].queued = false;
                self.place(p, false);
                self.q.all[p].queued = true;
                self.q.line_up(p);
            }
            self.q.all[p].delayed = false;
        } else {
            self.account(now);
            self.place(p, false);
            self.q.all[p].queued = true;
            self.q.line_up(p);
        }
        self.preempts(now, p);
    }

    fn sleeps(&mut self, now: i128, ends: bool) {
        self.account(now);
        if let Some(p) = self.q.curr {
            if ends || self.eligible(p) {
                self.leave(p);
            } else {
                self.q.all[p].delayed = true;
            }
        }
        self.q.resched = true;
    }

    fn ticks(&mut self, now: i128) {
        self.account(now);
    }

    fn changes(&mut self, now: i128, nice: i8) {
        self.account(now);
        let Some(p) = self.q.curr else { return };
        let ahead = self.q.all[p].deadline - self.q.all[p].vruntime;
        self.leave(p);
        let before = self.q.weight(p);
        let old = std::mem::replace(&mut self.q.all[p].nice, nice);
        self.q.all[p].lag = self.q.all[p].lag * before / self.q.weight(p);
        self.place(p, false);
        // Its deadline stays as far ahead as it was, from 6.13 on in terms of weight.
        let ahead = if self.newer { ahead * before / self.q.weight(p) } else { ahead };
        self.q.all[p].deadline = self.q.all[p].vruntime + ahead;
        self.q.all[p].queued = true;
        // From 6.17 on it is protected only when it is picked, and its lag has replaced the end of its protection.
        self.q.all[p].keeps_until = if self.newer { None } else { Some(self.q.all[p].deadline) };
        self.q.resched |= self.q.queued().len() > 1 && nice > old;
    }

    fn wants(&self) -> bool {
        self.q.resched
    }

    fn picks(&mut self, now: i128) -> Option<usize> {
        self.account(now);
        self.q.resched = false;
        let next = loop {
            match self.best(false) {
                Some(p) if self.q.all[p].delayed => {
                    self.leave(p);
                    let entity = &mut self.q.all[p];
                    entity.delayed = false;
                    entity.lag = entity.lag.min(0);
                }
                best => break best,
            }
        };
        let prev = self.q.curr;
        if prev != next {
            if let Some(prev) = prev.filter(|p| self.q.all[*p].queued) {
                self.q.line_up(prev);
            }
            if let Some(p) = next {
                self.protect(p);
            }
            self.q.since = now;
        }
        self.q.curr = next;
        next
    }
}
