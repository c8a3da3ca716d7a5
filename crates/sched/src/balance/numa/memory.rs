//! A process's memory: how far NUMA balancing has scanned it, and which tasks used it last.

use super::{Node, Numa, OfTask};
use schedlab_base::{Nanos, v};
use schedlab_sim::{Core, TaskId};

/// The tasks that faulted on a memory, from which node and on how many bytes. The kernel keeps this per page
/// (`last_cpupid`).
pub type Users = Vec<(TaskId, Node, u64)>;

/// The memory of one task or of several threads (`struct mm_struct`).
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The size of the memory, in bytes.
    pub bytes: u64,
    /// The number of complete passes over it (`numa_scan_seq`).
    pub seq: u32,
    /// How far the current pass has got, in bytes.
    pub offset: u64,
    /// The tick before which it is not scanned again.
    pub next_scan: u64,
    /// The tasks that use it, each with its CPU time since the last scan.
    pub users: Vec<(TaskId, u64)>,
    /// The tasks that faulted on it during the last pass.
    pub last: Users,
    /// The tasks that faulted on it during the current pass.
    pub now: Users,
    /// The bytes on each node that the current pass has not reached yet.
    pub ahead: Vec<u64>,
    /// Whether the next scan starts a new pass.
    pub turns: bool,
    /// The tick until which it counts as new for releases from 6.4 on; 0 if it has never been scanned.
    pub new_until: u64,
}

impl Space {
    /// Records that a task on `node` faulted on `bytes` of it.
    pub fn touch(&mut self, p: TaskId, node: Node, bytes: u64) {
        match self.now.iter_mut().find(|(user, on, _)| (*user, *on) == (p, node)) {
            Some((.., sum)) => *sum += bytes,
            None => self.now.push((p, node, bytes)),
        }
    }

    /// Takes the next piece of at most `size` bytes, and returns its bytes on each node. `pages` is the size of the
    /// memory on each node. The last piece ends the pass.
    pub fn next_piece(&mut self, size: u64, pages: &[u64]) -> Vec<u64> {
        if self.offset >= self.bytes {
            self.wrap();
        }
        if std::mem::take(&mut self.turns) {
            self.last = std::mem::take(&mut self.now);
            self.ahead.clear();
        }
        if self.ahead.is_empty() {
            self.ahead.extend(pages);
        }
        let piece = size.min(self.bytes - self.offset);
        self.offset += piece;
        if piece < size {
            self.wrap();
        }
        let left: u128 = self.ahead.iter().map(|bytes| u128::from(*bytes)).sum();
        let taken = u128::from(piece).min(left);
        let mut of_node = |ahead: &mut u64| {
            let part = (taken * u128::from(*ahead) / left.max(1)) as u64;
            *ahead -= part;
            part
        };
        self.ahead.iter_mut().map(&mut of_node).collect()
    }

    /// Whether the scan that is due skips the memory because it is new; if so, the pass counts as complete. The first
    /// pass is never skipped (`vma->numab_state->next_scan`, 6.4 on).
    pub fn is_left_out(&mut self, jiffies: u64, delay: u64) -> bool {
        if self.new_until == 0 {
            self.new_until = jiffies + delay;
        }
        let left_out = self.seq > 0 && jiffies < self.new_until;
        if left_out {
            self.wrap();
        }
        left_out
    }

    fn wrap(&mut self) {
        (self.seq, self.offset, self.turns) = (self.seq + 1, 0, true);
    }
}

impl Numa {
    /// Sets up the state of a task that is forked (`init_numa_balancing`).
    pub fn fork(&mut self, cx: &Core, p: TaskId) {
        if self.tasks.len() <= p as usize {
            self.tasks.resize(p as usize + 1, OfTask::default());
        }
        let period_ms = self.settings.delay_ms;
        self.tasks[p as usize] = OfTask { period_ms, pending: vec![0; self.node_count()], ..OfTask::default() };
        self.attach(cx, p);
        let Some(space) = self.tasks[p as usize].space else { return };
        self.tasks[p as usize].seq = self.spaces[space as usize].seq;
        // If `p` is a thread, the first task that uses the memory stands for its parent.
        let Some(&(parent, _)) = self.spaces[space as usize].users.first().filter(|(first, _)| *first != p) else {
            return;
        };
        self.tasks[p as usize].preferred = self.tasks[parent as usize].preferred;
        // "sched/numa: Stagger NUMA balancing scan periods for new threads" (4.18).
        if self.release >= v(4, 18) {
            let users = self.spaces[space as usize].users.len() as u64;
            let most = self.settings.longest(self.resident(parent), self.sharing(parent));
            // As in the kernel, a number of ms is compared with a number of ns.
            let delay = most.min(self.tasks[parent as usize].period_ms * users * 1_000_000);
            self.tasks[p as usize].stamp = delay + 2 * cx.tick_period();
        }
    }

