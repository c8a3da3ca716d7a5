"""The verbs take what the command takes, with the same defaults: its `--help` is compared with each signature."""

import inspect
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

import schedlab
from schedlab import command
from schedlab.arguments import RENAMED

# Verbs whose function is not called like them.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exec": schedlab.exec_,
    "import": schedlab.import_,
    "stats": schedlab.Trace.stats,
}

# Arguments whose name differs in one verb.
OTHER_NAMES = {
    ("run", "output"): "report",
    ("whatif", "output"): "report",
    ("run", "file"): "experiment",
    ("test", "output"): "report",
    ("test", "file"): "tests",
    ("record", "command"): "run",
    ("stats", "by"): "task_cpus",
    ("record", "pid"): "pids",
    ("import", "file"): "path",
    ("stats", "trace"): "self",
}

# Verbs without a function, and why.
NOT_IN_PYTHON = {
    "export": "Trace.events and Trace.arrow() have the rows",
    "view": "it serves a page until Ctrl-C; Trace has the rows",
    "tune": "a program of its own: schedlab-tune, and schedlab.tune",
    "sweep": "a program of its own: schedlab-sweep, and schedlab.sweep",
    "query": "a program of its own: schedlab-query, and schedlab.query",
    "vm": "it fetches and boots kernels; nothing in it is for a notebook",
}

# What has no argument in Python, and why.
EVERYWHERE = {
    "json": "the functions read the JSON document",
    "help": "the functions have docstrings",
    "version": "schedlab.__version__",
    "all": "it shortens the text; the frames are whole",
}
LEFT_OUT = {
    ("sim", "again"): "schedlab.again",
    ("sim", "explain"): "schedlab.explain",
    ("sim", "queues_at"): "schedlab.queues_at",
    ("sim", "sched_debug"): "schedlab.sched_debug",
    ("sim", "by"): "it selects the table of the text; Stats has them all",
    ("exec", "by"): "it selects the table of the text; Stats has them all",
    ("exec", "no_record"): "it has no trace",
    ("exec", "command"): "schedlab.record",
    ("check", "live"): "it watches the machine until it is ended: a terminal's affair",
    ("check", "by"): "it belongs to --live",
    ("check", "metrics"): "it belongs to --live",
    ("check", "count"): "it belongs to --live",
    ("check", "for"): "it belongs to --live",
    ("stats", "sort"): "DataFrame.sort_values",
    ("delays", "by"): "it selects the totals of the text; Delays has them all",
    ("stats", "schedstat"): "a text file in the kernel's format",
    ("test", "list"): "Battery.tests",
    ("fidelity", "list"): "each load is a row",
    ("fidelity", "output"): "DataFrame.to_markdown",
    ("fidelity", "force"): "DataFrame.to_markdown",
    ("test", "show"): "it prints a file to edit",
    ("model", "validate"): "schedlab.validate",
    ("model", "kernel"): "schedlab.validate",
    ("model", "machine"): "schedlab.validate",
    ("model", "seeds"): "schedlab.validate",
    ("heatmap", "output"): "Heatmap.png",
    ("heatmap", "force"): "Heatmap.png",
    ("kernels", "kernel"): "schedlab.tunables(kernel)",
    ("kernels", "machine"): "schedlab.tunables(kernel, machine)",
    ("tunables", "name"): "a row of the frame",
    ("tunables", "apply"): "it changes the machine: schedlab tune does it with a study, the command by hand",
    ("tunables", "diff"): "it belongs to --apply",
    ("tunables", "restore"): "it belongs to --apply",
    ("tunables", "owner"): "it belongs to --apply",
    ("tunables", "profile"): "it writes a file for other tools",
    ("tunables", "output"): "it belongs to --profile",
    ("tunables", "force"): "it belongs to --profile",
    ("machines", "machine"): "it draws; schedlab.domains has the domains",
    ("machines", "host"): "it draws",
    ("machines", "toml"): "it prints a file to edit",
    ("machines", "calibrate"): "it prints a file to edit",
    ("machines", "domains"): "schedlab.domains",
    ("machines", "kernel"): "schedlab.domains",
    ("machines", "cpu"): "rows of schedlab.domains",
    ("machines", "offline"): "schedlab.domains",
    ("machines", "online"): "schedlab.domains",
    ("machines", "set"): "schedlab.domains",
    ("workloads", "workload"): "it describes one in words",
    ("workloads", "output"): "it writes a file to edit",
    ("workloads", "force"): "it writes a file to edit",
}

