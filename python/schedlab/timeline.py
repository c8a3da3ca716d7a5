"""A timeline: what ran on each CPU, or what each task did."""

from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd


@dataclass(frozen=True, repr=False)
class Gantt:
    """The result of `schedlab gantt`. `print` shows the picture, and so does a notebook."""

    document: dict[str, Any]
    """The whole document, as `schedlab gantt --json` prints it."""
    picture: str
    """The picture, as `schedlab gantt` prints it."""

    @property
    def spans(self) -> pd.DataFrame:
        """One row per span of a lane, in us from the trace's start. `Trace.intervals` has all spans of a trace."""
        lanes = self.document["lanes"]
        rows = [
            {key: lane[key] for key in ("cpu", "tid", "name") if key in lane} | s
            for lane in lanes
            for s in lane["spans"]
        ]
        states = {"state": "running"} if lanes and "cpu" in lanes[0] else {}
        columns = ["start_us", "end_us", "cpu", "tid", "name", "state"]
        return pd.DataFrame([row | states for row in rows], columns=columns)

    def __repr__(self) -> str:
        start, end = self.document["start_us"], self.document["end_us"]
        return f"<schedlab.Gantt of {len(self.document['lanes'])} lanes, {start:g} to {end:g} us>"

    def __str__(self) -> str:
        return self.picture.rstrip("\n")

    def _repr_html_(self) -> str:
        """Show the picture in a notebook."""
        return f'<pre style="line-height: 1.1">{escape(self.picture)}</pre>'
