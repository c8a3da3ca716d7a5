"""The traces behind the answer: a run of the default and one of the best settings, and pages that show both."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, Protocol, runtime_checkable
from urllib.parse import quote

from schedlab import command
from schedlab._native import InputError, NotPermittedError
from schedlab.arguments import options
from schedlab.tuning.confirm import Confirmation
from schedlab.tuning.score import differences
from schedlab.tuning.space import Space
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Trial

# The place of each measure in the traces: `sentence`, `command`, `page`.
Looks = dict[str, dict[str, Any]]


@runtime_checkable
class Traced(Protocol):
    """Something that runs a load and keeps the trace."""

    def trace(self, settings: dict[str, str], seed: int, path: Path) -> None:
        """Run it once, and write the trace there."""


def check(study: Study, folder: Path, *, force: bool) -> None:
    """Refuse a study without traces, and a folder with files that would be overwritten; make the folder."""
    if "command" in study.load:
        what = "a command is not recorded, so that there is no trace to keep"
        raise study.document.error(("load", "command"), what, "leave --keep out, or make the load a workload or model")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()) and not force:
            raise InputError(f"keep: {folder} is not empty; choose another folder, or add --force")
    except OSError as error:
        raise InputError(f"keep: {folder}: {error.strerror}") from None


def keep(study: Study, runner: Traced, space: Space, best: tuple[Trial, Confirmation], folder: Path) -> Looks:
    """Trace the default and the best settings, and write a page for each measure of the study."""
    trial, known = best
    seed = typical(study, known)
    traces = [folder / "default.arrows", folder / "best.arrows"]
    for path, config in zip(traces, (space.default, trial.config), strict=True):
        runner.trace(space.settings(config), seed, path)
    measures = enumerate(study.measures, 1)
    return {own.name: look(traces, own.value, folder / f"{number}.html") for number, own in measures if own.value}


def typical(study: Study, known: Confirmation) -> int:
    """Return the seed of the held-out runs whose gain is nearest the mean."""
    gains = differences(study, known.pairs, 0)
    mean = fmean(gains)
    return min(zip(gains, known.pairs, strict=True), key=lambda own: abs(own[0] - mean))[1].seed


def look(traces: list[Path], measure: str, page: Path) -> dict[str, Any]:
    """Return the place that explains a measure, with a page of it if one can be written."""
    words = [*map(str, traces), *options(worst=measure)]
    found: dict[str, Any] = {"command": shlex.join(["schedlab", "view", *words]), "sentence": "", "page": None}
    try:
        shown = command.call(["view", *words, *options(output=page, force=True)])["look"]
    except (InputError, NotPermittedError):
        # Nothing waited, it does not fit into a page, or there is none in this build: the command says so.
        return found
    return {"command": shown["command"], "sentence": shown["sentence"], "page": str(page)}


def link(page: str, report: Path) -> str:
    """Return a page's address as a report has it: relative where it is in the report's folder or below it."""
    own, folder = Path(page).absolute(), report.absolute().parent
    return quote(os.path.relpath(own, folder)) if own.is_relative_to(folder) else own.as_uri()


def lines(looks: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the places in words."""
    found = []
    for name, own in looks.items():
        found += ["", f"{name}: {own['sentence']}" if own["sentence"] else name, f"  {own['command']}"]
    return found
