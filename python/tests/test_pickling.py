"""Traces and results go to the workers of a pool and come back."""

import multiprocessing
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import schedlab


def simulate(seed: int) -> schedlab.Trace:
    """Simulate in a worker; the trace goes back to the parent."""
    load = {"tasks": {"t": {"instance": 3, "loop": -1, "run": {"mean": 900, "sd": 300}, "sleep": 500}}}
    return schedlab.sim(kernel="linux-6.12", machine="2", workload=load, duration="100ms", seed=seed)


def slices(trace: schedlab.Trace) -> int:
    """Measure in a worker."""
    return int(trace.stats().total["slices"])


def fail(name: str) -> None:
    """Fail in a worker."""
    schedlab.sim(kernel=name, workload="messaging", duration="1ms")


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_traces_go_through_a_pool_both_ways(method: str) -> None:
    with multiprocessing.get_context(method).Pool(2) as pool:
        runs = pool.map(simulate, [1, 2, 3])
        counts = pool.map(slices, runs)
    assert counts == [slices(run) for run in runs] == [slices(simulate(seed)) for seed in (1, 2, 3)]
    assert len(set(counts)) > 1
    assert len({run.path for run in runs}) == 3


def test_an_error_in_a_worker_reaches_the_parent() -> None:
    said = r"^kernel: .*linux-6\.13"
    with multiprocessing.get_context("spawn").Pool(1) as pool, pytest.raises(schedlab.InputError, match=said):
        pool.map(fail, ["linux-6.13"])


def test_a_copy_owns_its_file(hogs: schedlab.Trace) -> None:
    copy = pickle.loads(pickle.dumps(hogs))
    path = copy.path
    assert path != hogs.path
    assert path.read_bytes() == hogs.path.read_bytes()
    del copy
    assert not path.exists()
    assert hogs.path.exists()


def test_a_kept_file_is_pickled_by_its_path(
    hogs: schedlab.Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = hogs.save("kept.arrows")
    data = pickle.dumps(kept)
    assert len(data) < 1000
    monkeypatch.chdir("/")
    assert pickle.loads(data).path == tmp_path / "kept.arrows"


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_leaves_the_file_to_its_owner() -> None:
    run = simulate(1)
    child = os.fork()
    if child == 0:
        del run
        os._exit(0)
    os.waitpid(child, 0)
    assert run.path.exists()


def test_results_can_be_pickled(hogs: schedlab.Trace) -> None:
    results: list[Any] = [hogs.stats(), schedlab.check(hogs), schedlab.gantt(hogs), schedlab.heatmap(hogs)]
    for result, copy in zip(results, pickle.loads(pickle.dumps(results)), strict=True):
        assert copy.document == result.document
