"""A trace, as Arrow tables and data frames; its statistics."""

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

# What rows of a trace that are no events have in their column `event`.
_NAME = "name"
_AFFINITY = "affinity"
_META_KEY = b"schedlab.meta"


def _table_of(path: Path) -> pa.Table:
    """Return every row of an Arrow stream in a file."""
    with path.open("rb") as file, pa.ipc.open_stream(file) as reader:
        return reader.read_all()


@dataclass(frozen=True)
class Stats:
    """What a scheduler did, as `schedlab stats` tells it.

    A nested key of the JSON document becomes one column: `latency_us.p99` is `latency_us_p99`.
    """

    tasks: pd.DataFrame
    """One row a task."""
    cpus: pd.DataFrame
    """One row a CPU."""
    nodes: pd.DataFrame
    """One row a NUMA node."""
    groups: pd.DataFrame
    """One row a task group; empty where the trace knows of none."""
    total: dict[str, Any]
    """The whole machine."""
    document: dict[str, Any]
    """All of it, as `schedlab stats --json` prints it."""

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Stats":
        """Lay the JSON document of the statistics out as frames."""

        def frame(key: str) -> pd.DataFrame:
            return pd.json_normalize(document.get(key, []), sep="_")

        return cls(frame("tasks"), frame("cpus"), frame("nodes"), frame("groups"), document["total"], document)


class Trace:
    """A trace: a file, or a run that lives as long as this object.

    Rows are read when they are first asked for and kept.
    """

    def __init__(self, path: str | os.PathLike[str], *, home: Path | None = None) -> None:
        self.path = Path(path)
        """The trace's file: an Arrow IPC stream, which many programs read."""
        if home is not None:
            # The folder that holds the file of a trace that nobody kept: it goes when this object goes.
            weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)

    def __repr__(self) -> str:
        meta = self.meta
        return f"<schedlab.Trace of {meta['kernel']} by {meta['source']}, {len(meta['cpus'])} CPUs, {self.path}>"

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Who made the trace, on which kernel and machine, by which clock."""
        with self.path.open("rb") as file, pa.ipc.open_stream(file) as reader:
            metadata = reader.schema.metadata or {}
        document: dict[str, Any] = json.loads(metadata[_META_KEY])
        return document

    @cached_property
    def _table(self) -> pa.Table:
        """Every row of the file, or of what is left of it."""
        if (lost := _native.cut(str(self.path))) is None:
            return _table_of(self.path)
        warnings.warn(f"{self.path}: {lost}", CutWarning, stacklevel=2)
        with tempfile.TemporaryDirectory(prefix="schedlab-") as home:
            whole = Path(home, "whole.arrows")
            _native.convert(str(self.path), str(whole))
            return _table_of(whole)

    def arrow(self) -> pa.Table:
        """Return every row as an Arrow table: the events, and the rows that name tasks."""
        return self._table

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row an event, with the columns that docs/trace-format.md describes."""
        rows = self._table.to_pandas()
        others = [kind for kind in (_NAME, _AFFINITY) if kind in rows["event"].cat.categories]
        events = rows[~rows["event"].isin(others)].drop(columns=["tgid", "comm", "cgroup"]).reset_index(drop=True)
        events["event"] = events["event"].cat.remove_categories(others)
        return events

    @cached_property
    def names(self) -> pd.DataFrame:
        """From which time on which task had which name, process and cgroup."""
        rows = self._table.to_pandas()
        names = rows.loc[rows["event"] == _NAME, ["time_ns", "tid", "tgid", "comm", "cgroup"]]
        return names.reset_index(drop=True)

    @cached_property
    def affinities(self) -> pd.DataFrame:
        """From which time on which task was allowed on which CPUs (`0-3,8`), as far as the trace tells."""
        rows = self._table.to_pandas()
        found = rows.loc[rows["event"] == _AFFINITY]
        return found.reindex(columns=["time_ns", "tid", "cpus"]).reset_index(drop=True)

    def stats(self) -> Stats:
        """Return the statistics of tasks, CPUs, nodes, groups and the whole."""
        return Stats.of(json.loads(_native.stats(str(self.path))))

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> "Trace":
        """Keep the trace in a file; what exists is overwritten with `force` only."""
        with Path(path).open("wb" if force else "xb") as target, self.path.open("rb") as source:
            shutil.copyfileobj(source, target)
        return Trace(path)
