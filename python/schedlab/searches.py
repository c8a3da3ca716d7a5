"""`schedlab.tune` and `schedlab.sweep`: what the commands of the same names do, with frames as the result."""

import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from schedlab import output
from schedlab._native import InputError, NotPermittedError
from schedlab.arguments import Duration, PathLike, duration, in_python
from schedlab.counting import counted
from schedlab.remarks import warn

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from schedlab.tuning.space import Space
    from schedlab.tuning.study import Study


class Tuned:
    """What a search found, as `schedlab tune` reports it. `print` shows it in words."""

    def __init__(self, study: "Study", space: "Space", document: dict[str, Any]) -> None:
        self._study, self._space = study, space
        self.document = document
        """The whole result, as `schedlab tune --json` prints it."""

    def __repr__(self) -> str:
        verdict = f"{self.improvement:+.1%}" if self.confirmed else "no better than the default"
        return f"<schedlab.Tuned: {counted(self.document['trials'], 'trial')}, {verdict}>"

    def __str__(self) -> str:
        from schedlab.tuning import outcome  # noqa: PLC0415 (an extra)

        return outcome.text(self._study, self.document)

    @property
    def confirmed(self) -> bool:
        """Whether something better than the default was found, and confirmed on held-out runs."""
        return bool(self.document["confirmed"])

    @property
    def best(self) -> dict[str, Any]:
        """The confirmed settings, or the default if none were confirmed."""
        return dict(self.document["best"])

    @property
    def changes(self) -> dict[str, Any]:
        """The settings of `best` that differ from the default."""
        return dict(self.document["changes"])

    @property
    def essential(self) -> dict[str, Any]:
        """The fewest of these changes that keep 95% of the gain."""
        return dict((self.document["essential"] or self.document)["changes"])

    @property
    def improvement(self) -> float:
        """By which part the first objective is better on held-out runs."""
        return float(self.document["improvement"])

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the improvement."""
        low, high = self.document["interval"]
        return low, high

    @property
    def objectives(self) -> pd.DataFrame:
        """One row per objective: `default`, `best`, `improvement`, its interval as `low` and `high`, `confirmed`."""
        return pd.DataFrame([_ends(own) for own in self.document["objectives"]])

    @property
    def trials(self) -> pd.DataFrame:
        """One row per trial: its settings, its `state`, and by how much it improved each objective in the search."""
        names = [own.name for own in self._study.objectives]
        rows = []
        for own in self.document["history"]:
            row = {key: own[key] for key in ("number", "name", "state", "repeats", "why")} | own["settings"]
            gains = own["improvement"] or [None] * len(names)
            rows.append(row | {f"improvement_{name}": gain for name, gain in zip(names, gains, strict=True)})
        return pd.DataFrame(rows)

    @property
    def importance(self) -> pd.Series:
        """The part of the variance that each parameter explains by itself (fANOVA), the greatest first."""
        found = pd.Series(self.document["importance"], dtype=float, name="importance")
        return found.sort_values(ascending=False)

    @property
    def front(self) -> pd.DataFrame:
        """Of several objectives: one row per member of the front and objective, on held-out runs."""
        return pd.DataFrame(
            [
                {"member": number, **member["settings"], **_ends(own)}
                for number, member in enumerate(self.document["front"])
                for own in member["objectives"]
            ]
        )

    @property
    def settings(self) -> str:
        """The best settings as a file for `schedlab tunables --apply` and `--profile`."""
        from schedlab.tuning import outcome  # noqa: PLC0415 (an extra)

        return outcome.settings_file(self._study, self.document)

    @property
    def pictures(self) -> "dict[str, Figure]":
        """The pictures of the report, by their titles: `History`, `Slices` and so on, as figures of Plotly's."""
        from schedlab.tuning.report import pictures  # noqa: PLC0415 (an extra)

        return {title: figure for title, (_, figure) in pictures(self._study, self._space, self.document).items()}

    def report(self, path: PathLike, *, force: bool = False) -> None:
        """Write the report: one HTML page that needs nothing else."""
        from schedlab.tuning.report import report  # noqa: PLC0415 (an extra)

        target = Path(path)
        output.check(target, "path:", force=force, fix="force=True")
        page = report(self._study, self._space, self.document, target)
        output.write(target, "path:", lambda file: file.write(page.encode()))


