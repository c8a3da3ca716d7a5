"""The programs of the package, as `schedlab query`, `schedlab sweep` and `schedlab tune` run them.

They are apart from it, so that Ctrl-C while it is imported, which may take seconds, ends them like Ctrl-C later on.
"""

import importlib
import sys

# The statuses of a program that Ctrl-C ended: as a shell has it, and what `schedlab tune` says of it.
_INTERRUPTED, _UNDECIDED = 130, 3


def query() -> int:
    """Run `schedlab query`."""
    return _run("schedlab.querying", "main")


def sweep() -> int:
    """Run `schedlab sweep`."""
    return _run("schedlab.sweeping", "run")


def tune() -> int:
    """Run `schedlab tune`."""
    return _run("schedlab.tuning.cli", "main", interrupted=_UNDECIDED)


def _run(module: str, function: str, interrupted: int = _INTERRUPTED) -> int:
    """Import a program and run it; return its exit status."""
    try:
        program = getattr(importlib.import_module(module), function)
    except KeyboardInterrupt:
        print("schedlab: interrupted", file=sys.stderr)
        return interrupted
    status: int = program()
    return status
