//! CFS and EEVDF against a naive reference: the algorithms written anew from their description, with plain lists that are
//! sorted at each pick, whole numbers of 128 bits, every tick taken, and no queue but one CPU's. The reference is fed with
//! the wake-ups, forks and sleeps of a simulated run and must choose, at each decision, whom the scheduler chose: a switch
//! where it switched, nobody else where it did not. Nice levels, sleepers, forks and changes of nice levels are
//! covered; groups, policies, yields, custom slices and several CPUs are not.

mod support;

use proptest::prelude::*;
use schedlab_base::{Nanos, Payload, TaskState};
use schedlab_sim::program::{Load, Op, Setting, TaskSpec};
use support::{MS, bare, exactly, forever, simulate, threads};

/// The weight of each nice level, and 2^32 divided by it as the kernel has it in a table.
const WEIGHTS: [(i128, i128); 40] = [
    (88761, 48388),
    (71755, 59856),
    (56483, 76040),
    (46273, 92818),
    (36291, 118_348),
    (29154, 147_320),
    (23254, 184_698),
    (18705, 229_616),
    (14949, 287_308),
    (11916, 360_437),
    (9548, 449_829),
    (7620, 563_644),
    (6100, 704_093),
    (4904, 875_809),
    (3906, 1_099_582),
    (3121, 1_376_151),
    (2501, 1_717_300),
    (1991, 2_157_191),
    (1586, 2_708_050),
    (1277, 3_363_326),
    (1024, 4_194_304),
    (820, 5_237_765),
    (655, 6_557_202),
    (526, 8_165_337),
    (423, 10_153_587),
    (335, 12_820_798),
    (272, 15_790_321),
    (215, 19_976_592),
    (172, 24_970_740),
    (137, 31_350_126),
    (110, 39_045_157),
    (87, 49_367_440),
    (70, 61_356_676),
    (56, 76_695_844),
    (45, 95_443_717),
    (36, 119_304_647),
    (29, 148_102_320),
    (23, 186_737_708),
    (18, 238_609_294),
    (15, 286_331_153),
];

fn weight(nice: i8) -> (i128, i128) {
    WEIGHTS[(nice + 20) as usize]
}

