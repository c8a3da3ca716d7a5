//! From a workload, which says what tasks do in rt-app's words, to the engine's load: flat programs over numbered
//! resources, as rt-app 55cb0c0 would carry them out.

mod groups;
mod interrupts;
mod names;
mod placement;
mod program;
mod progress;
mod settings;

#[cfg(test)]
mod tests;

use names::{Index, Names};
use schedlab_base::{Error, Nanos, Result};
use schedlab_machine::Machine;
use schedlab_sim::program::{Load, MemorySpec, Op, Setting, Start, TaskSpec};
use schedlab_workload::plan::{Change, Fault, Plan};
use schedlab_workload::{Memory, Step, TaskDef, Workload};

/// The most operations that the programs of a load may have in all.
const MAX_OPS: u64 = 16 << 20;

/// Makes the load that a workload is on a machine.
///
/// `global.duration` is no part of it: how long to simulate is the caller's to say.
///
/// # Errors
/// With the task and the key: a CPU or node that the machine lacks, a barrier that nobody can pass, a loop that would
/// go on without time passing, a load too large to hold.
pub fn lower(workload: &Workload, machine: &Machine) -> Result<Load> {
    if machine.cpus.is_empty() {
        return Err(Error::input(format!("the machine \"{}\" has no CPU", machine.name)));
    }
    if workload.tasks.iter().all(|task| task.instances == 0) {
        return Err(Error::input("no task starts")
            .key("tasks")
            .mend("give one task at least, with \"instance\" 1 or more"));
    }
    settings::check_machine(workload, machine)?;
    settings::check_split(workload, machine)?;
    let names = Names::of(workload)?;
    progress::check(workload, &names)?;
    let mut lowering =
        Lowering { workload, machine, names, groups: Index::default(), sharers: Vec::new(), load: Load::default() };
    lowering.run()?;
    let mut load = placement::placed(lowering.load, workload.global.placement, machine);
    if machine.is_split() {
        // A task that names no CPUs runs on those that are common to all.
        let free = load.tasks.iter_mut().chain(&mut load.templates).filter(|task| task.initial.cpus.is_none());
        free.for_each(|task| task.initial.cpus = Some(machine.common_cpus()));
    }
    Ok(load)
}

/// How many operations there are with those of this task, if that is not too many.
fn counted(task: &TaskDef, ops: u64, more: u64) -> Result<u64> {
    let ops = ops.saturating_add(more);
    if ops > MAX_OPS {
        let what = format!("the workload comes to more than {MAX_OPS} operations");
        return Err(Error::input(what).key(format!("tasks.{}", task.name)).mend("take fewer instances or events"));
    }
    Ok(ops)
}

/// Puts a value in its place of a list, which grows as far as that.
fn put<T: Clone + Default>(list: &mut Vec<T>, at: u32, value: T) {
    let at = at as usize;
    if list.len() <= at {
        list.resize(at + 1, T::default());
    }
    list[at] = value;
}

/// The load in the making.
struct Lowering<'a> {
    workload: &'a Workload,
    machine: &'a Machine,
    names: Names<'a>,
    /// Indices of the groups by path.
    groups: Index,
    /// For each of the load's memories the task that it belongs to, where its instances share it.
    sharers: Vec<Option<usize>>,
    load: Load,
}

impl<'a> Lowering<'a> {
    fn run(&mut self) -> Result<()> {
        (self.load.groups, self.groups) = groups::lower(self.workload);
        self.load.session_nice = self.workload.sessions.iter().map(|(n, nice)| (*n, *nice)).collect();
        self.load.start = match self.workload.global.start {
            schedlab_workload::Start::Wake => Start::Wake,
            schedlab_workload::Start::Fork => Start::Fork,
            schedlab_workload::Start::Threads => Start::Threads,
        };
        let mut ops = 0_u64;
        let workload = self.workload;
        for (n, task) in workload.tasks.iter().enumerate() {
            if let Some(list) = self.names.jobs(task) {
                ops = counted(task, ops, task.phases.iter().map(|phase| phase.events.len() as u64).sum())?;
                self.jobs(list, n, task);
                continue;
            }
            let template = self.names.template(task);
            if task.instances == 0 && template.is_none() {
                continue;
            }
            let (initial, program) = self.task(n, task)?;
            let copies = u64::from(task.instances) + u64::from(template.is_some());
            ops = counted(task, ops, (program.len() as u64 + 1).saturating_mul(copies))?;
            if let Some(template) = template {
                self.template(template, task, &initial, &program);
            }
            self.instances(task, &initial, program)?;
        }
        self.load.inherits = workload.global.pi_enabled;
        self.load.hotplug = settings::hotplug(workload, self.machine)?;
        self.load.interrupts = interrupts::of(workload, self.machine)?;
        self.names.fill(&mut self.load);
        Ok(())
    }

