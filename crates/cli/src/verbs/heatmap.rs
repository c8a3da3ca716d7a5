//! `schedlab heatmap`: CPUs by time as a picture.

use crate::partial;
use crate::selection::SelectionArgs;
use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{CpuId, Error, Looking, Meta, Nanos, PathText, Result, nearest};
use schedlab_chart::heatmap::COLUMNS;
use schedlab_experiment::report::heat;
use schedlab_measure::heatmap::{Cells, HeatRow, What, Window};
use schedlab_measure::{Heat, Heatmap};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `heatmap` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  schedlab heatmap trace.arrows -o queues.png
  schedlab heatmap trace.arrows -o looks.svg --what considered --cpu 0 --from 2s --to 4s
  schedlab heatmap trace.arrows --json | jq '.cells[0]'
  schedlab sim -k linux-6.12 -m 8x8 -w li:tasks=70 -d 10s --trace-queues -o t.arrows && \
    schedlab heatmap t.arrows -o t.png")]
pub struct Args {
    /// The trace: a file from `schedlab record`, `sim` or `import`, or a perf.data file.
    trace: PathBuf,
    /// The picture to write, a .png or .svg file; optional with --json, which prints the numbers.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to draw.
    #[arg(long, value_enum, default_value_t = WhatArg::Queue)]
    what: WhatArg,
    /// With `--what considered`: only what was looked at on behalf of this CPU.
    #[arg(long, value_name = "CPU")]
    cpu: Option<CpuId>,
    /// With `--what considered`: only for these reasons (wake, fork, exec, newidle, periodic, nohz, active, numa).
    #[arg(long, value_name = "REASON,...", value_delimiter = ',', value_parser = reason)]
    why: Vec<Looking>,
    #[command(flatten)]
    selection: SelectionArgs,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WhatArg {
    /// The number of runnable tasks of each CPU, including the running one.
    Queue,
    /// The load of each CPU (needs `sim --trace-queues`).
    Load,
    /// The memory on each node, in MiB (needs a simulation whose workload states memory).
    Memory,
    /// The CPUs that the scheduler looked at, by reason (needs `sim --trace-queues`).
    Considered,
}

fn reason(text: &str) -> Result<Looking> {
    Looking::from_name(text).ok_or_else(|| {
        let names = || Looking::ALL.iter().map(|(_, name)| *name);
        let mend = match nearest(text, names()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => names().collect::<Vec<_>>().join(", "),
        };
        Error::input(format!("\"{text}\" is no reason")).mend(mend)
    })
}

#[derive(Clone, Copy)]
enum Format {
    Png,
    Svg,
}

impl Format {
    /// By the file's name.
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("png") => Ok(Self::Png),
            Some("svg") => Ok(Self::Svg),
            _ => Err(Error::input("its name does not say what kind of picture it is")
                .mend("end it in .png or .svg")
                .file(path)),
        }
    }
}

