//! Which part of the machine a perf.data covers, as far as it can be known before its records are read.
//!
//! `perf record -a` and `perf sched record` open each event on every CPU. Without `-a`, perf opens events for tasks:
//! the kernel then samples a tracepoint only while one of these tasks is the current one, and `sched_switch` happens
//! while the task that leaves is current. With `-C`, perf opens events on some CPUs.

use super::attr::Attr;
use schedlab_base::{Coverage, Partial};

/// The options of `perf record` that choose tasks, each with what it is followed by.
const TASKS: [(&str, &str, &str); 4] =
    [("-p", "--pid", "process"), ("-t", "--tid", "thread"), ("-u", "--uid", "user"), ("-G", "--cgroup", "cgroup")];

/// What is known of a perf.data before its records.
pub(super) struct Signs<'a> {
    /// The scheduler's events.
    pub(super) attrs: &'a [Attr],
    /// The command line of perf; empty if the file has none.
    pub(super) words: &'a [String],
    /// How many CPUs were online; 0 if the file does not say.
    pub(super) online: u32,
}

impl Signs<'_> {
    /// The part of the machine that the recording covers; `None` if it covers all of it, or if nobody can know.
    pub(super) fn partial(&self) -> Option<Partial> {
        let tasks = |only: String| Some(Partial { covers: Coverage::Inside, only });
        let own = own_options(self.words);
        if let Some((what, ids)) = TASKS.iter().find_map(|(short, long, what)| Some((what, value(own, short, long)?))) {
            return tasks(format!("{what} {ids}"));
        }
        if self.attrs.iter().any(|attr| attr.enable_on_exec) {
            return tasks("the command and its children".to_owned());
        }
        if let Some(cpus) = value(own, "-C", "--cpu") {
            let only = format!("CPU{} {cpus}", if cpus.contains([',', '-']) { "s" } else { "" });
            return self.lacks_cpus().then_some(Partial { covers: Coverage::Cpus, only });
        }
        let some = self.lacks_cpus().then(|| self.opened());
        some.map(|n| Partial { covers: Coverage::Cpus, only: format!("{n} of {} CPUs", self.online) })
    }

    /// How many times each event was opened: once for each CPU, if not for tasks.
    fn opened(&self) -> usize {
        let tracepoints = self.attrs.iter().filter(|attr| attr.tracepoint().is_some());
        tracepoints.map(|attr| attr.ids.len()).max().unwrap_or(0)
    }

    fn lacks_cpus(&self) -> bool {
        let opened = self.opened();
        opened > 0 && opened < self.online as usize
    }
}

/// The options of `perf record` that are followed by a value.
const VALUED: [&str; 32] = [
    "-e",
    "--event",
    "-o",
    "--output",
    "-p",
    "--pid",
    "-t",
    "--tid",
    "-u",
    "--uid",
    "-C",
    "--cpu",
    "-F",
    "--freq",
    "-c",
    "--count",
    "-m",
    "--mmap-pages",
    "-k",
    "--clockid",
    "-D",
    "--delay",
    "-G",
    "--cgroup",
    "-r",
    "--realtime",
    "-j",
    "--branch-filter",
    "-M",
    "--filter",
    "--call-graph",
    "--max-size",
];

/// The options of `perf record` itself, without the command that was recorded.
fn own_options(words: &[String]) -> &[String] {
    let begin = words.iter().position(|word| word == "record").map_or(words.len(), |at| at + 1);
    let mut end = begin;
    while let Some(word) = words.get(end).filter(|word| word.starts_with('-') && *word != "--") {
        end += 1 + usize::from(VALUED.contains(&word.as_str()));
    }
    &words[begin..end.min(words.len())]
}

/// The value of an option: `-p 12`, `-p12`, `--pid 12`, `--pid=12`.
fn value(words: &[String], short: &str, long: &str) -> Option<String> {
    words.iter().enumerate().find_map(|(at, word)| {
        let next = || words.get(at + 1).cloned();
        if word == short || word == long {
            return next();
        }
        let joined = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
        let attached = word.strip_prefix(short).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        joined.or(attached).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(command: &str, opened: usize, enable_on_exec: bool) -> Option<(Coverage, String)> {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let attrs = [Attr::tracepoint_for_tests(opened, enable_on_exec)];
        let partial = Signs { attrs: &attrs, words: &words, online: 4 }.partial();
        partial.map(|partial| (partial.covers, partial.only))
    }

    #[test]
    fn a_recording_of_tasks_or_of_some_cpus_is_partial() {
        let inside = |only: &str| Some((Coverage::Inside, only.to_owned()));
        let cpus = |only: &str| Some((Coverage::Cpus, only.to_owned()));
        assert_eq!(covers("perf record -e sched:* -p 12,13", 4, false), inside("process 12,13"));
        assert_eq!(covers("perf record --tid=7 -e sched:*", 4, false), inside("thread 7"));
        assert_eq!(covers("perf record -a -e sched:* -G web", 4, false), inside("cgroup web"));
        assert_eq!(covers("perf record -e sched:* make", 4, true), inside("the command and its children"));
        assert_eq!(covers("", 4, true), inside("the command and its children"));
        assert_eq!(covers("perf record -a -C 0-1 -e sched:*", 2, false), cpus("CPUs 0-1"));
        assert_eq!(covers("", 2, false), cpus("2 of 4 CPUs"));
    }

    #[test]
    fn a_recording_of_all_cpus_is_whole() {
        assert_eq!(covers("perf sched record -- pgrep -p 12", 4, false), None);
        assert_eq!(covers("perf sched record -m 512 pgrep -p 12", 4, false), None);
        assert_eq!(covers("perf record -a -e sched:* pgrep -p 12", 4, false), None);
        assert_eq!(covers("perf record -a -e sched:* -C 0-3", 4, false), None);
        assert_eq!(covers("", 4, false), None);
    }
}
