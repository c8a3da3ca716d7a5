"""What a sweep would simulate, without doing it."""

import json

from schedlab.counting import counted
from schedlab.program import printed
from schedlab.sweeping.grid import Grid

# The rows that are shown.
_SHOWN = 8


def show(grid: Grid, as_json: bool) -> None:
    """Print how many simulations it is, and the first of them."""
    rows = [grid.row(n) for n in range(min(_SHOWN, grid.count))]
    cells = [
        {
            "point": own.point,
            "kernel": own.kernel.name,
            "machine": own.machine.name,
            "workload": own.workload.name,
            **{name: own.settings.get(name) for name in grid.settings},
            "seed": own.seed,
        }
        for own in rows
    ]
    if as_json:
        printed(json.dumps({"sweep": {"file": str(grid.sweep.document.path), "points": grid.count, "first": cells}}))
        return
    lines = [f"{counted(grid.count, 'simulation')}: {_sizes(grid)}", ""]
    texts = [list(cells[0]), *([("-" if value is None else str(value)) for value in row.values()] for row in cells)]
    widths = [max(len(line[n]) for line in texts) for n in range(len(texts[0]))]
    lines += ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in texts]
    printed("\n".join([*lines, *(["..."] if grid.count > len(rows) else [])]))


def _sizes(grid: Grid) -> str:
    """Return what is multiplied, in words."""
    swept = grid.sweep

    def many(count: int, noun: str) -> str:
        return f"{count:,} {noun}{'s' if count > 1 else ''}"

    parts = [
        many(len(swept.kernels), "kernel"),
        many(len(swept.machines), "machine"),
        many(len(swept.workloads), "workload"),
    ]
    counts = {grid.combinations(own) for own in swept.kernels}
    if counts != {1}:
        parts.append("their settings" if len(counts) > 1 else many(counts.pop(), "combination") + " of settings")
    return " x ".join([*parts, many(len(swept.seeds), "seed")])
