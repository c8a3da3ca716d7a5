//! `schedlab export`: writes a trace as CSV, for tools that do not read Arrow streams.

use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{
    AffinityRecord, CpuList, Error, Event, GroupRecord, NOWHERE, NameRecord, Nanos, PathText, Payload, Result, Sink,
    TaskRecord, counted, visible,
};
use serde::Serialize;
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `export` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab export trace.arrows -o trace.csv\n  \
    schedlab export trace.arrows | duckdb -c \"select event, count(*) from read_csv('/dev/stdin') group by 1\"\n\n\
    The columns are those of the trace's format (docs/trace-format.md); a cell that its event does not use is empty.")]
pub struct Args {
    /// A trace, in any format that `stats` reads.
    trace: PathBuf,
    /// The CSV file to write (default: standard output).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file if it exists.
    #[arg(long, requires = "output")]
    force: bool,
}

/// Writes the rows.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if ui.json && args.output.is_none() {
        return Err(Error::input("--json and the rows cannot both go to standard output").mend("give --output FILE"));
    }
    let Some(path) = &args.output else {
        write(&args.trace, Piped(ui))?;
        return Ok(ExitCode::SUCCESS);
    };
    let rows = Target::new(path, args.force)?.write(|file| write(&args.trace, file).map_err(|e| e.file(path)))?;
    if ui.json {
        ui.print_json(&json!({ "file": PathText(path), "rows": rows }));
    } else {
        ui.note(format!("{}: {}", path.display(), counted(rows, "row")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the rows of a trace; the result is their number.
fn write(trace: &Path, out: impl Write) -> Result<u64> {
    let mut table = Table { csv: csv::Writer::from_writer(out), rows: 0, failure: None };
    let mut source = schedlab_trace::open(trace)?;
    let report = source.run(&mut table)?;
    let failed = |e: &dyn std::fmt::Display| Error::system("cannot write the rows", e);
    if let Some(e) = &table.failure {
        return Err(failed(e));
    }
    table.csv.flush().map_err(|e| failed(&e))?;
    if let Some(cut) = report.cut {
        return Err(Error::input(format!(
            "is cut at byte {}: {}; the rows before that are written",
            cut.offset, cut.what
        ))
        .file(trace));
    }
    Ok(table.rows)
}

/// Standard output, given up as soon as nobody reads it.
struct Piped<'a>(&'a Ui);

impl Write for Piped<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        self.0.exit_if_lost();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A row, with the columns of the trace's format.
#[derive(Default, Serialize)]
struct Row<'a> {
    time_ns: Nanos,
    cpu: u32,
    event: &'static str,
    tid: Option<i32>,
    prio: Option<i16>,
    state: Option<char>,
    next_tid: Option<i32>,
    next_prio: Option<i16>,
    other_tid: Option<i32>,
    orig_cpu: Option<u32>,
    target_cpu: Option<u32>,
    count: Option<u64>,
    tgid: Option<i32>,
    comm: Option<&'a str>,
    cgroup: Option<&'a str>,
    cpus: Option<String>,
    why: Option<&'static str>,
    length: Option<u32>,
    load: Option<u64>,
    orig_node: Option<u16>,
    target_node: Option<u16>,
    pages: Option<u32>,
    context: Option<&'static str>,
    properties: Option<String>,
    number: Option<u16>,
    took_ns: Option<Nanos>,
}

fn row(what: &Payload) -> Row<'static> {
    let about = |event, tid| Row { event, tid: Some(tid), ..Row::default() };
    match *what {
        Payload::Switch { prev, prev_prio, prev_state, next, next_prio } => Row {
            prio: Some(prev_prio),
            state: Some(prev_state.letter()),
            next_tid: Some(next),
            next_prio: Some(next_prio),
            ..about("switch", prev)
        },
        Payload::Waking { tid, prio, target, waker, context } => Row {
            prio: Some(prio),
            target_cpu: Some(target),
            other_tid: Some(waker),
            context: context.name(),
            ..about("waking", tid)
        },
        Payload::Wakeup { tid, prio, target } => {
            Row { prio: Some(prio), target_cpu: Some(target), ..about("wakeup", tid) }
        }
        Payload::WakeupNew { tid, prio, target } => {
            Row { prio: Some(prio), target_cpu: Some(target), ..about("wakeup_new", tid) }
        }
        Payload::Migrate { tid, prio, from, to } => {
            Row { prio: Some(prio), orig_cpu: Some(from), target_cpu: Some(to), ..about("migrate", tid) }
        }
        Payload::Fork { parent, child } => Row { other_tid: Some(parent), ..about("fork", child) },
        Payload::Exec { tid, old } => Row { other_tid: Some(old), ..about("exec", tid) },
        Payload::Exit { tid, prio } => Row { prio: Some(prio), ..about("exit", tid) },
        Payload::Lost { count } => Row { event: "lost", count: Some(count), ..Row::default() },
        Payload::Queue { length, load } => {
            Row { event: "queue", length: Some(length), load: Some(load), ..Row::default() }
        }
        Payload::Considered { why, tid, word, mask } => {
            let bits = (0..64).filter(|bit| mask >> bit & 1 == 1);
            let cpus: CpuList = bits.map(|bit| u32::from(word) * 64 + bit).collect();
            Row { cpus: Some(cpus.to_string()), why: Some(why.name()), ..about("considered", tid) }
        }
        Payload::Pages { tgid, from, to, pages } => {
            let node = |node: u16| (node != NOWHERE).then_some(node);
            let (orig_node, target_node) = (node(from), node(to));
            Row { event: "pages", tgid: Some(tgid), orig_node, target_node, pages: Some(pages), ..Row::default() }
        }
        Payload::Frequency { target, khz } => {
            Row { event: "frequency", target_cpu: Some(target), count: Some(khz.into()), ..Row::default() }
        }
        Payload::Interrupt { kind, number, took } => Row {
            event: "interrupt",
            why: Some(kind.name()),
            number: Some(number),
            took_ns: Some(took),
            ..Row::default()
        },
        Payload::Sleeps { tid, why } => Row { why: Some(why.name()), ..about("sleeps", tid) },
        Payload::Killed { tid, signal } => Row { number: Some(signal), ..about("killed", tid) },
    }
}

