"""The parameters of a study: their values, their scales, and which of them are in use."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schedlab.tomlfile import Document, nearest, suggestion
from schedlab.tuning.catalogue import Known
from schedlab.tuning.study import Study, Table

Value = int | float | str
Config = Mapping[str, Value]

# A range whose ends are this many times apart is searched by logarithm unless the study says otherwise.
_WIDE = 50
# What each value of a tunable that is on or off stands for.
_SWITCH = ("0", "1")


@dataclass(frozen=True)
class Parameter:
    """A parameter: a number in a range, or one of several values."""

    name: str
    default: Value
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 1.0
    whole: bool = True
    log: bool = False
    step: float | None = None
    when: tuple[str, tuple[Value, ...]] | None = None
    group: str = ""
    unit: str = ""

    @property
    def size(self) -> float:
        """How many values it has."""
        if self.choices:
            return len(self.choices)
        if self.step or self.whole:
            return math.floor((self.high - self.low) / (self.step or 1)) + 1
        return math.inf

    def at(self, part: float) -> Value:
        """Return the value at this part of its scale, from 0 to 1."""
        part = min(1.0, max(0.0, part))
        if self.choices:
            return self.choices[min(int(part * len(self.choices)), len(self.choices) - 1)]
        if not self.log:
            value = self.low + part * (self.high - self.low)
        elif self.low > 0:
            value = self.low * (self.high / self.low) ** part
        else:
            value = self.low + math.expm1(part * math.log1p(self.high - self.low))
        if self.step:
            value = self.low + round((value - self.low) / self.step) * self.step
        value = min(self.high, max(self.low, value))
        # Six digits are enough for any tunable, and make equal settings equal.
        return round(value) if self.whole else float(f"{value:.6g}")

    def part(self, value: Value) -> float:
        """Return where on its scale a value is, from 0 to 1."""
        if self.choices:
            return (self.choices.index(value) + 0.5) / len(self.choices)
        number = min(self.high, max(self.low, float(value)))
        if not self.log:
            return (number - self.low) / (self.high - self.low)
        if self.low > 0:
            return math.log(number / self.low) / math.log(self.high / self.low)
        return math.log1p(number - self.low) / math.log1p(self.high - self.low)

    def values(self, points: int) -> list[Value]:
        """Return its values along a grid, the least first."""
        if self.choices:
            return list(self.choices)
        points = int(min(points, self.size))
        found = [self.at(k / max(1, points - 1)) for k in range(points)]
        return list(dict.fromkeys(found))


class Space:
    """The parameters of a study. A parameter stands after the one that its condition names."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.parameters = tuple(parameters)
        self.names = tuple(own.name for own in parameters)
        self.default: dict[str, Value] = {own.name: own.default for own in parameters}

    @property
    def size(self) -> float:
        """How many settings there are."""
        return math.prod(own.size for own in self.parameters)

    def active(self, config: Config) -> list[Parameter]:
        """Return the parameters that are in use."""
        found: dict[str, Parameter] = {}
        for own in self.parameters:
            if own.when is None or (own.when[0] in found and config[own.when[0]] in own.when[1]):
                found[own.name] = own
        return list(found.values())

    def complete(self, config: Config) -> dict[str, Value]:
        """Return settings in which every parameter that is not given or not in use has its default."""
        whole = {**self.default, **config}
        active = {own.name for own in self.active(whole)}
        return {name: whole[name] if name in active else self.default[name] for name in self.names}

    def settings(self, config: Config) -> dict[str, str]:
        """Return the settings to make: those of the parameters in use, as text."""
        return {own.name: str(config[own.name]) for own in self.active(config)}

    def changes(self, config: Config) -> dict[str, Value]:
        """Return the settings that differ from the default."""
        return {name: value for name, value in config.items() if value != self.default[name]}

    def only(self, names: Sequence[str]) -> "Space":
        """Return the space of some of the parameters."""
        return Space([own for own in self.parameters if own.name in names])


def key(config: Config) -> str:
    """Return settings as a text that is equal for equal settings."""
    return " ".join(f"{name}={value}" for name, value in sorted(config.items()))


def build(study: Study, known: Mapping[str, Known], where: str) -> Space:
    """Return the parameters of a study. What the study leaves out is as `known`, the catalogue of `where`, says."""
    found: dict[str, Parameter] = {}
    waiting = dict(study.parameters)
    while waiting:
        ready = [name for name, own in waiting.items() if not set(own.get("when", {})) & set(waiting)]
        if not ready:
            raise study.document.error(("parameters", next(iter(waiting)), "when"), "depends on itself")
        for name in ready:
            found[name] = _parameter(study.document, name, waiting.pop(name), known=known, where=where, before=found)
    return Space(list(found.values()))


def check_settings(space: Space, document: Document, path: tuple[str, ...], config: Table) -> dict[str, Value]:
    """Return named settings in full. A name or a value that the space does not have is an error."""
    found: dict[str, Value] = {}
    for name, value in config.items():
        if name not in space.names:
            raise document.error(path, f'"{name}" is no parameter of this study', suggestion(name, space.names))
        own = next(own for own in space.parameters if own.name == name)
        found[name] = _value(document, path, own, value)
    return space.complete(found)


def _known_name(name: str, known: Mapping[str, Known]) -> str:
    """Return the advice for a tunable that does not exist; a kernel has too many to list them all."""
    near = nearest(name, known)
    return f'did you mean "{near}"?' if near else "schedlab tunables lists what there is"


