"""What came out of an experiment."""

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
