"""The verbs. Each does the same as the command of the same name.

Files are given as paths. A workload may also be a mapping. A duration is text with a unit (`"250ms"`) or a
`datetime.timedelta`.
"""

import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from schedlab import _native, command
from schedlab.arguments import Duration, PathLike, in_python, options, path_of, setting, text, utf8, whole
from schedlab.arguments import duration as checked
from schedlab.counting import counted
from schedlab.heat import Heatmap
from schedlab.judgement import Battery, Conservation, Judgement
from schedlab.output import written
from schedlab.prediction import Difference, WhatIf
from schedlab.remarks import warn
from schedlab.selection import Numbers, Selection, Texts
from schedlab.timeline import Gantt
from schedlab.trace import Trace, made
from schedlab.waits import Delays

Workload = PathLike | Mapping[str, Any]

# The values of `costs`.
_COSTS: dict[object, bool] = {"machine": True, True: True, "none": False, False: False}


def read(path: PathLike) -> Trace:
    """Open a trace in any format that schedlab can read."""
    source = utf8(text("path", path))
    if _native.is_trace(source):
        return Trace(source)
    return made(lambda target: command.text(["import", *options(output=target), "--", source]))


def import_(
    path: PathLike, output: PathLike | None = None, *, formats: PathLike | None = None, force: bool = False
) -> Trace:
    """Import a trace in another program's format. With `output`, it is saved to that file.

    `formats` is a folder with the formats of the recording's events, for a recording that was cut off and lost its own.
    """
    source, given = text("path", path), options(formats=formats)
    return written(
        output, force, lambda target: command.text(["import", *options(output=target), *given, "--", source])
    )


def sim(
    *,
    kernel: str | None = None,
    workload: Workload,
    machine: PathLike | None = None,
    duration: Duration | None = None,
    seed: int = 1,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the command's --set)
    costs: str | bool = "machine",
    every_tick: bool = False,
    trace_queues: bool = False,
    output: PathLike | None = None,
    force: bool = False,
) -> Trace:
    """Simulate a workload on a machine under a kernel's scheduler.

    A workload that was made from a trace runs on the recorded kernel, or the nearest that is not newer, and on the
    recorded machine unless others are named; any other workload needs a `kernel`, and runs on one CPU (`"up"`).

    `set` changes tunables by name. `costs="none"` simulates only the algorithm. `every_tick` simulates also the ticks
    that can change nothing. With `trace_queues` the trace also records queue lengths, loads and the CPUs that the
    scheduler examined. The same arguments give the same bytes. Without `output`, the trace's file exists as long as the
    returned object.
    """
    applied = _COSTS.get(costs)
    if applied is None:
        raise _native.InputError(f'costs: there is no "{costs}"; choose one of machine, none')
    if set is not None and not isinstance(set, Mapping):
        raise TypeError(f"set: {set!r} is not a mapping of names to values")
    with _workload(workload) as load:

        def simulate(target: str) -> None:
            settings = [(str(name), setting(value)) for name, value in (set or {}).items()]
            remarks = _native.simulate(
                None if kernel is None else text("kernel", kernel),
                None if machine is None else text("machine", machine),
                load,
                target,
                checked("duration", duration),
                whole("seed", seed),
                settings,
                applied,
                bool(every_tick),
                bool(trace_queues),
            )
            for remark in remarks:
                warn(remark)

        try:
            return written(output, force, simulate)
        except _native.InputError as error:
            raise _native.InputError(in_python(str(error))) from None


