"""How `query`, `sweep` and `tune` end: by Ctrl-C, without a reader, and where nothing can be written."""

import importlib
import os
import signal
import subprocess
import sys
import threading
from importlib.metadata import entry_points
from pathlib import Path
from typing import NoReturn

import pytest

import schedlab
from schedlab import program, querying, sweeping
from schedlab.tuning import cli

STUDY = """
kernel = "linux-6.1"
duration = "20ms"
[load]
workload = "li:tasks=2"
[parameters]
latency_ns = {}
[objectives.wait]
value = "sum(wait_s)"
[search]
trials = 2
[confirm]
runs = 6
"""
SWEEP = """
kernels = ["linux-6.1"]
workloads = ["li:tasks=2"]
duration = "20ms"
"""
MAINS = {
    "query": "from schedlab.querying import main",
    "sweep": "from schedlab.sweeping import run as main",
    "tune": "from schedlab.tuning.cli import main",
}
# What prints, from a folder with `t.arrows`, `s.toml` and `w.toml`.
PRINTS = [
    ("query", "t.arrows", "select 1"),
    ("query", "t.arrows", "select * from events", "--csv"),
    ("sweep", "w.toml", "--dry-run"),
    ("sweep", "w.toml", "--json"),
    ("tune", "s.toml", "--quiet"),
    ("tune", "--schema"),
    *((verb, "--help") for verb in MAINS),
]


@pytest.fixture
def home(hogs: schedlab.Trace, tmp_path: Path) -> Path:
    hogs.save(tmp_path / "t.arrows")
    (tmp_path / "s.toml").write_text(STUDY, encoding="utf-8")
    (tmp_path / "w.toml").write_text(SWEEP, encoding="utf-8")
    return tmp_path


def run(home: Path, verb: str, *arguments: str, stdout: int) -> tuple[int, str]:
    argv = [sys.executable, "-c", f"import sys; {MAINS[verb]}; sys.exit(main())", *arguments]
    around = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(argv, check=False, cwd=home, stdout=stdout, stderr=subprocess.PIPE, text=True, env=around)
    return done.returncode, done.stderr


@pytest.mark.parametrize("given", PRINTS, ids=" ".join)
def test_a_reader_that_has_gone_away_is_no_error(home: Path, given: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        status, said = run(home, *given, stdout=writer)
    finally:
        os.close(writer)
    assert status == 0
    assert "rror" not in said


@pytest.mark.parametrize("given", PRINTS, ids=" ".join)
def test_output_that_is_lost_is_an_error(home: Path, given: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        status, said = run(home, *given, stdout=full.fileno())
    assert status == 2
    assert said.splitlines()[-1] == "schedlab: cannot write to standard output: No space left on device"


def test_ctrl_c_ends_a_query(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        status = querying.main([str(home / "t.arrows"), "select count(*) from range(1000000000000) a"])
    finally:
        timer.cancel()
    assert status == 130
    assert capsys.readouterr().err == "schedlab: interrupted\n"


@pytest.mark.parametrize("status", [130, 3])
def test_ctrl_c_has_its_status(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert program.ended(interrupted, extra="tune", interrupted=status) == status
    assert capsys.readouterr().err == "schedlab: interrupted\n"


@pytest.mark.parametrize(("name", "status"), [("query", 130), ("sweep", 130), ("tune", 3)])
def test_ctrl_c_during_the_imports_has_it_too(
    name: str, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: str) -> NoReturn:
        raise KeyboardInterrupt

    (found,) = entry_points(group="console_scripts", name=f"schedlab-{name}")
    assert found.module == "schedlab_programs", "what imports the package has no way to catch it"
    program = found.load()
    monkeypatch.setattr(importlib, "import_module", interrupted)
    assert program() == status
    assert capsys.readouterr().err == "schedlab: interrupted\n"


@pytest.mark.parametrize("count", ["0", "-3", "1.5", "many", "9" * 5000])
def test_a_number_of_workers_is_checked(home: Path, count: str, capsys: pytest.CaptureFixture[str]) -> None:
    for main, name in ((cli.main, "s.toml"), (sweeping.run, "w.toml")):
        assert main([str(home / name), f"-j={count}"]) == 2
        assert f'"{count}" is no number of workers; write one from 1 to 4096;' in capsys.readouterr().err


def test_a_number_of_workers_is_checked_in_python(home: Path) -> None:
    with pytest.raises(schedlab.InputError, match='"-3" is no number of workers'):
        schedlab.sweep(home / "w.toml", workers=-3)
    with pytest.raises(schedlab.InputError, match='"-3" is no number of workers'):
        schedlab.tune(home / "s.toml", jobs=-3)


def test_what_is_not_utf_8_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # As Python has an argument that is no UTF-8.
    name = os.fsdecode(b"\xff")
    before = sorted(home.iterdir())
    for main, given in (
        (querying.main, [f"{home}/{name}.arrows", "select 1"]),
        (querying.main, [f"{home}/t.arrows", f"select 1 as {name}"]),
        (sweeping.run, [f"{home}/w.toml", "-o", f"{home}/{name}.parquet"]),
        (cli.main, [f"{home}/{name}.toml"]),
    ):
        assert main(given) == 2
        said = capsys.readouterr().err
        assert said.startswith('schedlab: "')
        assert said.endswith("is not UTF-8; give the file a name that is\n")
    with pytest.raises(schedlab.InputError, match="is not UTF-8"):
        schedlab.read(home / f"{name}.arrows")
    assert sorted(home.iterdir()) == before


def test_a_query_on_standard_input_is_utf_8(home: Path) -> None:
    argv = [sys.executable, "-c", f"import sys; {MAINS['query']}; sys.exit(main())", "t.arrows", "-"]
    for sql, printed, said in [
        ("select 'é' as x", b"x\n\xc3\xa9\n", b""),
        ("select '\udcff' as x", b"", b"schedlab: the query on standard input is not UTF-8; save it as UTF-8 text\n"),
    ]:
        given = sql.encode(errors="surrogateescape")
        done = subprocess.run(argv, check=False, cwd=home, input=given, capture_output=True)
        assert (done.stdout, done.stderr) == (printed, said)