/// `delta * weight / of`, where `inverse` stands for dividing by `of`: as much of the product of weight and inverse as 32
/// bits hold (3.13 on).
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
trait Reference {
    /// A task that has no parent on this CPU, or was forked by one that runs here.
    fn new_task(&mut self, now: i128, p: usize, nice: i8, parent: Option<usize>);
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
struct Cfs {
    q: Queue,
    old: bool,
    min_vruntime: i128,
    next: Option<usize>,
    last: Option<usize>,
}

impl Cfs {
    fn new(old: bool) -> Self {
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
    fn new_task(&mut self, now: i128, p: usize, nice: i8, parent: Option<usize>) {
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
struct Eevdf {
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
            self.q.all[p].deadline = self.q.all[p].vruntime + self.virtually(p, Self::SLICE);
            self.average();
        }
        let alone = self.q.queued().len() == 1;
        self.q.resched |= !alone && (served || (!self.keeps(p) && !self.eligible(p)));
    }

    fn lag(&mut self, p: usize) -> i128 {
        let most = self.virtually(p, Self::TICK.max(2 * Self::SLICE));
        (self.average() - self.q.all[p].vruntime).clamp(-most, most)
    }

    /// Where it joins: as far from the average, once it is counted in, as it was when it left.
    fn place(&mut self, p: usize, new: bool) {
        let (average, load) = (self.average(), self.q.load());
        let lag = if load > 0 { self.q.all[p].lag * (load + self.q.weight(p)) / load } else { 0 };
        let slice = self.virtually(p, Self::SLICE);
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

    fn leave(&mut self, p: usize) {
        self.q.all[p].lag = self.lag(p);
        self.q.all[p].queued = false;
    }

    fn preempts(&mut self, now: i128, p: usize) {
        if self.q.curr.is_none() {
            self.q.resched = true;
        } else if !self.q.resched {
            self.account(now);
            self.q.resched |= self.best() == Some(p);
        }
    }
}

impl Reference for Eevdf {
    fn new_task(&mut self, now: i128, p: usize, nice: i8, _: Option<usize>) {
        self.q.grow(p);
        self.account(now);
        self.q.all[p] = Entity { nice, ..Entity::default() };
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

/// When a task, by what it has run, changes its nice level, and to which.
type Change = Option<(i128, i8)>;

/// Feeds the reference and compares its choices; how many there were.
fn compare(reference: &mut dyn Reference, load: &Load, kernel: &str, tick: i128, until: Nanos) -> Result<u32, String> {
    let accounts = simulate(kernel, &bare("up"), load, &[], until);
    let spec = |p: usize| load.tasks.get(p).unwrap_or_else(|| &load.templates[0]);
    let mut changes: Vec<Change> = Vec::new();
    let (mut ran, mut curr, mut since) = (Vec::<i128>::new(), None::<usize>, 0i128);
    let (mut now, mut next_tick, mut decisions) = (0i128, tick, 0);
    let (mut parents, mut nices) = (Vec::<Option<usize>>::new(), Vec::<i8>::new());
    for event in &accounts.events {
        let time = i128::from(event.time);
        // Ticks and changes of nice levels up to this event; whatever they led to was no switch.
        loop {
            let change = curr.and_then(|p| changes[p].map(|(at, _)| since + at - ran[p])).filter(|at| *at <= time);
            let due = change.unwrap_or(i128::MAX).min(next_tick);
            if due > time.max(now) || (due > time) {
                break;
            }
            if due > now {
                settle(reference, now, curr, &mut decisions)?;
            }
            now = due;
            if due == next_tick {
                reference.ticks(now);
                next_tick += tick;
            } else if let Some(p) = curr {
                let (_, nice) = changes[p].take().expect("a change");
                // To set what is there already does nothing.
                if nices[p] != nice {
                    nices[p] = nice;
                    reference.changes(now, nice);
                }
            }
        }
        if time > now {
            settle(reference, now, curr, &mut decisions)?;
        }
        now = time;
        match event.what {
            Payload::Fork { parent, child } => {
                let p = child as usize - 1;
                parents.resize(parents.len().max(p + 1), None);
                parents[p] = (parent as usize).checked_sub(1);
            }
            Payload::WakeupNew { tid, .. } => {
                let p = tid as usize - 1;
                ran.resize(ran.len().max(p + 1), 0);
                changes.resize(changes.len().max(p + 1), None);
                changes[p] = change_of(spec(p), load);
                let parent = parents.get(p).copied().flatten();
                nices.resize(nices.len().max(p + 1), 0);
                nices[p] = spec(p).initial.nice.unwrap_or_else(|| parent.map_or(0, |q| nices[q]));
                reference.new_task(now, p, nices[p], parent);
            }
            Payload::Wakeup { tid, .. } => reference.wakes(now, tid as usize - 1),
            Payload::Switch { prev, prev_state, next, .. } => {
                let next = (next as usize).checked_sub(1);
                if prev > 0 {
                    let p = prev as usize - 1;
                    ran[p] += now - since;
                    if prev_state != TaskState::Runnable {
                        reference.sleeps(now, prev_state == TaskState::Dead);
                    }
                }
                if !reference.wants() {
                    return Err(format!("at {now}: a switch to {next:?} that the reference does not ask for"));
                }
                let ours = reference.picks(now);
                decisions += 1;
                if ours != next {
                    return Err(format!("at {now}: {next:?} was chosen, the reference has {ours:?}"));
                }
                (curr, since) = (next, now);
            }
            _ => {}
        }
    }
    Ok(decisions)
}

/// The instant is over without a switch: if the reference wants to choose, it must choose who runs.
fn settle(reference: &mut dyn Reference, now: i128, curr: Option<usize>, decisions: &mut u32) -> Result<(), String> {
    if !reference.wants() {
        return Ok(());
    }
    *decisions += 1;
    let ours = reference.picks(now);
    if ours == curr { Ok(()) } else { Err(format!("at {now}: {curr:?} went on, the reference has {ours:?}")) }
}

/// What a program sets after how much work; only its first `Set` counts, before which it does not loop.
fn change_of(spec: &TaskSpec, load: &Load) -> Change {
    let mut ran = 0;
    for op in &spec.program {
        match op {
            Op::Run(amount) => ran += i128::from(amount.mean),
            Op::Set(i) => return load.settings[*i as usize].nice.map(|nice| (ran, nice)),
            _ => {}
        }
    }
    None
}

/// Hogs, sleepers, tasks that change their nice level, and one that forks; at most two things happen at one instant by
/// accident, since all times are odd.
fn loads() -> impl Strategy<Value = Load> {
    let odd = |range: std::ops::Range<u64>| range.prop_map(|ns| ns * 2 + 1);
    let sleeper = (-20i8..20, odd(10_000..4_000_000), odd(10_000..10_000_000)).prop_map(|(nice, run, sleep)| {
        forever("sleeper", nice, vec![Op::Run(exactly(run)), Op::Sleep(exactly(sleep))])
    });
    let hog = (-20i8..20, odd(100_000_000..500_000_000))
        .prop_map(|(nice, run)| forever("hog", nice, vec![Op::Run(exactly(run))]));
    let changer = (-20i8..20, odd(1_000_000..60_000_000), 0u32..3).prop_map(|(nice, run, i)| {
        let mut spec = forever("changer", nice, vec![]);
        spec.program = vec![Op::Run(exactly(run)), Op::Set(i), Op::Run(exactly(1_000_000_000_000))];
        spec
    });
    let task = prop_oneof![2 => hog, 4 => sleeper, 2 => changer];
    let forks = proptest::option::of((odd(1_000_000..40_000_000), odd(100_000..20_000_000)));
    (proptest::collection::vec(task, 1..10), forks, proptest::array::uniform3(-20i8..20)).prop_map(
        |(mut tasks, forks, nices)| {
            let mut templates = vec![TaskSpec { name: "child".into(), ..TaskSpec::default() }];
            if let Some((before, own)) = forks {
                templates[0].program = vec![Op::Run(exactly(own))];
                let mut spec = forever("forker", 0, vec![]);
                spec.program = vec![Op::Run(exactly(before)), Op::Fork(0), Op::Run(exactly(before + 2)), Op::Fork(0)];
                tasks.push(spec);
            }
            let settings = nices.map(|nice| Setting { nice: Some(nice), ..Setting::default() }).to_vec();
            Load { templates, settings, ..threads(tasks) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn cfs_of_2_6_32_chooses_as_the_reference(load in loads()) {
        let done = compare(&mut Cfs::new(true), &load, "linux-2.6.32", 1_000_000, 500 * MS);
        prop_assert!(done.is_ok(), "{done:?}");
    }

    #[test]
    fn cfs_of_6_1_chooses_as_the_reference(load in loads()) {
        let done = compare(&mut Cfs::new(false), &load, "linux-6.1", 4_000_000, 500 * MS);
        prop_assert!(done.is_ok(), "{done:?}");
    }

    #[test]
    fn eevdf_of_6_12_chooses_as_the_reference(load in loads()) {
        let done = compare(&mut Eevdf::default(), &load, "linux-6.12", 4_000_000, 500 * MS);
        prop_assert!(done.is_ok(), "{done:?}");
    }
}

/// It is many decisions that are compared, not a few.
#[test]
fn many_decisions_are_compared() {
    let nap = |nice, run, sleep| forever("nap", nice, vec![Op::Run(exactly(run)), Op::Sleep(exactly(sleep))]);
    let load = threads(vec![
        nap(0, 1_300_001, 3_100_003),
        nap(5, 2_000_001, 900_007),
        nap(-3, 700_003, 5_000_011),
        nap(0, 9_000_001, 1_000_003),
    ]);
    for (kernel, tick) in [("linux-2.6.32", MS), ("linux-6.1", 4 * MS), ("linux-6.12", 4 * MS)] {
        let mut reference: Box<dyn Reference> = match kernel {
            "linux-6.12" => Box::new(Eevdf::default()),
            _ => Box::new(Cfs::new(kernel == "linux-2.6.32")),
        };
        let decisions = compare(&mut *reference, &load, kernel, i128::from(tick), 5_000 * MS).expect(kernel);
        assert!(decisions > 2_000, "{kernel}: {decisions}");
    }
}
