//! CFS and EEVDF written anew from their description, as plainly as can be: lists that are gone through at each
//! question, whole numbers of 128 bits, one CPU.

/// The weight of each nice level.
const WEIGHTS: [i128; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// 2^32 divided by it, as the kernel has it in a table.
const INVERSES: [i128; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437, 449829, 563644, 704093, 875809,
    1099582, 1376151, 1717300, 2157191, 2708050, 3363326, 4194304, 5237765, 6557202, 8165337, 10153587, 12820798,
    15790321, 19976592, 24970740, 31350126, 39045157, 49367440, 61356676, 76695844, 95443717, 119304647, 148102320,
    186737708, 238609294, 286331153,
];

fn weight(nice: i8) -> (i128, i128) {
    let level = (nice + 20) as usize;
    (WEIGHTS[level], INVERSES[level])
}

/// `delta * weight / of`, where `inverse` stands for dividing by `of`: as much of the product of weight and inverse as
/// 32 bits hold (3.13 on).
fn truncated(delta: i128, weight: i128, inverse: i128) -> i128 {
    let (mut factor, mut shift) = (weight * inverse, 32);
    while factor >> 32 != 0 {
        factor >>= 1;
        shift -= 1;
    }
    (delta * factor) >> shift
}

/// The same to the nearest, in two steps where the product is large (until 2.6.39).
fn rounded(delta: i128, weight: i128, inverse: i128) -> i128 {
    let nearest = |x: i128, bits: u32| (x + (1 << (bits - 1))) >> bits;
    let product = delta * weight;
    if product > 1 << 32 { nearest(nearest(product, 16) * inverse, 16) } else { nearest(product * inverse, 32) }
}

/// One CPU's scheduler, told of what happens.
pub trait Reference {
    /// A task that has no parent on this CPU, or was forked by one that runs here.
    fn new_task(&mut self, now: i128, p: usize, nice: i8, slice: Option<i128>, parent: Option<usize>);
    fn wakes(&mut self, now: i128, p: usize);
    /// Who runs goes to sleep, or ends.
    fn sleeps(&mut self, now: i128, ends: bool);
    fn ticks(&mut self, now: i128);
    /// Who runs has another nice level.
    fn changes(&mut self, now: i128, nice: i8);
    /// Whether the CPU is to choose anew.
    fn wants(&self) -> bool;
    fn picks(&mut self, now: i128) -> Option<usize>;
}

#[derive(Clone, Debug, Default)]
struct Entity {
    nice: i8,
    queued: bool,
    vruntime: i128,
    /// CPU time in all, and when it was last given the CPU.
    ran: i128,
    ran_before: i128,
    /// EEVDF: the slice that it asks for.
    slice: i128,
    /// EEVDF: its deadline, its lag when it left, and the deadline until which it keeps the CPU.
    deadline: i128,
    lag: i128,
    keeps_until: Option<i128>,
    /// EEVDF: it sleeps, and stays queued until it is eligible.
    delayed: bool,
    /// When it joined the queue: equals go in this order.
    order: u64,
}

/// What both have in common.
#[derive(Clone, Debug, Default)]
struct Queue {
    all: Vec<Entity>,
    curr: Option<usize>,
    since: i128,
    resched: bool,
    orders: u64,
}

impl Queue {
    fn grow(&mut self, p: usize) {
        self.all.resize(self.all.len().max(p + 1), Entity::default());
    }

    fn weight(&self, p: usize) -> i128 {
        weight(self.all[p].nice).0
    }

    /// All that are queued, who runs included.
    fn queued(&self) -> Vec<usize> {
        (0..self.all.len()).filter(|p| self.all[*p].queued).collect()
    }

    /// Those of them that wait.
    fn waiting(&self) -> Vec<usize> {
        self.queued().into_iter().filter(|p| Some(*p) != self.curr).collect()
    }

    fn load(&self) -> i128 {
        self.queued().into_iter().map(|p| self.weight(p)).sum()
    }

    /// It joins those who wait, behind its equals.
    fn line_up(&mut self, p: usize) {
        self.orders += 1;
        self.all[p].order = self.orders;
    }

    /// What who runs has run since it was last asked.
    fn run_since(&mut self, now: i128) -> Option<(usize, i128)> {
        let p = self.curr.filter(|p| self.all[*p].queued)?;
        let ran = now - std::mem::replace(&mut self.since, now);
        self.all[p].ran += ran;
        (ran > 0).then_some((p, ran))
    }
}

/// CFS. `old` is 2.6.32, else 6.1.
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

    /// The number of tasks from which on the period is stretched.
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

    /// How far `p` is behind `of`: more than the granularity (1), less (0), not at all (-1).
    fn behind(&self, of: usize, p: usize) -> i32 {
        let difference = self.q.all[of].vruntime - self.q.all[p].vruntime;
        match difference {
            d if d <= 0 => -1,
            d => i32::from(d > self.virtually(p, 1_000_000)),
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

/// EEVDF as of 6.12.
#[derive(Default)]
pub struct Eevdf {
    q: Queue,
    /// The average virtual runtime when it was last worked out: that of an empty queue.
    average: i128,
}

impl Eevdf {
    const SLICE: i128 = 700_000;
    const TICK: i128 = 4_000_000;

    fn virtually(&self, p: usize, time: i128) -> i128 {
        let (weight, inverse) = weight(self.q.all[p].nice);
        if weight == 1024 { time } else { truncated(time, 1024, inverse) }
    }

    /// The sum of weight times virtual runtime, and that of the weights.
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

    /// It has not had more than its share.
    fn eligible(&self, p: usize) -> bool {
        let (sum, load) = self.sums();
        self.q.all[p].vruntime * load <= sum
    }

    fn keeps(&self, p: usize) -> bool {
        self.q.all[p].keeps_until == Some(self.q.all[p].deadline)
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
        self.q.resched |= !alone && (served || (!self.keeps(p) && !self.eligible(p)));
    }

    fn lag(&mut self, p: usize) -> i128 {
        let most = self.virtually(p, Self::TICK.max(2 * self.q.all[p].slice));
        (self.average() - self.q.all[p].vruntime).clamp(-most, most)
    }

    /// Where it joins: as far from the average, once it is counted in, as it was when it left.
    fn place(&mut self, p: usize, new: bool) {
        let (average, load) = (self.average(), self.q.load());
        let lag = if load > 0 { self.q.all[p].lag * (load + self.q.weight(p)) / load } else { 0 };
        let slice = self.virtually(p, self.q.all[p].slice);
        let entity = &mut self.q.all[p];
        entity.vruntime = average - lag;
        entity.deadline = entity.vruntime + if new { slice / 2 } else { slice };
    }

    /// The earliest deadline of those who are eligible; who runs keeps the CPU while its slice is protected.
    fn best(&self) -> Option<usize> {
        let all = self.q.queued();
        if all.len() == 1 {
            return Some(all[0]);
        }
        let runs = self.q.curr.filter(|p| self.q.all[*p].queued && self.eligible(*p));
        if let Some(p) = runs.filter(|p| self.keeps(*p)) {
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

    /// Whether `p` has a shorter slice than `curr`, and a claim that ends the protection of that one's.
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
            if let Some(curr) = self.q.curr.filter(|curr| self.is_shorter(p, *curr)) {
                self.q.all[curr].keeps_until = None;
            }
            self.q.resched |= self.best() == Some(p);
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
        // Its deadline is as far ahead as it was.
        self.q.all[p].deadline = self.q.all[p].vruntime + ahead;
        self.q.all[p].queued = true;
        self.q.all[p].keeps_until = Some(self.q.all[p].deadline);
        self.q.resched |= self.q.queued().len() > 1 && nice > old;
    }

    fn wants(&self) -> bool {
        self.q.resched
    }

    fn picks(&mut self, now: i128) -> Option<usize> {
        self.account(now);
        self.q.resched = false;
        let next = loop {
            match self.best() {
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
                self.q.all[p].keeps_until = Some(self.q.all[p].deadline);
            }
            self.q.since = now;
        }
        self.q.curr = next;
        next
    }
}
