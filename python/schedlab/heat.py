"""A heat map: what each CPU had over time, as numbers and as a picture."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Heatmap:
    """What `schedlab heatmap` draws."""

    document: dict[str, Any]
    """All of it, as `schedlab heatmap --json` prints it."""
    png: bytes = field(repr=False)
    """The picture."""

    @property
    def cells(self) -> pd.DataFrame:
        """One row a CPU (or some side by side, of very many), one column an instant in us from the trace's start.

        Means over the column's time, NaN where nothing is known; of looks, how many there were.
        """
        rows = self.document["cells"]
        start, width = self.document["start_us"], self.document["column_us"]
        columns = pd.Index(start + width * np.arange(self.document["columns"]), name="start_us")
        names = [",".join(map(str, row["cpus"])) or f"node {row['node']}" for row in rows]
        index = pd.Index(names, name="cpus")
        return pd.DataFrame(np.array([row["values"] for row in rows], dtype=float), index=index, columns=columns)

    def _repr_png_(self) -> bytes:
        """Show the picture in a notebook."""
        return self.png