    fn task(&mut self, n: usize, task: &TaskDef) -> Result<(Setting, Vec<Op>)> {
        let plan =
            Plan::of(self.workload.global.default_policy, task).map_err(|fault: Fault| fault.without_line(task))?;
        let had = settings::Had::of(&plan);
        let initial = self.setting(n, task, &plan.initial, had);
        let mut sets = Vec::with_capacity(plan.phases.len());
        for change in &plan.phases {
            let setting = self.setting(n, task, change, had);
            sets.push((setting != Setting::default()).then(|| {
                self.load.settings.push(setting);
                (self.load.settings.len() - 1) as u32
            }));
        }
        let program = program::of(task, &sets, |step, program| self.add(n, task, step, program));
        Ok((initial, program))
    }

    /// Adds what an event of task `n` does to a program.
    fn add(&self, n: usize, task: &TaskDef, step: &Step, program: &mut Vec<Op>) {
        let before = program.len();
        self.names.ops(n, task, &step.what, &self.workload.global, program);
        if step.sync {
            program[before..].iter_mut().for_each(program::sync);
        }
    }

    /// The phases of task `n` as the list of jobs `at`.
    fn jobs(&mut self, at: u32, n: usize, task: &TaskDef) {
        let list = program::jobs(task, |step, job| self.add(n, task, step, job));
        put(&mut self.load.jobs, at, list);
    }

    fn setting(&mut self, n: usize, task: &TaskDef, change: &Change, had: settings::Had) -> Setting {
        let memory = change.memory.as_ref().map(|memory| self.memory(n, task, memory));
        Setting { memory, ..settings::setting(change, had, self.machine, &self.groups) }
    }

    /// The number of a memory. Tasks of one key share it where it says so; the same said twice is the same memory.
    fn memory(&mut self, n: usize, task: &TaskDef, memory: &Memory) -> u32 {
        let &Memory { bytes, ref nodes, pinned, shared, bound } = memory;
        let parts = if shared { task.instances.max(1) } else { 1 };
        let spec = MemorySpec { bytes, nodes: nodes.clone(), pinned, shared, parts, bound_percent: bound };
        let sharer = shared.then_some(n);
        let known = self.load.memories.iter().zip(&self.sharers).position(|known| known == (&spec, &sharer));
        known.unwrap_or_else(|| {
            self.load.memories.push(spec);
            self.sharers.push(sharer);
            self.load.memories.len() - 1
        }) as u32
    }

    fn spec(&self, task: &TaskDef, initial: &Setting) -> TaskSpec {
        TaskSpec {
            name: task.name.clone(),
            initial: initial.clone(),
            user: task.user,
            session: task.session,
            cpu: settings::home(self.workload, task, self.machine),
            averages: task.averages.filter(|_| self.workload.global.start == schedlab_workload::Start::Wake),
            computing: task.computing,
            lifetime: task.lifetime,
            awaited: self.workload.global.until.as_ref() == Some(&task.name),
            ..TaskSpec::default()
        }
    }

    /// What a fork of the task makes; its delay counts from the fork.
    fn template(&mut self, at: u32, task: &TaskDef, initial: &Setting, program: &[Op]) {
        let mut spec = TaskSpec { cpu: None, averages: None, ..self.spec(task, initial) };
        spec.program = program::after(task.delay, program);
        put(&mut self.load.templates, at, spec);
    }

    fn instances(&mut self, task: &TaskDef, initial: &Setting, program: Vec<Op>) -> Result<()> {
        let Some(last) = task.instances.checked_sub(1) else { return Ok(()) };
        let start = u64::from(last).checked_mul(task.stagger).and_then(|late| late.checked_add(task.delay));
        if start.is_none_or(|start: Nanos| start > i64::MAX as u64) {
            let key = format!("tasks.{}.x-stagger", task.name);
            return Err(Error::input("the last instance would start too late").key(key));
        }
        let copies = if last > 0 { task.instances } else { 0 };
        let (start, stagger) = (task.delay, task.stagger);
        self.load.tasks.push(TaskSpec { program, copies, start, stagger, ..self.spec(task, initial) });
        Ok(())
    }
}
