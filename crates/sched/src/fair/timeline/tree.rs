//! The red-black tree of a queue with many waiting entities.

use super::{Arena, NIL, Node, SHORT, Search, Timeline, before, min};
use schedlab_sim::TaskId;

impl Arena {
    pub(super) fn is_red(&self, i: u32) -> bool {
        i != NIL && self.at(i).red
    }

    /// Recomputes the least value in the subtree of `i`. Returns whether it changed.
    pub(super) fn update_least(&mut self, i: u32) -> bool {
        let node = *self.at(i);
        let mut least = node.value;
        if node.left != NIL {
            least = min(least, self.at(node.left).least);
        }
        if node.right != NIL {
            least = min(least, self.at(node.right).least);
        }
        let changed = least != node.least;
        self.at_mut(i).least = least;
        changed
    }

    /// Takes a new value below `i` into the least values from `i` upwards.
    fn lower_least(&mut self, mut i: u32, value: u64) {
        if self.with_least() {
            while i != NIL && before(value, self.at(i).least) {
                self.at_mut(i).least = value;
                i = self.at(i).parent;
            }
        }
    }

    /// Recomputes the least values from `i` upwards, as far as they change.
    fn propagate(&mut self, mut i: u32) {
        if self.with_least() {
            while i != NIL && self.update_least(i) {
                i = self.at(i).parent;
            }
        }
    }
}

impl Timeline {
    pub(super) fn insert_into_tree(&mut self, arena: &mut Arena, p: TaskId, key: u64, value: u64) {
        // Most join at the end.
        let joins = self.rightmost != NIL && !before(key, arena.at(self.rightmost).key);
        let (parent, left) = if joins { (self.rightmost, false) } else { self.descend(arena, key) };
        arena.lower_least(parent, value);
        *arena.at_mut(p) = Node { key, value, least: value, parent, left: NIL, right: NIL, red: true };
        if parent == NIL {
            self.root = p;
        } else if left {
            arena.at_mut(parent).left = p;
        } else {
            arena.at_mut(parent).right = p;
        }
        if parent == NIL || (left && parent == self.leftmost) {
            (self.leftmost, self.first_key) = (p, key);
        }
        if !left && parent == self.rightmost {
            self.rightmost = p;
        }
        self.mend_insert(arena, p);
    }

    /// The node below which a key belongs, and whether to its left.
    fn descend(&self, arena: &Arena, key: u64) -> (u32, bool) {
        let (mut parent, mut i, mut left) = (NIL, self.root, false);
        while i != NIL {
            parent = i;
            let node = arena.at(i);
            left = before(key, node.key);
            i = if left { node.left } else { node.right };
        }
        (parent, left)
    }

    fn mend_insert(&mut self, arena: &mut Arena, mut i: u32) {
        while arena.is_red(arena.at(i).parent) {
            let parent = arena.at(i).parent;
            let grand = arena.at(parent).parent;
            let parent_is_left = arena.at(grand).left == parent;
            let uncle = if parent_is_left { arena.at(grand).right } else { arena.at(grand).left };
            if arena.is_red(uncle) {
                arena.at_mut(parent).red = false;
                arena.at_mut(uncle).red = false;
                arena.at_mut(grand).red = true;
                i = grand;
                continue;
            }
            let inner = if parent_is_left { arena.at(parent).right == i } else { arena.at(parent).left == i };
            if inner {
                self.rotate(arena, parent, parent_is_left);
                i = parent;
            }
            let parent = arena.at(i).parent;
            arena.at_mut(parent).red = false;
            arena.at_mut(grand).red = true;
            self.rotate(arena, grand, !parent_is_left);
        }
        let root = self.root;
        arena.at_mut(root).red = false;
    }

    /// Rotates the edge between `x` and its right child (to the left) or its left child (to the right).
    fn rotate(&mut self, arena: &mut Arena, x: u32, to_left: bool) {
        let y = if to_left { arena.at(x).right } else { arena.at(x).left };
        let inner = if to_left { arena.at(y).left } else { arena.at(y).right };
        if to_left {
            arena.at_mut(x).right = inner;
            arena.at_mut(y).left = x;
        } else {
            arena.at_mut(x).left = inner;
            arena.at_mut(y).right = x;
        }
        if inner != NIL {
            arena.at_mut(inner).parent = x;
        }
        let parent = arena.at(x).parent;
        self.replace(arena, parent, x, y);
        arena.at_mut(y).parent = parent;
        arena.at_mut(x).parent = y;
        if arena.with_least() {
            // The same nodes as before are below the edge.
            arena.at_mut(y).least = arena.at(x).least;
            arena.update_least(x);
        }
    }

