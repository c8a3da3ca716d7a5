"""A sweep's file: what is simulated, checked key by key before anything runs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab import _native, command, tomlfile
from schedlab._native import InputError
from schedlab.sweeping import kinds
from schedlab.sweeping.kinds import Value
from schedlab.tomlfile import Document
from schedlab.tuning.simulated import File, beside

# The columns of the table that every sweep has.
FIXED = ("point", "kernel", "machine", "workload", "seed", "missing", "error")

# What is measured if the file does not say.
DEFAULT_MEASURES = {
    "run_s": "sum(run_s)",
    "wait_s": "sum(wait_s)",
    "idle_s": "idle_s",
    "switches": "sum(switches)",
    "migrations": "sum(migrations)",
}


_KEYS = ("title", "kernels", "machines", "workloads", "duration", "costs", "seeds", "settings", "measures")
_KERNEL_KEYS = ("kernel", "name", "settings")
_WORKLOAD_KEYS = ("name", "preset", "file", "inline")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True)
class Kernel:
    """A kernel with the values that its settings take."""

    name: str
    kernel: str
    settings: Mapping[str, tuple[Value, ...]]
    own: frozenset[str]
    """Those that the file gives to this kernel alone."""


@dataclass(frozen=True)
class Named:
    """A machine or a workload by the name that the table calls it."""

    name: str
    file: File


@dataclass(frozen=True)
class Sweep:
    """What a file asks for."""

    document: Document
    title: str
    kernels: tuple[Kernel, ...]
    machines: tuple[Named, ...]
    workloads: tuple[Named, ...]
    seeds: tuple[int, ...] | range
    duration: str | None
    costs: bool
    measures: Mapping[str, str]

    def content(self) -> dict[str, Any]:
        """Return all that decides the results, to be compared with that of another file."""
        seeds = self.seeds
        found: dict[str, Any] = {
            "version": _native.__version__,
            "duration": self.duration,
            "costs": "machine" if self.costs else "none",
            "seeds": f"{seeds[0]} to {seeds[-1]}" if isinstance(seeds, range) else list(seeds),
        }
        found["kernels"] = [own.name for own in self.kernels]
        for own in self.kernels:
            found[f"kernels.{own.name}.kernel"] = own.kernel
            for name, values in own.settings.items():
                found[f"kernels.{own.name}.settings.{name}"] = list(values)
        for kind, named in (("machines", self.machines), ("workloads", self.workloads)):
            found[kind] = [one.name for one in named]
            found |= {f"{kind}.{one.name}": one.file.text for one in named if one.file.text is not None}
        found["measures"] = list(self.measures)
        return found | {f"measures.{name}": text for name, text in self.measures.items()}


def read(source: str | Path | Mapping[str, Any]) -> Sweep:
    """Read and check a sweep, from a file or as a table. Raises `InputError` with the file, the line and the key."""
    document = Document.of(source, "sweep") if isinstance(source, Mapping) else tomlfile.read(source)
    given = document.values
    document.refuse_unknown(given, _KEYS)
    settings = kinds.settings(document, "settings", given.get("settings", {}))
    sweep = Sweep(
        document=document,
        title=kinds.text(document, "title", given.get("title", "")),
        kernels=_kernels(document, settings),
        machines=_machines(document),
        workloads=_workloads(document),
        seeds=kinds.seeds(document),
        duration=_duration(document),
        costs=_costs(document),
        measures=_measures(document),
    )
    _refuse_taken(document, sweep)
    return sweep


def _list(document: Document, key: str, example: str) -> list[Any]:
    value = document.values.get(key)
    if value is None:
        raise document.error("", f'there is no key "{key}"', f"write {key} = {example}")
    if not isinstance(value, list) or not value:
        what = "is empty" if value == [] else f"{kinds.shown(value)} is no list"
        raise document.error(key, what, f"write {key} = {example}")
    return value


def _twice(document: Document, key: str, names: list[str]) -> None:
    for at, name in enumerate(names):
        if name in names[:at]:
            raise document.error(f"{key}[{at}]", f'"{name}" is there twice', "give each once, or give it a name")


def _kernels(document: Document, shared: Mapping[str, tuple[Value, ...]]) -> tuple[Kernel, ...]:
    found = []
    for at, value in enumerate(_list(document, "kernels", '["linux-6.12"]')):
        key = f"kernels[{at}]"
        if isinstance(value, str):
            found.append(Kernel(value, value, shared, frozenset()))
            continue
        if not isinstance(value, dict):
            raise document.error(
                key, f"{kinds.shown(value)} is no kernel", '"linux-6.12", or a table with kernel = "..."'
            )
        document.refuse_unknown(value, _KERNEL_KEYS, key)
        if "kernel" not in value:
            raise document.error(key, 'there is no key "kernel"', 'write kernel = "linux-6.12"')
        kernel = kinds.text(document, f"{key}.kernel", value["kernel"])
        name = kinds.text(document, f"{key}.name", value.get("name", kernel))
        own = kinds.settings(document, f"{key}.settings", value.get("settings", {}))
        found.append(Kernel(name, kernel, {**shared, **own}, frozenset(own)))
    _twice(document, "kernels", [own.name for own in found])
    return tuple(found)


def _machines(document: Document) -> tuple[Named, ...]:
    if "machines" not in document.values:
        return (Named("up", File("up", None)),)
    found = []
    for at, value in enumerate(_list(document, "machines", '["2x6"]')):
        key = f"machines[{at}]"
        name = kinds.text(document, key, value)
        if name == "host":
            # A worker's own host would be another machine.
            found.append(Named(name, File("host.toml", command.text(["machines", "host", "--toml"]))))
        else:
            found.append(Named(name, beside(document, key, name, (".toml",))))
    _twice(document, "machines", [own.name for own in found])
    return tuple(found)


def _workloads(document: Document) -> tuple[Named, ...]:
    found = []
    for at, value in enumerate(_list(document, "workloads", '["messaging"]')):
        key = f"workloads[{at}]"
        if isinstance(value, str):
            found.append(Named(value, beside(document, key, value, (".json",))))
            continue
        if not isinstance(value, dict):
            raise document.error(
                key, f"{kinds.shown(value)} is no workload", 'a preset, a file, or a table with inline = "..."'
            )
        document.refuse_unknown(value, _WORKLOAD_KEYS, key)
        given = [kind for kind in ("preset", "file", "inline") if kind in value]
        if len(given) != 1:
            raise document.error(key, "is not one workload", "give exactly one of preset, file, inline")
        text = kinds.text(document, f"{key}.{given[0]}", value[given[0]])
        if given[0] == "inline":
            name = kinds.text(document, f"{key}.name", value.get("name", f"inline-{at}"))
            found.append(Named(name, File(f"{_file_name(name)}.json", text)))
            continue
        name = kinds.text(document, f"{key}.name", value.get("name", text))
        file = File(text, None) if given[0] == "preset" else beside(document, f"{key}.file", text, ("",))
        found.append(Named(name, file))
    _twice(document, "workloads", [own.name for own in found])
    return tuple(found)


def _file_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "-", name)


def _duration(document: Document) -> str | None:
    value = document.values.get("duration")
    if value is None:
        return None
    text = kinds.text(document, "duration", value)
    try:
        _native.duration_ns(text)
    except InputError as error:
        raise document.error("duration", str(error)) from None
    return text


def _costs(document: Document) -> bool:
    value = document.values.get("costs", "machine")
    if value not in ("machine", "none"):
        raise document.error("costs", f"there is no {kinds.shown(value)}", 'write "machine" or "none"')
    return bool(value == "machine")


def _measures(document: Document) -> Mapping[str, str]:
    if "measures" not in document.values:
        return DEFAULT_MEASURES
    table = kinds.table(document, "measures", document.values["measures"])
    if not table:
        raise document.error("measures", "is empty", 'write a line such as wait_s = "sum(wait_s)", or leave it out')
    for name, value in table.items():
        key = f"measures.{name}"
        if not _NAME.fullmatch(name):
            raise document.error(key, f'"{name}" cannot be a column\'s name', "take letters, digits and '_'")
        try:
            _native.check_expressions([kinds.text(document, key, value)])
        except InputError as error:
            raise document.error(key, str(error)) from None
    return table


def _refuse_taken(document: Document, sweep: Sweep) -> None:
    """Refuse a name that two columns would have."""
    settings = {name for own in sweep.kernels for name in own.settings}
    for name in settings:
        if name in FIXED:
            raise document.error(
                f"settings.{name}", f'"{name}" is a column of every sweep', "no kernel has this setting"
            )
    for name in sweep.measures:
        if name in FIXED or name in settings:
            taken = "a setting's column" if name in settings else "a column of every sweep"
            raise document.error(f"measures.{name}", f'"{name}" is {taken}', "give the measure another name")