def _value(document: Document, path: tuple[str, ...], own: Parameter, value: Any) -> Value:  # noqa: ANN401 (any TOML)
    if own.choices:
        text = _text(value) if own.choices == _SWITCH else value
        if text not in own.choices:
            choices = ", ".join(map(str, own.choices))
            raise document.error(path, f"{own.name} has no value {value}", f"take one of {choices}")
        return _known_type(text)
    if isinstance(value, (str, bool)):
        raise document.error(path, f'{own.name}: "{value}" is no number', f"write one from {own.low:g} to {own.high:g}")
    if not own.low <= value <= own.high:
        raise document.error(path, f"{own.name}={value} is out of range", f"write {own.low:g} to {own.high:g}")
    return round(value) if own.whole else float(value)


def _known_type(value: Any) -> Value:  # noqa: ANN401 (one of the choices)
    return value if isinstance(value, (int, float)) else str(value)


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _parameter(
    document: Document,
    name: str,
    own: Table,
    *,
    known: Mapping[str, Known],
    where: str,
    before: Mapping[str, Parameter],
) -> Parameter:
    path = ("parameters", name)
    entry = known.get(name)
    if entry is None and known:
        raise document.error(path, f"{where} has no such tunable", _known_name(name, known))
    if "range" in own and "choices" in own:
        raise document.error(path, "has both range and choices", "write one of them")
    when = _condition(document, path, own.get("when"), before)
    group = own.get("group") or (entry.group if entry else "")
    unit = entry.unit if entry else ""
    choices = _choices(document, path, own, entry)
    if choices:
        default = own.get("default", entry.default if entry else choices[0])
        default = _text(default) if choices == _SWITCH else default
        if default not in choices:
            choices = (default, *choices)
        return Parameter(name, default, choices, when=when, group=group, unit=unit)
    return _number(document, path, own, entry, Parameter(name, 0, when=when, group=group, unit=unit))


def _choices(document: Document, path: tuple[str, ...], own: Table, entry: Known | None) -> tuple[Value, ...]:
    if "choices" in own:
        values = tuple(_text(v) if isinstance(v, bool) else v for v in own["choices"])
        if entry and entry.switch:
            values = tuple(map(str, values))
        if len(set(values)) != len(values):
            raise document.error((*path, "choices"), "names a value twice")
        outside = [v for v in values if entry and not entry.allows(v)]
        if outside and entry:
            raise document.error((*path, "choices"), f"{outside[0]} is out of range", entry.range_text())
        return values
    if entry and "range" not in own:
        return _SWITCH if entry.switch else tuple(entry.choices)
    return ()


def _number(document: Document, path: tuple[str, ...], own: Table, entry: Known | None, part: Parameter) -> Parameter:
    """Return a parameter that is a number."""
    low, high = own.get("range", (entry.low, entry.high) if entry else (None, None))
    if low is None or high is None:
        fix = "write range = [1, 100], or choices = [...]"
        raise document.error(path, "has no range, and the catalogue knows none", fix)
    if entry and not (entry.allows(low) and entry.allows(high)):
        raise document.error((*path, "range"), f"[{low}, {high}] is out of range", entry.range_text())
    default = own.get("default", entry.default if entry else None)
    if default is None or isinstance(default, (str, bool)):
        where = (*path, "default") if "default" in own else path
        raise document.error(where, "has no default that is a number", f"write default = {low:g}")
    if "default" in own and not low <= default <= high:
        raise document.error((*path, "default"), f"{default} is out of range", f"write {low} to {high}")
    if "step" in own and not 0 < own["step"] <= high - low:
        raise document.error((*path, "step"), f"{own['step']:g} is no step within the range", f"{high - low:g} at most")
    floats = any(isinstance(value, float) for value in (low, high, own.get("step"), own.get("default")))
    whole = own.get("type", "float" if floats and entry is None else "int") == "int"
    # The default is a point of the search even where it lies outside of the range that the study asks for.
    low, high = min(low, default), max(high, default)
    log = own.get("log", high - low > _WIDE * max(abs(low), 1))
    if log and low < 0:
        raise document.error((*path, "log"), "negative values have no logarithm", "write a range from 0 or more")
    return Parameter(
        part.name,
        round(default) if whole else float(default),
        low=low,
        high=high,
        whole=whole,
        log=log,
        step=own.get("step") or None,
        when=part.when,
        group=part.group,
        unit=part.unit,
    )


def _condition(
    document: Document, path: tuple[str, ...], when: Table | None, before: Mapping[str, Parameter]
) -> tuple[str, tuple[Value, ...]] | None:
    if when is None:
        return None
    where = (*path, "when")
    if len(when) != 1:
        raise document.error(where, f"names {len(when)} parameters", 'write one: { NAME = "value" }')
    name, value = next(iter(when.items()))
    other = before.get(name)
    if other is None:
        fix = suggestion(name, before) if before else "name another parameter of the study"
        raise document.error(where, f'"{name}" is no parameter of this study', fix)
    values = tuple(value) if isinstance(value, list) else (value,)
    if not other.choices:
        raise document.error(where, f'"{name}" is a number', f"give {name} choices; a condition compares with these")
    return name, tuple(_value(document, where, other, own) for own in values)
