"""The shipped studies: each is read without an error, its load is there, and what is simulated can be."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from schedlab import tomlfile
from schedlab.sweeping import batch, check, sweep
from schedlab.sweeping.grid import Grid
from schedlab.tuning import simulated, study

FOLDER = Path(__file__).parents[2] / "studies"
FILES = sorted([*FOLDER.glob("*.toml"), *FOLDER.glob("*/*.toml")])
SWEEPS = [path for path in FILES if "kernels" in tomlfile.read(path).values]
STUDIES = [path for path in FILES if path not in SWEEPS]
SIMULATED = [path for path in STUDIES if study.read(path).backend == "sim"]


def name(path: Path) -> str:
    return str(path.relative_to(FOLDER))


def test_the_studies_are_there() -> None:
    assert len(SWEEPS) >= 2
    assert len(STUDIES) >= 8


@pytest.mark.filterwarnings("ignore::schedlab.SchedlabWarning")  # of the recording
@pytest.mark.parametrize("path", SIMULATED, ids=name)
def test_the_load_of_a_study_runs_on_the_simulator(path: Path) -> None:
    run = simulated.simulation(study.read(path)).run({}, 1)
    assert run.why == ""
    assert all(value is not None and value > 0 for value in run.values)


@pytest.mark.parametrize("path", SWEEPS, ids=name)
def test_the_first_row_of_a_sweep_has_its_measures(path: Path) -> None:
    found = sweep.read(path)
    check.check(found)
    (figures,) = batch.simulate(batch.batch(Grid(found), 0, 1), 1e9).figures
    assert (figures.missing, figures.error) == (None, None)


@pytest.mark.parametrize("path", [path for path in STUDIES if "command" in study.read(path).load], ids=name)
def test_a_command_is_there_and_prints_the_measures(path: Path) -> None:
    own = study.read(path)
    load = own.path.parent / "load"
    assert "./load" in own.load["command"]
    assert os.access(load, os.X_OK)
    text = load.read_text(encoding="utf-8")
    assert all(f'"{measure.json}"' in text for measure in own.measures)


@pytest.mark.parametrize(
    ("folder", "arguments"), [("tune-03", []), ("tune-04", ["none", "64", "128", "noatime"]), ("tpch", ["2", "2", "5"])]
)
def test_a_load_runs_here_or_says_why_not(folder: str, arguments: list[str], tmp_path: Path) -> None:
    load = FOLDER / folder / "load"
    program = [] if load.read_text(encoding="utf-8").startswith("#!/bin/sh") else [sys.executable]
    done = subprocess.run(
        [*program, load, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "MIB": "8", "ROWS": "20000", "TMPDIR": str(tmp_path), "OPENBLAS_NUM_THREADS": "1"},
    )
    if done.returncode == 4:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    own = study.read(FOLDER / folder / "study.toml")
    values = json.loads(done.stdout)
    assert all(values[str(measure.json)] > 0 for measure in own.measures)
    assert list(tmp_path.iterdir()) == []
