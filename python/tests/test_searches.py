"""`schedlab.tune` and `schedlab.sweep` in Python."""

import html
import tempfile
from pathlib import Path
from typing import Any

import pytest

import schedlab
from schedlab.tuning import home

STUDY: dict[str, Any] = {
    "kernel": "linux-6.1",
    "machine": "2",
    "duration": "50ms",
    "load": {"workload": "li:tasks=3"},
    "parameters": {"latency_ns": {"range": [1_000_000, 100_000_000]}, "NEXT_BUDDY": {}},
    "objectives": {"spread": {"value": "spread(run_s)"}},
    "search": {"trials": 5, "repeats": [1, 2]},
    "confirm": {"runs": 6},
}
SWEEP: dict[str, Any] = {
    "kernels": ["linux-6.12"],
    "workloads": ["li:tasks=3"],
    "duration": "20ms",
    "seeds": 2,
    "settings": {"base_slice_ns": [1_000_000, 3_000_000]},
}


def test_a_study_may_be_a_mapping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = schedlab.tune(STUDY, trials=4, quiet=True)
    assert list(found.trials.number) == [0, 1, 2, 3, 4]
    assert found.trials.name[0] == "default"
    assert found.trials.improvement_spread[0] == 0
    assert set(found.best) == {"latency_ns", "NEXT_BUDDY"}
    assert found.document["trials"] == 4
    found.report("r.html")
    with pytest.raises(schedlab.InputError, match="exists already"):
        found.report("r.html")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"], "no trials are kept"
    with pytest.raises(schedlab.InputError, match=r"study: search.trails: no such key; did you mean"):
        schedlab.tune({**STUDY, "search": {"trails": 3}})
    with pytest.raises(schedlab.InputError, match=r"trials: 0 is too small; write 1 or more"):
        schedlab.tune(STUDY, trials=0)


def test_the_traces_of_the_default_and_the_best_are_kept(tmp_path: Path) -> None:
    # Two hogs share a CPU; the greater latency, the longer each waits for the other.
    study = {
        **STUDY,
        "machine": "up",
        "duration": "200ms",
        "parameters": {"latency_ns": {"choices": [6_000_000, 60_000_000]}},
    }
    study["objectives"] = {"slices": {"value": "sum(slices['li-*'])"}}
    found = schedlab.tune(study, trials=2, keep=tmp_path / "kept", quiet=True)
    assert found.confirmed
    look = found.document["looks"]["slices"]
    before, after = (schedlab.read(tmp_path / "kept" / f"{name}.arrows") for name in ("default", "best"))
    slices = [trace.stats().tasks.slices.sum() for trace in (before, after)]
    assert slices[0] > slices[1], "these are the settings that were compared"
    assert "best.arrows" in look["command"]
    assert look["command"] in str(found)
    found.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert html.escape(look["command"]) in page
    if look["page"]:
        assert 'href="kept/1.html"' in page
        assert Path(look["page"]).is_file()
    with pytest.raises(schedlab.InputError, match=r"keep: .* is not empty"):
        schedlab.tune(study, trials=2, keep=tmp_path / "kept", quiet=True)
    command = {**study, "load": {"command": ["true"]}, "objectives": {"time": {"time": True}}}
    with pytest.raises(schedlab.InputError, match="no trace to keep"):
        schedlab.tune(command, on="command", keep=tmp_path / "none", quiet=True)


def test_a_sweep_may_be_a_mapping(tmp_path: Path) -> None:
    table = schedlab.sweep(SWEEP)
    assert list(table.base_slice_ns) == [1_000_000, 1_000_000, 3_000_000, 3_000_000]
    assert list(table.seed) == [1, 2, 1, 2]
    assert (table.run_s > 0).all()
    output = tmp_path / "t.arrows"
    assert schedlab.sweep(SWEEP, output).equals(table)
    with pytest.raises(schedlab.InputError, match=r"output: .*t.arrows: exists already"):
        schedlab.sweep(SWEEP, output)
    with pytest.raises(schedlab.InputError, match=r'sweep: kernel: "kernel" is no key; did you mean "kernels"?'):
        schedlab.sweep({"kernel": "linux-6.12"})


def test_a_search_without_a_value_says_why() -> None:
    # No task ends within 50 ms.
    with pytest.raises(schedlab.InputError, match=r"objectives.spread: has no value with the default settings"):
        schedlab.tune({**STUDY, "objectives": {"spread": {"value": "sum(turnaround_s)"}}})


def test_folders_of_killed_searches_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(home, "_YOUNG_S", -1)
    left = tmp_path / "schedlab-tune-killed"
    left.mkdir()
    (left / "file").touch()
    home.home.cache_clear()
    own = Path(home.home())
    assert own.is_dir()
    assert not left.exists()
    home.home.cache_clear()
    other = Path(home.home())
    assert own.is_dir(), "a folder that a process holds stays"
    assert other != own
    home.home.cache_clear()