# Defaults that differ, as (the command's, Python's), and why.
OTHER_DEFAULTS = {
    ("record", "output"): ("schedlab.arrows", ""),  # the returned trace owns its file
    ("check", "threshold"): ("100ms", ""),  # --max-wasted replaces it
    ("check", "every"): ("1s", ""),  # with neither of the two, every violation is found
    ("check", "watch"): ("100ms", ""),
    ("gantt", "by"): ("cpu; task if the recording covers only some tasks", ""),
    ("stats", "by"): ("task", ""),  # task-cpu is the only one that costs something
}


def ask(*arguments: str) -> str:
    """Return what the command prints."""
    return subprocess.run([command.binary(), *arguments], check=True, capture_output=True, text=True).stdout


def verbs() -> list[str]:
    """Return the names of all verbs."""
    listing = ask("--help").split("Commands:\n")[1].split("\n\n")[0]
    return [name for name in re.findall(r"^  (\w+)", listing, re.MULTILINE) if name not in {"help", *NOT_IN_PYTHON}]


def options(verb: str) -> dict[str, str]:
    """Return each option and argument of a verb with its default; empty if it has none."""
    found: dict[str, str] = {}
    head = r"^ {2,6}(?:(?:-\w, )?--(?P<option>[\w-]+)|[<\[](?P<argument>[A-Z][A-Z|]*)[>\]])"
    body = ask(verb, "--help").split("Examples:")[0]
    parts = re.split(r"(?=^ {2,6}(?:-\w, )?--\w|^  [<\[][A-Z])", body, flags=re.MULTILINE)
    for part in parts:
        if match := re.match(head, part):
            name = (match["option"] or match["argument"].split("|")[0].lower()).replace("-", "_")
            default = re.search(r"\[default:\s(.*?)\]", part, flags=re.DOTALL)
            found[name] = " ".join(default[1].split()) if default else ""  # a long one is wrapped
    return found


def argument(verb: str, option: str) -> str:
    """Return the name that an option has in Python."""
    return OTHER_NAMES.get((verb, option), RENAMED.get(option, option))


def left_out(verb: str, option: str) -> bool:
    """Whether an option has no argument in Python."""
    return option in EVERYWHERE or (verb, option) in LEFT_OUT


def written(default: object) -> str:
    """Return a default of Python as the command writes it; empty if there is none."""
    return "" if default in (None, (), False, inspect.Parameter.empty) else str(default)


def parameters(verb: str) -> dict[str, str]:
    """Return each parameter of a verb's function with its default."""
    function = FUNCTIONS.get(verb) or getattr(schedlab, verb)
    return {name: written(own.default) for name, own in inspect.signature(function).parameters.items()}


def test_the_help_is_understood() -> None:
    assert {"sim", "gantt", "stats", "record"} <= set(verbs())
    found = options("sim")
    assert (found["machine"], found["seed"], found["duration"], found["costs"]) == ("", "1", "", "machine")
    assert options("gantt")["trace"] == ""


@pytest.mark.parametrize("verb", verbs())
def test_every_option_is_an_argument_with_the_same_default(verb: str) -> None:
    own = parameters(verb)
    for option, default in options(verb).items():
        if left_out(verb, option):
            continue
        name = argument(verb, option)
        assert name in own, f"schedlab {verb} --{option} has no argument in Python"
        there, here = OTHER_DEFAULTS.get((verb, option), (default, default))
        assert (default, own[name]) == (there, here), f"{verb}: {name}"


@pytest.mark.parametrize("verb", verbs())
def test_every_argument_is_an_option(verb: str) -> None:
    known = {argument(verb, option) for option in options(verb) if not left_out(verb, option)}
    assert set(parameters(verb)) <= known


def test_no_exception_is_out_of_date() -> None:
    all_options = {verb: options(verb) for verb in verbs()}
    for verb, option in [*LEFT_OUT, *OTHER_NAMES, *OTHER_DEFAULTS]:
        assert option in all_options[verb], f"schedlab {verb} has no {option}: remove its exception"
