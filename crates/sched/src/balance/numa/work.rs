//! Scanning a memory, and the faults that follow.

use super::limit::Clock;
use super::memory::Space;
use super::place::Moment;
use super::sight::{Best, Sight};
use super::{Move, Node, Numa, OfTask, PAGE};
use schedlab_base::{CpuId, v};
use schedlab_sim::{Core, TaskId, View, cost};

/// The task that last faulted on pages that are faulted on now, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// No task has faulted on them yet.
    Nobody,
    /// The same task, from this node.
    SelfHere,
    /// The same task, from another node.
    SelfElsewhere,
    /// Another task, from this node.
    OtherHere,
    /// Another task, from another node.
    OtherElsewhere,
}

/// The variants in the order of the result of [`shares`].
const LASTS: [Last; 5] = [Last::Nobody, Last::SelfHere, Last::SelfElsewhere, Last::OtherHere, Last::OtherElsewhere];

/// Divides `bytes`, on which `p` faults on `node`, by which task faulted on them last, in the order of [`LASTS`].
fn shares(space: &Space, p: TaskId, node: Node, bytes: u64) -> [u64; 5] {
    let mut parts = [0; 5];
    for &(user, on, sum) in &space.last {
        let who = if user == p { 1 } else { 3 };
        parts[who + usize::from(on != node)] += sum;
    }
    parts[0] = space.bytes.saturating_sub(parts.iter().sum());
    let all: u64 = parts.iter().sum::<u64>().max(1);
    let mut given = parts.map(|part| (u128::from(bytes) * u128::from(part) / u128::from(all)) as u64 / PAGE * PAGE);
    let most = (0..5).rev().max_by_key(|n| parts[*n]).unwrap_or(0);
    given[most] += bytes - given.iter().sum::<u64>();
    given
}

impl Numa {
    /// The NUMA work of a tick of the running task `p`: scans its memory if a scan is due (`task_tick_numa`). Returns
    /// whether `p` has faults to take, with [`Numa::decide`] and [`Numa::fault`].
    pub fn tick(&mut self, cx: &mut Core, p: TaskId, at: &Moment) -> bool {
        self.attach(cx, p);
        if self.is_time(cx, p, at.account.1) {
            self.scan(cx, p, at);
        }
        self.tasks[p as usize].pending.iter().any(|bytes| *bytes > 0)
    }

    /// Scans the next piece of the memory of `p` (`task_numa_work`), and divides the faults on it among the tasks that
    /// use it.
    fn scan(&mut self, cx: &mut Core, p: TaskId, at: &Moment) {
        let Some(space) = self.tasks[p as usize].space.map(|space| space as usize) else { return };
        let period = (self.tasks[p as usize].period_ms * 1_000_000).div_ceil(at.tick);
        self.spaces[space].next_scan = at.jiffies + period;
        // This makes another task with the same memory likely to scan next.
        self.tasks[p as usize].stamp += 2 * at.tick;
        let mut spent = std::mem::take(&mut self.scratch);
        for (user, time) in &mut self.spaces[space].users {
            cx.take_accesses(*user, &mut spent);
            *time = spent.iter().sum();
        }
        self.scratch = spent;
        let pages = cx.pages(p);
        let bytes: u64 = pages.iter().sum();
        let of = &mut self.spaces[space];
        of.bytes = bytes;
        let size = self.settings.size();
        // "sched/numa: Apply the scan delay to every new vma" (6.4).
        if bytes == 0 || self.release >= v(6, 4) && of.is_left_out(at.jiffies, at.ticks(self.settings.delay_ms)) {
            return;
        }
        let piece = of.next_piece(size, pages);
        let took = cost(piece.iter().sum(), cx.machine().costs.hinting_scan_ns_per_kib);
        let all: u128 = of.users.iter().map(|(_, time)| u128::from(*time)).sum();
        for &(user, time) in &of.users {
            let (part, of_all) = if all == 0 { (u128::from(user == p), 1) } else { (u128::from(time), all) };
            for (slot, &on) in self.tasks[user as usize].pending.iter_mut().zip(&piece) {
                *slot += (u128::from(on) * part / of_all) as u64 / PAGE * PAGE;
            }
        }
        for (user, _) in &self.spaces[space].users {
            cx.touch(cx.task(*user).cpu);
        }
        cx.spend(p, took);
        if self.release >= v(4, 5) {
            // "sched/numa: Cap PTE scanning overhead to 3% of run time": the next scan is delayed by 32 times the time
            // that this one took, as far as ticks accounted for that time meanwhile.
            self.tasks[p as usize].stamp += 32 * (took / at.tick * at.tick);
        }
    }

