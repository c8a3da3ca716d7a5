"""Some combinations of a sweep, simulated one after another by a worker."""

import time
from dataclasses import dataclass
from threading import Event

from schedlab import _native
from schedlab.sweeping.grid import Figures, Grid, Row
from schedlab.sweeping.kinds import written
from schedlab.tuning.simulated import File

# When it is set, the batches of this process end early.
STOP = Event()

# The most remarks that a batch reports.
_MOST_REMARKS = 20


@dataclass(frozen=True)
class Run:
    """One simulation."""

    kernel: str
    machine: int
    workload: int
    settings: tuple[tuple[str, str], ...]
    seed: int


@dataclass(frozen=True)
class Batch:
    """Simulations with consecutive numbers, complete with what a worker on another machine does not have."""

    first: int
    runs: tuple[Run, ...]
    files: tuple[File, ...]
    duration: str | None
    costs: bool
    measures: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """What a batch found. If its time was up, it has fewer results than the batch had simulations."""

    first: int
    figures: list[Figures]
    remarks: list[str]
    seconds: float


def batch(grid: Grid, first: int, count: int) -> Batch:
    """Return a batch of a grid."""
    sweep = grid.sweep
    files: dict[File, int] = {}

    def run(row: Row) -> Run:
        machine = files.setdefault(row.machine.file, len(files))
        workload = files.setdefault(row.workload.file, len(files))
        settings = tuple((name, written(value)) for name, value in row.settings.items())
        return Run(row.kernel.kernel, machine, workload, settings, row.seed)

    runs = tuple(run(grid.row(first + n)) for n in range(count))
    return Batch(first, runs, tuple(files), sweep.duration, sweep.costs, tuple(sweep.measures.values()))


def simulate(given: Batch, budget_s: float) -> Done:
    """Simulate a batch. After `budget_s` seconds it returns what it has, which is at least one result."""
    start = time.monotonic()
    figures: list[Figures] = []
    remarks: dict[str, None] = {}
    for run in given.runs:
        figures.append(_simulated(given, run, remarks))
        if STOP.is_set() or time.monotonic() - start > budget_s:
            break
    return Done(given.first, figures, list(remarks)[:_MOST_REMARKS], time.monotonic() - start)


def _simulated(given: Batch, run: Run, remarks: dict[str, None]) -> Figures:
    """Simulate one combination. What fails is a result, too."""
    machine, workload = given.files[run.machine], given.files[run.workload]
    paths = machine.path(), workload.path()
    try:
        values, notes = _native.measure(
            list(given.measures), run.kernel, *paths, given.duration, run.seed, list(run.settings), given.costs, None
        )
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the native half is no Exception
        return Figures((None,) * len(given.measures), None, _told(str(error), given.files) or type(error).__name__)
    if len(remarks) < _MOST_REMARKS:
        remarks.update(dict.fromkeys(_told(note, given.files) for note in notes))
    reasons = dict.fromkeys(value for value in values if isinstance(value, str))
    found = tuple(None if isinstance(value, str) else value for value in values)
    return Figures(found, "; ".join(reasons) or None, None)


def _told(text: str, files: tuple[File, ...]) -> str:
    """Return a message with the files' own names in place of those of a worker's copies."""
    for file in files:
        if file.text is not None:
            text = text.replace(file.path(), file.name)
    return text
