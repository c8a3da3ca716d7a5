"""The values in a sweep's file: of settings, one by one or as ranges, and of seeds."""

import math
from collections.abc import Mapping
from typing import Any

from schedlab.tomlfile import Document, is_number

Value = int | float | str

DEFAULT_SEEDS = (1, 2, 3, 4, 5)

# The most values of a range, and the most seeds.
MOST_VALUES = 10_000_000

_RANGE_KEYS = ("from", "to", "step", "steps", "scale")
RANGE = 'write a value, a list of values, or { from = 1, to = 100, steps = 5, scale = "log" }'
_LEAST_STEPS = 2

# A longer value is not shown whole in an error.
_MOST_SHOWN = 60


def text(document: Document, key: str, value: object) -> str:
    """Return a value that is text."""
    if not isinstance(value, str):
        raise document.error(key, f"{shown(value)} is no text", 'write it in quotes: "..."')
    return value


def shown(value: object) -> str:
    """Return a value for an error."""
    full = str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
    return full if len(full) <= _MOST_SHOWN else f"{full[: _MOST_SHOWN - 3]}..."


def written(value: Value) -> str:
    """Return a setting's value as the command line takes it: a whole number has no point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def table(document: Document, key: str, value: object) -> Mapping[str, Any]:
    """Return a value that is a table."""
    if not isinstance(value, dict):
        raise document.error(key, f"{shown(value)} is no table", f"write [{key}] and a line for each")
    return value


def seeds(document: Document) -> tuple[int, ...] | range:
    """Return the seeds: so many, a list, or a range."""
    value = document.values.get("seeds", list(DEFAULT_SEEDS))
    fix = "write how many, a list, or { from = 1, to = 100 }"
    if _whole(value):
        if not 1 <= value <= MOST_VALUES:
            raise document.error("seeds", f"{value} is no number of seeds", f"write one from 1 to {MOST_VALUES}")
        return range(1, value + 1)
    if isinstance(value, dict):
        document.refuse_unknown(value, ("from", "to"), "seeds")
        low, high = value.get("from", 1), value.get("to", -1)
        if not (_whole(low) and _whole(high) and 0 <= low <= high < 1 << 63 and high - low < MOST_VALUES):
            raise document.error("seeds", "is no range of seeds", "write { from = 1, to = 100 }")
        return range(low, high + 1)
    if not isinstance(value, list) or not value:
        raise document.error("seeds", f"{shown(value)} is no seed", fix)
    known = set()
    for at, seed in enumerate(value):
        if not _whole(seed) or not 0 <= seed < 1 << 63:
            raise document.error(f"seeds[{at}]", f"{shown(seed)} is no seed", "write whole numbers from 0 on")
        if seed in known:
            raise document.error(f"seeds[{at}]", f"{seed} is there twice", "give each seed once")
        known.add(seed)
    return tuple(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def settings(document: Document, key: str, value: object) -> Mapping[str, tuple[Value, ...]]:
    """Return the values that each setting of a table takes."""
    own = table(document, key, value)
    return {name: _values(document, f"{key}.{name}", one) for name, one in own.items()}


def _values(document: Document, key: str, value: object) -> tuple[Value, ...]:
    """Return the values that a setting takes: one, those of a list, or those of a range."""
    if isinstance(value, dict):
        return _range(document, key, value)
    if not isinstance(value, list):
        return (_value(document, key, value),)
    if not value:
        raise document.error(key, "has no value", RANGE)
    found = [_value(document, f"{key}[{at}]", one) for at, one in enumerate(value)]
    if len({isinstance(one, str) for one in found}) > 1:
        raise document.error(key, "has both texts and numbers", "write either")
    known = set()
    for at, one in enumerate(found):
        if one in known:
            raise document.error(f"{key}[{at}]", f"{shown(one)} is there twice", "give each value once")
        known.add(one)
    return tuple(found)


def _value(document: Document, key: str, value: object) -> Value:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) or (isinstance(value, (int, float)) and is_number(value)):
        return value
    raise document.error(key, f"{shown(value)} is no value of a setting", RANGE)


def _range(document: Document, key: str, table: Mapping[str, Any]) -> tuple[Value, ...]:
    document.refuse_unknown(table, _RANGE_KEYS, key)
    for end in ("from", "to"):
        if not is_number(table.get(end)):
            raise document.error(f"{key}.{end}" if end in table else key, f'"{end}" is no number', RANGE)
    low, high, scale = table["from"], table["to"], table.get("scale", "linear")
    if scale not in ("linear", "log"):
        raise document.error(f"{key}.scale", f"there is no {shown(scale)}", 'write "linear" or "log"')
    if low >= high:
        raise document.error(key, f"{low} is not less than {high}", "from is the least value, to the greatest")
    if scale == "log" and low <= 0:
        raise document.error(f"{key}.from", f"{low} has no logarithm", "begin above 0, or take the linear scale")
    whole = _whole(low) and _whole(high)
    found = _stepped(document, key, table, whole) if "step" in table else _spread(document, key, table, whole)
    if len(set(found)) < len(found):
        raise document.error(
            f"{key}.steps", f"{len(found)} whole numbers do not fit between {low} and {high}", "take fewer"
        )
    return found


def _stepped(document: Document, key: str, table: Mapping[str, Any], whole: bool) -> tuple[Value, ...]:
    low, high, step = table["from"], table["to"], table["step"]
    if "steps" in table or table.get("scale") == "log":
        raise document.error(f"{key}.step", "goes with neither steps nor a logarithmic scale", "take steps alone")
    if not is_number(step) or step <= 0:
        raise document.error(f"{key}.step", f"{shown(step)} is no step", "write a number above 0")
    steps = (high - low) / step * (1 + 1e-12)
    if steps >= MOST_VALUES:
        raise document.error(f"{key}.step", f"gives {steps + 1:.15g} values", f"at most {MOST_VALUES}")
    count = math.floor(steps) + 1
    return tuple(low + n * step if whole and _whole(step) else float(low + n * step) for n in range(count))


def _spread(document: Document, key: str, table: Mapping[str, Any], whole: bool) -> tuple[Value, ...]:
    low, high = table["from"], table["to"]
    steps = table.get("steps", high - low + 1 if whole and table.get("scale") != "log" else None)
    if steps is None:
        raise document.error(key, "does not say how many values", "add steps = 5, or step = 10")
    if not _whole(steps) or not _LEAST_STEPS <= steps <= MOST_VALUES:
        raise document.error(f"{key}.steps", f"{shown(steps)} is no number of values", f"from 2 to {MOST_VALUES}")
    parts = [n / (steps - 1) for n in range(steps)]
    if table.get("scale") == "log":
        found = [low * (high / low) ** part for part in parts]
    else:
        found = [low + (high - low) * part for part in parts]
    # Both ends are values themselves, whatever the arithmetic made of them.
    found[0], found[-1] = low, high
    return tuple(round(one) if whole else float(one) for one in found)