    /// Called when `p` is about to fault. It first meets the other users of its pages (`task_numa_group`). Then, if a
    /// pass is complete or it is time to try again, it looks for a better CPU. If it returns one, `p` must migrate
    /// there before it takes its faults.
    pub fn decide(&mut self, sight: &impl Sight, p: TaskId, at: &Moment) -> Option<Best> {
        if self.tasks[p as usize].faults.is_none() {
            let none = super::faults::Faults::new(self.node_count());
            self.tasks[p as usize].faults = Some(Box::new(none));
            self.tasks[p as usize].locality = [0; 3];
        }
        let node = self.node_of(at.cpu);
        let last = self.last_users(p);
        for (other, on) in last {
            let runs = self.cpus_of(on).any(|cpu| sight.curr(cpu) == Some(other));
            self.meet(p, node, other, runs);
        }
        // "sched/numa: Move task_numa_placement() closer to numa_migrate_preferred()" (4.19).
        if self.release >= v(4, 19) {
            if at.jiffies <= self.tasks[p as usize].retry {
                return None;
            }
            self.placement(p, at);
            return self.find(sight, p, at);
        }
        let seq = self.tasks[p as usize].seq;
        self.placement(p, at);
        let fresh = self.tasks[p as usize].seq != seq && self.tasks[p as usize].preferred != Some(node);
        if fresh || at.jiffies > self.tasks[p as usize].retry { self.find(sight, p, at) } else { None }
    }

    /// The other tasks that last used the memory of `p`, and the nodes from which they did.
    fn last_users(&self, p: TaskId) -> Vec<(TaskId, Node)> {
        let Some(space) = self.tasks[p as usize].space else { return Vec::new() };
        let others = self.spaces[space as usize].last.iter().filter(|(user, ..)| *user != p);
        let there = |user: TaskId| self.tasks.get(user as usize).is_some_and(|of| of.space == Some(space));
        others.filter(|(user, ..)| there(*user)).map(|(user, node, _)| (*user, *node)).collect()
    }

    /// Counts the pending faults of `p` and migrates pages (`task_numa_fault`, `should_numa_migrate_memory`).
    pub fn fault(&mut self, cx: &mut Core, p: TaskId, cpu: CpuId) {
        let node = self.node_of(cpu);
        let Some(space) = self.tasks[p as usize].space.map(|space| space as usize) else { return };
        let mut clock = Clock { jiffies: cx.jiffies(), tick: cx.tick_period(), spent: 0 };
        let mut all = 0;
        for on in 0..self.node_count() as Node {
            let bytes = std::mem::take(&mut self.tasks[p as usize].pending[on as usize]);
            if bytes == 0 {
                continue;
            }
            all += bytes;
            for (last, part) in LASTS.into_iter().zip(shares(&self.spaces[space], p, node, bytes)) {
                if part > 0 {
                    self.fault_on(cx, p, (on, node), last, part, &mut clock);
                }
            }
            self.spaces[space].touch(p, node, bytes);
        }
        cx.spend(p, cost(all, cx.machine().costs.hinting_fault_ns_per_kib));
    }

    /// Takes the faults on `bytes` of memory on node `on`, from a CPU of node `node`.
    fn fault_on(
        &mut self,
        cx: &mut Core,
        p: TaskId,
        (on, node): (Node, Node),
        last: Last,
        bytes: u64,
        clock: &mut Clock,
    ) {
        let private = !matches!(last, Last::OtherHere | Last::OtherElsewhere);
        let wanted = if on != node && self.page_moves(p, on, node, last) { bytes } else { 0 };
        let moved = self.admitted(cx, p, node, (bytes, wanted), clock);
        if moved > 0 {
            let moved = cx.move_pages(p, on, node, moved);
            self.tasks[p as usize].moved += moved / PAGE;
        }
        self.tasks[p as usize].locality[2] += (wanted - moved) / PAGE;
        for (memory, part) in [(node, moved), (on, bytes - moved)] {
            let shared_home = || {
                self.group_of(p).is_some_and(|group| {
                    // "sched/numa: Spread memory according to CPU and memory use" (4.6).
                    let several = self.release < v(4, 6) || group.active_nodes > 1;
                    several && group.is_active(self.release, node) && group.is_active(self.release, memory)
                })
            };
            let local = on == node || (!private && shared_home());
            let of = &mut self.tasks[p as usize];
            of.locality[usize::from(local)] += part / PAGE;
            if let Some(faults) = &mut of.faults {
                faults.record(memory, node, private, part / PAGE);
            }
        }
    }

