"""The verbs. Each does the same as the command of the same name.

Files are given as paths. A workload may also be a mapping. A duration is text with a unit (`"250ms"`) or a
`datetime.timedelta`.
"""

import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd

from schedlab import _native, command
from schedlab.heat import Heatmap
from schedlab.judgement import Conservation, Judgement
from schedlab.remarks import SchedlabWarning
from schedlab.selection import Duration, Numbers, Selection, Texts, duration_text
from schedlab.trace import Trace
from schedlab.waits import Delays

PathLike = str | os.PathLike[str]
Workload = PathLike | Mapping[str, Any]


def read(path: PathLike) -> Trace:
    """Open a trace in any format that schedlab can read."""
    path = os.fspath(path)
    if _native.is_trace(path):
        return Trace(path)
    return _made(None, False, lambda target: _native.convert(path, target))


def import_(path: PathLike, output: PathLike | None = None, *, force: bool = False) -> Trace:
    """Import a trace in another program's format. With `output`, it is saved to that file."""
    return _made(output, force, lambda target: _native.convert(os.fspath(path), target))


def sim(
    *,
    kernel: str,
    machine: PathLike,
    workload: Workload,
    duration: Duration | None = None,
    seed: int = 1,
    set: Mapping[str, object] | None = None,  # noqa: A002 (the command's --set)
    costs: bool = True,
    trace_queues: bool = False,
    output: PathLike | None = None,
    force: bool = False,
) -> Trace:
    """Simulate a workload on a machine under a kernel's scheduler.

    `set` changes tunables by name. `costs=False` simulates only the algorithm. With `trace_queues` the trace also
    records queue lengths, loads and the CPUs that the scheduler examined. The same arguments give the same bytes.
    Without `output`, the trace's file exists as long as the returned object.
    """
    with ExitStack() as stack:
        load = _workload(workload, stack)

        def simulate(target: str) -> None:
            settings = [(name, _setting(value)) for name, value in (set or {}).items()]
            remarks = _native.simulate(
                kernel,
                os.fspath(machine),
                load,
                target,
                duration_text(duration),
                seed,
                settings,
                costs,
                trace_queues,
            )
            for remark in remarks:
                warnings.warn(remark, SchedlabWarning, stacklevel=4)

        return _made(output, force, simulate)


def record(
    run: Sequence[str] = (),
    *,
    duration: Duration | None = None,
    pids: Sequence[int] = (),
    output: PathLike | None = None,
    force: bool = False,
) -> Trace:
    """Record what this kernel's scheduler does: during a command, for a duration, or for some processes.

    Raises `NotPermittedError` if a right is missing; the message names it.
    """
    options = [] if duration is None else ["--duration", str(duration_text(duration))]
    options += [option for pid in pids for option in ("--pid", str(pid))]
    options += ["--", *run] if run else []
    return _made(output, force, lambda target: command.call(["record", "--output", target, *options]))


def model(
    trace: Trace | PathLike,
    output: PathLike | None = None,
    *,
    start: Duration | None = None,
    end: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
    force: bool = False,
) -> dict[str, Any]:
    """Make a workload for `sim` from a trace: the bursts, sleeps and wake-ups of each task.

    The workload starts at `start` with the tasks that run or wait then, and contains only the selected tasks.
    """
    source = trace.path if isinstance(trace, Trace) else trace
    selected = Selection(start, end, task, pid, group).options()
    with tempfile.TemporaryDirectory(prefix="schedlab-") as home:
        target = Path(home, "model.json") if output is None else Path(output)
        options = ["--force"] if force else []
        command.call(["model", os.fspath(source), "--output", str(target), *selected, *options])
        workload: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return workload


def check(
    trace: Trace | PathLike,
    *,
    threshold: Duration | None = None,
    max_wasted: Duration | None = None,
    start: Duration | None = None,
    end: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
) -> Conservation:
    """Find CPUs that were idle for longer than `threshold` (100 ms) while tasks that could run there waited.

    With `max_wasted`, the verdict depends only on the total CPU time wasted. Only waits of the selected tasks, between
    `start` and `end`, are considered.
    """
    source = trace.path if isinstance(trace, Trace) else trace
    options = Selection(start, end, task, pid, group).options()
    options += [] if threshold is None else ["--threshold", str(duration_text(threshold))]
    options += [] if max_wasted is None else ["--max-wasted", str(duration_text(max_wasted))]
    statuses = (command.DONE, command.FAILED, command.UNDECIDED)
    status, document = command.call_with_status(["check", os.fspath(source), *options], statuses)
    return Conservation(status, document)


