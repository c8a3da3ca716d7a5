"""Trials on a real kernel: a command or a workload on this machine, or a workload in a guest."""

import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedlab import _native, command
from schedlab._native import InputError, NotPermittedError
from schedlab.tuning.guard import Guard, Stopped, TimedOut, watched
from schedlab.tuning.home import home
from schedlab.tuning.objective import Run, of_command
from schedlab.tuning.simulated import File, run_of
from schedlab.tuning.study import Study, seconds

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that ask for the end."""


@dataclass(frozen=True)
class Program:
    """A command that is measured by its output and its time. It finds its parameters in its arguments."""

    study: Study
    guard: Guard = field(default_factory=Guard)

    def run(self, settings: Mapping[str, str], seed: int) -> Run:
        """Run the command. `{name}` in its arguments, and `SCHEDLAB_name` around it, are the parameters' values."""
        given = {**settings, "seed": str(seed)}
        argv = [filled(word, given) for word in self.study.load["command"]]
        around = {f"SCHEDLAB_{name}": value for name, value in given.items()}
        limit = seconds(self.study.load["timeout"]) if "timeout" in self.study.load else None
        try:
            done = watched(argv, self.guard, limit, {**os.environ, **around}, self.study.path.parent)
        except FileNotFoundError:
            raise self.study.document.error(("load", "command"), f"there is no program {argv[0]}") from None
        except OSError as error:
            raise self.study.document.error(("load", "command"), f"cannot run {argv[0]}: {error.strerror}") from None
        except TimedOut as stopped:
            return Run((None,) * len(self.study.measures), str(stopped), limit or 0.0)
        except Stopped as stopped:
            return Run((None,) * len(self.study.measures), str(stopped))
        if done.status:
            said = done.output.strip().splitlines()[-1:] or ["it printed nothing"]
            return Run((None,) * len(self.study.measures), f"exit status {done.status}: {said[0][:200]}", done.seconds)
        return of_command(self.study.measures, done.output, done.seconds)


@dataclass(frozen=True)
class Recording:
    """A workload run with real threads and recorded, on this kernel or in a guest."""

    study: Study
    workload: File
    on: str = "live"
    guard: Guard = field(default_factory=Guard)

    def run(self, settings: Mapping[str, str], seed: int) -> Run:
        """Run and record the workload; in a guest, with these settings inside."""
        with tempfile.TemporaryDirectory(dir=home()) as folder:
            trace = str(Path(folder, "t.arrows"))
            start = time.perf_counter()
            try:
                document = self._execute(trace, settings, seed)
            except Stopped as stopped:
                return Run((None,) * len(self.study.measures), str(stopped))
            taken = time.perf_counter() - start
            execution = document["execution"]
            own = [task["tid"] for task in execution["tasks"]]
            machine = "host" if self.on == "live" else self._machine()
            expressions = [measure.value or "" for measure in self.study.measures]
            recorded = (trace, own, execution["recorded"]["duration_ns"])
            path = self.workload.path()
            values, _ = _native.measure(expressions, "", machine, path, None, seed, [], True, recorded)
            return run_of(values, taken)

    def trace(self, settings: Mapping[str, str], seed: int, path: Path) -> None:
        """Run it once more, and keep the recording."""
        self._execute(str(path), settings, seed)

    def _execute(self, trace: str, settings: Mapping[str, str], seed: int) -> dict[str, Any]:
        argv = [str(command.binary()), "--json", "exec", self.workload.path(), f"--output={trace}", f"--seed={seed}"]
        argv += [f"--duration={self.study.duration}"] if self.study.duration else []
        if self.on != "live":
            argv += [f"--on={self.on}", f"--machine={self._machine()}"]
            argv += [f"--set={name}={value}" for name, value in settings.items()]
            argv += ["--deterministic"] if self.study.deterministic else []
        done = watched(argv, self.guard, None, dict(os.environ), self.study.path.parent, apart=True)
        if done.status:
            said = done.errors.strip().split("\nschedlab: ")[-1].removeprefix("schedlab: ")
            kind = NotPermittedError if done.status == command.NOT_PERMITTED else InputError
            raise kind(f"{shlex.join(['schedlab', *argv[2:4]])} ...: {said or f'exit status {done.status}'}")
        document: dict[str, Any] = json.loads(done.output)
        return document

    def _machine(self) -> str:
        beside = self.study.path.parent / self.study.machine
        return str(beside) if self.study.machine and beside.is_file() else self.study.machine or "1"


