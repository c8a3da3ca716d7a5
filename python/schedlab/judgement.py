"""The results of experiments and checks."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from schedlab import command

# The exit statuses of a judgement in words.
_VERDICTS = {command.DONE: "held", command.FAILED: "failed", command.UNDECIDED: "undecided"}


def _beside(row: dict[str, Any]) -> dict[str, Any]:
    """Give the simulation that stands beside a real kernel's figure columns of its own."""
    simulated = row.get("simulated")
    if not isinstance(simulated, dict):
        return row
    return row | {
        "simulated": simulated["measured"],
        "off_by": simulated["off"],
        "simulated_verdict": simulated["verdict"],
    }


@dataclass(frozen=True, repr=False)
class Judgement:
    """The verdicts of an experiment, as `schedlab run` reports them."""

    status: int
    """The command's exit status: 0 if all expectations held, 1 if one failed (or, compared with a baseline, something
    changed), 3 if undecided."""
    document: dict[str, Any]
    """The whole document, as `schedlab run --json` prints it."""

    def __repr__(self) -> str:
        verdict = _VERDICTS.get(self.status, str(self.status))
        experiments = ", ".join(str(experiment["id"]) for experiment in self.document["experiments"])
        return f"<schedlab.Judgement of {experiments}: {verdict}>"

    @property
    def held(self) -> bool:
        """Whether every expectation held."""
        return self.status == command.DONE

    @property
    def expectations(self) -> pd.DataFrame:
        """One row per expectation: its experiment, figure, published and measured value, and verdict.

        For a real kernel also the simulated value, how far it is off (as a part of the measured one), and its verdict.
        """
        rows = [
            {"experiment": experiment["id"], **_beside(expectation)}
            for experiment in self.document["experiments"]
            for expectation in experiment["expectations"]
        ]
        return pd.DataFrame(rows)

    @property
    def cases(self) -> pd.DataFrame:
        """One row per case of an expectation: its kernel and point, published and measured value, and verdict."""
        rows = [
            {"experiment": experiment["id"], "figure": expectation["figure"], **_beside(case)}
            for experiment in self.document["experiments"]
            for expectation in experiment["expectations"]
            for case in expectation["cases"]
        ]
        return pd.DataFrame(rows)

    @property
    def metrics(self) -> pd.DataFrame:
        """One row per metric and seed: its experiment, kernel, point, seed and value."""
        rows = [
            {"experiment": experiment["id"], **{k: v for k, v in result.items() if k != "values"}, "seed": seed}
            | {"value": value}
            for experiment in self.document["experiments"]
            for result in experiment["results"]
            for seed, value in zip(experiment["seeds"], result["values"], strict=True)
        ]
        return pd.DataFrame(rows, columns=["experiment", "kernel", "at", "metric", "seed", "value"])

    @property
    def remarks(self) -> list[str]:
        """The remarks on the workloads and on the runs."""
        return [remark for experiment in self.document["experiments"] for remark in experiment["remarks"]]


@dataclass(frozen=True, repr=False)
class Battery:
    """The verdicts of tests, as `schedlab test` reports them."""

    status: int
    """The command's exit status: 0 if all tests passed or were skipped, 1 if one failed, 3 if undecided."""
    document: dict[str, Any]
    """The whole document, as `schedlab test --json` prints it."""

    def __repr__(self) -> str:
        verdict = _VERDICTS.get(self.status, str(self.status))
        return f"<schedlab.Battery of {len(self.document['tests'])} tests on {self.document['on']}: {verdict}>"

    @property
    def held(self) -> bool:
        """Whether every test passed or was skipped."""
        return self.status == command.DONE

    @property
    def tests(self) -> pd.DataFrame:
        """One row per test: its id, group, verdict, the reason, the machine, and the command that runs it again."""
        columns = ["id", "group", "title", "verdict", "reason", "machine", "command", "kept"]
        return pd.DataFrame([[test[column] for column in columns] for test in self.document["tests"]], columns=columns)

    @property
    def expectations(self) -> pd.DataFrame:
        """One row per expectation of the tests that ran: its test, figure, measured value, and verdict."""
        rows = [
            {"test": test["id"], **expectation}
            for test in self.document["tests"]
            for expectation in test["expectations"] or []
        ]
        return pd.DataFrame(rows)


@dataclass(frozen=True, repr=False)
class Conservation:
    """Whether CPUs were idle while tasks waited, as `schedlab check` reports it."""

    status: int
    """The command's exit status: 0 if none was, 1 if some were, 3 if undecided."""
    document: dict[str, Any]
    """The whole document, as `schedlab check --json` prints it."""

    def __repr__(self) -> str:
        verdict, found = _VERDICTS.get(self.status, str(self.status)), len(self.document["violations"])
        return f"<schedlab.Conservation: {verdict}, {found} violations, {self.wasted_cpu_us:.0f} us wasted>"

    @property
    def held(self) -> bool:
        """Whether the check passed."""
        return self.status == command.DONE

    @property
    def wasted_cpu_us(self) -> float:
        """The total CPU time wasted; NaN if the recording is partial."""
        wasted = self.document["wasted_cpu_us"]
        return float("nan") if wasted is None else float(wasted)

    @property
    def violations(self) -> pd.DataFrame:
        """One row per violation: its time and duration, the CPUs, what separates them, and the task that waited."""
        return pd.DataFrame(self.document["violations"])

    @property
    def bound(self) -> pd.DataFrame:
        """One row per set of CPUs whose tasks waited while other CPUs were idle: the waiting and the tasks."""
        return pd.DataFrame(self.document["bound"])

    @property
    def reason(self) -> str | None:
        """Why the check is undecided, if it is."""
        reason: str | None = self.document["reason"]
        return reason
