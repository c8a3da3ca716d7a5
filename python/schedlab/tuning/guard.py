"""A command that is run and watched: its limits of time and memory, and a watchdog that must keep succeeding."""

import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from schedlab._native import InputError

_LOOK_S = 0.2
_GRACE_S = 2.0


class Stopped(Exception):  # noqa: N818 (it is no error: a limit did what it is for)
    """A limit stopped the run; the text says which."""


class TimedOut(Stopped):
    """The run took longer than the study allows."""


@dataclass(frozen=True)
class Guard:
    """The limits of a machine."""

    watchdog: tuple[str, ...] = ()
    every_s: float = 1.0
    free_memory: int = 0
    stopped: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    """Set when nobody waits for the runs any more."""

    def check(self, watchdog: bool) -> None:
        """Raise `Stopped` if a limit is broken. The watchdog command is run only if asked for."""
        if self.over.is_set():
            raise Stopped("the search is over")
        if self.free_memory and (free := available()) < self.free_memory:
            self._stop(f"only {free >> 20} MiB of memory were available, and {self.free_memory >> 20} are the limit")
        if watchdog and self.watchdog and (why := self._barks()):
            self._stop(f"the watchdog command {' '.join(self.watchdog)} {why}")

    def _stop(self, why: str) -> None:
        self.stopped.append(why)
        raise Stopped(why)

    def _barks(self) -> str:
        limit = max(5.0, self.every_s)
        try:
            done = subprocess.run(
                self.watchdog, check=False, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return f"did not end within {limit:g} s"
        except OSError as error:
            raise InputError(f"live.watchdog: {self.watchdog[0]}: {error.strerror}") from None
        return f"failed with exit status {done.returncode}" if done.returncode else ""


@dataclass(frozen=True)
class Done:
    """A command that ended by itself."""

    status: int
    output: str
    errors: str
    seconds: float


def available() -> int:
    """Return how many bytes of memory are available."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    raise InputError("live.free_memory: /proc/meminfo does not say how much memory is available")


def watched(
    argv: Sequence[str],
    guard: Guard,
    limit_s: float | None,
    environment: Mapping[str, str],
    folder: Path,
    *,
    apart: bool = False,
) -> Done:
    """Run a command to its end, with everything that it starts. Its errors are `apart`, or part of its output.

    Raises `Stopped` if a limit is broken; the command is then gone.
    """
    guard.check(watchdog=True)
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors if apart else subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
        try:
            _wait(process, guard, start, limit_s)
            taken = time.perf_counter() - start
        finally:
            _end(process)
        return Done(process.returncode, _text(output), _text(errors), taken)


def _wait(process: subprocess.Popen[bytes], guard: Guard, start: float, limit_s: float | None) -> None:
    """Wait until the process has ended, to the microsecond, and look at the limits meanwhile."""
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        next_bark = start + guard.every_s
        while not poll.poll(_LOOK_S * 1e3):
            now = time.perf_counter()
            if limit_s is not None and now - start > limit_s:
                raise TimedOut(f"it took longer than {limit_s:g} s")
            guard.check(watchdog=now >= next_bark)
            if now >= next_bark:
                next_bark = now + guard.every_s
    finally:
        os.close(descriptor)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of a command: its whole session, politely first."""
    for own in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, own)
        except ProcessLookupError:
            break
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            continue
        if own == signal.SIGTERM and not _group_lives(process.pid):
            break
    process.wait()


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "replace")
