"""How far apart two recordings of one load are, by the measures of `schedlab model --validate`.

What a second recording does otherwise than the first is chance, and no model can be nearer to one of them than that.
"""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import across

#: Tasks with less than this part of one CPU's time are not judged one by one.
LEAST_SHARE = 0.01
#: Fewer ranks say nothing.
FEWEST = 3
#: What `diff` calls all tasks together.
ALL = "all tasks"


def between(schedlab: str, first: Path, second: Path) -> dict[str, Any]:
    """Take the second recording for a prediction of the first: as `validation` of `model --validate`, without rows."""
    rows = across.run(schedlab, "diff", str(first), str(second), "--by", "task", "--all")["rows"]
    figures = {row["name"]: {key: (one["a"], one["b"]) for key, one in row["figures"].items()} for row in rows}
    return compared(figures.pop(ALL), list(figures.values()))


def compared(whole: dict[str, tuple[float, float]], tasks: Sequence[dict[str, tuple[float, float]]]) -> dict[str, Any]:
    """Compare all tasks together, and those that used enough of a CPU one by one. Each figure is of both recordings."""
    least = LEAST_SHARE * whole["duration_us"][0]
    judged = [task for task in tasks if task["run_us"][0] >= least]
    waits = [task.get("wait_us", (0.0, 0.0)) for task in judged]
    base = [max(was, task["run_us"][0] * across.LEAST) for task, (was, _) in zip(judged, waits, strict=True)]
    sizes = sorted(abs(now - was) / least for (was, now), least in zip(waits, base, strict=True))
    keys = {"wait": "wait_us", "slices": "slices", "latency_p50": "latency_p50_us", "latency_p99": "latency_p99_us"}
    errors = {name: error(whole.get(key, (0.0, 0.0))) for name, key in keys.items()}
    errors["task_wait_median"] = sizes[math.ceil(0.5 * len(sizes)) - 1] if sizes else None
    errors["task_wait_p90"] = sizes[math.ceil(0.9 * len(sizes)) - 1] if sizes else None
    errors["rank"] = spearman([was for was, _ in waits], [now for _, now in waits])
    latencies = {key: whole.get(key, (0.0, 0.0)) for key in ("latency_p50_us", "latency_p99_us")}
    recorded, simulated = ({key: both[at] for key, both in latencies.items()} for at in (0, 1))
    return {"errors": errors, "recorded": recorded, "simulated": simulated}


def error(both: tuple[float, float]) -> float | None:
    """By how much the second is off, relative to the first; none of nothing."""
    was, now = both
    return (now - was) / was if was > 0 else None


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's rank correlation; none for few values, or where all are equal."""
    if len(a) < FEWEST or len({*a}) == 1 or len({*b}) == 1:
        return None
    return statistics.correlation(ranks(a), ranks(b))


def ranks(values: Sequence[float]) -> list[float]:
    """Rank the values; equal ones share the mean of their ranks."""
    ordered = sorted(values)
    return [(ordered.index(value) + len(ordered) - 1 - ordered[::-1].index(value)) / 2 for value in values]
