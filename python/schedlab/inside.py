"""Verbs for simulated traces: each runs the simulation behind a trace again, and looks into it."""

from collections.abc import Sequence
from datetime import timedelta

import pandas as pd

from schedlab import _native, command
from schedlab.arguments import Duration, PathLike, duration, options, path_of
from schedlab.output import written
from schedlab.trace import Trace


def again(
    trace: Trace | PathLike, *, trace_queues: bool = False, output: PathLike | None = None, force: bool = False
) -> Trace:
    """Re-run the simulation behind a trace. It gives the same events, with `trace_queues` also those of the queues.

    Without `output`, the trace's file exists as long as the returned object.
    """
    given = ["sim", *options(again=path_of(trace), trace_queues=trace_queues)]
    return written(output, force, lambda target: command.call([*given, *options(output=target)]))


def explain(trace: Trace | PathLike, from_: Duration | None = None, to: Duration | None = None) -> pd.DataFrame:
    """List the decisions of a simulated scheduler in a time window, one row per decision.

    A row has the time, the CPU, what was decided (`choice`), for `who` and `over` which tasks, the `rule`, and the
    `numbers` that were compared.
    """
    start, end = duration("from_", from_) or "0ns", duration("to", to)
    if end is not None and _native.duration_ns(end) <= _native.duration_ns(start):
        raise _native.InputError(f"to: the window ends at {end}, before it begins at {start}")
    document = command.call(["sim", *options(again=path_of(trace), explain=f"{start}..{end or ''}")])
    columns = ["time_us", "cpu", "choice", "who", "over", "rule", "numbers"]
    return pd.DataFrame(document.get("decisions", []), columns=columns)


def queues_at(trace: Trace | PathLike, times: Duration | Sequence[Duration]) -> pd.DataFrame:
    """Show the queues of a simulated scheduler at one or more instants, one row per instant and CPU.

    `queue` is a dictionary with the keys that docs/inside.md explains, or `None`.
    """
    listed = [times] if isinstance(times, (str, timedelta)) else times
    at = [duration("times", time) for time in listed]
    document = command.call(["sim", *options(again=path_of(trace), queues_at=at)])
    return pd.DataFrame(document.get("queues", []), columns=["time_us", "cpu", "queue"])


def sched_debug(trace: Trace | PathLike, time: Duration) -> str:
    """Return what /proc/sched_debug would have shown at this instant of a simulation under CFS or EEVDF."""
    at = duration("time", time)
    return str(command.call(["sim", *options(again=path_of(trace), sched_debug=at)]).get("sched_debug", ""))