def tune(
    study: PathLike | Mapping[str, Any],
    *,
    on: str | None = None,
    method: str | None = None,
    trials: int | None = None,
    time: Duration | None = None,
    seed: int | None = None,
    deterministic: bool = False,
    screen: str | None = None,
    cycle: bool = False,
    storage: PathLike | None = None,
    fresh: bool = False,
    jobs: int = 0,
    cluster: str | None = None,
    keep: PathLike | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Tuned:
    """Find the settings that suit a load, and confirm them on runs that the search never saw.

    `study` is a study's file (docs/tune.md), or its content as a mapping. The trials of a file are kept in
    `STUDY.trials` beside it, and the next call goes on from there unless `fresh`; those of a mapping are kept only in
    a `storage`. `screen="sim"` searches on the simulator first, `cycle` tunes one group of parameters after the other.
    `keep` is a folder for a trace of the default and one of the best settings, with pages that show both; `force`
    overwrites what is there.
    """
    with _extra("tune"), warnings.catch_warnings():
        # In a notebook without ipywidgets, the progress bars that Optuna has, and that are not used here, are missed.
        warnings.filterwarnings("ignore", message="IProgress not found")
        from schedlab.tuning import flow, outcome  # noqa: PLC0415 (an extra)
        from schedlab.tuning.progress import Progress  # noqa: PLC0415
        from schedlab.tuning.study import changed, read  # noqa: PLC0415
    limit = duration("time", time)
    changes = changed(on=on, method=method, trials=trials, time=limit, seed=seed, deterministic=deterministic)
    own = read(study if isinstance(study, Mapping) else Path(study), changes)
    kept = None if storage is None else str(storage)
    traces = None if keep is None else str(keep)
    kept_trials = not isinstance(study, Mapping)
    options = flow.Options(kept, fresh, jobs, cluster, keep=kept_trials, traces=traces, force=force)
    found = flow.run(own, options, Progress(quiet=quiet), screen=screen, cycle=cycle)
    return Tuned(own, found.space, outcome.document(own, found))


def sweep(
    sweep: PathLike | Mapping[str, Any],
    output: PathLike | None = None,
    *,
    force: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    slurm: bool = False,
    slurm_option: Mapping[str, object] | None = None,
) -> pd.DataFrame:
    """Simulate all combinations of kernels, machines, workloads, settings and seeds; return a row for each.

    `sweep` is a sweep's file (docs/sweep.md), or its content as a mapping. With `output`, the table is a Parquet or
    Arrow file too, and a sweep that was interrupted goes on where it was.
    """
    from schedlab.sweeping import check, execution, options  # noqa: PLC0415 (it imports this package)
    from schedlab.sweeping import sweep as sweeps  # noqa: PLC0415

    described = sweeps.read(sweep if isinstance(sweep, Mapping) else Path(sweep))
    try:
        where = options.where(cluster, workers, slurm, slurm_option or {})
        check.check(described)
        with tempfile.TemporaryDirectory(prefix="schedlab-") as home, _extra("tune"):
            path = Path(home, "sweep.parquet") if output is None else Path(output)
            own = execution.Execution(described, path, force=force)
            own.run(*where)
            for remark in own.remarks:
                warn(remark)
            if own.progress.failed:
                warn(f"of {counted(own.grid.count, 'row')}, {own.failures()}")
            return pd.read_parquet(path) if path.suffix == ".parquet" else _arrow(path)
    except InputError as error:
        raise InputError(in_python(str(error))) from None


def _arrow(path: Path) -> pd.DataFrame:
    import pyarrow as pa  # noqa: PLC0415

    with path.open("rb") as file:
        return pa.ipc.open_stream(file).read_all().to_pandas()


def _ends(figure: dict[str, Any]) -> dict[str, Any]:
    """Return a figure with the ends of its interval as `low` and `high`."""
    low, high = figure["interval"]
    return {key: value for key, value in figure.items() if key != "interval"} | {"low": low, "high": high}


@contextmanager
def _extra(name: str) -> Iterator[None]:
    """Say which part of the package is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise NotPermittedError(f"{error.name} is not installed; pip install 'schedlab[{name}]'") from None
