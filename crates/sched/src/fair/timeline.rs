//! The waiting entities of a queue in the order of their keys, as both disciplines keep them: a red-black tree, or a
//! list while they are few.
//!
//! The nodes are in one arena, one per entity, so that enqueueing does not allocate. Equal keys keep their order of
//! insertion, as in the kernel, where an equal key goes to the right. In a tree each node also has the least `value` of
//! its subtree (the kernel's `min_vruntime` augmentation), by which EEVDF finds the first eligible entity in O(log n).
//!
//! A list gives the same answers as a tree, at less cost: most queues have a few entities, and most of those that join
//! go to the end. Only [`Timeline::least_where`] depends on the shape of the tree, and with it there are no lists.

mod tree;

use schedlab_sim::TaskId;
use tree::successor;

const NIL: u32 = u32::MAX;

/// A list with more nodes than this becomes a tree, and a tree with fewer than that a list.
const LONG: u32 = 16;
const SHORT: u32 = 8;

/// A node of a tree; or of a list, whose node before this one is `left`, and the one after it `right`.
#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    value: u64,
    least: u64,
    parent: u32,
    left: u32,
    right: u32,
    red: bool,
}

const EMPTY: Node = Node { key: 0, value: 0, least: 0, parent: NIL, left: NIL, right: NIL, red: false };

/// The nodes of all entities.
#[derive(Debug)]
pub struct Arena {
    nodes: Vec<Node>,
    search: Search,
}

/// What else is asked of a timeline than its first entities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Nothing.
    None,
    /// [`Timeline::first_where`].
    First,
    /// [`Timeline::least_where`].
    Least,
}

/// The waiting entities of one queue.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    /// The root of the tree; nil while it is a list.
    root: u32,
    leftmost: u32,
    rightmost: u32,
    len: u32,
    /// The key of the leftmost node. It stands here so that a queue's first virtual time is known without its entity.
    first_key: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { root: NIL, leftmost: NIL, rightmost: NIL, len: 0, first_key: 0 }
    }
}

/// Whether virtual time `a` is before `b`, taking wrap-around into account.
#[inline]
pub fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

#[inline]
fn min(a: u64, b: u64) -> u64 {
    if before(b, a) { b } else { a }
}

impl Arena {
    /// Creates an arena for timelines that are searched like this.
    pub fn new(search: Search) -> Self {
        Self { nodes: Vec::new(), search }
    }

    /// Whether the least values of the subtrees are kept.
    fn with_least(&self) -> bool {
        self.search != Search::None
    }

    /// Makes room for node `p`.
    pub fn grow(&mut self, p: TaskId) {
        if self.nodes.len() <= p as usize {
            self.nodes.resize(p as usize + 1, EMPTY);
        }
    }

    #[inline]
    fn at(&self, i: u32) -> &Node {
        &self.nodes[i as usize]
    }

    #[inline]
    fn at_mut(&mut self, i: u32) -> &mut Node {
        &mut self.nodes[i as usize]
    }

    /// The node with the least value in the subtree of `i`. Among equals, it prefers `i` itself, then the left subtree.
    fn least_below(&self, mut i: u32) -> u32 {
        loop {
            let node = self.at(i);
            if node.value == node.least {
                return i;
            }
            i = if node.left != NIL && self.at(node.left).least == node.least { node.left } else { node.right };
        }
    }
}

impl Timeline {
    /// The first node, if any.
    #[inline]
    pub fn first(&self) -> Option<TaskId> {
        (self.leftmost != NIL).then_some(self.leftmost)
    }

    /// The key of the first node, if any.
    #[inline]
    pub fn first_key(&self) -> Option<u64> {
        (self.leftmost != NIL).then_some(self.first_key)
    }

    /// The node after `p`.
    pub fn next(&self, arena: &Arena, p: TaskId) -> Option<TaskId> {
        let next = if self.root == NIL { arena.at(p).right } else { successor(arena, p) };
        (next != NIL).then_some(next)
    }

    /// The last node, if any.
    #[inline]
    pub fn last(&self) -> Option<TaskId> {
        (self.rightmost != NIL).then_some(self.rightmost)
    }