def exec_(
    workload: Workload,
    *,
    duration: Duration | None = None,
    seed: int = 1,
    placement: str | None = None,
    buffer: str | None = None,
    on: str = "live",
    machine: PathLike | None = None,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the command's --set)
    deterministic: bool = False,
    memory: int | None = None,
    boot_limit: Duration | None = None,
    run_limit: Duration | None = None,
    output: PathLike | None = None,
    force: bool = False,
) -> Trace:
    """Run a workload with real threads on this kernel or in a guest, and record it.

    It is the workload that `sim` simulates. `placement` says where tasks run that the workload leaves free, in
    place of its own `x-placement`: wherever the `scheduler` puts them, or bound to a CPU (`cpu`) or a node (`numa`)
    each. Raises `NotPermittedError` if a right is missing; the message names it.

    `on` is `"live"`, or `"vm:KERNEL"` for a guest (`"vm:debian-6.12"`), and what follows it is the guest's: its
    machine, the tunables to set inside, whether time is counted in instructions, its memory in MiB, and how long it may
    take to boot and to run.
    """
    with _workload(workload) as load:
        given = options(
            duration=checked("duration", duration), seed=whole("seed", seed), placement=placement, buffer=buffer
        )
        given += options(on=on, machine=machine, set=set, deterministic=deterministic, memory=memory)
        given += options(boot_limit=checked("boot_limit", boot_limit), run_limit=checked("run_limit", run_limit))

        def execute(target: str) -> None:
            document = command.call(["exec", load, *options(output=target), *given])["execution"]
            for note in document["notes"]:
                warn(note)
            _remark(document["recorded"], buffer)

        return written(output, force, execute)


def record(
    run: Sequence[str] = (),
    *,
    duration: Duration | None = None,
    pids: int | Sequence[int] = (),
    only: bool = False,
    irq: bool = False,
    freq: bool = False,
    why: bool = False,
    buffer: str | None = None,
    realtime: int | None = None,
    output: PathLike | None = None,
    force: bool = False,
) -> Trace:
    """Record what this kernel's scheduler does: during a command, for a duration, or until some processes end.

    The whole machine is recorded, and the trace remembers which tasks it is about. With `only`, the processes in
    `pids` are recorded alone, which costs less but does not show what else ran. With `irq`, the time that interrupts
    take is recorded, too: `Stats.interrupts` has it, and a model takes it out of what the tasks did. With `freq`, the
    frequencies of CPUs are, where the kernel knows them (rows `frequency`). With `why`, the trace says what each sleep
    is for (rows `sleeps`), and a model knows which wake-ups are a timer's.

    `buffer` is the size of the kernel's buffer for each CPU (`"8M"`), and `realtime` a real-time priority of the
    recorder (1 to 99), which keeps a heavy load from starving it. Raises `NotPermittedError` if a right is missing; the
    message names it.
    """
    if isinstance(run, str):
        raise TypeError(f"run: write the command and its arguments as a list: {run.split()}")
    span = checked("duration", duration)
    given = options(duration=span, pid=pids, only=only, irq=irq, freq=freq, why=why, buffer=buffer, realtime=realtime)
    given += ["--", *run] if run else []
    return written(
        output, force, lambda target: _remark(command.call(["record", *options(output=target), *given]), buffer)
    )


def _remark(recorded: dict[str, Any], buffer: str | None) -> None:
    """Warn about what a recording lacks. With `--json`, the command has this in its document only."""
    if recorded.get("lost") or recorded.get("gaps"):
        larger = "a larger buffer" if buffer else 'buffer="32M"'
        lost, places = counted(recorded["lost"], "event"), counted(recorded["gaps"], "place")
        warn(f"lost: {lost} at {places}, each marked; try {larger}")
    status = recorded.get("command") or {}
    if status.get("code"):
        warn(f"the command's exit status was {status['code']}")
    elif status.get("signal"):
        warn(f"the command was ended by signal {status['signal']}")


def model(
    trace: Trace | PathLike,
    output: PathLike | None = None,
    *,
    tasks: int | None = None,
    min_run: Duration | None = None,
    most_events: int = 1_000_000,
    no_pin: bool = False,
    from_: Duration | None = None,
    to: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
    force: bool = False,
) -> dict[str, Any]:
    """Make a workload for `sim` from a trace: the bursts, sleeps and wake-ups of each task.

    It keeps the `tasks` busiest tasks and those that ran for at least `min_run`, folds repeated cycles until it has at
    most `most_events` events, and with `no_pin` does not bind tasks to CPUs.
    The workload starts at `from_` with the tasks that run or wait then, and contains only the selected tasks.
    """
    given = options(tasks=tasks, min_run=checked("min_run", min_run), most_events=most_events, no_pin=no_pin)
    given += Selection(from_, to, task, pid, group).options()
    with tempfile.TemporaryDirectory(prefix="schedlab-") as home:
        target = Path(home, "model.json") if output is None else Path(output)
        command.call(["model", *options(output=target, force=force), *given, "--", path_of(trace)])
        workload: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return workload


