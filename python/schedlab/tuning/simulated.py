"""Trials on the simulator: in this process, on threads, since the simulator needs no interpreter; or on a cluster."""

import json
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from schedlab import _native, command
from schedlab._native import InputError
from schedlab.arguments import options
from schedlab.tomlfile import Document
from schedlab.tuning.home import home
from schedlab.tuning.objective import Run
from schedlab.tuning.study import Study


@dataclass(frozen=True)
class File:
    """A file by its content, since a worker on another machine does not have it; or a name that is no file."""

    name: str
    text: str | None

    def path(self) -> str:
        """Return where this process has it."""
        return self.name if self.text is None else _written(self.name, self.text)


@dataclass(frozen=True)
class Simulation:
    """What is simulated, except for settings and seed."""

    kernel: str | None
    machine: File | None
    workload: File
    duration: str | None
    costs: bool
    expressions: tuple[str, ...]

    def run(self, settings: dict[str, str], seed: int) -> Run:
        """Simulate and measure."""
        start = time.perf_counter()
        values, _ = _native.measure(
            list(self.expressions),
            self.kernel,
            self.machine.path() if self.machine else None,
            self.workload.path(),
            self.duration,
            seed,
            list(settings.items()),
            self.costs,
            None,
        )
        return run_of(values, time.perf_counter() - start)

    def trace(self, settings: dict[str, str], seed: int, path: Path) -> None:
        """Simulate the same, and keep the trace."""
        given = options(
            kernel=self.kernel,
            machine=self.machine.path() if self.machine else None,
            workload=self.workload.path(),
            duration=self.duration,
            seed=seed,
            set=settings,
            costs=None if self.costs else "none",
            output=path,
            force=True,
        )
        command.call(["sim", *given])


def run_of(values: list[float | str], elapsed_s: float) -> Run:
    """Return a run of what the measures yielded: a text is why there is no number."""
    missing = next((value for value in values if isinstance(value, str)), "")
    return Run(tuple(None if isinstance(value, str) else value for value in values), missing, elapsed_s)


def simulation(study: Study, kernel: str = "", machine: str = "") -> Simulation:
    """Return what a study simulates."""
    machine = machine or study.machine
    return Simulation(
        kernel or study.kernel or None,
        file_of(study, "machine", machine) if machine else None,
        workload(study),
        study.duration,
        study.costs,
        tuple(own.value or "" for own in study.measures),
    )


def workload(study: Study) -> File:
    """Return a study's workload. A trace is made into its model."""
    if "inline" in study.load:
        return File(f"{study.path.stem}.json", study.load["inline"])
    if "model" in study.load:
        trace = study.path.parent / study.load["model"]
        target = Path(home(), "model.json")
        try:
            command.call(["model", f"--output={target}", "--force", "--", str(trace)])
        except InputError as error:
            raise study.document.error(("load", "model"), str(error)) from None
        return File(f"{trace.stem}.json", target.read_text(encoding="utf-8"))
    return file_of(study, "workload", study.load["workload"])


def recorded_kernel(load: File) -> str:
    """Return the kernel on which the load was recorded, if it says so and is simulated under that name."""
    try:
        own = json.loads(load.text or "{}").get("x-recorded", {}).get("kernel", "")
    except (ValueError, AttributeError):
        return ""
    return own if str(own).startswith("linux-") else ""


def file_of(study: Study, key: str, name: str) -> File:
    """Return a file beside the study, or the name of a preset."""
    return beside(study.document, f"load.{key}" if key == "workload" else key, name, (".json", ".toml"))


def beside(document: Document, key: str, name: str, endings: tuple[str, ...]) -> File:
    """Return a file beside the one that names it, or the name of a preset. A name with such an ending is a file's."""
    path = document.path.parent / name
    if path.is_file():
        try:
            return File(path.name, path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise document.error(key, f"{path} is not UTF-8", "save the file as UTF-8 text") from None
        except OSError as error:
            raise document.error(key, f"cannot read {path}: {error.strerror}") from None
    if "/" in name or name.endswith(endings):
        raise document.error(key, f"there is no file {path}", "paths count from the folder of this file")
    return File(name, None)


@lru_cache(maxsize=64)
def _written(name: str, text: str) -> str:
    path = Path(tempfile.mkdtemp(dir=home()), name)
    path.write_text(text, encoding="utf-8")
    return str(path)
