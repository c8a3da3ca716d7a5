"""A sweep from its description to its table: what the command and the Python function share."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schedlab._native import InputError
from schedlab.output import check
from schedlab.sweeping import cluster, table
from schedlab.sweeping.grid import Grid
from schedlab.sweeping.journal import Journal
from schedlab.sweeping.progress import Progress
from schedlab.sweeping.sweep import Sweep
from schedlab.sweeping.work import Work

# The failed rows that are kept for a summary.
_MOST_ERRORS = 10


class Execution:
    """One sweep into one table. What an earlier one left in the journal is not simulated again."""

    def __init__(self, described: Sweep, output: Path, *, force: bool, quiet: bool = False) -> None:
        self.grid = Grid(described)
        self.output = output
        self.journal = _journal(output, self.grid, force)
        self.resumed = self.journal.resumed
        self.progress = Progress(self.grid.count, self.resumed, self.journal.failed, quiet=quiet)
        self.where = ""
        """On which workers; empty if nothing was left to simulate."""
        self.remarks: list[str] = []
        """What the simulations remarked."""
        self.errors: list[dict[str, Any]] = []
        """The first rows that failed."""

    def run(self, address: str | None, workers: int | None, slurm: Mapping[str, str]) -> None:
        """Simulate what the journal does not have, and write the table. If it is interrupted, the journal stays."""
        try:
            if self.journal.gaps(self.grid.count):
                self._work(address, workers, slurm)
            self.progress.clear()
            table.write(self.output, self.grid.schema(), self.journal.batches(), self.journal.metadata)
        except BaseException:
            self.progress.clear()
            self.journal.close()
            raise
        self.errors = _errors(self.journal)
        self.journal.remove()

    def failures(self) -> str:
        """Return how many rows failed, and why the first did."""
        first = self.errors[0]
        return f"{self.progress.failed:,} of them failed; the first, point {first['point']}: {first['error']}"

    def _work(self, address: str | None, workers: int | None, slurm: Mapping[str, str]) -> None:
        if address == cluster.SLURM:
            self.progress.show("waiting for Slurm")
        with cluster.connect(address, workers, slurm) as pool:
            work = Work(self.grid, self.journal, pool, self.progress)
            work.run()
            noun = "worker" if pool.remote else "core"
            self.where = f"{work.workers} {noun}{'s' if work.workers > 1 else ''} of {pool.where}"
            self.remarks = list(work.remarks)


def _journal(output: Path, grid: Grid, force: bool) -> Journal:
    """Open the journal of an output that is not there yet, or may be replaced."""
    if output.suffix not in table.ENDINGS:
        raise InputError(f"--output {output}: has no known ending; write NAME.parquet or NAME.arrows")
    check(output, "--output", force=force)
    path = output.with_name(f"{output.name}.partial")
    if force:
        Journal.remove_old(path)
    return Journal(path, grid.schema(), grid.sweep.content())


def _errors(journal: Journal) -> list[dict[str, Any]]:
    """Return the first rows that failed."""
    found: list[dict[str, Any]] = []
    if not journal.failed:
        return found
    for batch in journal.batches():
        for point, error in zip(batch["point"].to_pylist(), batch["error"].to_pylist(), strict=True):
            if error is not None:
                found.append({"point": point, "error": error})
                if len(found) == _MOST_ERRORS:
                    return found
    return found
