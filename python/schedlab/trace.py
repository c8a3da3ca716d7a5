"""A trace as Arrow tables and data frames, and its statistics."""

import json
import os
import shutil
import tempfile
import warnings
import weakref
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from schedlab import _native
from schedlab.remarks import CutWarning
from schedlab.selection import Duration, Numbers, Selection, Texts, duration_text

# The values of the column `event` in rows that are not events.
_NAME = "name"
_AFFINITY = "affinity"
_META_KEY = b"schedlab.meta"


def _table_of(path: Path) -> pa.Table:
    """Return all rows of the Arrow stream in a file."""
    with path.open("rb") as file, pa.ipc.open_stream(file) as reader:
        return reader.read_all()


@dataclass(frozen=True)
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
    processes: pd.DataFrame
    """One row per process."""
    names: pd.DataFrame
    """One row per name: all tasks of the same name together."""
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
            total=document["total"],
            document=document,
        )


class Trace:
    """A trace: a file, or a run whose file exists as long as this object.

    Rows are read at the first access and then cached.
    """

    def __init__(self, path: str | os.PathLike[str], *, home: Path | None = None) -> None:
        self.path = Path(path)
        """The trace's file: an Arrow IPC stream, which many programs can read."""
        if home is not None:
            # This folder holds the file of a trace without `output`, and is removed with this object.
            weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)

    def __repr__(self) -> str:
        meta = self.meta
        return f"<schedlab.Trace of {meta['kernel']} by {meta['source']}, {len(meta['cpus'])} CPUs, {self.path}>"

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The metadata: what made the trace, its kernel, machine and clock."""
        with self.path.open("rb") as file, pa.ipc.open_stream(file) as reader:
            metadata = reader.schema.metadata or {}
        document: dict[str, Any] = json.loads(metadata[_META_KEY])
        return document

    @cached_property
    def _table(self) -> pa.Table:
        """All rows of the file, or all that are left if it was cut off."""
        if (lost := _native.cut(str(self.path))) is None:
            return _table_of(self.path)
        warnings.warn(f"{self.path}: {lost}", CutWarning, stacklevel=2)
        with tempfile.TemporaryDirectory(prefix="schedlab-") as home:
            whole = Path(home, "whole.arrows")
            _native.convert(str(self.path), str(whole))
            return _table_of(whole)

    def arrow(self) -> pa.Table:
        """Return all rows as an Arrow table: the events, and the rows with names and affinities."""
        return self._table

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row per event, with the columns that docs/trace-format.md describes."""
        rows = self._table.to_pandas()
        others = [kind for kind in (_NAME, _AFFINITY) if kind in rows["event"].cat.categories]
        events = rows[~rows["event"].isin(others)].drop(columns=["tgid", "comm", "cgroup"]).reset_index(drop=True)
        events["event"] = events["event"].cat.remove_categories(others)
        return events

    @cached_property
    def names(self) -> pd.DataFrame:
        """The names, processes and cgroups of tasks, each with the time from which it applies."""
        rows = self._table.to_pandas()
        names = rows.loc[rows["event"] == _NAME, ["time_ns", "tid", "tgid", "comm", "cgroup"]]
        return names.reset_index(drop=True)

    @cached_property
    def affinities(self) -> pd.DataFrame:
        """The known affinities of tasks (`0-3,8`), each with the time from which it applies."""
        rows = self._table.to_pandas()
        found = rows.loc[rows["event"] == _AFFINITY]
        return found.reindex(columns=["time_ns", "tid", "cpus"]).reset_index(drop=True)

    def stats(
        self,
        *,
        start: Duration | None = None,
        end: Duration | None = None,
        task: Texts = (),
        pid: Numbers = (),
        group: Texts = (),
    ) -> Stats:
        """Return the statistics of tasks, CPUs, nodes, groups and the whole machine.

        `start` and `end` select a window, counted from the trace's start; `task`, `pid` and `group` select tasks by
        name (`*` and `?` are wildcards), by thread or process id, and by cgroup.
        """
        of = Selection(start, end, task, pid, group)
        selected = (duration_text(of.start), duration_text(of.end), of.tasks, of.pids, of.groups)
        return Stats.of(json.loads(_native.stats(str(self.path), *selected)))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> "Trace":
        """Save the trace to a file. An existing file is overwritten only with `force`."""
        with Path(path).open("wb" if force else "xb") as target, self.path.open("rb") as source:
            shutil.copyfileobj(source, target)
        return Trace(path)
