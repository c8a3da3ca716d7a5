//! Tasks of two kinds that wake each other: those of the one kind wake those of the other, and are woken by them.

use super::sequence::{TaskIx, Token};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// So many wake-ups between two tasks at least are a link.
const FEWEST_WAKES: u64 = 8;

/// Of a task's links, the greatest count that have so many percent of its wake-ups.
const PERCENT_LINKS: u64 = 90;

/// Tasks of one side wake each other at most so many percent as often as each of them and its first partner: one that
/// takes a question may wake another one for the next.
const PERCENT_ASTRAY: u64 = 75;

/// How often tasks woke each other, by pairs, the first with the smaller number.
pub(super) type Links = BTreeMap<(TaskIx, TaskIx), u64>;

/// The wake-ups in these sequences, without those of pairs that have few, and without each task's lesser ones.
pub(super) fn links(sequences: &[&[Token]]) -> Links {
    let mut links = Links::new();
    for (task, list) in (0..).zip(sequences) {
        for token in *list {
            if let Token::Block { waker, .. } = *token
                && waker < sequences.len() as TaskIx
                && waker != task
            {
                *links.entry((task.min(waker), task.max(waker))).or_default() += 1;
            }
        }
    }
    let mut of: Vec<Vec<(u64, TaskIx)>> = vec![Vec::new(); sequences.len()];
    for ((a, b), times) in &links {
        of[*a as usize].push((*times, *b));
        of[*b as usize].push((*times, *a));
    }
    let great: Vec<Vec<TaskIx>> = of.into_iter().map(greatest).collect();
    let has = |a: TaskIx, b: TaskIx| great[a as usize].binary_search(&b).is_ok();
    links.retain(|(a, b), times| *times >= FEWEST_WAKES && (has(*a, *b) || has(*b, *a)));
    links
}

/// The tasks with the greatest of these counts, in ascending order.
fn greatest(mut counts: Vec<(u64, TaskIx)>) -> Vec<TaskIx> {
    counts.sort_by_key(|(times, task)| (Reverse(*times), *task));
    let all: u64 = counts.iter().map(|(times, _)| times).sum();
    let mut sum = 0;
    let before = |(times, _): &(u64, TaskIx)| {
        sum += times;
        (sum - times) * 100 < all * PERCENT_LINKS
    };
    let mut tasks: Vec<TaskIx> = counts.into_iter().take_while(before).map(|(_, task)| task).collect();
    tasks.sort_unstable();
    tasks
}

/// Tasks of two kinds that wake each other, each in ascending order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Sides(pub [Vec<TaskIx>; 2]);

impl Sides {
    /// The tasks that are linked, where they are of two kinds.
    pub fn of(links: &Links) -> Vec<Self> {
        // Each task points to another one of its part, and says whether it is on the same side.
        let mut points: HashMap<TaskIx, (TaskIx, bool)> = HashMap::new();
        let mut sorted: Vec<(&(TaskIx, TaskIx), &u64)> = links.iter().collect();
        sorted.sort_by_key(|(pair, times)| (Reverse(**times), **pair));
        for ((a, b), _) in sorted {
            let ((a, a_same), (b, b_same)) = (root(&points, *a), root(&points, *b));
            if a != b {
                points.insert(b, (a, a_same != b_same));
            }
        }
        let is_across = |a: TaskIx, b: TaskIx| root(&points, a).1 != root(&points, b).1;
        let mut strongest: HashMap<TaskIx, u64> = HashMap::new();
        for ((a, b), times) in links.iter().filter(|((a, b), _)| is_across(*a, *b)) {
            for task in [a, b] {
                let most = strongest.entry(*task).or_default();
                *most = (*most).max(*times);
            }
        }
        let mut parts: BTreeMap<TaskIx, Self> = BTreeMap::new();
        let tasks: BTreeSet<TaskIx> = links.keys().flat_map(|(a, b)| [*a, *b]).collect();
        for task in tasks {
            let (first, same) = root(&points, task);
            parts.entry(first).or_default().0[usize::from(same)].push(task);
        }
        for ((a, b), times) in links.iter().filter(|((a, b), _)| !is_across(*a, *b)) {
            let across = [a, b].map(|task| strongest.get(task).copied().unwrap_or(0));
            if times * 100 > across[0].min(across[1]) * PERCENT_ASTRAY {
                parts.remove(&root(&points, *a).0);
            }
        }
        parts.into_values().collect()
    }
}

/// Where the pointers of a task lead, and whether that one is on the same side.
fn root(points: &HashMap<TaskIx, (TaskIx, bool)>, task: TaskIx) -> (TaskIx, bool) {
    let (mut at, mut same) = (task, true);
    while let Some((next, is_same)) = points.get(&at) {
        (at, same) = (*next, same == *is_same);
    }
    (at, same)
}
