"""Sweeps: simulations of all combinations of kernels, machines, workloads, settings and seeds.

`schedlab sweep SWEEP.toml` runs `schedlab.sweeping.run`. `sweep` reads the file and `check` checks it, `grid` numbers
its combinations, `work` hands out each `batch` of them to a `cluster`, `journal` keeps the rows as they come, and
`table` writes them in their order.
"""

from collections.abc import Sequence

from schedlab import program


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return program.ended(lambda: _main(arguments), extra="tune")


def _main(arguments: Sequence[str] | None) -> int:
    from schedlab.sweeping.main import main  # noqa: PLC0415 (what it needs is an extra on older Pythons)

    return main(arguments)
