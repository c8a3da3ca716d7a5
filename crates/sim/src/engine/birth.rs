//! Creates tasks: their names, their attributes, and whether the kernel admits those attributes.

use super::{Engine, properties};
use crate::cpuset::CpuSet;
use crate::process::Process;
use crate::program::{Policy, ROOT_GROUP, Setting, Start, TaskSpec};
use crate::scheduler::{Refusal, Scheduler};
use crate::task::{Attributes, State, Task, TaskId, tid};
use schedlab_base::{AffinityRecord, CpuList, Error, NameRecord, Nanos, Result, TaskRecord};

impl<'a, S: Scheduler> Engine<'a, S> {
    /// Starts a task with `x-start: fork`. The boot task forks the first task, which runs at once if the CPU is idle;
    /// as the current task it is then the parent of the tasks that start at the same time. Each task is created with
    /// its parent's attributes and then gets its own, as a launcher would do it.
    pub(super) fn start_by_fork(&mut self, p: TaskId) {
        let own = self.cx.task(p).attributes;
        let cpu = self.cx.task(p).cpu;
        let parent = self.cx.curr(cpu);
        let born = parent.map_or(Attributes::default(), |q| *self.cx.own(q));
        self.cx.tasks[p as usize].attributes = born;
        self.catch_up(cpu);
        self.sched.task_fork(&mut self.cx, p, parent, Start::Fork);
        self.wake_up_new(p, parent);
        let cpu = self.cx.task(p).cpu;
        if self.cx.need_resched(cpu) {
            self.schedule(cpu);
        }
        self.cx.tasks[p as usize].attributes = own;
        self.sched.attributes_changed(&mut self.cx, p, &born);
        self.cx.touch(cpu);
    }

    /// Creates a sleeping task: on its parent's CPU; if tasks are to wake, where it last ran, or else on a CPU of its
    /// own as long as there are any; otherwise on the boot CPU. If it may not use that CPU, it is created on the first
    /// one that it may use. What its specification does not say, it has from its parent, as any child of a `fork`; its
    /// attributes are its parent's at first, unless it is born of a deadline task, which no kernel lets fork one.
    pub(super) fn create(&mut self, spec: &'a TaskSpec, copy: u32, parent: Option<TaskId>) -> Result<TaskId> {
        let p = self.cx.nr_tasks();
        let forker = parent.map(|q| self.cx.task(q));
        let requested = match (&spec.initial.cpus, parent) {
            (Some(cpus), _) => CpuSet::of(cpus),
            (None, Some(q)) => self.affinity(q),
            (None, None) => CpuSet::ALL,
        };
        let granted = self.effective(&requested);
        let refused = granted.is_none();
        let allowed = granted.unwrap_or_else(|| self.cx.online.clone());
        let home = match parent {
            Some(q) => self.cx.task(q).cpu,
            None if self.load.start == Start::Wake => spec.cpu.unwrap_or_else(|| self.homes.next(&allowed)),
            None => 0,
        };
        let cpu = if allowed.contains(home) { home } else { allowed.first().unwrap_or(0) };
        let inherited = parent.map_or(Attributes::default(), |q| *self.cx.own(q));
        let is_born_alike = parent.is_some() && inherited.policy != Policy::Deadline;
        self.cx.tasks.push(Task {
            attributes: if is_born_alike { inherited } else { apply(inherited, &spec.initial) },
            cpu,
            state: State::Sleeping { uninterruptible: false },
            on_rq: false,
            allowed,
            pinned: !refused && requested.is_single(),
            group: spec.initial.group.or(forker.map(|q| q.group)).unwrap_or(ROOT_GROUP),
            user: spec.user.or(forker.map(|q| q.user)).unwrap_or(0),
            session: spec.session.or(forker.map(|q| q.session)).unwrap_or(0),
            clamp: clamp(forker.map_or((0, 1024), |q| q.clamp), &spec.initial),
        });
        if let Some(effects) = self.cx.effects.as_deref_mut() {
            effects.set(&self.cx.machine, self.load, p, &spec.initial);
        }
        let affinity = if refused { CpuSet::ALL } else { requested };
        self.processes.push(Process::new(spec, copy));
        self.affinities.set(p, affinity);
        self.sets_out(p);
        self.awaited += u32::from(spec.awaited);
        // A name must be recorded before the first event that refers to it.
        self.trace_name(p);
        self.trace_affinity(p);
        self.trace_properties(p);
        if refused {
            self.note_refusal(p);
        }
        if let Some(averages) = spec.averages.filter(|_| parent.is_none()) {
            self.cx.averages.push((p, averages));
        }
        if parent.is_some() || self.load.start != Start::Fork {
            self.sched.task_fork(&mut self.cx, p, parent, self.load.start);
        }
        let own = self.cx.task(p).attributes;
        self.admit(p, &own)?;
        Ok(p)
    }

