"""The results of experiments and checks."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from schedlab import command

# The exit statuses of a judgement in words.
_VERDICTS = {command.DONE: "held", command.FAILED: "failed", command.UNDECIDED: "undecided"}


@dataclass(frozen=True, repr=False)
class Judgement:
    """The verdicts of an experiment, as `schedlab run` reports them."""

    status: int
    """The command's exit status: 0 if all expectations held, 1 if one failed, 3 if undecided."""
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
        """One row per expectation: its experiment, figure, published and measured value, and verdict."""
        rows = [
            {"experiment": experiment["id"], **expectation}
            for experiment in self.document["experiments"]
            for expectation in experiment["expectations"]
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
        """The total CPU time wasted."""
        return float(self.document["wasted_cpu_us"])

    @property
    def violations(self) -> pd.DataFrame:
        """One row per violation: its time and duration, the CPUs, what separates them, and the task that waited."""
        return pd.DataFrame(self.document["violations"])
