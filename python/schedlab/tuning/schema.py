"""The keys of a study file: what they take and what they mean. The JSON Schema is made of the same table."""

import copy
from dataclasses import dataclass
from typing import Any

METHODS = ("auto", "tpe", "cmaes", "gp", "nsga2", "random", "grid", "one-at-a-time", "global-then-1d")

GROUPS = ("sched", "vm", "disk", "irq", "network", "limits")
MOST_REPEATS = 10_000


@dataclass(frozen=True)
class Key:
    """A key of a study."""

    kind: str
    about: str
    choices: tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None

    def meaning(self) -> str:
        """Return what it means, with its choices."""
        return f"{self.about}: {', '.join(self.choices)}" if self.choices else self.about


_LOAD = {
    "workload": Key("text", "a preset, or the path of a workload file, from the study's folder"),
    "inline": Key("text", "a workload as text, in the form of workloads.md"),
    "model": Key("text", "the path of a recorded trace; its model is the load"),
    "command": Key("texts", "a command and its arguments, run on this machine; {name} stands for a parameter's value"),
    "timeout": Key("duration", "how long one run of the command may take"),
}
_MEASURE = {
    "value": Key("text", "an expression over the measures of a run, as in experiments.md"),
    "pattern": Key("text", "a regular expression over the command's output; its group 1 is the number"),
    "json": Key("text", "where the number is in the JSON that the command prints: a.b.0.c"),
    "time": Key("bool", "true: how long the command takes, in seconds"),
    "unit": Key("text", "the unit, for tables and pictures"),
    "label": Key("text", "what it is called in tables and pictures"),
}
TABLES: dict[str, dict[str, Key]] = {
    "": {
        "title": Key("text", "the question that the study asks, in one line"),
        "backend": Key("text", "where trials run: sim, live, vm:KERNEL, or command"),
        "kernel": Key("text", "the kernel that is simulated"),
        "machine": Key("text", "the machine: a preset, 2x6, or a machine file beside the study"),
        "duration": Key("duration", "how long each run takes; the workload's own duration if left out"),
        "costs": Key("text", "which costs of the machine are simulated", ("machine", "none")),
        "deterministic": Key("bool", "guests count time in instructions, so that equal runs give equal results"),
    },
    "load": _LOAD,
    "parameters.*": {
        "range": Key("range", "the least and the greatest value; the catalogue's if left out"),
        "choices": Key("values", "the values to choose among"),
        "type": Key("text", "the kind of number", ("int", "float")),
        "log": Key("bool", "whether values are spread by their logarithm"),
        "step": Key("number", "values are multiples of this, from the least", least=0),
        "default": Key("value", "the value that the others are compared with; the kernel's if left out"),
        "when": Key("table", "the parameter is used only if another parameter has this value, or one of these"),
        "group": Key("text", "sched, vm, disk, irq, network or another: --cycle tunes one group after the other"),
    },
    "objectives.*": {
        **_MEASURE,
        "direction": Key("text", "which values are better", ("minimize", "maximize")),
    },
    "constraints.*": {
        **_MEASURE,
        "least": Key("bound", 'the value is at least this: a number, or "98%" of the default\'s'),
        "most": Key("bound", 'the value is at most this: a number, or "105%" of the default\'s'),
    },
    "search": {
        "method": Key("text", "how settings are proposed", METHODS),
        "trials": Key("int", "how many settings are tried", least=1, most=1_000_000),
        "time": Key("duration", "how long the search may take"),
        "repeats": Key("repeats", "how often each setting is run: at least and at most; racing decides between"),
        "seed": Key("int", "the seed of the search's own random choices", least=0, most=1_000_000),
        "points": Key("int", "grid, one-at-a-time, global-then-1d: values of each parameter", least=2, most=10_000),
        "start": Key("tables", "named settings to try first, such as those that somebody published"),
    },
    "confirm": {
        "runs": Key("int", "how many pairs of held-out runs decide", least=6, most=100_000),
        "level": Key("number", "how sure a claim must be", least=0.5, most=0.9999),
        "least": Key("percent", 'improvements below this are not claimed ("1%")'),
        "essential": Key("bool", "whether to look for the smallest set of changes that keeps 95% of the gain"),
    },
    "screen": {
        "kernel": Key("text", "the kernel that is simulated before trials are taken to the real one"),
        "keep": Key("int", "how many settings are taken to the real kernel", least=2, most=1000),
        "machine": Key("text", "the machine that is simulated"),
        "names": Key("table", "the simulated kernel's name for a parameter, where it has another one"),
    },
    "live": {
        "groups": Key("texts", "the groups of tunables that may be changed; all if left out", GROUPS),
        "watchdog": Key("texts", "a command that must keep succeeding while trials run"),
        "every": Key("duration", "how often the watchdog command runs"),
        "free_memory": Key("size", 'a trial is stopped if less memory than this is available ("500M")'),
        "settle": Key("duration", "how long to wait after settings were changed"),
    },
}
_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "texts": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    "int": {"type": "integer"},
    "number": {"type": "number"},
    "bool": {"type": "boolean"},
    "duration": {"type": "string", "pattern": r"^[0-9.]+(ns|us|ms|s|m|h)$"},
    "size": {"type": "string", "pattern": r"^[0-9.]+[KMG]?$"},
    "percent": {"type": "string", "pattern": r"^[0-9.]+%$"},
    "range": {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2},
    "repeats": {
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": MOST_REPEATS},
        "minItems": 2,
        "maxItems": 2,
    },
    "values": {"type": "array", "minItems": 2, "items": {"type": ["string", "number", "boolean"]}},
    "value": {"type": ["string", "number", "boolean"]},
    "bound": {"type": ["string", "number"]},
    "table": {"type": "object"},
    "tables": {"type": "array", "items": {"type": "object"}},
}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a study."""
    top = _table("")
    for name in TABLES:
        key, star, _ = name.partition(".*")
        if not key:
            continue
        own = _table(name)
        top["properties"][key] = {"type": "object", "additionalProperties": own} if star else own
    top["required"] = ["load", "parameters", "objectives"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "schedlab study",
        "description": "A study of `schedlab tune`: a load, parameters with their ranges, objectives and a budget.",
        **top,
    }


def _table(name: str) -> dict[str, Any]:
    properties = {}
    for key, own in TABLES[name].items():
        found = {"description": own.about, **copy.deepcopy(_TYPES[own.kind])}
        if own.choices:
            (found if own.kind == "text" else found["items"])["enum"] = list(own.choices)
        if own.least is not None:
            found["minimum"] = own.least
        if own.most is not None:
            found["maximum"] = own.most
        properties[key] = found
    return {"type": "object", "properties": properties, "additionalProperties": False}
