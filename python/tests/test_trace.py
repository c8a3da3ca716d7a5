"""Traces as tables, frames and statistics."""

from datetime import timedelta
from operator import attrgetter, methodcaller
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import schedlab
from schedlab.naming import Names


def test_the_file_is_an_arrow_stream_that_needs_no_schedlab(hogs: schedlab.Trace) -> None:
    with hogs.path.open("rb") as file, pa.ipc.open_stream(file) as reader:
        table = reader.read_all()
    assert table.equals(hogs.arrow())


def test_events_are_in_the_order_of_time(hogs: schedlab.Trace) -> None:
    assert hogs.events["time_ns"].is_monotonic_increasing
    assert set(hogs.events["cpu"]) == {0, 1}


def test_names_are_separate_from_events(hogs: schedlab.Trace) -> None:
    assert set(hogs.names["comm"]) == {"hog-0", "hog-1", "hog-2"}
    assert "name" not in set(hogs.events["event"])
    assert len(hogs.names) + len(hogs.affinities) + len(hogs.events) == hogs.arrow().num_rows


def test_integers_that_may_be_missing_are_nullable(hogs: schedlab.Trace) -> None:
    types = hogs.events.dtypes.astype(str).to_dict()
    assert (types["time_ns"], types["cpu"], types["tid"], types["next_tid"]) == ("int64", "Int32", "Int32", "Int32")
    wakeups = hogs.events[hogs.events["event"] == "wakeup_new"]
    assert wakeups["next_tid"].isna().all()
    assert wakeups["tid"].notna().all()
    assert (hogs.events["time_ns"].diff().dropna() >= 0).all()


def test_events_have_the_names_of_their_tasks(hogs: schedlab.Trace) -> None:
    named = hogs.names.set_index("tid")["comm"].to_dict() | {0: "idle"}
    for tid, name in (("tid", "name"), ("next_tid", "next_name"), ("other_tid", "other_name")):
        known = hogs.events[hogs.events[tid].notna()]
        assert list(known[name]) == [named[number] for number in known[tid]]
        assert hogs.events.loc[hogs.events[tid].isna(), name].isna().all()


def rows(*events: dict[str, object]) -> pa.Table:
    """Return a table with the columns that names come from."""
    types = {"event": pa.string(), "tid": pa.int32(), "other_tid": pa.int32(), "comm": pa.string()}
    schema = pa.schema([pa.field(name, of) for name, of in types.items()])
    return pa.Table.from_pylist(list(events), schema=schema)


def test_names_follow_forks_and_execs() -> None:
    table = rows(
        {"event": "wakeup", "tid": 7},
        {"event": "name", "tid": 7, "comm": "sh"},
        {"event": "fork", "tid": 8, "other_tid": 7},
        {"event": "wakeup", "tid": 8},
        {"event": "name", "tid": 8, "comm": "ls"},
        {"event": "wakeup", "tid": 8},
        {"event": "fork", "tid": 9, "other_tid": 8},
        {"event": "exec", "tid": 8, "other_tid": 9},
        {"event": "wakeup", "tid": 0},
    )
    tids = pd.Series(table["tid"].to_pylist(), dtype="Int32")
    found = Names(table).of(tids, np.arange(table.num_rows))
    names = ["?" if pd.isna(name) else name for name in found]
    assert names == ["?", "sh", "sh", "sh", "ls", "ls", "ls", "ls", "idle"]


def test_meta_names_the_source(hogs: schedlab.Trace) -> None:
    assert hogs.meta["source"] == "sim"
    assert hogs.meta["kernel"] == "linux-6.1"
    assert len(hogs.meta["cpus"]) == 2


def test_statistics_agree_with_the_events(hogs: schedlab.Trace) -> None:
    stats = hogs.stats()
    switches = hogs.events[hogs.events["event"] == "switch"]
    for task in stats.tasks.itertuples():
        assert task.slices == (switches["next_tid"] == task.tid).sum()
    # Two CPUs that are never idle run for two seconds in one second.
    assert stats.tasks["run_us"].sum() == pytest.approx(2e6, rel=1e-3)
    assert stats.total["run_us"] == pytest.approx(stats.cpus["run_us"].sum())


def test_tasks_are_told_apart_by_cpu_on_request(hogs: schedlab.Trace) -> None:
    assert hogs.stats().task_cpus.empty
    assert hogs.stats().interrupts.empty
    stats = hogs.stats(task_cpus=True)
    by_task = stats.task_cpus.groupby("tid").run_us.sum()
    assert by_task.to_dict() == pytest.approx(stats.tasks.set_index("tid").run_us.to_dict())


def test_nested_figures_become_columns(hogs: schedlab.Trace) -> None:
    tasks = hogs.stats().tasks
    assert {"latency_us_mean", "latency_us_p999", "waking_latency_us_max"} <= set(tasks.columns)


def test_a_saved_trace_is_the_same(hogs: schedlab.Trace, tmp_path: Path) -> None:
    target = tmp_path / "kept.arrows"
    kept = hogs.save(target)
    assert kept.arrow().equals(hogs.arrow())
    with pytest.raises(FileExistsError):
        hogs.save(target)
    hogs.save(target, force=True)


def test_the_file_of_a_run_is_removed_with_it() -> None:
    run = schedlab.sim(kernel="linux-6.1", machine="1", workload={"tasks": {"t": {"run": 1000, "loop": 1}}})
    path = run.path
    assert path.exists()
    del run
    assert not path.exists()


def test_a_cut_trace_is_read_with_a_warning(hogs: schedlab.Trace, tmp_path: Path) -> None:
    whole = hogs.path.read_bytes()
    cut = tmp_path / "cut.arrows"
    cut.write_bytes(whole[:-20])
    with pytest.warns(schedlab.CutWarning, match=r"cut\.arrows"):
        rows = schedlab.read(cut).arrow().num_rows
    assert rows <= hogs.arrow().num_rows


@pytest.mark.parametrize("content", [b"", b"PERFILE2", b"\xff\xff\xff\xff\xff\xff\xff\xff", b"hello\n" * 100])
def test_files_that_are_not_traces_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(schedlab.InputError, match="broken"):
        schedlab.read(path)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(schedlab.InputError, match="nowhere") as read:
        schedlab.read("nowhere.arrows")
    for ask in (attrgetter("meta"), attrgetter("events"), attrgetter("intervals"), methodcaller("stats")):
        with pytest.raises(schedlab.InputError) as asked:
            ask(schedlab.Trace("nowhere.arrows"))
        assert str(asked.value) == str(read.value)
    assert repr(schedlab.Trace("nowhere.arrows")) == "<schedlab.Trace nowhere.arrows, which cannot be read>"


def test_statistics_of_a_part(hogs: schedlab.Trace) -> None:
    part = hogs.stats(from_="200ms", to=timedelta(milliseconds=300), task="hog-*")
    assert part.total["span_us"] == 100_000
    assert part.total["run_us"] == pytest.approx(200_000)
    one = hogs.stats(pid=int(hogs.stats().tasks["tid"][0]))
    assert len(one.tasks) == 1
    assert set(hogs.stats(task=["hog-0", "hog-1"]).names["name"]) == {"hog-0", "hog-1"}
    with pytest.raises(schedlab.InputError, match="no task is named"):
        hogs.stats(task="nobody")
