"""Intervals: what each task did, held against the statistics, the timeline and a schedule worked out by hand."""

import pandas as pd
import pytest

import schedlab


@pytest.fixture(scope="module")
def busy() -> schedlab.Trace:
    """Tasks that run, wait, sleep and are moved."""
    return schedlab.sim(kernel="linux-6.12", machine="2x2", workload="messaging", duration="50ms")


def us(column: pd.Series) -> float:
    """Return the sum of a column of nanoseconds in microseconds."""
    return float(column.sum()) / 1e3


def test_the_columns_are_typed_and_in_order(busy: schedlab.Trace) -> None:
    frame = busy.intervals
    types = {name: str(dtype) for name, dtype in frame.dtypes.items()}
    assert types == {
        "start_ns": "int64",
        "end_ns": "int64",
        "cpu": "Int32",
        "tid": "Int32",
        "tgid": "Int32",
        "name": "category",
        "state": "category",
        "wait_ns": "Int64",
    }
    assert frame["start_ns"].is_monotonic_increasing
    assert set(frame["state"]) <= {"running", "waiting", "sleeping", "blocked"}
    assert busy.arrow("intervals").num_rows == len(frame)


def test_sums_are_those_of_the_statistics(busy: schedlab.Trace) -> None:
    frame = busy.intervals.assign(length=lambda f: f["end_ns"] - f["start_ns"])
    tasks = busy.stats().tasks.set_index("tid")
    assert len(tasks) > 10
    for tid, own in frame.groupby("tid"):
        task = tasks.loc[tid]
        assert us(own.loc[own["state"] == "running", "length"]) == pytest.approx(task["run_us"])
        assert us(own.loc[own["state"] == "waiting", "length"]) == pytest.approx(task["wait_us"])
        assert us(own["wait_ns"]) == pytest.approx(task["wait_us"] - task["wait_unfinished_us"])
        assert (own["state"] == "running").sum() == task["slices"]
        assert set(own["name"]) == {task["name"]}


def test_a_task_does_one_thing_at_a_time(busy: schedlab.Trace) -> None:
    for _, own in busy.intervals.groupby("tid"):
        assert (own["end_ns"].to_numpy()[:-1] <= own["start_ns"].to_numpy()[1:]).all()
    running = busy.intervals[busy.intervals["state"] == "running"]
    for _, own in running.groupby("cpu"):
        assert (own["end_ns"].to_numpy()[:-1] <= own["start_ns"].to_numpy()[1:]).all()


def test_a_schedule_worked_out_by_hand() -> None:
    load = {"tasks": {name: {"loop": 1, "run": run} for name, run in (("a", 3000), ("b", 5000))}}
    trace = schedlab.sim(kernel="linux-2.4", machine="1", workload=load, costs=False)
    running = trace.intervals[trace.intervals["state"] == "running"]
    first, second = running.to_dict("records")
    # Neither uses up its time slice, so one runs after the other.
    assert (first["start_ns"], second["end_ns"]) == (0, 8_000_000)
    length = {"a": 3_000_000, "b": 5_000_000}[first["name"]]
    assert first["end_ns"] == second["start_ns"] == second["wait_ns"] == length
    assert first["wait_ns"] == 0


def test_the_timeline_has_the_same_runs(busy: schedlab.Trace) -> None:
    spans = schedlab.gantt(busy, lanes=100).spans
    running = busy.intervals[
        (busy.intervals["state"] == "running") & (busy.intervals["start_ns"] < busy.intervals["end_ns"])
    ]
    times = zip(running["start_ns"] / 1e3, running["end_ns"] / 1e3, running["cpu"], running["tid"], strict=True)
    assert set(times) == set(zip(spans["start_us"], spans["end_us"], spans["cpu"], spans["tid"], strict=True))


def test_any_library_takes_the_table_without_a_copy(busy: schedlab.Trace) -> None:
    frame = schedlab._native.intervals(str(busy.path))
    assert type(frame.__arrow_c_stream__()).__name__ == "PyCapsule"
    with pytest.raises(schedlab.InputError, match=r"what: .*intervals"):
        busy.arrow("interval")