def filled(word: str, settings: Mapping[str, str]) -> str:
    """Return a word of a command with `{name}` replaced by the value of each parameter."""
    for name, value in settings.items():
        word = word.replace(f"{{{name}}}", value)
    return word


class Tunables:
    """The tunables of this machine, which are put back whatever happens.

    `schedlab tunables --apply` writes every old value to its journal, with this process as the owner, before it
    changes the first. Whoever starts next puts back what a killed owner left.
    """

    def __init__(self) -> None:
        self._now: dict[str, str] | None = None
        self.recovered = restore()

    def apply(self, settings: Mapping[str, str]) -> None:
        """Set tunables, unless they are set so already."""
        if self._now == dict(settings):
            return
        self._now = None
        with tempfile.NamedTemporaryFile("w", dir=home(), suffix=".toml", encoding="utf-8") as file:
            file.write(as_toml(settings))
            file.flush()
            with undisturbed():
                command.call(["tunables", "--apply", file.name, "--owner", str(os.getpid())])
        self._now = dict(settings)

    def restore(self) -> None:
        """Put every tunable back as it was before the first change."""
        self._now = None
        restore(("--owner", str(os.getpid())))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Handle signals that come meanwhile afterwards.

    A handler that raises while a process is being started leaves that process to itself: what it changes is then
    changed after everything was put back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {own: signal.signal(own, lambda number, _: came.append(number)) for own in ENDING}
    try:
        yield
    finally:
        for own, handler in before.items():
            signal.signal(own, handler)
        for number in came:
            signal.raise_signal(number)


def restore(owner: Sequence[str] = ()) -> Any:  # noqa: ANN401 (the command's document)
    """Put back what the journal of tunables has, unless its owner still runs."""
    return command.call(["tunables", "--restore", *owner])


def as_toml(settings: Mapping[str, str]) -> str:
    """Return settings as a file for `schedlab tunables --apply`."""
    return "".join(f"{json.dumps(name)} = {value_toml(value)}\n" for name, value in settings.items())


def value_toml(value: str) -> str:
    """Return a value as TOML: a number where it is one."""
    try:
        return str(int(value))
    except ValueError:
        return json.dumps(value)


class Live:
    """Trials on this machine, with its own tunables set for each."""

    def __init__(self, runner: Program | Recording, settle_s: float) -> None:
        self._runner = runner
        self._settle_s = settle_s
        self.tunables = Tunables()

    def run(self, settings: Mapping[str, str], seed: int) -> Run:
        """Set the tunables and run. If the machine's limits stop it, everything is put back at once."""
        self._prepare(settings)
        try:
            found = self._runner.run(settings, seed)
        except subprocess.SubprocessError as error:
            raise InputError(str(error)) from None
        if self._runner.guard.stopped:
            self._runner.guard.stopped.clear()
            self.tunables.restore()
        return found

    def trace(self, settings: Mapping[str, str], seed: int, path: Path) -> None:
        """Set the tunables, run once more, and keep the recording."""
        if isinstance(self._runner, Recording):
            self._prepare(settings)
            self._runner.trace(settings, seed, path)

    def _prepare(self, settings: Mapping[str, str]) -> None:
        self.tunables.apply(settings)
        if self._settle_s:
            time.sleep(self._settle_s)

    def close(self) -> None:
        """Put everything back."""
        self.tunables.restore()