    /// Asks the scheduler whether a task may have these attributes.
    pub(super) fn admit(&mut self, p: TaskId, new: &Attributes) -> Result<()> {
        if new.policy != Policy::Deadline {
            return Ok(());
        }
        let Err(refusal) = self.sched.admits(&self.cx, p, new) else { return Ok(()) };
        let (errno, mend) = match refusal {
            Refusal::Parameters => {
                ("EINVAL", "let 1.024 us <= runtime <= deadline <= period, and the period be one that the kernel takes")
            }
            Refusal::Affinity => (
                "EPERM",
                "let it run on every CPU of its root domain, or set sched_rt_runtime_us to -1, which ends admission",
            ),
            Refusal::Bandwidth => {
                ("EBUSY", "let the deadline tasks' runtime / period add up to less: 95% of the CPUs, 90% from 6.12 on")
            }
        };
        let Attributes { runtime, deadline, period, .. } = *new;
        let us = |t: Nanos| t as f64 / 1e3;
        Err(Error::input(format!(
            "the kernel refuses task {} SCHED_DEADLINE with runtime {} us, deadline {} us, period {} us ({errno})",
            self.processes[p as usize].name(),
            us(runtime),
            us(deadline),
            us(period)
        ))
        .mend(mend))
    }

    /// Records a task's name and group: that it is in the root group, if there are others.
    pub(super) fn trace_name(&mut self, p: TaskId) {
        let group = self.load.groups.get(self.cx.task(p).group as usize).map(|group| group.path.as_str());
        self.flush();
        self.sink.name(&NameRecord {
            time: self.cx.now,
            tid: tid(p),
            tgid: Some(self.cx.effects.as_deref().map_or(tid(p), |effects| effects.memories.process(p))),
            comm: self.processes[p as usize].name(),
            cgroup: group.or((!self.load.groups.is_empty()).then_some("/")).map(str::to_owned),
        });
    }

    /// Records how a task is scheduled.
    pub(super) fn trace_properties(&mut self, p: TaskId) {
        self.flush();
        let properties = properties::of(self.cx.task(p), self.cx.own(p), self.load);
        self.sink.task(&TaskRecord { time: self.cx.now, tid: tid(p), properties });
    }

    /// Records the CPUs that a task may use.
    pub(super) fn trace_affinity(&mut self, p: TaskId) {
        let allowed = &self.cx.task(p).allowed;
        let nr_cpus = self.cx.nr_cpus();
        let cpus = if allowed.is_all() {
            CpuList::first(nr_cpus)
        } else {
            allowed.iter().take_while(|cpu| *cpu < nr_cpus).collect()
        };
        self.flush();
        self.sink.affinity(&AffinityRecord { time: self.cx.now, tid: tid(p), cpus });
    }
}

/// Returns the utilisation clamps after a setting has been applied.
pub(super) fn clamp((least, most): (u16, u16), setting: &Setting) -> (u16, u16) {
    (setting.util.0.unwrap_or(least), setting.util.1.unwrap_or(most))
}

/// Returns the attributes after a setting has been applied.
pub(super) fn apply(mut a: Attributes, setting: &Setting) -> Attributes {
    if let Some(policy) = setting.policy {
        a.policy = policy;
    }
    if let Some(nice) = setting.nice {
        a.nice = nice;
    }
    if let Some(priority) = setting.rt_priority {
        a.rt_priority = priority;
    }
    if let Some((runtime, deadline, period)) = setting.dl {
        (a.runtime, a.deadline, a.period) = (runtime, deadline, period);
    }
    if let Some(reclaim) = setting.reclaim {
        a.reclaim = reclaim;
    }
    a
}
