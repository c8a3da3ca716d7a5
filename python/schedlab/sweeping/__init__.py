"""Sweeps: simulations of all combinations of kernels, machines, workloads, settings and seeds.

`schedlab sweep SWEEP.toml` runs `schedlab.sweeping.run`. `sweep` reads the file and `check` checks it, `grid` numbers
its combinations, `work` hands out each `batch` of them to a `cluster`, `journal` keeps the rows as they come, and
`table` writes them in their order.
"""

import sys
from collections.abc import Sequence


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    try:
        from schedlab.sweeping.main import main  # noqa: PLC0415 (what it needs is an extra on older Pythons)
    except ModuleNotFoundError as error:
        print(f"schedlab: {error.name} is not installed; pip install 'schedlab[tune]'", file=sys.stderr)
        return 4
    return main(arguments)
