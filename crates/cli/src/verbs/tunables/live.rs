//! What this machine has and can set: `--live`, `--apply`, `--diff`, `--restore`, `--profile`.

use super::super::stats::table::Table;
use super::Args;
use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{Error, ErrorKind, PathText, Result, Tid, counted};
use schedlab_experiment::catalogue;
use schedlab_knobs::{
    Applied, Group, Here, Left, Owner, Plan, Profile, Restored, Root, Settings, Shown, Spec, State, apply, knobs,
    of_processes, restore, shown,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The forms of `--profile`.
const FORMS: [&str; 3] = ["tuned", "sysctl", "sh"];
/// How to put values back.
const RESTORE: &str = "schedlab tunables --restore puts them back";
/// The longest file that is read.
const LONGEST: u64 = 1 << 20;

/// The machine that is asked.
struct Machine {
    root: Root,
    here: Here,
    state: State,
    specs: Vec<Spec>,
}

impl Machine {
    fn new(args: &Args) -> Self {
        let root = Root::new(args.root.as_deref().unwrap_or(Path::new("/")));
        let here = Here::look(&root);
        let state = State::new(std::env::var_os("SCHEDLAB_STATE").map(PathBuf::from), &root);
        let specs = catalogue::specs(here.release);
        Self { root, here, state, specs }
    }

    /// The settings of a file, checked for this machine.
    fn plan(&self, file: &Path, only: Option<&[Group]>, rights: bool) -> Result<Plan> {
        let knobs = knobs(&self.specs, &self.root);
        let absent = |name: &str| catalogue::absent(&self.here, name);
        Plan::new(&read(file)?, &knobs, (&self.root, &self.here), only, rights, &absent)
    }
}

/// Does what the options ask; `None` if they ask nothing of the machine.
pub(super) fn run(args: &Args, ui: &Ui) -> Result<Option<ExitCode>> {
    let asks = args.live || args.restore || args.apply.is_some() || args.diff.is_some();
    if let Some(profile) = &args.profile {
        return write_profile(profile, args, ui).map(|()| Some(ExitCode::SUCCESS));
    }
    if !asks {
        return Ok(None);
    }
    let machine = Machine::new(args);
    let owner = args.owner.map(Owner::of).transpose();
    let only = args.only_groups.as_deref();
    if args.restore {
        // The process may have ended meanwhile: then its values are put back as those of any that has.
        let restored = restore(&machine.root, &machine.state, &machine.here, owner.ok().flatten().as_ref())?;
        return print_restored(&restored, ui).map(|()| Some(ExitCode::SUCCESS));
    }
    if let Some(file) = &args.diff {
        return diff(&machine.plan(file, only, false)?, ui).map(Some);
    }
    if let Some(file) = &args.apply {
        let (owner, plan) = (owner?, machine.plan(file, only, true)?);
        let applied = apply(&machine.root, &machine.state, &machine.here, &plan, owner.as_ref())?;
        print_applied(&applied, &machine, owner.is_some(), ui);
    } else {
        live(&machine, args.name.as_deref(), only, ui)?;
    }
    Ok(Some(ExitCode::SUCCESS))
}

/// Reads a file of settings; `-` is standard input.
fn read(file: &Path) -> Result<Settings> {
    let (name, mut text) = (if file == Path::new("-") { Path::new("standard input") } else { file }, String::new());
    let failed = |e: std::io::Error| {
        Error::system("cannot be read", &e)
            .file(name)
            .mend("give a TOML file of NAME = VALUE lines, or - for standard input")
    };
    if file == Path::new("-") {
        std::io::stdin().take(LONGEST + 1).read_to_string(&mut text).map_err(failed)?;
    } else {
        std::fs::File::open(file).and_then(|f| f.take(LONGEST + 1).read_to_string(&mut text)).map_err(failed)?;
    }
    Settings::parse(name, &text)
}

/// `--live`: the table, or one tunable in full.
fn live(machine: &Machine, name: Option<&str>, only: Option<&[Group]>, ui: &Ui) -> Result<()> {
    let found = knobs(&machine.specs, &machine.root);
    let mut rows = shown(&found, &machine.root, &machine.here);
    rows.extend(of_processes(&machine.specs, &machine.here));
    if let Some(name) = name {
        let spec = |row: &Shown| machine.specs.iter().any(|spec| spec.name == row.entry && spec.is_called(name));
        let is = |row: &Shown| row.name == name || row.location == name || spec(row);
        if !rows.iter().any(is) {
            let absent = |name: &str| catalogue::absent(&machine.here, name);
            return Err(schedlab_knobs::find(&found, name, &absent).expect_err("no row has that name"));
        }
        rows.retain(is);
    }
    rows.retain(|row| only.is_none_or(|only| only.iter().any(|group| group.to_string() == row.group)));
    let journal = journal(machine);
    if ui.json {
        let release = machine.here.release.map(|release| release.to_string());
        ui.print_json(&json!({
            "host": machine.here.host, "kernel": release, "journal": journal, "tunables": rows,
        }));
    } else if let (Some(_), [row]) = (name, rows.as_slice()) {
        ui.print(&in_full(row));
    } else {
        ui.print(&table(&rows));
    }
    if let (false, Some(text)) = (ui.json, journal["remark"].as_str()) {
        ui.note(text);
    }
    Ok(())
}

/// What the journal holds, for the document.
fn journal(machine: &Machine) -> Value {
    remark(&machine.state, &machine.here).map_or(Value::Null, |(values, owner, remark)| {
        json!({ "file": machine.state.journal(), "values": values, "owner": owner, "remark": remark })
    })
}

/// What an earlier call left changed: how many values, for which process, and a sentence. `None` if nothing is changed.
fn remark(state: &State, here: &Here) -> Option<(usize, Option<Owner>, String)> {
    let count = |n: usize| counted(n as u64, "tunable");
    Some(match state.look(here, None) {
        Ok(Left::Nothing) => return None,
        Ok(Left::OtherBoot(n)) => {
            (n, None, "a journal of an earlier boot is left, which nobody has to put back".to_owned())
        }
        Ok(Left::Gone(journal)) => {
            let (values, owner) = (journal.records.len(), journal.owner);
            let who = owner.as_ref().map_or_else(String::new, ToString::to_string);
            let remark = format!("{who} has ended and left {} changed: {RESTORE}", count(values));
            (values, owner, remark)
        }
        Ok(Left::Foreign(journal, owner)) => {
            let values = journal.records.len();
            let remark = format!("{owner} has changed {} and runs", count(values));
            (values, Some(owner), remark)
        }
        Ok(Left::Ours(journal)) => {
            let values = journal.records.len();
            (values, journal.owner, format!("{} changed: {RESTORE}", count(values)))
        }
        Err(e) => (0, None, e.to_string()),
    })
}

/// What an earlier call left changed on this machine, as a sentence, for `schedlab doctor`.
pub fn left_changed() -> Option<String> {
    let root = Root::new("/");
    let state = State::new(std::env::var_os("SCHEDLAB_STATE").map(PathBuf::from), &root);
    remark(&state, &Here::look(&root)).map(|(_, _, remark)| remark)
}

/// The table of `--live`, and below it what cannot be set and why.
fn table(rows: &[Shown]) -> String {
    let mut table = Table::new(8, ["tunable", "value", "unit", "takes", "group", "risk", "set", "what it does"]);
    let mut why: Vec<(String, Vec<&str>)> = Vec::new();
    for row in rows {
        let takes = match (&row.range, &row.choices) {
            (_, Some(choices)) => choices.join("|"),
            (Some((lo, hi)), _) => {
                format!("{lo}..{}", if *hi >= i128::from(i32::MAX) { String::new() } else { hi.to_string() })
            }
            _ => String::new(),
        };
        let mark = if row.settable { "yes" } else { "no" };
        let value = row.value.as_deref().unwrap_or("?");
        let cells = [&row.name, value, &row.unit, &takes, &row.group, &row.risk, mark, &row.meaning];
        table.row(cells.map(str::to_owned));
        if let Some(reason) = &row.reason {
            let text = match &row.instead {
                Some(instead) => format!("{reason}\n    in its place: {instead}"),
                None => reason.clone(),
            };
            match why.iter_mut().find(|(other, _)| *other == text) {
                Some((_, names)) => names.push(&row.name),
                None => why.push((text, vec![&row.name])),
            }
        }
    }
    let mut text = table.render();
    if !why.is_empty() {
        text += "\nNot to be set here:\n";
    }
    for (reason, names) in why {
        let _ = writeln!(text, "  {}: {reason}", names.join(", "));
    }
    text
}

fn in_full(row: &Shown) -> String {
    let mut text = format!("{}: {}\n\n", row.name, row.meaning);
    let value = row.value.as_ref().map_or_else(|| "cannot be read".to_owned(), |value| format!("{value} {}", row.unit));
    let takes = match (&row.range, &row.choices) {
        (_, Some(choices)) => choices.join(", "),
        (Some((lo, hi)), _) => format!("{lo} to {hi}"),
        _ => String::new(),
    };
    let set = row.reason.clone().map_or_else(|| "yes".to_owned(), |reason| format!("no: {reason}"));
    for (what, text_of) in [
        ("value", value.trim_end()),
        ("default", &row.default),
        ("takes", &takes),
        ("where", &row.location),
        ("group", &row.group),
        ("risk", &format!("{}: {}", row.risk, row.harm)),
        ("settable", &set),
        ("instead", row.instead.as_deref().unwrap_or_default()),
    ] {
        if !text_of.is_empty() {
            let _ = writeln!(text, "{what:<10} {text_of}");
        }
    }
    text
}

/// `--diff`: exit status 1 if something would change.
fn diff(plan: &Plan, ui: &Ui) -> Result<ExitCode> {
    let changed: Vec<_> = plan.changes.iter().filter(|change| change.differs()).collect();
    if ui.json {
        let row =
            |c: &&schedlab_knobs::Change| json!({ "name": c.name, "location": c.path, "from": c.from, "to": c.value });
        ui.print_json(&json!({ "changes": changed.iter().map(row).collect::<Vec<_>>() }));
    } else {
        changed.iter().for_each(|c| ui.print(&format!("{}: {} -> {}\n", c.name, c.from, c.value)));
    }
    Ok(if changed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn print_applied(applied: &Applied, machine: &Machine, owned: bool, ui: &Ui) {
    let before = &applied.before;
    if !before.restored.is_empty() {
        ui.note(format!("put back first what a process that has ended had left: {} tunables", before.restored.len()));
    }
    if before.other_boot > 0 {
        ui.note("the journal of an earlier boot is replaced: its values ended with it");
    }
    if ui.json {
        let journal = machine.state.journal();
        ui.print_json(&json!({ "set": applied.set, "before": before, "journal": journal }));
        return;
    }
    for set in &applied.set {
        let other = if set.to == set.asked { String::new() } else { format!(" (asked: {})", set.asked) };
        ui.print(&format!("{}: {} -> {}{other}\n", set.name, set.from, set.to));
    }
    if !owned {
        ui.note("schedlab tunables --restore puts the old values back, as a reboot does");
    }
}

fn print_restored(restored: &Restored, ui: &Ui) -> Result<()> {
    for back in restored.restored.iter().filter(|back| back.foreign) {
        let given = back.given.as_deref().unwrap_or_default();
        ui.note(format!("{} was {} and not {given}: somebody else had changed it meanwhile", back.name, back.from));
    }
    for name in &restored.gone {
        ui.note(format!("{name} is gone, and its value with it"));
    }
    if restored.other_boot > 0 {
        ui.note("the journal was of an earlier boot: its values ended with it, and it is removed");
    }
    if ui.json {
        ui.print_json(restored);
        return Ok(());
    }
    for back in &restored.restored {
        ui.print(&format!("{}: {} -> {}\n", back.name, back.from, back.to));
    }
    if restored.restored.is_empty() {
        ui.print("nothing had to be put back\n");
    }
    Ok(())
}

/// `--profile`: writes what other tools read.
fn write_profile(profile: &[String], args: &Args, ui: &Ui) -> Result<()> {
    let [form, file] = profile else { unreachable!("clap takes two words") };
    if !FORMS.contains(&form.as_str()) {
        let mend = schedlab_base::nearest(form, FORMS)
            .map_or_else(|| format!("known here: {}", FORMS.join(", ")), |near| format!("did you mean \"{near}\"?"));
        return Err(Error::new(ErrorKind::Input, format!("\"{form}\" is no form")).key("--profile").mend(mend));
    }
    let profile = Profile::new(&read(Path::new(file))?, &catalogue::specs(None))?;
    let text = match form.as_str() {
        "tuned" => profile.tuned(),
        "sysctl" => profile.sysctl(),
        _ => profile.sh(),
    };
    if let Some(output) = &args.output {
        Target::new(output, args.force)?.write_all(text.as_bytes())?;
    }
    if ui.json {
        let written = args.output.as_deref().map(PathText);
        ui.print_json(&json!({ "form": form, "file": written, "text": text }));
    } else if args.output.is_none() {
        ui.print(&text);
    }
    Ok(())
}

/// The owner's id as an argument.
pub(super) fn process(text: &str) -> Result<Tid, String> {
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(|| "give the id of a process".to_owned())
}