    /// How many of the `wanted` bytes can be migrated to a node. `bytes` is the size of all memory that is faulted on.
    fn admitted(&mut self, cx: &Core, p: TaskId, to: Node, (bytes, wanted): (u64, u64), clock: &mut Clock) -> u64 {
        let costs = &cx.machine().costs;
        let fault = cost(PAGE, costs.hinting_fault_ns_per_kib);
        if wanted == 0 || cx.is_pinned(p) {
            clock.spent += bytes / PAGE * fault;
            return 0;
        }
        // "mm, sched/numa: Remove rate-limiting of automatic NUMA balancing migration" (4.19).
        if self.release >= v(4, 19) {
            return wanted;
        }
        let moving = cost(PAGE, costs.page_move_ns_per_kib);
        wanted.min(self.limits[to as usize].admit(clock, wanted.div_ceil(PAGE), fault, moving) * PAGE)
    }

    /// Whether a page on node `from` is migrated to node `to` when `p` faults on it from there.
    fn page_moves(&self, p: TaskId, from: Node, to: Node, last: Last) -> bool {
        let of = &self.tasks[p as usize];
        // "sched/numa: Migrate pages to local nodes quicker early in the lifetime of a task" (4.19).
        let young = self.release >= v(4, 19) && (of.preferred.is_none() || of.seq <= 4);
        match last {
            Last::Nobody | Last::SelfElsewhere if young => true,
            Last::SelfHere => true,
            Last::SelfElsewhere | Last::OtherElsewhere => false,
            Last::Nobody | Last::OtherHere => self.group_moves(p, from, to),
        }
    }

    /// Requests the migration of `p`, or a swap. The caller must wake the stoppers of the CPUs that lose a task.
    pub fn ask(&mut self, p: TaskId, from: CpuId, best: &Best) {
        let swap = best.with.is_some();
        self.moves.push(Move { p, from, to: best.cpu, swap });
        if let Some(other) = best.with {
            self.moves.push(Move { p: other, from: best.cpu, to: from, swap });
        }
    }

    /// Takes the next requested migration away from a CPU, for its stopper to carry out.
    pub fn take_move(&mut self, cpu: CpuId) -> Option<Move> {
        let at = self.moves.iter().position(|wanted| wanted.from == cpu)?;
        Some(self.moves.remove(at))
    }

    /// The other half of a swap, if it has not been carried out yet.
    #[must_use]
    pub fn partner(&self, of: &Move) -> Option<Move> {
        self.moves.iter().copied().find(|wanted| wanted.swap && wanted.from == of.to && wanted.to == of.from)
    }

    /// Whether a task has been asked to migrate to a CPU (`numa_migrate_on`).
    #[must_use]
    pub fn is_claimed(&self, cpu: CpuId) -> bool {
        self.moves.iter().any(|wanted| wanted.to == cpu)
    }

    /// The NUMA balancing state of a task, for display.
    #[must_use]
    pub fn show(&self, p: TaskId) -> View {
        let Some(of) = self.tasks.get(p as usize).filter(|of| of.space.is_some()) else { return View::Nothing };
        let OfTask { faults, preferred, period_ms, locality, moved, .. } = of;
        let on = |node: Node| faults.as_ref().map_or(0, |faults| faults.on(node));
        View::Map(vec![
            ("preferred_node", (*preferred).into()),
            ("scan_period_ms", (*period_ms).into()),
            ("scans_of_all", of.seq.into()),
            ("faults_by_node", (0..self.node_count() as Node).map(on).collect()),
            ("remote_faults", locality[0].into()),
            ("local_faults", locality[1].into()),
            ("pages_moved", (*moved).into()),
            ("group", self.group_of(p).map_or(View::Nothing, |group| View::Task(group.founder))),
            ("group_tasks", self.group_of(p).map(|group| group.tasks).into()),
        ])
    }
}
