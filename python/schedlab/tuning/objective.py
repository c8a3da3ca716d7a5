"""What a run yields: one number for each objective and constraint of the study."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from schedlab.tuning.study import Measure


@dataclass(frozen=True)
class Run:
    """One run: its numbers, in the order of the study's measures, and why one is missing."""

    values: tuple[float | None, ...]
    why: str = ""
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether it has all numbers."""
        return None not in self.values


def of_command(measures: Sequence[Measure], output: str, elapsed_s: float) -> Run:
    """Return the numbers that a command printed, and the time that it took."""
    values: list[float | None] = []
    why = ""
    for measure in measures:
        value: float | None = elapsed_s
        if measure.pattern is not None:
            value = _matched(measure.pattern, output)
            missing = f"the output has no number that fits {measure.pattern!r}"
        elif measure.json is not None:
            value = _at(output, measure.json)
            missing = f"the output has no number at {measure.json!r}"
        if value is None:
            why = why or f"{measure.name}: {missing}"
        values.append(value)
    return Run(tuple(values), why, elapsed_s)


def _matched(pattern: str, output: str) -> float | None:
    """Return the last number that fits: programs print their result at the end."""
    found = None
    for match in re.finditer(pattern, output, re.MULTILINE):
        found = _number(match[1])
    return found


def _at(output: str, path: str) -> float | None:
    """Return the number at a path of the JSON document, which may follow other lines."""
    start = min((at for at in (output.find("{"), output.find("[")) if at >= 0), default=-1)
    if start < 0:
        return None
    try:
        own, _ = json.JSONDecoder().raw_decode(output[start:])
    except json.JSONDecodeError:
        return None
    for part in path.split("."):
        if isinstance(own, list) and part.isdigit() and int(part) < len(own):
            own = own[int(part)]
        elif isinstance(own, dict) and part in own:
            own = own[part]
        else:
            return None
    return _number(own)


def _number(value: object) -> float | None:
    try:
        number = float(str(value).replace(",", ""))
    except ValueError:
        return None
    # A benchmark that divides by 0 prints "inf" or "nan", which can be compared with nothing.
    return number if math.isfinite(number) else None