/// Draws the picture.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let output = args.output.as_deref().map(|path| Ok((path, Format::of(path)?))).transpose()?;
    if output.is_none() && !ui.json {
        return Err(Error::input("no file for the picture")
            .key("--output")
            .mend("add -o FILE.png or -o FILE.svg, or --json for the numbers alone"));
    }
    let target = output.map(|(path, _)| Target::new(path, args.force)).transpose()?;
    let window = window(&args)?;
    if args.selection.selection().chooses_tasks() && args.what != WhatArg::Queue {
        return Err(Error::input("--task, --pid and --group count tasks on run queues").mend("use --what queue"));
    }
    let chosen = args.selection.chosen(&args.trace, ui)?;
    let mut source = schedlab_trace::open(&args.trace)?;
    partial::refuse(source.meta(), &args.trace, "heatmap")?;
    let what = what(&args, source.meta())?;
    let mut heatmap = match chosen {
        Some(chosen) => Heatmap::of_tasks(source.meta(), window, chosen),
        None => Heatmap::new(source.meta(), what, window),
    };
    let bar = ui.progress(None, "reading");
    let read = source.run(&mut heatmap);
    bar.finish_and_clear();
    let read = read?;
    let heat = heatmap.finish(None);
    read.refuse_if_nothing_is_left(&args.trace)?;
    if let Some(cut) = read.cut {
        ui.note(format!("the file was cut off: {}", cut.what));
    }
    if let Some(what) = heat::missing(&heat) {
        let told = heat.told || heat.what == What::Queue;
        let mend = match heat.what {
            _ if told => "choose another --from and --to",
            What::Memory => "only `schedlab sim` records it, for a workload with x-memory",
            _ => "only `schedlab sim --trace-queues` records them",
        };
        return Err(Error::input(what).mend(mend).file(&args.trace));
    }
    if let (Some(target), Some((_, format))) = (target, output) {
        target.write_all(&picture(&args, format, source.meta(), &heat))?;
    }
    if ui.json {
        ui.print_json(&json!({
            "file": args.output.as_deref().map(PathText),
            "start_us": us(heat.from), "end_us": us(heat.to), "column_us": heat.column() / 1e3,
            "rows": heat.rows.len(), "columns": heat.columns, "told": heat.told, "highest": heat.highest(),
            "looks": looks(&heat),
            "cells": cells(&heat),
        }));
    } else if let Some((path, _)) = output {
        ui.note(format!("wrote {}", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// How often the scheduler looked at CPUs, by reason.
fn looks(heat: &Heat) -> BTreeMap<&'static str, u64> {
    Looking::ALL.iter().zip(heat.looks()).map(|((_, name), looks)| (*name, looks)).collect()
}

/// Each row's CPUs and values: means to a thousandth, `null` where nothing is known; of looks, their number.
fn cells(heat: &Heat) -> Vec<serde_json::Value> {
    let value = |cell: usize| match &heat.cells {
        Cells::Means(means) => json!(means[cell].map(|mean| (mean * 1e3).round() / 1e3)),
        Cells::Looks(looks) => json!(looks[cell].iter().map(|&n| u64::from(n)).sum::<u64>()),
    };
    let row = |(at, row): (usize, &HeatRow)| {
        let values: Vec<_> = (at * heat.columns..(at + 1) * heat.columns).map(value).collect();
        json!({ "cpus": row.cpus, "node": row.node, "values": values })
    };
    heat.rows.iter().enumerate().map(row).collect()
}

fn what(args: &Args, meta: &Meta) -> Result<What> {
    if args.what != WhatArg::Considered && (args.cpu.is_some() || !args.why.is_empty()) {
        let key = if args.cpu.is_some() { "--cpu" } else { "--why" };
        return Err(Error::input("chooses among looks at CPUs").key(key).mend("add --what considered"));
    }
    if let Some(cpu) = args.cpu.filter(|cpu| !meta.cpus.iter().any(|place| place.cpu == *cpu)) {
        let what = format!("the trace has no CPU {cpu}, but {} others", meta.cpus.len());
        return Err(Error::input(what).key("--cpu").file(&args.trace));
    }
    Ok(match args.what {
        WhatArg::Queue => What::Queue,
        WhatArg::Load => What::Load,
        WhatArg::Memory => What::Memory,
        WhatArg::Considered => What::Considered { by: args.cpu, why: args.why.clone() },
    })
}

fn window(args: &Args) -> Result<Window> {
    let part = args.selection.selection().part(None)?;
    Ok(Window { from: part.from, to: args.selection.to, columns: COLUMNS })
}

fn picture(args: &Args, format: Format, meta: &Meta, heat: &Heat) -> Vec<u8> {
    let title = match args.what {
        WhatArg::Queue => "Run queues",
        WhatArg::Load => "Loads",
        WhatArg::Memory => "Memory of the nodes",
        WhatArg::Considered => "Where the scheduler looked",
    };
    let name = args.trace.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let machine = if meta.machine.is_empty() { String::new() } else { format!(", machine {}", meta.machine) };
    let about = format!("{name}: kernel {}{machine}", meta.kernel);
    let drawn = heat::picture(heat, title, &about, heat::scale([heat].into_iter()));
    match format {
        Format::Png => drawn.png(),
        Format::Svg => drawn.svg().into_bytes(),
    }
}

fn us(ns: Nanos) -> f64 {
    ns as f64 / 1e3
}