def validate(
    trace: Trace | PathLike,
    *,
    kernel: str | None = None,
    machine: str | None = None,
    seeds: int = 3,
    from_: Duration | None = None,
    to: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
) -> dict[str, Any]:
    """Simulate the model of a trace as recorded, and compare with the trace.

    `kernel` and `machine` are the recorded ones unless given. The result has the figures `recorded` and `simulated` of
    all tasks, those of the `tasks` that used over 1% of a CPU or waited for over 1% of all waiting, relative `errors`
    (0.1 is 10% too much), `trust`, which says the same in a sentence, and `causes` of differences.
    """
    given = options(validate=True, kernel=kernel, machine=machine, seeds=seeds)
    given += Selection(from_, to, task, pid, group).options()
    found: dict[str, Any] = command.call(["model", *given, "--", path_of(trace)])["validation"]
    return found


def whatif(
    trace: Trace | PathLike,
    *,
    kernel: str | Sequence[str] = (),
    machine: PathLike | Sequence[PathLike] = (),
    set: Mapping[str, object] | None = None,  # noqa: A002 (the command's --set)
    variant: str | Sequence[str] = (),
    baseline: str | None = None,
    recording: Trace | PathLike | None = None,
    seeds: int = 5,
    duration: Duration | None = None,
    tasks: int | None = None,
    min_run: Duration | None = None,
    most_events: int = 1_000_000,
    no_pin: bool = False,
    from_: Duration | None = None,
    to: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
    report: PathLike | None = None,
    keep: PathLike | None = None,
    force: bool = False,
    jobs: int | None = None,
) -> WhatIf:
    """Predict what another kernel, other settings or another machine would do with a recorded load.

    Every kernel in `kernel` is asked about on every machine in `machine`, with the settings in `set`; `variant` names
    more (`"NAME:kernel=K,machine=M,set.TUNABLE=VALUE"`). What is not given is as recorded, or as `baseline` says.
    `trace` may be a model's file, with `recording` the trace that it was made from. The model is simulated `seeds`
    times for each, in parallel. `report` is the path of an HTML file to write, and `keep` a folder for the trace of the
    first simulation of each, with pages that show what explains the answer.
    """
    given = options(kernel=kernel, machine=machine, set=set, variant=variant, baseline=baseline, seeds=seeds, jobs=jobs)
    given += options(recording=None if recording is None else path_of(recording, "recording"))
    given += options(duration=checked("duration", duration), tasks=tasks, min_run=checked("min_run", min_run))
    given += options(most_events=most_events, no_pin=no_pin, output=report, keep=keep, force=force)
    given += Selection(from_, to, task, pid, group).options()
    return WhatIf(command.call(["whatif", *given, "--", path_of(trace)])["whatif"])


def diff(
    a: Trace | PathLike | Sequence[Trace | PathLike],
    b: Trace | PathLike | Sequence[Trace | PathLike],
    *,
    by: str = "task",
    per: str = "run",
    blocks: int = 10,
    fail_if: str | Sequence[str] = (),
    from_: Duration | None = None,
    to: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
) -> Difference:
    """Compare two traces, or two lists of traces of repeated runs.

    `by` aligns tasks by `"task"`, `"name"`, `"role"`, `"process"` or `"group"`, `per` gives sums for a `"run"` or a
    `"second"`, and one trace each is cut into `blocks` for the intervals. `fail_if` are bounds (`"wait > +10%"`,
    `"server: p99 > +200us"`).
    """
    given = options(by=by, per=per, blocks=blocks, fail_if=fail_if)
    given += Selection(from_, to, task, pid, group).options()
    sides = [options(a=_paths("a", a)), options(b=_paths("b", b))]
    statuses = (command.DONE, command.FAILED, command.UNDECIDED)
    return Difference(*command.call_with_status(["diff", *given, *sides[0], *sides[1]], statuses))


