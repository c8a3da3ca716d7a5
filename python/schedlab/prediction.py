"""What other kernels, settings or machines would do with a load, and what differs between runs of it."""

from dataclasses import dataclass
from typing import Any

import pandas as pd

from schedlab import command
from schedlab.counting import counted


@dataclass(frozen=True, repr=False)
class WhatIf:
    """The predicted changes, as `schedlab whatif` reports them."""

    document: dict[str, Any]
    """The answer, as `schedlab whatif --json` prints it (`whatif`)."""

    def __repr__(self) -> str:
        names = ", ".join(str(variant["name"]) for variant in self.document["variants"])
        baseline = self.document["baseline"]
        return f"<schedlab.WhatIf: {baseline['kernel']} on {baseline['machine']}, or {names}>"

    def __str__(self) -> str:
        parts = ["\n".join([f"{name}:", *lines]) for name, lines in self.sentences.items()]
        return "\n\n".join(parts)

    @property
    def sentences(self) -> dict[str, list[str]]:
        """The answer in words: the lines of each variant, what changes most first."""
        return {str(variant["name"]): variant["sentences"] for variant in self.document["variants"]}

    @property
    def rows(self) -> pd.DataFrame:
        """One row per variant, row of the answer and figure: `recorded`, `baseline`, `asked`, `change`, `verdict`."""
        rows = [
            {"variant": variant["name"], **{k: v for k, v in row.items() if k != "figures"}, "figure": name}
            | _flat(figure)
            for variant in self.document["variants"]
            for row in variant["rows"]
            for name, figure in row["figures"].items()
        ]
        return pd.DataFrame(rows)

    @property
    def validation(self) -> dict[str, Any] | None:
        """How well the model repeats the recording, as `schedlab.validate` returns it; `None` without a recording."""
        found: dict[str, Any] | None = self.document["validation"]
        return found


@dataclass(frozen=True, repr=False)
class Difference:
    """What differs between two traces or two sets of them, as `schedlab diff` reports it."""

    status: int
    """The command's exit status: 0 if no bound is exceeded, 1 if one is, 3 if the scatter leaves one undecided."""
    document: dict[str, Any]
    """The whole document, as `schedlab diff --json` prints it."""

    def __repr__(self) -> str:
        worse = sum(change["direction"] == "worse" for change in self.document["changes"])
        return (
            f"<schedlab.Difference: {counted(worse, 'figure')} got worse, {counted(len(self.document['rows']), 'row')}>"
        )

    @property
    def held(self) -> bool:
        """Whether every bound is held."""
        return self.status == command.DONE

    @property
    def changes(self) -> pd.DataFrame:
        """One row per figure that changed beyond the scatter, what got worse first."""
        return pd.DataFrame([_flat(change) for change in self.document["changes"]])

    @property
    def rows(self) -> pd.DataFrame:
        """One row per row and figure: `a`, `b`, `change`, `low`, `high`, `effect_size`, `direction`."""
        rows = [
            {"row": row["name"], "figure": name, **_flat(figure)}
            for row in self.document["rows"]
            for name, figure in row["figures"].items()
        ]
        return pd.DataFrame(rows)

    @property
    def bounds(self) -> pd.DataFrame:
        """One row per bound: its `ruling` and the `reason`."""
        return pd.DataFrame(self.document["bounds"], columns=["bound", "ruling", "reason"])


def _flat(figure: dict[str, Any]) -> dict[str, Any]:
    """Return a figure with the ends of its interval as `low` and `high`."""
    low, high = figure["interval"] or (None, None)
    return {key: value for key, value in figure.items() if key != "interval"} | {"low": low, "high": high}
