"""Reads a study file and checks every key of it."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schedlab import _native, tomlfile
from schedlab._native import InputError
from schedlab.tomlfile import Document, suggestion
from schedlab.tuning.schema import MOST_REPEATS, TABLES, Key

Table = Mapping[str, Any]

_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Bound:
    """A bound: an amount, or a part of the default's value."""

    amount: float
    relative: bool

    def of(self, default: float) -> float:
        """Return the bound where the default has this value."""
        return self.amount * abs(default) if self.relative else self.amount


@dataclass(frozen=True)
class Measure:
    """A number that each run yields."""

    name: str
    value: str | None = None
    pattern: str | None = None
    json: str | None = None
    time: bool = False
    unit: str = ""
    label: str = ""


@dataclass(frozen=True)
class Objective:
    """What should become less, or more."""

    measure: Measure
    maximize: bool

    @property
    def name(self) -> str:
        """Its name in the study."""
        return self.measure.name


@dataclass(frozen=True)
class Constraint:
    """What the settings must not make worse."""

    measure: Measure
    least: Bound | None
    most: Bound | None


@dataclass(frozen=True)
class Search:
    """How settings are looked for."""

    method: str = "auto"
    trials: int = 200
    time_s: float | None = None
    repeats: tuple[int, int] = (4, 32)
    seed: int = 1
    points: int = 5
    start: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Confirm:
    """How the winner is confirmed."""

    runs: int = 200
    level: float = 0.95
    least: float = 0.0
    essential: bool = True


@dataclass(frozen=True)
class Live:
    """What keeps a live machine safe."""

    groups: tuple[str, ...] = ()
    watchdog: tuple[str, ...] = ()
    every_s: float = 1.0
    free_memory: int = 0
    settle_s: float = 0.0


