"""What other kernels, settings or machines would do with a load."""

from dataclasses import dataclass
from typing import Any

import pandas as pd


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
            | {key: value for key, value in figure.items() if key != "interval"}
            | dict(zip(("low", "high"), figure["interval"] or (None, None), strict=True))
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