def _paths(name: str, traces: Trace | PathLike | Sequence[Trace | PathLike]) -> list[str]:
    """Return the paths of one trace or of several; those of a folder's traces if it is one."""
    if isinstance(traces, (str, os.PathLike, Trace)):
        path = Path(path_of(traces, name))
        if not path.is_dir():
            return [str(path)]
        return sorted(str(file) for file in path.iterdir() if file.suffix in {".arrows", ".data"})
    return [path_of(trace, name) for trace in traces]


def check(
    trace: Trace | PathLike,
    *,
    threshold: Duration | None = None,
    max_wasted: Duration | None = None,
    every: Duration | None = None,
    watch: Duration | None = None,
    from_: Duration | None = None,
    to: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
) -> Conservation:
    """Find CPUs that were idle for longer than `threshold` (100 ms) while tasks that could run there waited.

    With `max_wasted`, the verdict depends only on the total CPU time wasted. Only waits of the selected tasks, between
    `from_` and `to`, are considered. With `every` or `watch`, the verdict is by what `schedlab check --live` would have
    found: it looks once a second, and watches for 100 ms what looks wrong.
    """
    given = options(
        threshold=checked("threshold", threshold),
        max_wasted=checked("max_wasted", max_wasted),
        every=checked("every", every),
        watch=checked("watch", watch),
    )
    given += Selection(from_, to, task, pid, group).options()
    statuses = (command.DONE, command.FAILED, command.UNDECIDED)
    status, document = command.call_with_status(["check", *given, "--", path_of(trace)], statuses)
    return Conservation(status, document)


def gantt(
    trace: Trace | PathLike,
    *,
    cpu: str | int | None = None,
    from_: Duration | None = None,
    to: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
    by: str | None = None,
    width: int | None = None,
    lanes: int = 24,
    color: str = "auto",
) -> Gantt:
    """Draw a timeline of what ran on each CPU, or with `by="task"` of what each task did.

    `cpu` selects CPUs (`"0-3,8"`); `task`, `pid` and `group` select tasks. `width` is in columns (80), and `lanes` is
    the greatest number of lanes.
    """
    given = options(cpu=cpu, by=by, width=width, lanes=lanes, color=color)
    given += Selection(from_, to, task, pid, group).options()
    arguments = ["gantt", *given, "--", path_of(trace)]
    return Gantt(command.call(arguments), command.text(arguments))


def heatmap(
    trace: Trace | PathLike,
    *,
    what: str = "queue",
    cpu: int | None = None,
    why: str | Sequence[str] = (),
    from_: Duration | None = None,
    to: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
) -> Heatmap:
    """Compute a figure for each CPU over time. A notebook shows the result as a picture.

    `what` is `"queue"` (runnable tasks), `"memory"` (of each node in MiB; for simulations with an `x-memory`),
    `"load"`, or `"considered"` (CPUs that the scheduler examined, on behalf of one `cpu` or all, for the reasons
    `why`). The last two need `sim(trace_queues=True)`. `task`, `pid` and `group` select the tasks that `"queue"`
    counts.
    """
    given = options(what=what, cpu=cpu, why=why) + Selection(from_, to, task, pid, group).options()
    with tempfile.TemporaryDirectory(prefix="schedlab-") as home:
        picture = Path(home, "heatmap.png")
        document = command.call(["heatmap", *options(output=picture), *given, "--", path_of(trace)])
        return Heatmap(document, picture.read_bytes())


def delays(
    trace: Trace | PathLike,
    *,
    worst: int = 20,
    from_: Duration | None = None,
    to: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
) -> Delays:
    """Find the longest waits and the tasks that ran meanwhile.

    `worst` is the number of waits that are listed. Only waits of the selected tasks, between `from_` and `to`, are
    considered; the culprits are all tasks.
    """
    given = options(worst=worst) + Selection(from_, to, task, pid, group).options()
    return Delays.of(command.call(["delays", *given, "--", path_of(trace)]))


