//! What `/proc/sched_debug` would have said of a CPU: the view of a kernel with CFS or EEVDF in that file's layout and
//! names, as far as the view has them. Times are in ms with six decimals, as there.

use schedlab_base::{Release, v};
use schedlab_sim::{TaskId, View};
use std::fmt::Write;

/// `load.weight` has ten more bits from 4.7 on, on 64 bits.
const FINE_LOADS_SINCE: Release = v(4, 7);

/// The section of a CPU; `None` for a scheduler that has no such file.
pub fn cpu(number: u32, view: &View, release: Option<Release>, name: &dyn Fn(TaskId) -> String) -> Option<String> {
    let fair = text(view, "scheduler")?;
    let eevdf = fair == "EEVDF";
    let mut out = format!("cpu#{number}\n");
    let curr = match part(view, "curr") {
        Some(View::Task(p)) => i128::from(*p) + 1,
        _ => 0,
    };
    line(&mut out, "nr_running", int(view, "nr_running"));
    line(&mut out, "curr->pid", Some(curr));
    let scale = if release.is_none_or(|release| release >= FINE_LOADS_SINCE) { 1024 } else { 1 };
    cfs_rq(&mut out, number, part(view, "queue")?, "/", eevdf, scale);
    if let Some(rt) = part(view, "real_time") {
        rt_rq(&mut out, number, rt);
    }
    if let Some(dl @ View::Map(_)) = part(view, "deadline") {
        let _ = write!(out, "\ndl_rq[{number}]:\n");
        line(&mut out, "dl_nr_running", list(dl, "queue").map(|queue| queue.len() as i128));
    }
    tasks(&mut out, part(view, "queue")?, eevdf, name);
    Some(out)
}

fn cfs_rq(out: &mut String, cpu: u32, queue: &View, path: &str, eevdf: bool, scale: i128) {
    let _ = write!(out, "\ncfs_rq[{cpu}]:{path}\n");
    let tree = list(queue, "tree").unwrap_or_default();
    let of = |entity: Option<&View>, what| entity.and_then(|entity| int(entity, what));
    // Where no task waits the kernel prints its -1, and as it splits numbers that is 0.000001.
    let first = of(tree.first(), "vruntime_ns");
    let last = of(tree.last(), "vruntime_ns").unwrap_or(-1);
    if eevdf {
        let left = tree.iter().filter_map(|entity| int(entity, "vruntime_ns")).min().unwrap_or(-1);
        time(out, "left_deadline", Some(of(tree.first(), "deadline_ns").unwrap_or(-1)));
        time(out, "left_vruntime", Some(left));
        time(out, "avg_vruntime", int(queue, "average_vruntime_ns"));
        time(out, "right_vruntime", Some(last));
        time(out, "spread", Some(last - left));
    } else {
        time(out, "MIN_vruntime", Some(first.unwrap_or(-1)));
        time(out, "min_vruntime", int(queue, "min_vruntime_ns"));
        time(out, "max_vruntime", Some(last));
        time(out, "spread", Some(last - first.unwrap_or(-1)));
    }
    line(out, "nr_running", int(queue, "nr_queued"));
    line(out, "h_nr_running", int(queue, "h_nr_runnable"));
    line(out, "load", int(queue, "load").map(|load| load * scale));
    if let Some(View::Flag(throttled)) = part(queue, "throttled") {
        line(out, "throttled", Some(i128::from(*throttled)));
        time(out, "runtime_remaining", int(queue, "runtime_left_ns"));
    }
    for group in entities(queue) {
        if let (Some(path), Some(below)) = (text(group, "group"), part(group, "queue")) {
            cfs_rq(out, cpu, below, path, eevdf, scale);
        }
    }
}

fn rt_rq(out: &mut String, cpu: u32, rt: &View) {
    let waiting = list(rt, "lists").unwrap_or_default().iter().filter_map(|l| list(l, "tasks")).map(<[View]>::len);
    let _ = write!(out, "\nrt_rq[{cpu}]:\n");
    line(out, "rt_nr_running", Some(waiting.sum::<usize>() as i128));
    if let Some(View::Flag(throttled)) = part(rt, "throttled") {
        line(out, "rt_throttled", Some(i128::from(*throttled)));
        time(out, "rt_time", int(rt, "rt_time_ns"));
        time(out, "rt_runtime", int(rt, "rt_runtime_ns"));
    }
}

fn tasks(out: &mut String, queue: &View, eevdf: bool, name: &dyn Fn(TaskId) -> String) {
    let more = if eevdf { "           deadline            slice  E" } else { "" };
    let header = format!(" S            task   PID         tree-key         sum-exec{more}");
    let _ = write!(out, "\nrunnable tasks:\n{header}\n{}\n", "-".repeat(header.len()));
    let mut below = vec![queue];
    while let Some(queue) = below.pop() {
        let curr = part(queue, "curr");
        for entity in entities(queue) {
            below.extend(part(entity, "queue"));
            let Some(View::Task(p)) = part(entity, "task") else { continue };
            let runs = if curr.is_some_and(|curr| std::ptr::eq(curr, entity)) { ">R" } else { " R" };
            let amount = |what| int(entity, what).map(split).unwrap_or_default();
            let _ = write!(out, "{runs} {:>15} {:>5}", name(*p), p + 1);
            let _ = write!(out, " {:>16} {:>16}", amount("vruntime_ns"), amount("cpu_time_ns"));
            if eevdf {
                let eligible = if part(entity, "eligible") == Some(&View::Flag(true)) { 'E' } else { 'N' };
                let _ = write!(out, " {:>18} {:>16}  {eligible}", amount("deadline_ns"), amount("slice_ns"));
            }
            out.push('\n');
        }
    }
}

/// What runs and what waits in a queue.
fn entities(queue: &View) -> impl Iterator<Item = &View> {
    let curr = part(queue, "curr").filter(|curr| matches!(curr, View::Map(_)));
    curr.into_iter().chain(list(queue, "tree").unwrap_or_default())
}

fn part<'a>(view: &'a View, name: &str) -> Option<&'a View> {
    let View::Map(parts) = view else { return None };
    parts.iter().find(|(other, _)| *other == name).map(|(_, value)| value)
}

fn int(view: &View, name: &str) -> Option<i128> {
    if let Some(View::Int(n)) = part(view, name) { Some(*n) } else { None }
}

fn text<'a>(view: &'a View, name: &str) -> Option<&'a str> {
    if let Some(View::Text(text)) = part(view, name) { Some(text) } else { None }
}

fn list<'a>(view: &'a View, name: &str) -> Option<&'a [View]> {
    if let Some(View::List(list)) = part(view, name) { Some(list) } else { None }
}

/// A line, where its value is known.
fn line(out: &mut String, name: &str, value: Option<i128>) {
    if let Some(value) = value {
        let _ = writeln!(out, "  .{name:<30}: {value}");
    }
}

fn time(out: &mut String, name: &str, ns: Option<i128>) {
    if let Some(ns) = ns {
        let _ = writeln!(out, "  .{name:<30}: {}", split(ns));
    }
}

/// `SPLIT_NS`: the sign belongs to the whole milliseconds, and is lost where there are none.
fn split(ns: i128) -> String {
    format!("{}.{:06}", ns / 1_000_000, (ns % 1_000_000).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_split_as_the_kernel_splits_them() {
        assert_eq!(
            [0, 1, -1, 8_500_000, -1_048_576].map(split),
            ["0.000000", "0.000001", "0.000001", "8.500000", "-1.048576"]
        );
    }
}
