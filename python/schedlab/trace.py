"""A trace as Arrow tables and data frames, and its statistics."""

import json
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas.api.extensions import ExtensionDtype

from schedlab import _native
from schedlab.arguments import Duration, PathLike
from schedlab.counting import counted
from schedlab.naming import Names
from schedlab.remarks import CutWarning, warn
from schedlab.selection import Numbers, Selection, Texts

# The values of the column `event` in rows that are not events.
_NAME = "name"
_AFFINITY = "affinity"
_END = "end"
_OTHERS = (_NAME, _AFFINITY, _END)
_META_KEY = b"schedlab.meta"

# A table of more pieces than this is slower than a copy.
_MOST_SLICES = 4096

# The columns of events with a thread id, and the columns with the names that belong to them.
_TASKS = {"tid": "name", "next_tid": "next_name", "other_tid": "other_name"}

# The columns of times that are never missing.
_TIMES = ("time_ns", "start_ns", "end_ns")

# Integers that may be missing are nullable, and signed where they fit, so that a difference may be negative.
_NULLABLE: dict[pa.DataType, ExtensionDtype] = {
    pa.int16(): pd.Int16Dtype(),
    pa.uint16(): pd.Int32Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
}


def _table_of(path: Path) -> pa.Table:
    """Return all rows of the Arrow stream in a file."""
    with path.open("rb") as file, pa.ipc.open_stream(file) as reader:
        return reader.read_all()