def domains(
    machine: PathLike,
    *,
    kernel: str,
    offline: int | Sequence[int] = (),
    online: int | Sequence[int] = (),
    set: Mapping[str, object] | None = None,  # noqa: A002 (the command's --set)
) -> pd.DataFrame:
    """List the scheduling domains that a kernel builds on a machine, one row per CPU and level.

    First the CPUs in `offline` go offline, then those in `online` come back.
    """
    given = options(kernel=kernel, offline=offline, online=online, set=set)
    document = command.call(["machines", "--domains", *given, "--", text("machine", machine)])
    return pd.DataFrame([{"cpu": int(cpu), **level} for cpu, own in document["domains"].items() for level in own])


def run(
    experiment: PathLike | Sequence[PathLike],
    *,
    on: str = "sim",
    deterministic: bool = False,
    placement: str | None = None,
    kernel: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    repeats: int | None = None,
    baseline: PathLike | None = None,
    report: PathLike | None = None,
    junit: PathLike | None = None,
    keep: PathLike | None = None,
    jobs: int | None = None,
    force: bool = False,
) -> Judgement:
    """Run experiment files, or folders of them, and judge their expectations.

    `kernel` and `only` select a part: kernels, experiments by id, or points of the sweep (`"n=3"`). `repeats` runs each
    with seeds 1, 2, ... up to it, in place of the file's. `baseline` is a file with an earlier result
    (`Judgement.document` as JSON) to compare with. `report` and `junit` are the paths of an HTML file and a JUnit XML
    file to write, and `jobs` is the number of simulations to run at once. `keep` is a folder for the traces behind
    expectations that do not hold: for each, the column `look` of `Judgement.expectations` names a place in one of them.
    `on` is `"sim"`, `"live"` or `"vm:debian-6.12"`; in guests, `deterministic` counts time in instructions. `placement`
    (`"scheduler"`, `"cpu"`, `"numa"`) says where tasks run that the workload leaves free, as that of `exec_`. A real
    kernel is judged, and simulated beside: `Judgement.expectations` then has the columns `simulated`, `off_by` and
    `simulated_verdict`.
    """
    listed = [experiment] if isinstance(experiment, (str, os.PathLike)) else experiment
    if not listed:
        raise _native.InputError("experiment: no file; give the path of an experiment file or of a folder with some")
    given = options(
        on=on,
        deterministic=deterministic,
        placement=placement,
        kernel=kernel,
        only=only,
        repeats=repeats,
        baseline=baseline,
        output=report,
        junit=junit,
        keep=keep,
        jobs=jobs,
        force=force,
    )
    statuses = (command.DONE, command.FAILED, command.UNDECIDED)
    paths = [text("experiment", path) for path in listed]
    status, document = command.call_with_status(["run", *given, "--", *paths], statuses)
    return Judgement(status, document)


def test(
    tests: PathLike | Sequence[PathLike] = (),
    *,
    on: str = "sim:linux-6.12",
    machine: PathLike | None = None,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the command's --set)
    deterministic: bool = False,
    group: str | Sequence[str] = (),
    only: str | Sequence[str] = (),
    repeats: int | None = None,
    noise: float = 1,
    keep: PathLike | None = None,
    report: PathLike | None = None,
    junit: PathLike | None = None,
    jobs: int | None = None,
    force: bool = False,
) -> Battery:
    """Test what any scheduler must do, with the battery or with test files of your own.

    `on` is `"sim:KERNEL"`, `"live"` or `"vm:KERNEL"`. `machine` stands in for each test's own, and `set` maps tunables
    to values. `group` and `only` select tests; `repeats` is how often each runs. A run on a live kernel in which
    foreign tasks took more than `noise` percent of the CPU time decides nothing. `keep` is a folder for the traces of
    what does not pass. `report` and `junit` are the paths of an HTML file and a JUnit XML file to write.
    """
    listed = [tests] if isinstance(tests, (str, os.PathLike)) else tests
    given = options(
        on=on,
        machine=machine,
        set=set,
        deterministic=deterministic,
        group=group,
        only=only,
        repeats=repeats,
        noise=noise,
        keep=keep,
        output=report,
        junit=junit,
        jobs=jobs,
        force=force,
    )
    statuses = (command.DONE, command.FAILED, command.UNDECIDED)
    paths = [text("tests", path) for path in listed]
    status, document = command.call_with_status(["test", *given, "--", *paths], statuses)
    return Battery(status, document)


