"""The names of the tasks that events are about."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

IDLE = "idle"

Numbers = npt.NDArray[np.int64]


class Names:
    """Who had which thread id at which row of a trace."""

    def __init__(self, table: pa.Table) -> None:
        self._rows = table.num_rows
        self._codes: dict[str, int] = {IDLE: 0}
        given = [(0, 0, 0), *self._given(table)]
        tids, rows, codes = (np.array(column, dtype=np.int64) for column in zip(*given, strict=True))
        keys = tids * self._rows + rows
        order = np.argsort(keys, kind="stable")
        self._keys, self._tids, self._given_codes = keys[order], tids[order], codes[order]

    def _given(self, table: pa.Table) -> Iterator[tuple[int, int, int]]:
        """Yield each thread id that gets a name, with the row from which on it has it and the name's code.

        A row of names gives one. A forked task has its parent's, and a thread that calls exec keeps its own.
        """
        kinds = table["event"].cast(pa.string())
        chosen = pc.is_in(kinds, value_set=pa.array(["name", "fork", "exec"]))
        numbers = pc.indices_nonzero(chosen)
        found = table.select(["tid", "other_tid", "comm"]).take(numbers)
        current = {0: 0}
        columns = (numbers, kinds.take(numbers), found["tid"], found["other_tid"], found["comm"])
        for row, kind, tid, other, comm in zip(*(column.to_pylist() for column in columns), strict=True):
            code = self._codes.setdefault(comm, len(self._codes)) if kind == "name" else current.get(other)
            if tid is not None and code is not None:
                current[tid] = code
                yield tid, row, code

    def of(self, tids: "pd.Series[Any]", rows: Numbers) -> "pd.Series[Any]":
        """Return the name that each thread id has at its row; missing if it is not known."""
        wanted = tids.fillna(-1).to_numpy(dtype=np.int64)
        at = np.searchsorted(self._keys, wanted * self._rows + rows, side="right") - 1
        known = (at >= 0) & (self._tids[at] == wanted)
        codes = np.where(known, self._given_codes[at], -1)
        categories = pd.Index(list(self._codes), dtype="str")
        return pd.Series(pd.Categorical.from_codes(codes.tolist(), categories=categories), index=tids.index)