    /// The memory that a task uses; `None` if it has none or its memory is bound to nodes.
    #[must_use]
    pub fn memory_of(cx: &Core, p: TaskId) -> Option<u32> {
        if cx.membind(p).is_some() { None } else { cx.memory_of(p) }
    }

    /// Updates which memory a task uses.
    pub(super) fn attach(&mut self, cx: &Core, p: TaskId) {
        let space = Self::memory_of(cx, p);
        let old = std::mem::replace(&mut self.tasks[p as usize].space, space);
        if old == space {
            return;
        }
        self.tasks[p as usize].pending.fill(0);
        if let Some(old) = old {
            self.spaces[old as usize].users.retain(|(user, _)| *user != p);
        }
        let Some(new) = space.map(|space| space as usize) else { return };
        let delay = (self.settings.delay_ms * 1_000_000).div_ceil(cx.tick_period());
        if self.spaces.len() <= new {
            self.spaces.resize(new + 1, Space::default());
        }
        let space = &mut self.spaces[new];
        if space.users.is_empty() {
            *space = Space { next_scan: cx.jiffies() + delay, ..Space::default() };
        }
        space.users.push((p, 0));
    }

    /// The earliest time at which a tick could have NUMA work for the running task `p`; 0 if it has some now. `account`
    /// holds the time up to which its CPU time is known, and that CPU time.
    #[must_use]
    pub fn due(&self, cx: &Core, p: TaskId, account: (Nanos, Nanos)) -> Nanos {
        let Some(of) = self.tasks.get(p as usize) else { return Nanos::MAX };
        if of.space != Self::memory_of(cx, p) || of.pending.iter().any(|bytes| *bytes > 0) {
            return 0;
        }
        let Some(space) = of.space else { return Nanos::MAX };
        let (until, sum) = account;
        // A scan period ends then, whether or not anything is to be scanned.
        let period_ends = until + (of.stamp + of.period_ms * 1_000_000 + 1).saturating_sub(sum);
        if self.ran_ahead(of, sum) {
            return cx.tick_time(self.spaces[space as usize].next_scan).min(period_ends);
        }
        period_ends
    }

    /// Whether the end of the last scan period lies after the task's CPU time. Until "sched/numa: Fix task_tick_fair()
    /// from disabling numa_balancing" (4.4) the kernel subtracted the two unsigned. After the first scan, when this
    /// becomes true, the difference therefore always seemed longer than a period.
    fn ran_ahead(&self, of: &OfTask, sum: Nanos) -> bool {
        self.release < v(4, 4) && of.stamp > sum
    }

    /// Whether the tick of a running task scans its memory (`task_tick_numa`). `sum` is the task's CPU time up to now.
    pub(super) fn is_time(&mut self, cx: &Core, p: TaskId, sum: Nanos) -> bool {
        // `task_scan_start` came with "sched/numa: Scale scan period with tasks in group and shared/private" (4.14).
        let first = if self.release >= v(4, 14) { self.first(p) } else { self.settings.shortest(self.resident(p)) };
        let ahead = self.ran_ahead(&self.tasks[p as usize], sum);
        let of = &mut self.tasks[p as usize];
        let period = of.period_ms * 1_000_000;
        let Some(space) = of.space else { return false };
        if !ahead {
            if sum <= of.stamp + period {
                return false;
            }
            if of.stamp == 0 {
                of.period_ms = first;
            }
            of.stamp += period;
        }
        cx.jiffies() >= self.spaces[space as usize].next_scan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_is_scanned_a_second_time_when_it_is_no_longer_new() {
        let mut space = Space { bytes: 256, ..Space::default() };
        assert!(!space.is_left_out(250, 250), "the first pass is no matter of age");
        space.next_piece(300, &[256]);
        assert_eq!((space.seq, space.is_left_out(275, 250), space.seq), (1, true, 2));
        assert_eq!((space.seq, space.is_left_out(499, 250), space.seq), (2, true, 3), "each ends a pass");
        assert!(!space.is_left_out(500, 250));
        assert_eq!(space.next_piece(300, &[256]), [256]);
    }

    #[test]
    fn a_pass_ends_when_a_scan_finds_no_more() {
        let scan = |space: &mut Space, pages: &[u64]| (space.next_piece(256, pages), space.seq);
        let mut space = Space { bytes: 700, ..Space::default() };
        assert_eq!(scan(&mut space, &[0, 700]), (vec![0, 256], 0));
        // Memory that was migrated in the meantime does not count as ahead.
        assert_eq!(scan(&mut space, &[256, 444]), (vec![0, 256], 0));
        assert_eq!(scan(&mut space, &[512, 188]), (vec![0, 188], 1));
        assert_eq!(scan(&mut space, &[350, 350]), (vec![128, 128], 1));
        let mut even = Space { bytes: 512, ..Space::default() };
        let seqs = [0; 3].map(|_| scan(&mut even, &[512, 0]).1);
        assert_eq!(seqs, [0, 0, 1], "what ends with a piece is noticed at the next");
    }
}