def fidelity(
    on: str | Sequence[str],
    *,
    workload: Workload | Sequence[Workload] = (),
    deterministic: bool = False,
    machine: PathLike | Sequence[PathLike] = (),
    load: str | Sequence[str] = (),
    duration: Duration = "2s",
    repeats: int = 3,
    jobs: int | None = None,
) -> pd.DataFrame:
    """Run the same loads in the simulator and on real kernels, and return one row per figure.

    `on` is `"live"` or `"vm:KERNEL"`, or several of them. The loads are those that `load` names, and `workload`: a file
    or a preset of the user's, or several; without either, all that the command has.

    The columns have the figure's mean over the real kernel's runs (`real`), their `range`, the `simulated` mean, the
    `error` (relative, or the difference of a percentage), its `bar`, and how it stands to that: `met`,
    `within-scatter`, `missed` or `no-bar`. `DataFrame.attrs` has the kernels and machines (`places`) and the `orders`
    of kernels. `jobs` is the number of simulations, and of guests with counted time, to run at once.
    """
    given = options(on=on, deterministic=deterministic, machine=machine, load=load, duration=duration)
    given += options(repeats=repeats, jobs=jobs)
    own = [workload] if isinstance(workload, str | os.PathLike | Mapping) else list(workload)
    with ExitStack() as files:
        loads = [files.enter_context(_workload(one)) for one in own]
        call = ["fidelity", *given, "--", *loads]
        _, document = command.call_with_status(call, (command.DONE, command.FAILED))
    frame = pd.DataFrame(document["rows"])
    frame.attrs.update(places=document["places"], orders=document["orders"])
    return frame


def kernels() -> pd.DataFrame:
    """List the kernels that can be simulated."""
    return _listing("kernels")


def schema(file: str) -> dict[str, Any]:
    """Return the JSON Schema of an `"experiment"`, a `"machine"` or a `"workload"` file.

    That of an experiment also lists the kernels with their tunables, machines, workloads and measures (`x-schedlab`).
    """
    found: dict[str, Any] = command.call(["schema", "--", text("file", file)])
    return found


def tunables(
    kernel: str | None = None,
    machine: PathLike = "up",
    *,
    live: bool = False,
    only_groups: Sequence[str] | None = None,
) -> pd.DataFrame:
    """List the tunables of all releases, or those of `kernel` with their defaults on `machine`.

    `live` lists what this machine has, with its values, and whether they can be set here; `only_groups` leaves of these
    only the groups `"sched"`, `"vm"`, `"disk"`, `"irq"`, `"network"` and `"limits"` that it names.
    """
    given = options(kernel=kernel, machine=machine) if kernel else []
    given += options(live=live, only_groups=only_groups)
    return pd.json_normalize(command.call(["tunables", *given])["tunables"], sep="_")


def machines() -> pd.DataFrame:
    """List the machine presets."""
    return _listing("machines")


def workloads() -> pd.DataFrame:
    """List the workload presets."""
    return _listing("workloads")


def doctor() -> dict[str, Any]:
    """Check what this machine supports and how to fix what is missing."""
    document: dict[str, Any] = command.call(["doctor"])
    return document


def _listing(verb: str) -> pd.DataFrame:
    """Return the output of a listing verb, one row per entry."""
    return pd.json_normalize(command.call([verb])[verb], sep="_")


@contextmanager
def _workload(workload: Workload) -> Iterator[str]:
    """Give a workload's name or file. A mapping is in a file for as long as the context lasts."""
    if not isinstance(workload, Mapping):
        yield text("workload", workload)
        return
    with tempfile.TemporaryDirectory(prefix="schedlab-") as home:
        path = Path(home, "workload.json")
        path.write_text(json.dumps(workload), encoding="utf-8")
        try:
            yield str(path)
        except _native.InputError as error:
            # The user has not seen this file.
            raise _native.InputError(re.sub(rf"{re.escape(str(path))}(:\d+)?", "workload", str(error))) from None