def _nullable(of: pa.DataType) -> ExtensionDtype | None:
    """Return the nullable type of a column."""
    return _NULLABLE.get(of)


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a data frame, in which integers that may be missing are nullable."""
    times = [name for name in table.column_names if name in _TIMES]
    frame: pd.DataFrame = table.drop_columns(times).to_pandas(types_mapper=_nullable)
    for at, name in enumerate(table.column_names):
        if name in times:
            frame.insert(at, name, table[name].to_numpy().astype("int64"))
    return frame


def _without(table: pa.Table, others: npt.NDArray[np.bool_]) -> pa.Table:
    """Return a table without some rows. Where these are few, nothing is copied."""
    at = np.flatnonzero(others)
    if len(at) > _MOST_SLICES:
        return table.filter(pa.array(~others))
    starts, ends = [0, *(at + 1).tolist()], [*at.tolist(), table.num_rows]
    slices = [table.slice(start, end - start) for start, end in zip(starts, ends, strict=True) if start < end]
    return pa.concat_tables(slices) if slices else table.slice(0, 0)


def _remove(home: Path, owner: int) -> None:
    """Remove a folder, unless this process is a fork of its owner."""
    if os.getpid() == owner:
        shutil.rmtree(home, ignore_errors=True)


def made(make: Callable[[str], object]) -> "Trace":
    """Let `make` write a trace to a file that is removed with the returned object."""
    home = Path(tempfile.mkdtemp(prefix="schedlab-"))
    try:
        make(str(home / "trace.arrows"))
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    return Trace(home / "trace.arrows", home=home)


def _unpickled(content: bytes) -> "Trace":
    """Return a trace whose file has this content."""
    return made(lambda target: Path(target).write_bytes(content))


@dataclass(frozen=True, repr=False)
class Stats:
    """The statistics of a trace, as `schedlab stats` reports them.

    A nested key of the JSON document becomes one column: `latency_us.p99` is `latency_us_p99`.
    """

    tasks: pd.DataFrame
    """One row per task."""
    cpus: pd.DataFrame
    """One row per CPU."""
    nodes: pd.DataFrame
    """One row per NUMA node."""
    groups: pd.DataFrame
    """One row per task group; empty if the trace has none."""
    task_cpus: pd.DataFrame
    """One row per task and CPU; empty unless it was asked for."""
    processes: pd.DataFrame
    """One row per process."""
    names: pd.DataFrame
    """One row per name: all tasks of the same name together."""
    interrupts: pd.DataFrame
    """One row per CPU and kind of interrupt; empty unless the trace has interrupts."""
    sleeps: pd.DataFrame
    """One row per kind of thing that tasks slept for; empty unless the trace says what (`record(why=True)`)."""
    total: dict[str, Any]
    """The figures of the whole machine."""
    document: dict[str, Any]
    """The whole document, as `schedlab stats --json` prints it."""

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Stats":
        """Convert the JSON document of the statistics to frames."""

        def frame(key: str) -> pd.DataFrame:
            return pd.json_normalize(document.get(key, []), sep="_")

        return cls(
            tasks=frame("tasks"),
            cpus=frame("cpus"),
            nodes=frame("nodes"),
            groups=frame("groups"),
            processes=frame("processes"),
            names=frame("names"),
            task_cpus=frame("task_cpus"),
            interrupts=frame("interrupts"),
            sleeps=frame("sleeps"),
            total=document["total"],
            document=document,
        )

    def __repr__(self) -> str:
        return f"<schedlab.Stats of {counted(len(self.tasks), 'task')} on {counted(len(self.cpus), 'CPU')}>"


class Trace:
    """A trace: a file, or a run whose file exists as long as this object.

    Rows are read at the first access and then cached. Pickling keeps the path of a file; the file of a run travels
    along, so that a worker of a `multiprocessing.Pool` can take traces and return them.
    """

    def __init__(self, path: PathLike, *, home: Path | None = None) -> None:
        self.path = Path(path)
        """The trace's file: an Arrow IPC stream, which many programs can read."""
        self._home = home
        if home is not None:
            # This folder holds the file of a trace without `output`, and is removed with this object.
            weakref.finalize(self, _remove, home, os.getpid())

    def __repr__(self) -> str:
        try:
            meta = self.meta
        except (_native.SchedlabError, OSError, pa.ArrowException, KeyError, ValueError):
            return f"<schedlab.Trace {self.path}, which cannot be read>"
        cpus = counted(len(meta["cpus"]), "CPU")
        return f"<schedlab.Trace of {meta['kernel']} by {meta['source']}, {cpus}, {self.path}>"

    def __reduce__(self) -> tuple[Callable[..., "Trace"], tuple[Any, ...]]:
        if self._home is None:
            return type(self), (self.path.absolute(),)
        return _unpickled, (self.path.read_bytes(),)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The metadata: what made the trace, its kernel, machine and clock."""
        try:
            with self.path.open("rb") as file, pa.ipc.open_stream(file) as reader:
                metadata = reader.schema.metadata or {}
            document: dict[str, Any] = json.loads(metadata[_META_KEY])
        except (OSError, pa.ArrowException, KeyError, ValueError):
            # What is wrong is said as elsewhere.
            _native.cut(str(self.path))
            raise
        return document

    @cached_property
    def _table(self) -> pa.Table:
        """All rows of the file, or all that are left if it was cut off."""
        if (lost := _native.cut(str(self.path))) is None:
            return _table_of(self.path)
        warn(f"{self.path}: {lost}", CutWarning)
        with tempfile.TemporaryDirectory(prefix="schedlab-") as home:
            whole = Path(home, "whole.arrows")
            _native.convert(str(self.path), str(whole))
            return _table_of(whole)

    def arrow(self, what: str = "rows") -> pa.Table:
        """Return an Arrow table: all `"rows"` of the file (events, names and affinities), or the `"intervals"`."""
        if what == "rows":
            return self._table
        if what == "intervals":
            return pa.table(_native.intervals(str(self.path)))
        raise _native.InputError(f'what: there is no table "{what}"; write "rows" or "intervals"')

    def _rows(self, kind: str) -> pd.DataFrame:
        """Return the rows of one kind."""
        return _frame(self._table.filter(pc.equal(self._table["event"].cast(pa.string()), pa.scalar(kind))))

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row per event, with the columns that docs/trace-format.md describes.

        Each thread id has a column with the name that the task had then: `name`, `next_name`, `other_name`.
        """
        table = self._table
        others = pc.is_in(table["event"].cast(pa.string()), value_set=pa.array(_OTHERS)).to_numpy()
        events = _frame(_without(table.drop_columns(["tgid", "comm", "cgroup"]), others))
        events["event"] = events["event"].cat.remove_categories(
            [kind for kind in _OTHERS if kind in events["event"].cat.categories]
        )
        rows = np.flatnonzero(~others)
        names = Names(table)
        for tid, name in _TASKS.items():
            events.insert(list(events).index(tid) + 1, name, names.of(events[tid], rows))
        return events

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """What each task did, from when until when: one row per interval, in the order of their starts.

        `state` is `running`, `waiting` (runnable, without a CPU), `sleeping` or `blocked` (uninterruptible). `wait_ns`
        of a running row is how long the task had waited just before; it is missing where that is not known, and in
        other states. `cpu` is where the task ran or waited, or where it had run before it slept. `start_ns` and
        `end_ns` are on the trace's clock, like `time_ns` of the events.

        The rows of a task add up to its `run_us` and `wait_us` in the statistics. What is not known has no row.
        """
        return _frame(self.arrow("intervals"))

    @cached_property
    def names(self) -> pd.DataFrame:
        """The names, processes and cgroups of tasks, each with the time from which it applies."""
        return self._rows(_NAME)[["time_ns", "tid", "tgid", "comm", "cgroup"]]

    @cached_property
    def affinities(self) -> pd.DataFrame:
        """The known affinities of tasks (`0-3,8`), each with the time from which it applies."""
        return self._rows(_AFFINITY).reindex(columns=["time_ns", "tid", "cpus"])

    def stats(
        self,
        *,
        from_: Duration | None = None,
        to: Duration | None = None,
        task: Texts = (),
        pid: Numbers = (),
        group: Texts = (),
        task_cpus: bool = False,
    ) -> Stats:
        """Return the statistics of tasks, CPUs, nodes, groups and the whole machine.

        `from_` and `to` select a window, counted from the trace's start; `task`, `pid` and `group` select tasks by
        name (`*` and `?` are wildcards), by thread or process id, and by cgroup.

        With `task_cpus` they also have what each task did on each CPU. In a recording for some processes or a
        command, the column `target` of `tasks` marks its tasks. What a partial recording cannot tell is missing.
        """
        selected = Selection(from_, to, task, pid, group).native()
        return Stats.of(json.loads(_native.stats(str(self.path), *selected, task_cpus)))

    def save(self, path: PathLike, *, force: bool = False) -> "Trace":
        """Save the trace to a file. An existing file is overwritten only with `force`."""
        if self.path.resolve() == Path(path).resolve():
            return self
        with Path(path).open("wb" if force else "xb") as target, self.path.open("rb") as source:
            shutil.copyfileobj(source, target)
        return Trace(path)
