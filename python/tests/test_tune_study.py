"""Wrong studies of `schedlab tune`: one message with file, line, key, what is wrong and what would be right."""

import json
from pathlib import Path

import pytest

from schedlab.tuning import cli, flow, study
from schedlab.tuning.progress import Progress
from schedlab.tuning.schema import TABLES, schema

GOOD = """title = "t"
kernel = "linux-6.1"
machine = "2"
duration = "50ms"

[load]
workload = "li:tasks=3"

[parameters]
latency_ns = { range = [1_000_000, 100_000_000] }
NEXT_BUDDY = {}

[objectives.spread]
value = "spread(run_s)"

[search]
trials = 3
"""

WRONG = {
    "typing error in a key": ('title = "t"', 'titel = "t"', ":1: titel: no such key; did you mean", "title"),
    "a number as text": ("trials = 3", 'trials = "3"', ":17: search.trials: ", "a whole number"),
    "no trials": ("trials = 3", "trials = 0", ":17: search.trials: ", "write 1 or more"),
    "an unknown method": ("trials = 3", 'method = "tpx"', 'search.method: there is no "tpx"', 'did you mean "tpe"?'),
    "a range upside down": ("[1_000_000, 100_000_000]", "[9, 1]", ":10: parameters.latency_ns.range", "least and the"),
    "a range out of range": (
        "100_000_000]",
        "100_000_000_000]",
        ":10: parameters.latency_ns.range",
        "takes 0 to 1e+10",
    ),
    "an unknown tunable": ("latency_ns =", "latency_nss =", ":10: parameters.latency_nss: linux-6.1 has", "latency_ns"),
    "an unknown kernel": ("linux-6.1", "linux-6.11", ":2: kernel: ", "linux-6.12"),
    "an unknown measure": (
        "spread(run_s)",
        "spread(run_ms)",
        ':14: objectives.spread.value: "spread(run_ms)"',
        "run_s",
    ),
    "no such task": (
        "run_s)",
        "run_s['x'])",
        ":14: objectives.spread.value: \"spread(run_s['x'])\": no task is named 'x'",
        "the tasks are",
    ),
    "a list": ("spread(run_s)", "run_s", ':14: objectives.spread.value: "run_s": a list of', "take mean(...)"),
    "no value": ("spread(run_s)", "sum(turnaround_s)", ":13: objectives.spread: has no value", "had not ended"),
    "an unknown backend": ('title = "t"', 'backend = "simulator"', 'backend: there is no "simulator"', "write sim"),
    "no duration unit": ('"50ms"', '"50"', ":4: duration: ", '"250ms"'),
    "no load": ('workload = "li:tasks=3"', "", "there is no [load]", "add [load]"),
    "two loads": (
        'workload = "li:tasks=3"',
        'workload = "li"\nmodel = "x"',
        "load: has workload and model",
        "exactly one",
    ),
    "no such file": ('"li:tasks=3"', '"missing.json"', ":7: load.workload: there is no file", "missing.json"),
    "a command on the simulator": ('workload = "li:tasks=3"', 'command = ["true"]\n', "objectives.spread", "pattern"),
    "no bound": ("[search]", '[constraints.c]\nvalue = "sum(run_s)"\n[search]', "constraints.c: has no bound", "98%"),
    "a wrong bound": ("[search]", '[constraints.c]\nvalue="1"\nmost = "x"\n[search]', "constraints.c.most", "98%"),
    "no TOML": ("[search]", "[search", ":16: ", "TOML"),
    "an unknown start": ("trials = 3", "start = [{ NEXT_BUDY = 1 }]", '"NEXT_BUDY" is no parameter', "NEXT_BUDDY"),
    "a start out of range": (
        "trials = 3",
        "start = [{ latency_ns = 5 }]",
        "latency_ns=5 is out of range",
        "write 1e+06",
    ),
    "an unknown condition": ("NEXT_BUDDY = {}", "NEXT_BUDDY = { when = { X = 1 } }", '"X" is no parameter', "known"),
    "both range and choices": (
        "NEXT_BUDDY = {}",
        "hz = { range = [100, 300], choices = [100, 250] }",
        "both",
        "one of",
    ),
    "an unknown machine": ('machine = "2"', 'machine = "x"', ':3: machine: "x" is no machine', "a preset"),
    "an unknown workload": (
        "li:tasks=3",
        "lii",
        ":7: load.workload: the load does not run",
        'did you mean the preset "li"?',
    ),
    "a workload as text that is wrong": (
        'workload = "li:tasks=3"',
        'inline = \'{ "tasks": { "a": { "lop": 1 } } }\'',
        ":7: load.inline: the load does not run with the default settings: line 1 of the text: tasks.a.lop",
        'did you mean "loop"?',
    ),
    "a number that is none": (
        "[1_000_000, 100_000_000]",
        "[1, inf]",
        ":10: parameters.latency_ns.range",
        "least and the",
    ),
    "too many trials": ("trials = 3", "trials = 99999999999999999999", ":17: search.trials: ", "a whole number"),
    "a seed too large": ("trials = 3", "seed = 5_000_000", ":17: search.seed: ", "write 1e+06 or less"),
    "a NUL in a name": ('"linux-6.1"', '"linux-6.1\\u0000"', ":2: kernel: ", "text in quotes"),
    "a step beyond the range": (
        "NEXT_BUDDY = {}",
        "nr_migrate = { range = [1, 8], step = 9 }",
        ":11: parameters.nr_migrate.step: 9 is no step",
        "7 at most",
    ),
    "no such program": (
        'workload = "li:tasks=3"\n\n[parameters]\nlatency_ns = { range = [1_000_000, 100_000_000] }\n'
        'NEXT_BUDDY = {}\n\n[objectives.spread]\nvalue = "spread(run_s)"',
        'command = ["./s.toml"]\n[parameters]\nx = { range = [1, 8], default = 2 }\n[objectives.s]\ntime = true',
        ":7: load.command: cannot run ./s.toml",
        "Permission denied",
    ),
    "a group that does not exist": (
        "[search]",
        '[live]\ngroups = ["memory"]\n[search]',
        "live.groups: there is no",
        "vm",
    ),
    "bounds that exclude each other": (
        "[search]",
        '[constraints.c]\nvalue = "sum(run_s)"\nleast = 2\nmost = 1\n[search]',
        "constraints.c.least: is more than most",
        "no value",
    ),
    "a condition that is a circle": (
        "NEXT_BUDDY = {}",
        "NEXT_BUDDY = { when = { LAST_BUDDY = 1 } }\nLAST_BUDDY = { when = { NEXT_BUDDY = 1 } }",
        ":11: parameters.NEXT_BUDDY.when: depends on itself",
        "itself",
    ),
    "settings to start with that are none": (
        "trials = 3",
        "start = [{ name = 'x' }]",
        "search.start: names no",
        "NAME = VALUE",
    ),
    "a choice out of range": ("NEXT_BUDDY = {}", "hz = { choices = [100, 1] }", "1 is out of range", "takes 10 to"),
}


