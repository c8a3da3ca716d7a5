"""A heat map: a figure for each CPU over time, as numbers and as a picture."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from schedlab.counting import counted


@dataclass(frozen=True, repr=False)
class Heatmap:
    """The result of `schedlab heatmap`."""

    document: dict[str, Any]
    """The whole document, as `schedlab heatmap --json` prints it."""
    png: bytes
    """The picture."""

    def __repr__(self) -> str:
        rows, columns = len(self.document["cells"]), self.document["columns"]
        return f"<schedlab.Heatmap of {counted(rows, 'row')}, {counted(columns, 'time slice')}>"

    @property
    def cells(self) -> pd.DataFrame:
        """One row per CPU, one column per time slice, named by its start in us from the trace's start.

        With very many CPUs, a row stands for several neighbouring ones. A cell is the mean over its time slice, or
        NaN if nothing is known. For examined CPUs it is the number of times that they were examined.
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
