"""The combinations of a sweep, by their number: nothing is listed, so that a hundred million need no memory.

The order is that of the file: kernels, machines, workloads, settings, seeds, of which the last runs fastest.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from schedlab.sweeping.kinds import Value
from schedlab.sweeping.sweep import Kernel, Named, Sweep


@dataclass(frozen=True)
class Row:
    """One combination."""

    point: int
    kernel: Kernel
    machine: Named
    workload: Named
    settings: Mapping[str, Value]
    seed: int


class Grid:
    """All combinations of a sweep."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.settings = tuple(dict.fromkeys(name for kernel in sweep.kernels for name in kernel.settings))
        """The names of all settings, in the order of the columns."""
        loads = len(sweep.machines) * len(sweep.workloads) * len(sweep.seeds)
        sizes = [loads * self.combinations(own) for own in sweep.kernels]
        self._starts = [sum(sizes[:n]) for n in range(len(sizes))]
        self.count = sum(sizes)
        """How many combinations there are."""

    @staticmethod
    def combinations(kernel: Kernel) -> int:
        """Return how many combinations of settings a kernel has."""
        return math.prod(len(values) for values in kernel.settings.values())

    def row(self, point: int) -> Row:
        """Return a combination by its number, from 0 on."""
        sweep, at = self.sweep, bisect_right(self._starts, point) - 1
        kernel = sweep.kernels[at]
        rest, seed = divmod(point - self._starts[at], len(sweep.seeds))
        settings: dict[str, Value] = {}
        for name, values in reversed(list(kernel.settings.items())):
            rest, number = divmod(rest, len(values))
            settings[name] = values[number]
        rest, workload = divmod(rest, len(sweep.workloads))
        machine = sweep.machines[rest]
        return Row(point, kernel, machine, sweep.workloads[workload], settings, sweep.seeds[seed])

    def schema(self) -> pa.Schema:
        """Return the columns of the table."""
        fields: list[pa.Field[Any]] = [pa.field("point", pa.int64(), nullable=False)]
        fields += [pa.field(name, pa.string(), nullable=False) for name in ("kernel", "machine", "workload")]
        fields += [pa.field(name, self._type(name)) for name in self.settings]
        fields.append(pa.field("seed", pa.int64(), nullable=False))
        fields += [pa.field(name, pa.float64()) for name in self.sweep.measures]
        fields += [pa.field(name, pa.string()) for name in ("missing", "error")]
        return pa.schema(fields)

    def _type(self, name: str) -> pa.DataType:
        """Return the type of a setting's column."""
        kinds = {type(value) for own in self.sweep.kernels for value in own.settings.get(name, ())}
        if str in kinds:
            return pa.string()
        return pa.float64() if float in kinds else pa.int64()

    def table(self, first: int, figures: "list[Figures]") -> pa.RecordBatch:
        """Return the rows from `first` on, with what was found for each."""
        rows = [self.row(first + n) for n in range(len(figures))]
        schema = self.schema()
        columns: list[list[object]] = [
            [own.point for own in rows],
            [own.kernel.name for own in rows],
            [own.machine.name for own in rows],
            [own.workload.name for own in rows],
        ]
        for name in self.settings:
            values = [own.settings.get(name) for own in rows]
            if schema.field(name).type == pa.string():
                columns.append([None if value is None else str(value) for value in values])
            else:
                columns.append(list(values))
        columns.append([own.seed for own in rows])
        columns += [[own.values[n] for own in figures] for n in range(len(self.sweep.measures))]
        columns += [[own.missing for own in figures], [own.error for own in figures]]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.record_batch(arrays, schema=schema)


@dataclass(frozen=True)
class Figures:
    """What was found for one combination."""

    values: tuple[float | None, ...]
    """A value for each measure."""
    missing: str | None
    """Why a measure has no value."""
    error: str | None
    """Why there was no run."""