def write(folder: Path, text: str) -> Path:
    path = folder / "s.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_study_is_one_message(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after, what, fix = WRONG[case]
    assert before in GOOD
    path = write(tmp_path, GOOD.replace(before, after, 1))
    assert cli.main([str(path)]) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith(f"schedlab: {path}"), said
    assert what in said, said
    assert fix in said, said
    assert "\n" not in said


def test_the_study_beside_them_is_good(tmp_path: Path) -> None:
    own = study.read(write(tmp_path, GOOD))
    found = flow.tune(own, flow.Options(), Progress(quiet=True))
    assert len(found.trials) == 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which study?"),
        (["--nonsense"], "unrecognized arguments"),
        (["missing.toml"], "missing.toml: cannot read it"),
        (["STUDY", "--method", "best"], "--method"),
        (["STUDY", "--trials", "0"], "--trials"),
        (["STUDY", "--time", "2"], "2"),
        (["STUDY", "--on", "mars"], 'schedlab: --on: there is no "mars"; write sim, live, command, or vm:debian-6.1'),
        (["STUDY", "--on", "vm:mars"], 'schedlab: "mars" is no kernel; known are debian-6.12'),
        (["STUDY", "--screen", "sim"], "sim needs no screening"),
        (["STUDY", "--screen", "sim", "--cycle"], "exclude each other"),
        (["STUDY", "-o", "STUDY"], "s.toml: exists already; choose another name or give --force"),
    ],
)
def test_wrong_options(arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, GOOD))
    assert cli.main([path if own == "STUDY" else own for own in arguments]) == 2
    found = capsys.readouterr().err
    assert said in found
    assert "Traceback" not in found


def test_a_value_that_the_kernel_does_not_take_is_blamed_on_its_parameter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, GOOD.replace("100_000_000]", '100_000_000], type = "float"'))
    assert cli.main([str(path), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"schedlab: {path}:10: parameters.latency_ns: ")
    assert said.endswith("is no whole number; write it in ns, without a unit\n")


@pytest.mark.parametrize(("key", "line"), [("machine", 3), ("load.workload", 7)])
def test_a_file_that_is_not_utf_8_is_refused(
    key: str, line: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "own.json").write_bytes(b'{"tasks": {"\xff": {}}}')
    path = write(tmp_path, GOOD.replace('"2"' if key == "machine" else '"li:tasks=3"', '"own.json"'))
    assert cli.main([str(path), "--quiet"]) == 2
    own = tmp_path / "own.json"
    said = f"schedlab: {path}:{line}: {key}: {own} is not UTF-8; save the file as UTF-8 text\n"
    assert capsys.readouterr().err == said


def test_the_schema_has_every_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--schema"]) == 0
    assert json.loads(capsys.readouterr().out) == schema()
    properties = schema()["properties"]
    assert set(properties["search"]["properties"]) == set(TABLES["search"])
    assert set(properties["parameters"]["additionalProperties"]["properties"]) == set(TABLES["parameters.*"])


def test_conditions_and_scales(tmp_path: Path) -> None:
    text = GOOD.replace(
        "NEXT_BUDDY = {}", "NEXT_BUDDY = {}\nnr_migrate = { range = [1, 64], when = { NEXT_BUDDY = 1 } }"
    )
    own = study.read(write(tmp_path, text))
    found = flow.tune(own, flow.Options(), Progress(quiet=True))
    space = found.space
    latency, nr_migrate = space.parameters[0], space.parameters[2]
    assert latency.log
    assert latency.at(0.5) == 10_000_000
    assert latency.part(10_000_000) == pytest.approx(0.5)
    assert nr_migrate.name not in space.settings(space.default)
    assert space.complete({"nr_migrate": 5})["nr_migrate"] == 32, "out of use, it has its default"
    assert space.complete({"NEXT_BUDDY": "1", "nr_migrate": 5})["nr_migrate"] == 5
    for trial in found.trials:
        assert trial.config["NEXT_BUDDY"] == "1" or trial.config["nr_migrate"] == 32
