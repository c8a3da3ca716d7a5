"""The waits of tasks and what ran meanwhile."""

from dataclasses import dataclass
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Delays:
    """Which tasks delayed which, as `schedlab delays` reports it."""

    waits: pd.DataFrame
    """The longest waits, one row each. `culprits` is a list of `task`, `tid` and `run_us`."""
    culprits: pd.DataFrame
    """One row per task that ran while others waited for its CPU, with the time that it caused."""
    victims: pd.DataFrame
    """One row per task that waited, with its waits."""
    total: dict[str, Any]
    """All waits together."""
    document: dict[str, Any]
    """The whole document, as `schedlab delays --json` prints it: the sums by name, process and group too."""

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Delays":
        """Convert the JSON document to frames."""
        waits, culprits, victims = (pd.DataFrame(document[key]) for key in ("waits", "culprits", "victims"))
        return cls(waits, culprits, victims, document["total"], document)

    @property
    def blame(self) -> pd.DataFrame:
        """One row per culprit of each of the longest waits: the task that waited, the one that ran, and how long."""
        rows = [
            {
                "task": wait["task"],
                "tid": wait["tid"],
                "start_us": wait["start_us"],
                "duration_us": wait["duration_us"],
                "culprit": culprit["task"],
                "culprit_tid": culprit["tid"],
                "run_us": culprit["run_us"],
            }
            for wait in self.document["waits"]
            for culprit in wait["culprits"]
        ]
        return pd.DataFrame(rows)
