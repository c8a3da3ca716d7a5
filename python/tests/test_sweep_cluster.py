"""`schedlab sweep` on a Dask cluster over loopback, whose workers may die."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import distributed
import pyarrow as pa
import pytest

import schedlab
from schedlab.sweeping import cluster, run

TEXT = """
kernels = ["linux-2.6.32", "linux-6.12"]
machines = ["2"]
workloads = ["messaging:groups=1", "load.json"]
duration = "50ms"
seeds = 40
"""
LOAD = {"tasks": {"job": {"instance": 3, "loop": 2, "run": {"mean": 3000, "sd": 900}, "sleep": 500}}}


@pytest.fixture(scope="module")
def scheduler() -> Iterator[distributed.LocalCluster]:
    """Start a cluster of two worker processes."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=None,
        silence_logs=50,
    ) as started:
        yield started


def written(folder: Path) -> Path:
    (folder / "load.json").write_text(json.dumps(LOAD), encoding="utf-8")
    path = folder / "s.toml"
    path.write_text(TEXT, encoding="utf-8")
    return path


def workers(started: distributed.LocalCluster) -> set[int]:
    """Return the process ids of the workers."""
    with distributed.Client(started) as client:
        return set(client.run(os.getpid).values())


def test_a_worker_that_is_killed_loses_no_row(scheduler: distributed.LocalCluster, tmp_path: Path) -> None:
    path, output = written(tmp_path), tmp_path / "s.parquet"
    before = workers(scheduler)
    with subprocess.Popen(
        [sys.executable, "-m", "schedlab.sweeping", path, "-o", output, "--cluster", scheduler.scheduler_address],
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        journal = output.with_name("s.parquet.partial")
        while started.poll() is None and not (journal.exists() and len(points(journal)) > 0):
            time.sleep(0.005)
        assert started.poll() is None, "the sweep was over before a worker could be killed"
        os.kill(min(before), signal.SIGKILL)
        said = started.communicate()[1]
    assert started.returncode == 0, said
    assert min(before) not in workers(scheduler)
    assert run([str(path), "-o", str(tmp_path / "serial.parquet"), "--workers", "1"]) == 0
    assert output.read_bytes() == (tmp_path / "serial.parquet").read_bytes()


def points(journal: Path) -> list[object]:
    """Return which points are in a journal that somebody is writing."""
    try:
        with journal.open("rb") as file, pa.ipc.open_stream(file) as stream:
            return [point for batch in stream for point in batch["point"].to_pylist()]
    except (pa.ArrowException, OSError):
        return []


def test_a_cluster_is_an_executor(scheduler: distributed.LocalCluster) -> None:
    with cluster.connect(scheduler.scheduler_address) as pool:
        assert pool.workers == 2
        assert pool.present() == 2
        assert pool.where == f"the Dask cluster at {scheduler.scheduler_address}"
        assert [pool.submit(abs, -n).result() for n in range(3)] == [0, 1, 2]


def test_a_cluster_that_is_not_there_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(written(tmp_path)), "-o", str(tmp_path / "s.parquet"), "--cluster", "nowhere"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("schedlab: --cluster nowhere: no Dask scheduler answers there: "), said
    assert said.count("\n") == 1


def test_without_slurm_the_command_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run([str(written(tmp_path)), "-o", str(tmp_path / "s.parquet"), "--slurm"]) == 4
    said = capsys.readouterr().err
    assert said == "schedlab: sbatch is not here; run this where Slurm's jobs are submitted, or use --cluster\n"


def test_a_worker_of_another_version_is_refused(
    scheduler: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "__version__", "0.0.0")
    with pytest.raises(schedlab.InputError, match=r"has schedlab .*, and this is 0\.0\.0; install the same there"):  # noqa: SIM117
        with cluster.connect(scheduler.scheduler_address):
            pass
