"""Hands the batches of a sweep to workers, and keeps what comes back.

A batch should take about as long as it is worth to wait for: its size follows the time that simulations take. A worker
that has more than that returns what it has, and the rest is handed out again. So are the simulations of a batch whose
workers died, one by one; the one that they die of is a row with an error.
"""

import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait

from schedlab._native import InputError
from schedlab.sweeping import batch, cluster
from schedlab.sweeping.batch import Done
from schedlab.sweeping.cluster import Pool
from schedlab.sweeping.grid import Figures, Grid
from schedlab.sweeping.journal import Journal
from schedlab.sweeping.progress import Progress

# How long a batch should take, on this machine and on a cluster, where handing one out costs some milliseconds.
_HERE_S, _THERE_S = 0.25, 2.0
# A batch ends by itself after this many times as long.
_PATIENCE = 4.0
_MOST_IN_BATCH = 2048
# Batches for each worker that are handed out at the same time.
_AHEAD = 2
# How long a cluster may have no worker.
_LONELY_S = 120.0


class Work:
    """The rest of a sweep, on some workers."""

    def __init__(self, grid: Grid, journal: Journal, pool: Pool, progress: Progress) -> None:
        self.remarks: dict[str, None] = {}
        """What simulations remarked, each once. `workers` is how many there were at most."""
        self._grid, self._journal, self._pool, self._progress = grid, journal, pool, progress
        self._todo = deque(journal.gaps(grid.count))
        self._running: dict[Future[Done], tuple[int, int]] = {}
        self._target = _THERE_S if pool.remote else _HERE_S
        self._size = 1
        self._heard = self._counted = time.monotonic()
        self._present = self.workers = pool.workers

    def run(self) -> None:
        """Do all of it. What is done when it ends early, by an error or an interrupt, is in the journal."""
        try:
            while self._todo or self._running:
                self._count()
                while self._todo and len(self._running) < max(self._present, 1) * _AHEAD:
                    self._hand_out()
                finished, _ = wait(self._running, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in finished:
                    self._take(future)
                if finished:
                    self._heard = time.monotonic()
                else:
                    self._look_around()
        except BaseException:
            self._leave()
            raise

    def _count(self) -> None:
        """Count the workers: they may come and go."""
        if time.monotonic() - self._counted > 1.0:
            self._present, self._counted = self._pool.present(), time.monotonic()
            self.workers = max(self.workers, self._present)

    def _hand_out(self) -> None:
        first, end = self._todo.popleft()
        count = min(self._size, end - first)
        if first + count < end:
            self._todo.appendleft((first + count, end))
        given = batch.batch(self._grid, first, count)
        self._running[self._pool.submit(batch.simulate, given, self._target * _PATIENCE)] = (first, count)

    def _take(self, future: "Future[Done]") -> None:
        """Keep what a batch found."""
        first, count = self._running.pop(future)
        try:
            done = future.result()
        except (Exception, CancelledError) as error:
            self._failed(first, count, error)
            return
        self._keep(done)
        if (got := len(done.figures)) < count:
            self._todo.appendleft((first + got, first + count))
        each = done.seconds / len(done.figures)
        # It grows step by step: the first simulations may be shorter than the next.
        self._size = max(1, min(int(self._target / max(each, 1e-6)), self._size * 4, _MOST_IN_BATCH))

    def _keep(self, done: Done) -> None:
        self._journal.append(self._grid.table(done.first, done.figures))
        self._progress.add(len(done.figures), sum(own.error is not None for own in done.figures))
        if len(self.remarks) < 20:  # noqa: PLR2004 (more are not read)
            self.remarks.update(dict.fromkeys(done.remarks))

    def _failed(self, first: int, count: int, error: BaseException) -> None:
        """Decide what becomes of a batch that did not come back."""
        if cluster.is_loss(error):
            raise InputError(f"lost {self._pool.where}; what is done is kept: run the same command again to go on")
        if not cluster.is_death(error):
            raise error
        if count > 1:
            self._todo.extendleft((first + n, first + n + 1) for n in reversed(range(count)))
            return
        why = "the workers that ran it died, one after the other; it may need more memory than they have"
        none = Figures((None,) * len(self._grid.sweep.measures), None, why)
        self._keep(Done(first, [none], [], 0.0))

    def _look_around(self) -> None:
        """Give up if nobody is left to wait for."""
        if self._present:
            self._heard = time.monotonic()
            self._progress.show()
            return
        lonely = time.monotonic() - self._heard
        self._progress.show(f"no worker for {lonely:.0f} s")
        if lonely > _LONELY_S:
            raise InputError(
                f"{self._pool.where}: had no worker for {_LONELY_S:.0f} s; what is done is kept: start workers and run "
                "the same command again to go on"
            )

    def _leave(self) -> None:
        """Keep what batches of this process have so far, if they stop at once."""
        batch.STOP.set()
        for future in self._running:
            future.cancel()
        finished, _ = wait(self._running, timeout=1.0) if not self._pool.remote else ((), ())
        for future in finished:
            if not future.cancelled() and future.exception() is None:
                self._keep(future.result())