    /// Replaces `old` by `new` as a child of `parent`.
    fn replace(&mut self, arena: &mut Arena, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        } else if arena.at(parent).left == old {
            arena.at_mut(parent).left = new;
        } else {
            arena.at_mut(parent).right = new;
        }
    }

    pub(super) fn remove_from_tree(&mut self, arena: &mut Arena, p: TaskId) {
        if self.leftmost == p {
            self.leftmost = successor(arena, p);
            self.first_key = if self.leftmost == NIL { 0 } else { arena.at(self.leftmost).key };
        }
        if self.rightmost == p {
            self.rightmost = predecessor_of_last(arena, p);
        }
        self.cut_out(arena, p);
        if self.len < SHORT && arena.search != Search::Least {
            self.fell_tree(arena);
        }
    }

    /// Takes `p` out of the tree.
    fn cut_out(&mut self, arena: &mut Arena, p: TaskId) {
        let node = *arena.at(p);
        if node.left != NIL && node.right != NIL {
            self.remove_inner(arena, p);
            return;
        }
        let child = if node.left != NIL { node.left } else { node.right };
        self.replace(arena, node.parent, p, child);
        if child != NIL {
            arena.at_mut(child).parent = node.parent;
        }
        arena.propagate(node.parent);
        if !node.red {
            self.mend_remove(arena, child, node.parent);
        }
    }

    /// Removes a node with two children by putting its successor in its place.
    fn remove_inner(&mut self, arena: &mut Arena, p: TaskId) {
        let node = *arena.at(p);
        let next = successor(arena, p);
        let Node { parent: next_parent, right: child, red, .. } = *arena.at(next);
        let hole = if next_parent == p { next } else { next_parent };
        if next_parent != p {
            arena.at_mut(next_parent).left = child;
            if child != NIL {
                arena.at_mut(child).parent = next_parent;
            }
            arena.at_mut(next).right = node.right;
            arena.at_mut(node.right).parent = next;
        }
        self.replace(arena, node.parent, p, next);
        let taken = arena.at_mut(next);
        (taken.parent, taken.left, taken.red, taken.least) = (node.parent, node.left, node.red, node.least);
        arena.at_mut(node.left).parent = next;
        arena.propagate(hole);
        arena.propagate(next);
        if !red {
            self.mend_remove(arena, child, hole);
        }
    }

    /// Rebalances after a removal: below `parent`, on the side of `i` (which may be nil), one black node is missing.
    fn mend_remove(&mut self, arena: &mut Arena, mut i: u32, mut parent: u32) {
        while parent != NIL && !arena.is_red(i) {
            let left = arena.at(parent).left == i;
            let mut sibling = if left { arena.at(parent).right } else { arena.at(parent).left };
            if arena.is_red(sibling) {
                arena.at_mut(sibling).red = false;
                arena.at_mut(parent).red = true;
                self.rotate(arena, parent, left);
                sibling = if left { arena.at(parent).right } else { arena.at(parent).left };
            }
            let (near, far) = if left {
                (arena.at(sibling).left, arena.at(sibling).right)
            } else {
                (arena.at(sibling).right, arena.at(sibling).left)
            };
            if !arena.is_red(near) && !arena.is_red(far) {
                arena.at_mut(sibling).red = true;
                i = parent;
                parent = arena.at(i).parent;
                continue;
            }
            if !arena.is_red(far) {
                arena.at_mut(near).red = false;
                arena.at_mut(sibling).red = true;
                self.rotate(arena, sibling, !left);
                sibling = near;
            }
            let far = if left { arena.at(sibling).right } else { arena.at(sibling).left };
            arena.at_mut(sibling).red = arena.at(parent).red;
            arena.at_mut(parent).red = false;
            arena.at_mut(far).red = false;
            self.rotate(arena, parent, left);
            return;
        }
        if i != NIL {
            arena.at_mut(i).red = false;
        }
    }
}

/// The node before `p`, the last of the tree. As `p` has nothing to its right, there is one node at most to its left.
fn predecessor_of_last(arena: &Arena, p: u32) -> u32 {
    let Node { left, parent, .. } = *arena.at(p);
    if left == NIL { parent } else { left }
}

/// The node after `p` in the tree.
pub(super) fn successor(arena: &Arena, p: u32) -> u32 {
    let mut i = arena.at(p).right;
    if i != NIL {
        while arena.at(i).left != NIL {
            i = arena.at(i).left;
        }
        return i;
    }
    let (mut i, mut parent) = (p, arena.at(p).parent);
    while parent != NIL && arena.at(parent).right == i {
        i = parent;
        parent = arena.at(i).parent;
    }
    parent
}
