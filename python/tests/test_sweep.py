"""`schedlab sweep` on this machine: the table, what survives a kill, and what is refused."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import schedlab
from schedlab import sweeping
from schedlab.sweeping import batch, sweep
from schedlab.sweeping.cluster import Pool
from schedlab.sweeping.grid import Grid
from schedlab.sweeping.journal import Journal
from schedlab.sweeping.progress import Progress
from schedlab.sweeping.work import Work

LOAD = {"tasks": {"job": {"instance": 3, "loop": 2, "run": {"mean": 3000, "sd": 900}, "sleep": 500}}}
TEXT = f"""
kernels = ["linux-2.6.32", "linux-6.12"]
machines = ["1", "2"]
workloads = [{{ name = "jobs", inline = '{json.dumps(LOAD)}' }}]
seeds = 4
[settings]
hz = [250, 1000]
[measures]
wait_s = "sum(wait_s)"
turnaround_s = "mean(turnaround_s)"
"""
# Long enough to be stopped in the middle.
LONG = """
kernels = ["linux-6.12"]
machines = ["2"]
workloads = ["messaging:groups=1"]
duration = "50ms"
seeds = 120
"""


def written(folder: Path, text: str = TEXT) -> Path:
    path = folder / "s.toml"
    path.write_text(text, encoding="utf-8")
    return path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "schedlab.sweeping", *map(str, arguments)]


@dataclass(frozen=True)
class Done:
    """What a command printed."""

    stdout: str
    stderr: str


def run(*arguments: object, status: int = 0) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        found = sweeping.run([str(own) for own in arguments])
    assert found == status, err.getvalue()
    return Done(out.getvalue(), err.getvalue())


def grid(folder: Path, text: str = TEXT) -> Grid:
    return Grid(sweep.read(written(folder, text)))


def rows(found: Grid, first: int, count: int) -> pa.RecordBatch:
    """Return rows as a worker and the command make them."""
    return found.table(first, batch.simulate(batch.batch(found, first, count), 1e9).figures)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the table of a serial run."""
    folder = tmp_path_factory.mktemp("plain")
    run(written(folder), "-o", folder / "s.parquet", "--workers", 1)
    return folder / "s.parquet"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the table of the long sweep, which nobody stopped."""
    folder = tmp_path_factory.mktemp("long")
    run(written(folder, LONG), "-o", folder / "s.parquet")
    return folder / "s.parquet"


def test_a_row_is_what_a_single_simulation_yields(plain: Path) -> None:
    table = pq.read_table(plain).to_pylist()
    assert len(table) == 32
    for row in table[::5]:
        trace = schedlab.sim(
            kernel=row["kernel"], machine=row["machine"], workload=LOAD, seed=row["seed"], set={"hz": row["hz"]}
        )
        assert row["wait_s"] == pytest.approx(trace.stats().total["wait_us"] / 1e6, rel=1e-9)
        assert row["missing"] is None
        assert row["error"] is None
    assert len({row["turnaround_s"] for row in table}) > 8


def test_the_number_of_workers_changes_no_byte(plain: Path, tmp_path: Path) -> None:
    run(written(tmp_path), "-o", tmp_path / "s.parquet", "--workers", 3)
    assert (tmp_path / "s.parquet").read_bytes() == plain.read_bytes()
    assert sorted(own.name for own in tmp_path.iterdir()) == ["s.parquet", "s.toml"]


def test_an_arrow_stream_has_the_same_rows(plain: Path, tmp_path: Path) -> None:
    run(written(tmp_path), "-o", tmp_path / "s.arrows")
    with pa.OSFile(str(tmp_path / "s.arrows"), "rb") as file, pa.ipc.open_stream(file) as stream:
        assert stream.read_all().equals(pq.read_table(plain))


def test_the_summary_is_json(tmp_path: Path) -> None:
    done = run(written(tmp_path), "-o", tmp_path / "s.parquet", "--json")
    summary = json.loads(done.stdout)["sweep"]
    assert (summary["points"], summary["failed"], summary["resumed"], summary["errors"]) == (32, 0, 0, [])
    assert done.stderr.startswith(f"schedlab: wrote {tmp_path / 's.parquet'}: 32 rows, 32 of them in ")


def test_a_dry_run_simulates_nothing(tmp_path: Path) -> None:
    done = run(written(tmp_path), "--dry-run")
    lines = done.stdout.splitlines()
    assert lines[0] == "32 simulations: 2 kernels x 2 machines x 1 workload x 2 combinations of settings x 4 seeds"
    assert lines[2].split() == ["point", "kernel", "machine", "workload", "hz", "seed"]
    assert lines[3].split() == ["0", "linux-2.6.32", "1", "jobs", "250", "1"]
    assert [own.name for own in tmp_path.iterdir()] == ["s.toml"]


def test_a_simulation_that_fails_is_a_row_with_its_message(tmp_path: Path) -> None:
    load = {"tasks": {"a": {"loop": 2, "run": 1000, "cpus": [1]}}}
    text = TEXT.replace(json.dumps(LOAD), json.dumps(load))
    done = run(written(tmp_path, text), "-o", tmp_path / "s.parquet", "--json", status=1)
    table = pq.read_table(tmp_path / "s.parquet").to_pylist()
    failed = [row for row in table if row["error"]]
    # CPU 1 is not on a machine with one CPU.
    assert [row["machine"] for row in failed] == ["1"] * 16
    assert all(row["wait_s"] is None for row in failed)
    summary = json.loads(done.stdout)["sweep"]
    assert (summary["failed"], len(summary["errors"])) == (16, 10)
    assert summary["errors"][0] == {"point": 0, "error": failed[0]["error"]}
    assert "16 of them failed; the first, point 0: " in done.stderr


def test_a_measure_without_a_value_says_why(tmp_path: Path) -> None:
    load = {"tasks": {"hog": {"loop": -1, "run": 1000}}}
    text = TEXT.replace(json.dumps(LOAD), json.dumps(load)).replace("seeds = 4", 'seeds = 1\nduration = "10ms"')
    run(written(tmp_path, text), "-o", tmp_path / "s.parquet")
    row = pq.read_table(tmp_path / "s.parquet").to_pylist()[0]
    assert (row["turnaround_s"], row["missing"], row["error"]) == (None, "the task 'hog' had not ended", None)


def test_nothing_is_overwritten_without_force(plain: Path, tmp_path: Path) -> None:
    output = tmp_path / "s.parquet"
    output.write_text("precious", encoding="utf-8")
    done = run(written(tmp_path), "-o", output, status=2)
    assert done.stderr == f"schedlab: --output {output}: exists already; choose another name or give --force\n"
    assert output.read_text(encoding="utf-8") == "precious"
    run(written(tmp_path), "-o", output, "--force")
    assert output.read_bytes() == plain.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "x.csv"], "--output x.csv: has no known ending; write NAME.parquet or NAME.arrows"),
        (["-o", "gone/x.parquet"], "--output gone/x.parquet: there is no folder gone; make it first"),
        (["--worker", "2"], "unrecognized arguments: --worker 2; schedlab sweep --help lists the options"),
        (["-j", "0"], 'argument -j/--workers: "0" is no number of workers; write one from 1 to 4096; schedlab sweep '),
        (["--slurm-option", "jobs=2"], "--slurm-option: is for --slurm; add that"),
        (["--slurm", "--slurm-option", "job=2"], '--slurm-option job=2: "job" is no option; did you mean "jobs"?'),
        (["--slurm", "--cluster", "local"], "argument --cluster: not allowed with argument --slurm"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, arguments: Sequence[str], message: str) -> None:
    done = run(written(tmp_path), *arguments, status=2)
    assert done.stderr.startswith(f"schedlab: {message}"), done.stderr
    assert done.stderr.count("\n") == 1


def begin(path: Path, output: Path) -> "subprocess.Popen[bytes]":
    """Start a sweep and wait until the first rows are in its journal."""
    started = subprocess.Popen(command(path, "-o", output, "--workers", 1), stderr=subprocess.PIPE)
    journal = output.with_name(f"{output.name}.partial")
    header = len(grid(path.parent, path.read_text(encoding="utf-8")).schema().serialize())
    while started.poll() is None and not (journal.exists() and journal.stat().st_size > header + 4000):
        time.sleep(0.005)
    assert started.poll() is None, "the sweep was over before it could be stopped"
    return started


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_what_was_stopped_goes_on_where_it_was(long: Path, tmp_path: Path, number: signal.Signals) -> None:
    path, output = written(tmp_path, LONG), tmp_path / "s.parquet"
    with begin(path, output) as started:
        os.kill(started.pid, number)
        said = started.communicate()[1].decode()
    if number == signal.SIGKILL:
        assert started.returncode == -signal.SIGKILL
    else:
        assert started.returncode == 128 + number
        assert said.startswith("schedlab: stopped with "), said
        assert said.count("\n") == 1
    assert not output.exists()
    summary = json.loads(run(path, "-o", output, "--json").stdout)["sweep"]
    assert 0 < summary["resumed"] < 120
    assert output.read_bytes() == long.read_bytes()


def test_a_changed_file_does_not_go_on(tmp_path: Path) -> None:
    path, output = written(tmp_path), tmp_path / "s.parquet"
    found = grid(tmp_path)
    journal = Journal(tmp_path / "s.parquet.partial", found.schema(), found.sweep.content())
    journal.append(rows(found, 0, 5))
    journal.close()
    changed = TEXT.replace("hz = [250, 1000]", "hz = [250, 300]")
    done = run(written(tmp_path, changed), "-o", output, status=2)
    assert done.stderr == (
        f"schedlab: {output}.partial: was begun by another sweep: kernels.linux-2.6.32.settings.hz was [250, 1000] and "
        "is [250, 300] (and 1 more); undo the change to go on with it, name another output, or begin anew with "
        "--force\n"
    )
    # A comment is no change.
    summary = json.loads(run(written(tmp_path, f"# better\n{TEXT}"), "-o", output, "--json").stdout)["sweep"]
    assert summary["resumed"] == 5
    assert path.exists()


def test_two_sweeps_do_not_write_the_same_table(tmp_path: Path) -> None:
    found = grid(tmp_path)
    journal = Journal(tmp_path / "s.parquet.partial", found.schema(), found.sweep.content())
    for more in ([], ["--force"]):
        done = run(tmp_path / "s.toml", "-o", tmp_path / "s.parquet", *more, status=2)
        assert "another sweep is writing it" in done.stderr
    journal.close()


def test_a_journal_that_was_cut_anywhere_is_read_to_the_cut(tmp_path: Path) -> None:
    found = grid(tmp_path)
    path = tmp_path / "j"
    journal = Journal(path, found.schema(), found.sweep.content())
    places = []
    for first in (0, 4, 20):
        places.append(path.stat().st_size)
        journal.append(rows(found, first, 4))
    assert journal.gaps(32) == [(8, 20), (24, 32)]
    journal.close()
    whole = path.read_bytes()
    for cut in [*range(0, len(whole), 37), *places, len(whole) - 1, len(whole)]:
        path.write_bytes(whole[:cut])
        journal = Journal(path, found.schema(), found.sweep.content())
        complete = sum(end <= cut for end in [*places[1:], len(whole)])
        assert journal.resumed == 4 * complete, cut
        # What comes next stands where the cut was.
        journal.append(rows(found, 28, 4))
        assert sum(own.num_rows for own in journal.batches()) == 4 * complete + 4
        journal.close()


def test_the_journal_of_a_running_sweep_is_an_arrow_stream(tmp_path: Path) -> None:
    found = grid(tmp_path)
    journal = Journal(tmp_path / "j", found.schema(), found.sweep.content())
    journal.append(rows(found, 3, 2))
    with pa.ipc.open_stream(io.BytesIO((tmp_path / "j").read_bytes())) as stream:
        assert stream.read_all()["point"].to_pylist() == [3, 4]
    journal.close()


class KilledWorker(Exception):  # noqa: N818 (its name is what counts)
    """What Dask reports if workers die, by its name."""


class Deadly(Executor):
    """Workers that die of one point, and give up early otherwise."""

    def __init__(self, point: int) -> None:
        self.point, self.calls = point, 0

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> "Future[Any]":  # noqa: ANN401 (as in the library)
        """Run it here, or fail."""
        future: Future[Any] = Future()
        given: batch.Batch = arguments[0]
        self.calls += 1
        if given.first <= self.point < given.first + len(given.runs):
            future.set_exception(KilledWorker("worker died"))
        else:
            future.set_result(function(given, 0.0))
        return future


def test_what_workers_die_of_is_a_row_with_an_error(plain: Path, tmp_path: Path) -> None:
    found = grid(tmp_path)
    journal = Journal(tmp_path / "j", found.schema(), found.sweep.content())
    workers = Deadly(13)
    Work(found, journal, Pool(workers, 2, "a test", True), Progress(found.count, 0, 0)).run()
    table = pa.Table.from_batches(list(journal.batches()))
    journal.close()
    right = pq.read_table(plain)
    assert [row for row in table.to_pylist() if row["point"] != 13] == [
        row for row in right.to_pylist() if row["point"] != 13
    ]
    row = table.to_pylist()[13]
    assert row["wait_s"] is None
    assert row["error"].startswith("the workers that ran it died")
    assert workers.calls < 4 * found.count


@pytest.mark.parametrize("content", [b"mine\n", b"\xff\xffmine", b"x" * 5000])
def test_a_file_of_somebody_else_is_no_journal(tmp_path: Path, content: bytes) -> None:
    own = tmp_path / "s.parquet.partial"
    own.write_bytes(content)
    with pytest.raises(schedlab.InputError, match=r"partial: is no journal of a sweep; remove it or name another"):
        schedlab.sweep(written(tmp_path), tmp_path / "s.parquet")
    assert own.read_bytes() == content
