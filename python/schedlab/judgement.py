"""What came out of an experiment or a check."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from schedlab import command


@dataclass(frozen=True)
class Judgement:
    """The verdicts of an experiment, as `schedlab run` tells them."""

    status: int
    """The command's exit status: 0 all held, 1 an expectation failed, 3 undecided."""
    document: dict[str, Any]
    """All of it, as `schedlab run --json` prints it."""

    @property
    def held(self) -> bool:
        """Whether every expectation held."""
        return self.status == command.DONE

    @property
    def expectations(self) -> pd.DataFrame:
        """One row an expectation: its experiment, figure, published and measured value, and verdict."""
        rows = [
            {"experiment": experiment["id"], **expectation}
            for experiment in self.document["experiments"]
            for expectation in experiment["expectations"]
        ]
        return pd.DataFrame(rows)


@dataclass(frozen=True)
class Conservation:
    """Whether CPUs were idle while tasks waited, as `schedlab check` tells it."""

    status: int
    """The command's exit status: 0 none was, 1 some were, 3 undecided."""
    document: dict[str, Any]
    """All of it, as `schedlab check --json` prints it."""

    @property
    def held(self) -> bool:
        """Whether the scheduler kept its promise."""
        return self.status == command.DONE

    @property
    def wasted_cpu_us(self) -> float:
        """The CPU time wasted in all."""
        return float(self.document["wasted_cpu_us"])

    @property
    def violations(self) -> pd.DataFrame:
        """One row a violation: when, how long, which CPUs, what separates them, who waited."""
        return pd.DataFrame(self.document["violations"])