@dataclass(frozen=True)
class Screen:
    """What is simulated before trials are taken to the real kernel."""

    kernel: str = ""
    keep: int = 6
    machine: str = ""
    names: Table = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """A study, as its file says."""

    path: Path
    document: Document
    title: str
    backend: str
    kernel: str
    machine: str
    duration: str | None
    costs: bool
    deterministic: bool
    load: Table
    parameters: Mapping[str, Table]
    objectives: tuple[Objective, ...]
    constraints: tuple[Constraint, ...]
    search: Search
    confirm: Confirm
    screen: Screen
    live: Live
    fingerprint: str

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What each run yields: the objectives first."""
        return (*(own.measure for own in self.objectives), *(own.measure for own in self.constraints))


def read(source: Path | Mapping[str, Any], changes: Mapping[str, Any] | None = None) -> Study:
    """Read a study, from a file or as a table. `changes` are keys of the top level and of `search` that are set."""
    document = Document.of(source, "study") if isinstance(source, Mapping) else tomlfile.read(source)
    content = document.values
    _check(document, content)
    for key, value in (changes or {}).items():
        own = content.setdefault("search", {}) if key in TABLES["search"] else content
        own[key] = value
    return _study(document.path, document, content)


def changed(
    *,
    on: str | None,
    method: str | None,
    trials: int | None,
    time: str | None,
    seed: int | None,
    deterministic: bool,
) -> dict[str, Any]:
    """Return the keys of a study that options replace, checked as those of a file."""
    named = {"method": method, "trials": trials, "time": time, "seed": seed}
    given: dict[str, Any] = {key: value for key, value in named.items() if value is not None}
    for key, value in given.items():
        if wrong := _wrong(TABLES["search"][key], value):
            raise InputError(f"{key}: {wrong[0]}; {wrong[1]}")
    if on is not None and not _is_backend(on):
        raise InputError(f'on: there is no "{on}"; {_BACKENDS}')
    return given | ({"backend": on} if on is not None else {}) | ({"deterministic": True} if deterministic else {})


# What a backend may be.
_BACKENDS = "write sim, live, command, or vm:debian-6.1"


def seconds(text: str) -> float:
    """Return a duration with a unit in seconds."""
    return _native.duration_ns(text) / 1e9


def _check(document: Document, content: Table) -> None:
    """Check that all keys are known and have values of their kind."""
    tables = {name.partition(".*")[0]: name for name in TABLES if name}
    for key, value in content.items():
        if key not in tables:
            _check_key(document, (key,), value, "", [*TABLES[""], *tables])
            continue
        if not isinstance(value, dict):
            raise document.error((key,), "is not a table", f"write [{key}]")
        if not tables[key].endswith(".*"):
            _check_table(document, (key,), value, key)
            continue
        for name, own in value.items():
            if not isinstance(own, dict):
                example = "{ range = [1, 100] }" if key == "parameters" else '{ value = "sum(wait_s)" }'
                raise document.error((key, name), "is not a table", f"write {name} = {example}")
            _check_table(document, (key, name), own, tables[key])


def _check_table(document: Document, path: tuple[str, ...], value: Table, table: str) -> None:
    for key, own in value.items():
        _check_key(document, (*path, key), own, table, list(TABLES[table]))


def _check_key(document: Document, path: tuple[str, ...], value: object, table: str, known: list[str]) -> None:
    key = TABLES[table].get(path[-1])
    if key is None:
        raise document.error(path, "no such key", suggestion(path[-1], known))
    if wrong := _wrong(key, value):
        raise document.error(path, *wrong)


def _wrong(key: Key, value: Any) -> tuple[str, str] | None:  # noqa: ANN401 (any TOML)
    """Return what is wrong with a value, and what would be right."""
    written = json.dumps(value, default=str)
    what = f"{written} is not what belongs here"
    fix = _fits(key.kind, value)
    if fix:
        return what, f"write {fix}"
    unknown = [own for own in (value if isinstance(value, list) else [value]) if key.choices and own not in key.choices]
    if unknown:
        return f"there is no {json.dumps(unknown[0])}", suggestion(unknown[0], key.choices)
    if key.least is not None and value < key.least:
        return f"{written} is too small", f"write {key.least:g} or more"
    if key.most is not None and value > key.most:
        return f"{written} is too large", f"write {key.most:g} or less"
    return None


def _fits(kind: str, value: Any) -> str:  # noqa: ANN401, PLR0911, PLR0912 (any TOML; a case each)
    """Return what a value of this kind looks like if the value is none, and nothing if it is one."""
    number = tomlfile.is_number(value)
    whole = number and isinstance(value, int)
    words = isinstance(value, list) and bool(value) and all(_is_text(own) for own in value)
    numbers = isinstance(value, list) and all(tomlfile.is_number(own) for own in value)
    pair = 2
    match kind:
        case "text":
            return "" if _is_text(value) else 'text in quotes: "..."'
        case "texts":
            return "" if words else 'a list of texts: ["make", "-j4"]'
        case "int":
            return "" if whole else "a whole number"
        case "number":
            return "" if number else "a number"
        case "bool":
            return "" if isinstance(value, bool) else "true or false"
        case "duration":
            return "" if _is_duration(value) else 'a duration with its unit: "10s", "250ms"'
        case "size":
            return "" if isinstance(value, str) and _size(value) is not None else 'a size: "500M", "2G"'
        case "percent":
            return "" if isinstance(value, str) and _percent(value) is not None else 'a percentage: "1%"'
        case "bound":
            return "" if number or (isinstance(value, str) and _percent(value) is not None) else 'a number, or "98%"'
        case "range":
            good = numbers and len(value) == pair and value[0] < value[1]
            return "" if good else "the least and the greatest value: [1, 100]"
        case "repeats":
            good = numbers and len(value) == pair and all(isinstance(own, int) for own in value)
            good = good and 1 <= value[0] <= value[1] <= MOST_REPEATS
            return "" if good else f"two whole numbers from 1 to {MOST_REPEATS}, the least first: [2, 8]"
        case "values":
            good = isinstance(value, list) and len(value) >= pair and all(_is_value(own) for own in value)
            return "" if good else "a list of at least two numbers or texts"
        case "table":
            return "" if isinstance(value, dict) else "a table: { NAME = 1 }"
        case "tables":
            good = isinstance(value, list) and all(isinstance(own, dict) for own in value)
            return "" if good else "a list of tables: [{ NAME = 1 }]"
    return "" if _is_value(value) else "a number or a text"


def _is_text(value: object) -> bool:
    """Whether a value is text that a program can be given."""
    return isinstance(value, str) and "\0" not in value


def _is_value(value: object) -> bool:
    return isinstance(value, bool) or _is_text(value) or tomlfile.is_number(value)


def _is_duration(value: object) -> bool:
    try:
        return isinstance(value, str) and _native.duration_ns(value) > 0
    except InputError:
        return False


def _size(text: str) -> int | None:
    found = re.fullmatch(r"([0-9.]+)([KMG]?)", text)
    return None if found is None else int(float(found[1]) * _SIZES[found[2]])


def _percent(text: str) -> float | None:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*%", text)
    return None if found is None else float(found[1]) / 100


def _study(path: Path, document: Document, content: dict[str, Any]) -> Study:
    """Return a study of content whose keys are of the right kinds."""
    for table in ("load", "parameters", "objectives"):
        if not content.get(table):
            example = {"load": "workload", "parameters": "NAME", "objectives": "NAME"}[table]
            head = f"[{table}]" if table == "load" else f"[{table}.{example}]"
            raise document.error((), f"there is no [{table}]", f"add {head}")
    load = content["load"]
    kinds = [key for key in ("workload", "inline", "model", "command") if key in load]
    if len(kinds) != 1:
        given = " and ".join(kinds) or "none"
        raise document.error(("load",), f"has {given} of workload, inline, model and command", "write exactly one")
    backend = content.get("backend", "command" if "command" in load else "sim")
    _check_placeholders(document, load, content["parameters"])
    _check_backend(document, backend, kinds[0])
    objectives = tuple(_objective(document, name, own, load) for name, own in content["objectives"].items())
    constraints = tuple(_constraint(document, name, own, load) for name, own in content.get("constraints", {}).items())
    search, confirm, live = content.get("search", {}), content.get("confirm", {}), content.get("live", {})
    simulated = backend == "sim"
    relevant = {k: v for k, v in content.items() if k not in {"title", "confirm"}}
    relevant["search"] = {k: v for k, v in search.items() if k not in {"trials", "time"}}
    return Study(
        path=path,
        document=document,
        title=content.get("title", path.stem),
        backend=backend,
        kernel=content.get("kernel", ""),
        machine=content.get("machine", ""),
        duration=content.get("duration"),
        costs=content.get("costs", "machine") != "none",
        deterministic=content.get("deterministic", False),
        load=load,
        parameters=content["parameters"],
        objectives=objectives,
        constraints=constraints,
        search=_search({"repeats": (4, 32) if simulated else (2, 4), "trials": 200 if simulated else 30, **search}),
        confirm=Confirm(
            confirm.get("runs", 200 if simulated else 12),
            confirm.get("level", 0.95),
            _percent(confirm.get("least", "0%")) or 0.0,
            confirm.get("essential", True),
        ),
        screen=Screen(**content.get("screen", {})),
        live=Live(
            tuple(live.get("groups", ())),
            tuple(live.get("watchdog", ())),
            seconds(live.get("every", "1s")),
            _size(live.get("free_memory", "0")) or 0,
            seconds(live["settle"]) if "settle" in live else 0.0,
        ),
        fingerprint=hashlib.sha256(json.dumps(relevant, sort_keys=True, default=str).encode()).hexdigest()[:12],
    )


def _search(own: Table) -> Search:
    given = {key: own[key] for key in ("method", "trials", "seed", "points") if key in own}
    repeats = own["repeats"]
    time_s = seconds(own["time"]) if "time" in own else None
    return Search(**given, time_s=time_s, repeats=(repeats[0], repeats[1]), start=tuple(own.get("start", ())))


def _is_backend(name: str) -> bool:
    return name in {"sim", "live", "command"} or (name.startswith("vm:") and name != "vm:")


def _check_backend(document: Document, backend: str, load: str) -> None:
    if not _is_backend(backend):
        raise document.error(("backend",), f'there is no "{backend}"', _BACKENDS)
    if load == "command" and backend not in {"live", "command"}:
        fix = 'write backend = "live" or "command", or give a workload'
        raise document.error(("load", "command"), f"a command cannot run on {backend}", fix)
    if load != "command" and backend == "command":
        raise document.error(("backend",), "there is no command in [load]", 'write command = ["make", "-j4"] there')


def _check_placeholders(document: Document, load: Table, parameters: Table) -> None:
    """Refuse `{name}` in a command if it is nearly a parameter. Other words in braces are the command's own."""
    for word in load.get("command", ()):
        for name in re.findall(r"\{([\w.:-]+)\}", word):
            near = tomlfile.nearest(name, parameters)
            if name not in parameters and name != "seed" and near:
                what = f'"{{{name}}}" is no parameter of this study'
                raise document.error(("load", "command"), what, f'did you mean "{{{near}}}"?')


