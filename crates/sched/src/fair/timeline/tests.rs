use super::*;
use schedlab_base::Rng;

/// Checks colours, parents, least values and key order. Returns the black height.
fn check(arena: &Arena, i: u32, parent: u32) -> u32 {
    if i == NIL {
        return 1;
    }
    let node = *arena.at(i);
    assert_eq!(node.parent, parent);
    assert!(!(node.red && arena.is_red(parent)));
    let mut least = node.value;
    for child in [node.left, node.right] {
        if child != NIL {
            least = min(least, arena.at(child).least);
        }
    }
    assert_eq!(node.least, least);
    let (left, right) = (check(arena, node.left, i), check(arena, node.right, i));
    assert_eq!(left, right, "both sides have as many black nodes");
    left + u32::from(!node.red)
}

fn order(tree: &Timeline, arena: &Arena) -> Vec<TaskId> {
    let mut all = Vec::new();
    let mut at = tree.first();
    while let Some(p) = at {
        all.push(p);
        at = tree.next(arena, p);
    }
    all
}

#[test]
fn it_is_a_sorted_list_that_keeps_the_order_of_equals() {
    for search in [Search::First, Search::Least] {
        let shapes = sort_at_random(search);
        assert_eq!(shapes, [search == Search::First, true], "few are a list, many are a tree");
    }
}

/// Compares a timeline with a sorted vector. Returns whether it was a list of several, and a tree.
fn sort_at_random(search: Search) -> [bool; 2] {
    let (mut arena, mut tree, mut rng) = (Arena::new(search), Timeline::default(), Rng::new(1));
    let mut shapes = [false; 2];
    let mut model: Vec<(u64, TaskId, u64)> = Vec::new();
    for p in 0..200 {
        arena.grow(p);
    }
    for n in 0..20_000 {
        // Many for a while, then few.
        let p = match model.len() as u64 {
            _ if n / 1_000 % 2 == 0 => rng.below(200) as TaskId,
            len @ 13.. => model[rng.below(len) as usize].1,
            _ => rng.below(24) as TaskId,
        };
        if let Some(at) = model.iter().position(|e| e.1 == p) {
            model.remove(at);
            tree.remove(&mut arena, p);
        } else {
            let (key, value) = (u64::MAX.wrapping_add(rng.below(40)).wrapping_sub(20), rng.below(1000));
            let at = model.partition_point(|e| !before(key, e.0));
            model.insert(at, (key, p, value));
            tree.insert(&mut arena, p, key, value);
        }
        check(&arena, tree.root, NIL);
        shapes[usize::from(tree.root != NIL)] |= model.len() > 1;
        assert_eq!(order(&tree, &arena), model.iter().map(|e| e.1).collect::<Vec<_>>());
        assert_eq!(tree.first_key(), model.first().map(|e| e.0));
        assert_eq!(tree.last(), model.last().map(|e| e.1));
        let bound = rng.below(1000);
        let found = tree.first_where(&arena, |v| v <= bound);
        assert_eq!(found, model.iter().find(|e| e.2 <= bound).map(|e| e.1));
        if search == Search::First {
            continue;
        }
        let last = rng.below(40).wrapping_sub(20);
        let rival = (bound > 500).then_some((200, bound));
        let found = tree.least_where(&arena, |key| !before(last, key), rival);
        let value_of = |p: TaskId| model.iter().find(|e| e.1 == p).map_or(bound, |e| e.2);
        let within = model.iter().filter(|e| !before(last, e.0)).map(|e| e.2);
        assert_eq!(found.map(value_of), within.chain(rival.map(|r| r.1)).min());
    }
    shapes
}