    /// The first node in key order whose value satisfies `holds`. If `holds` is true for a value, it must be true for
    /// every earlier value.
    #[inline]
    pub fn first_where(&self, arena: &Arena, holds: impl Fn(u64) -> bool) -> Option<TaskId> {
        let mut i = self.root;
        if i == NIL {
            let mut at = self.leftmost;
            while at != NIL {
                let node = arena.at(at);
                if holds(node.value) {
                    return Some(at);
                }
                at = node.right;
            }
        }
        while i != NIL {
            let node = arena.at(i);
            if node.left != NIL && holds(arena.at(node.left).least) {
                i = node.left;
            } else if holds(node.value) {
                return Some(i);
            } else {
                i = node.right;
            }
        }
        None
    }

    /// The node with the least value among `rival` and the nodes whose key satisfies `holds`. If `holds` is true for a
    /// key, it must be true for every earlier key. Among equal values, a node in a subtree to the left of the search
    /// path comes first, then the rival, then the nodes on the path (`__pick_eevdf` of 6.6).
    pub fn least_where(
        &self,
        arena: &Arena,
        holds: impl Fn(u64) -> bool,
        rival: Option<(TaskId, u64)>,
    ) -> Option<TaskId> {
        let mut best = rival;
        let mut branch = NIL;
        let mut i = self.root;
        while i != NIL {
            let node = arena.at(i);
            if !holds(node.key) {
                i = node.left;
                continue;
            }
            if best.is_none_or(|(_, least)| before(node.value, least)) {
                best = Some((i, node.value));
            }
            if node.left != NIL {
                let least = arena.at(node.left).least;
                if branch == NIL || before(least, arena.at(branch).least) {
                    branch = node.left;
                }
                if least == node.least {
                    break;
                }
            }
            if node.value == node.least {
                break;
            }
            i = node.right;
        }
        let (p, value) = best?;
        if branch == NIL || before(value, arena.at(branch).least) {
            return Some(p);
        }
        Some(arena.least_below(branch))
    }

    /// Inserts `p` after all nodes whose keys are not after `key`.
    #[inline(always)]
    pub fn insert(&mut self, arena: &mut Arena, p: TaskId, key: u64, value: u64) {
        self.len += 1;
        if self.root != NIL {
            return self.insert_into_tree(arena, p, key, value);
        }
        let (mut left, mut right) = (self.rightmost, NIL);
        while left != NIL && before(key, arena.at(left).key) {
            right = left;
            left = arena.at(left).left;
        }
        *arena.at_mut(p) = Node { key, value, left, right, ..EMPTY };
        if left == NIL {
            (self.leftmost, self.first_key) = (p, key);
        } else {
            arena.at_mut(left).right = p;
        }
        if right == NIL {
            self.rightmost = p;
        } else {
            arena.at_mut(right).left = p;
        }
        if self.len > LONG || arena.search == Search::Least {
            self.grow_tree(arena);
        }
    }

    /// Makes a tree of the list.
    #[cold]
    fn grow_tree(&mut self, arena: &mut Arena) {
        let mut i = std::mem::replace(&mut self.leftmost, NIL);
        self.rightmost = NIL;
        while i != NIL {
            let Node { key, value, right, .. } = *arena.at(i);
            self.insert_into_tree(arena, i, key, value);
            i = right;
        }
    }

    /// Makes a list of the tree.
    #[cold]
    fn fell_tree(&mut self, arena: &mut Arena) {
        let (mut i, mut left) = (self.leftmost, NIL);
        let nodes: Vec<u32> = std::iter::from_fn(|| {
            let node = (i != NIL).then_some(i)?;
            i = successor(arena, node);
            Some(node)
        })
        .collect();
        for (at, node) in nodes.iter().enumerate() {
            let next = nodes.get(at + 1).copied().unwrap_or(NIL);
            (arena.at_mut(*node).left, arena.at_mut(*node).right) = (left, next);
            left = *node;
        }
        (self.root, self.rightmost) = (NIL, left);
    }

    /// Removes `p`.
    #[inline(always)]
    pub fn remove(&mut self, arena: &mut Arena, p: TaskId) {
        self.len -= 1;
        if self.root != NIL {
            return self.remove_from_tree(arena, p);
        }
        let Node { left, right, .. } = *arena.at(p);
        if right == NIL {
            self.rightmost = left;
        } else {
            arena.at_mut(right).left = left;
        }
        if left != NIL {
            arena.at_mut(left).right = right;
        } else {
            self.leftmost = right;
            self.first_key = if right == NIL { 0 } else { arena.at(right).key };
        }
    }
}

#[cfg(test)]
mod tests;
