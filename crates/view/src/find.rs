//! Search: rows by task, id, group, or pattern.

use crate::index::Indexer;
use crate::loaded::Loaded;
use crate::query::{Answered, Body, Query};
use crate::rows::{Belongs, By, Of, Processes, TaskRef, task_ref};
use schedlab_base::fits;
use serde_json::{Value, json};

/// What a word asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask<'a> {
    /// Anything that is called so.
    Any(&'a str),
    /// A thread or process id.
    Pid(&'a str),
    /// A name.
    Name(&'a str),
    /// A cgroup.
    Group(&'a str),
    /// A CPU.
    Cpu(&'a str),
}

fn words(text: &str) -> Vec<Ask<'_>> {
    let mut words = Vec::new();
    let mut all = text.split_whitespace().peekable();
    while let Some(word) = all.next() {
        if word.eq_ignore_ascii_case("cpu")
            && let Some(number) = all.next_if(|next| next.parse::<u32>().is_ok())
        {
            words.push(Ask::Cpu(number));
            continue;
        }
        words.push(match word.split_once(':') {
            Some(("pid" | "tid", value)) => Ask::Pid(value),
            Some(("name" | "task", value)) => Ask::Name(value),
            Some(("group", value)) => Ask::Group(value),
            Some(("cpu", value)) => Ask::Cpu(value),
            _ => Ask::Any(word),
        });
    }
    words
}

/// Whether a text is, contains, or fits what is asked; letters of either case.
fn like(asked: &str, text: &str) -> bool {
    let (asked, text) = (asked.to_lowercase(), text.to_lowercase());
    if asked.contains(['*', '?']) { fits(&asked, &text) } else { text.contains(&asked) }
}

fn task_fits(ask: Ask, task: &TaskRef, belongs: &Belongs) -> bool {
    let pid = |asked: &str| asked == task.tid.to_string() || belongs.tgid.is_some_and(|tgid| asked == tgid.to_string());
    let group = |asked: &str| belongs.group.as_deref().is_some_and(|group| like(asked, group));
    match ask {
        Ask::Pid(asked) => pid(asked),
        Ask::Name(asked) => like(asked, &task.name),
        Ask::Group(asked) => group(asked),
        Ask::Cpu(_) => false,
        Ask::Any(asked) => {
            let process = || belongs.process.as_deref().is_some_and(|process| like(asked, process));
            pid(asked) || like(asked, &task.name) || group(asked) || process()
        }
    }
}

/// `find`: rows that fit every word.
pub(crate) fn find(loaded: &Loaded, indexer: &Indexer, query: &Query) -> Answered<Body> {
    let asked = words(query.text("q").unwrap_or_default());
    let limit = query.within("limit", 100, 1, 10_000)?;
    let index = &indexer.index;
    let mut found: Vec<Value> = Vec::new();
    if query.text("by") != Some("task") {
        let rows = loaded.rows(By::Cpu, indexer, false);
        for row in &rows.rows {
            let Of::Cpu(cpu) = row.of else { continue };
            let is = |ask: &Ask| match ask {
                Ask::Cpu(number) => *number == cpu.to_string(),
                Ask::Any(text) => text.eq_ignore_ascii_case(&format!("cpu{cpu}")),
                _ => false,
            };
            if !asked.is_empty() && asked.iter().all(is) {
                found.push(json!({ "row": row.row, "by": "cpu", "cpu": cpu, "task": null, "label": row.label }));
            }
        }
    }
    if query.text("by") != Some("cpu") {
        let rows = loaded.rows(By::Task, indexer, false);
        let processes = Processes::new(index);
        for row in &rows.rows {
            let Of::Task(task) = row.of else { continue };
            let (who, belongs) = (task_ref(index, task), processes.of(index, task));
            if !asked.is_empty() && asked.iter().all(|ask| task_fits(*ask, &who, &belongs)) {
                found.push(json!({ "row": row.row, "by": "task", "cpu": null, "task": who, "label": row.label }));
            }
            if found.len() > limit {
                break;
            }
        }
    }
    let more = found.len() > limit;
    found.truncate(limit);
    Ok(Body::json(&json!({ "rows": found, "more": more })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_ask_for_what_they_say() {
        let expected =
            [Ask::Cpu("3"), Ask::Any("cpu"), Ask::Pid("12"), Ask::Name("x*"), Ask::Group("/a:b"), Ask::Any("<b>")];
        assert_eq!(words("cpu 3 cpu pid:12 name:x* group:/a:b <b>"), expected);
    }

    #[test]
    fn a_task_is_found_by_id_name_process_and_group() {
        let task = TaskRef { task: 0, tid: 71, name: "Worker/1".into() };
        let belongs = Belongs { tgid: Some(70), process: Some("server".into()), group: Some("/site/a".into()) };
        let found = |text: &str| words(text).iter().all(|ask| task_fits(*ask, &task, &belongs));
        for text in ["71", "70", "pid:70", "work", "worker/?", "server", "/site", "group:site name:*1", "name:work"] {
            assert!(found(text), "{text}");
        }
        for text in ["7", "pid:7", "name:server", "workers", "server 9", "cpu 1", "group:*a/"] {
            assert!(!found(text), "{text}");
        }
    }
}