/// The table in the making. After a failed write nothing more is written.
struct Table<W: Write> {
    csv: csv::Writer<W>,
    rows: u64,
    failure: Option<csv::Error>,
}

impl<W: Write> Table<W> {
    fn add(&mut self, row: &Row) {
        if self.failure.is_none() {
            self.failure = self.csv.serialize(row).err();
            self.rows += 1;
        }
    }
}

impl<W: Write> Sink for Table<W> {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            self.add(&Row { time_ns: event.time, cpu: event.cpu, ..row(&event.what) });
        }
    }

    fn name(&mut self, record: &NameRecord) {
        // A spreadsheet or a terminal may act on what a name contains.
        let (comm, cgroup) = (visible(&record.comm), record.cgroup.as_deref().map(visible));
        self.add(&Row {
            time_ns: record.time,
            event: "name",
            tid: Some(record.tid),
            tgid: record.tgid,
            comm: Some(&comm),
            cgroup: cgroup.as_deref(),
            ..Row::default()
        });
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        let cpus = Some(record.cpus.to_string());
        self.add(&Row { time_ns: record.time, event: "affinity", tid: Some(record.tid), cpus, ..Row::default() });
    }

    fn task(&mut self, record: &TaskRecord) {
        let properties = serde_json::to_string(&record.properties).ok();
        self.add(&Row { time_ns: record.time, event: "task", tid: Some(record.tid), properties, ..Row::default() });
    }

    fn group(&mut self, record: &GroupRecord) {
        let (path, properties) = (visible(&record.path), serde_json::to_string(&record.properties).ok());
        self.add(&Row { time_ns: record.time, event: "group", cgroup: Some(&path), properties, ..Row::default() });
    }

    fn wants_queues(&self) -> bool {
        true
    }
}