def heatmap(
    trace: Trace | PathLike,
    *,
    what: str = "queue",
    cpu: int | None = None,
    why: Sequence[str] = (),
    start: Duration | None = None,
    end: Duration | None = None,
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
    source = trace.path if isinstance(trace, Trace) else trace
    options = ["--what", what]
    options += [] if cpu is None else ["--cpu", str(cpu)]
    options += ["--why", ",".join(why)] if why else []
    options += Selection(start, end, task, pid, group).options()
    with tempfile.TemporaryDirectory(prefix="schedlab-") as home:
        picture = Path(home, "heatmap.png")
        document = command.call(["heatmap", os.fspath(source), "--output", str(picture), *options])
        return Heatmap(document, picture.read_bytes())


def delays(
    trace: Trace | PathLike,
    *,
    worst: int = 20,
    start: Duration | None = None,
    end: Duration | None = None,
    task: Texts = (),
    pid: Numbers = (),
    group: Texts = (),
) -> Delays:
    """Find the longest waits and the tasks that ran meanwhile.

    `worst` is the number of waits that are listed. Only waits of the selected tasks, between `start` and `end`, are
    considered; the culprits are all tasks.
    """
    source = trace.path if isinstance(trace, Trace) else trace
    selected = Selection(start, end, task, pid, group).options()
    return Delays.of(command.call(["delays", os.fspath(source), "--worst", str(worst), *selected]))


def domains(
    machine: PathLike,
    *,
    kernel: str,
    offline: Sequence[int] = (),
    online: Sequence[int] = (),
    set: Mapping[str, object] | None = None,  # noqa: A002 (the command's --set)
) -> pd.DataFrame:
    """List the scheduling domains that a kernel builds on a machine, one row per CPU and level.

    First the CPUs in `offline` go offline, then those in `online` come back.
    """
    options = [option for cpu in offline for option in ("--offline", str(cpu))]
    options += [option for cpu in online for option in ("--online", str(cpu))]
    options += [option for name, value in (set or {}).items() for option in ("--set", f"{name}={_setting(value)}")]
    document = command.call(["machines", os.fspath(machine), "--domains", "--kernel", kernel, *options])
    return pd.DataFrame([{"cpu": int(cpu), **level} for cpu, own in document["domains"].items() for level in own])


def run(
    experiment: PathLike, *, on: str | None = None, report: PathLike | None = None, force: bool = False
) -> Judgement:
    """Run an experiment file and judge its expectations. `report` is the path of an HTML file to write."""
    options = [] if on is None else ["--on", on]
    options += [] if report is None else ["--output", os.fspath(report)]
    options += ["--force"] if force else []
    statuses = (command.DONE, command.FAILED, command.UNDECIDED)
    status, document = command.call_with_status(["run", os.fspath(experiment), *options], statuses)
    return Judgement(status, document)


def kernels() -> pd.DataFrame:
    """List the kernels that can be simulated."""
    return _listing("kernels")


def tunables(kernel: str | None = None, machine: str = "up") -> pd.DataFrame:
    """List the tunables of all releases, or those of `kernel` with their defaults on `machine`."""
    of_kernel = ["--kernel", kernel, "--machine", machine] if kernel else []
    return pd.json_normalize(command.call(["tunables", *of_kernel])["tunables"], sep="_")


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


def _made(output: PathLike | None, force: bool, make: Callable[[str], object]) -> Trace:
    """Let `make` write a trace to `output`, or to a folder that is removed with the trace."""
    if output is None:
        home = Path(tempfile.mkdtemp(prefix="schedlab-"))
        try:
            make(str(home / "trace.arrows"))
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        return Trace(home / "trace.arrows", home=home)
    path = Path(output)
    if path.exists() and not force:
        raise _native.InputError(f"{path}: exists already; choose another name or give force=True")
    # The draft is beside the target, so that an existing file stays until the new one is complete.
    draft = path.with_name(f".{path.name}.new")
    try:
        make(str(draft))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return Trace(path)


def _workload(workload: Workload, stack: ExitStack) -> str:
    """Return a workload's name or file. A mapping is written to a file that is removed when the stack unwinds."""
    if not isinstance(workload, Mapping):
        return os.fspath(workload)
    home = stack.enter_context(tempfile.TemporaryDirectory(prefix="schedlab-"))
    path = Path(home, "workload.json")
    path.write_text(json.dumps(workload), encoding="utf-8")
    return str(path)


def _setting(value: object) -> str:
    """Return a tunable's value in the form that `--set` takes."""
    return str(int(value)) if isinstance(value, bool) else str(value)