def _objective(document: Document, name: str, own: Table, load: Table) -> Objective:
    return Objective(_measure(document, ("objectives", name), own, load), own.get("direction") == "maximize")


def _constraint(document: Document, name: str, own: Table, load: Table) -> Constraint:
    path = ("constraints", name)
    if "least" not in own and "most" not in own:
        raise document.error(path, "has no bound", 'write least = "98%" or most = 100')
    least, most = (_bound(own[key]) if key in own else None for key in ("least", "most"))
    if least and most and least.relative == most.relative and least.amount > most.amount:
        raise document.error((*path, "least"), "is more than most", "no value can be both")
    return Constraint(_measure(document, path, own, load), least, most)


def _bound(value: str | float) -> Bound:
    part = _percent(value) if isinstance(value, str) else None
    return Bound(float(value), False) if part is None else Bound(part, True)


def _measure(document: Document, path: tuple[str, ...], own: Table, load: Table) -> Measure:
    """Return a measure whose expression or pattern is known to be right."""
    ways = ("pattern", "json", "time") if "command" in load else ("value",)
    found = [key for key in ("value", "pattern", "json", "time") if own.get(key)]
    if len(found) != 1 or found[0] not in ways:
        kind = "a command's output or time is" if "command" in load else "a workload's run is"
        raise document.error(path, f"has {' and '.join(found) or 'no value'}", f"{kind} measured by {', '.join(ways)}")
    if "value" in own:
        try:
            _native.check_expressions([own["value"]])
        except InputError as error:
            raise document.error((*path, "value"), str(error)) from None
    if "pattern" in own:
        try:
            groups = re.compile(own["pattern"]).groups
        except re.error as error:
            raise document.error((*path, "pattern"), f"is no regular expression: {error}") from None
        if groups < 1:
            raise document.error((*path, "pattern"), "has no group", "put the number in brackets: ([0-9.]+)")
    return Measure(
        path[-1],
        own.get("value"),
        own.get("pattern"),
        own.get("json"),
        bool(own.get("time")),
        own.get("unit", ""),
        own.get("label", path[-1]),
    )
