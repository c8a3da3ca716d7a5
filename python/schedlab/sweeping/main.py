"""`schedlab sweep`: the command."""

import argparse
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from schedlab import command
from schedlab.counting import counted
from schedlab.program import printed, say
from schedlab.sweeping import check, cluster, options, preview, sweep
from schedlab.sweeping.execution import Execution
from schedlab.sweeping.grid import Grid
from schedlab.sweeping.progress import spoken


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return _run(options.parser().given(arguments))


def _run(given: argparse.Namespace) -> int:
    where = options.given(given)
    described = sweep.read(given.sweep)
    check.check(described)
    if given.dry_run:
        preview.show(Grid(described), given.json)
        return command.DONE
    output = given.output or Path(f"{given.sweep.stem}.parquet")
    execution = Execution(described, output, force=given.force)
    grid, progress = execution.grid, execution.progress
    if execution.resumed:
        say(f"{execution.journal.path} has {execution.resumed:,} of {counted(grid.count, 'row')} already; going on")
    start = time.monotonic()
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        execution.run(*where)
    except KeyboardInterrupt as interrupt:
        kept = execution.journal.path
        say(f"stopped with {progress.done:,} of {counted(grid.count, 'row')} in {kept}; the same command goes on")
        return _ended(128 + (interrupt.args[0] if interrupt.args else signal.SIGINT))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for remark in execution.remarks:
        say(remark)
    seconds, workers = time.monotonic() - start, execution.where
    new = f", {progress.done - execution.resumed:,} of them in {spoken(seconds)} on {workers}" if workers else ""
    say(f"wrote {output}: {counted(grid.count, 'row')}{new}")
    if progress.failed:
        say(execution.failures())
    if given.json:
        summary = {
            "file": str(given.sweep),
            "output": str(output),
            "points": grid.count,
            "resumed": execution.resumed,
            "failed": progress.failed,
            "errors": execution.errors,
            "seconds": round(seconds, 3),
            "workers": workers or None,
            "remarks": execution.remarks,
        }
        printed(json.dumps({"sweep": summary}))
    return command.FAILED if progress.failed else command.DONE


def _ended(status: int) -> int:
    """Return the status, unless simulations in other threads would hold the end up."""
    for thread in threading.enumerate():
        if thread.name.startswith(cluster.THREADS):
            thread.join(timeout=1.0)
            if thread.is_alive():
                sys.stderr.flush()
                os._exit(status)
    return status


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt(number)
