"""Verbs that run the simulation behind a trace again."""

from datetime import timedelta

import pytest

import schedlab


@pytest.fixture(scope="module")
def periodic() -> schedlab.Trace:
    """Three periodic tasks on a CPU, under EEVDF."""
    return schedlab.sim(kernel="linux-6.12", workload="periodic:tasks=3", duration="100ms", seed=3)


def test_a_run_made_again_is_the_same(periodic: schedlab.Trace) -> None:
    assert schedlab.again(periodic).arrow().equals(periodic.arrow())
    more = schedlab.again(periodic.path, trace_queues=True)
    assert {"queue", "considered"} & set(more.events["event"])
    plain = more.events[~more.events["event"].isin(["queue", "considered"])]
    assert len(plain) == len(periodic.events)


def test_decisions_are_rows(periodic: schedlab.Trace) -> None:
    decisions = schedlab.explain(periodic, "10ms", timedelta(milliseconds=20))
    assert list(decisions) == ["time_us", "cpu", "choice", "who", "over", "rule", "numbers"]
    assert decisions["time_us"].between(10_000, 20_000).all()
    picks = decisions[decisions["choice"] == "pick"]
    switches = periodic.events[
        (periodic.events["event"] == "switch") & periodic.events["time_ns"].between(10**7, 2 * 10**7 - 1)
    ]
    assert set(switches["next_name"]) - {"idle"} <= set(picks["who"])
    assert {"of", "what", "value"} <= set(picks["numbers"].iloc[0][0])


def test_all_decisions_are_the_default(periodic: schedlab.Trace) -> None:
    assert len(schedlab.explain(periodic)) > len(schedlab.explain(periodic, to="50ms")) > 0


def test_queues_have_a_row_for_each_instant_and_cpu(periodic: schedlab.Trace) -> None:
    queues = schedlab.queues_at(periodic, ["10ms", timedelta(milliseconds=30)])
    assert list(queues["time_us"]) == [10_000, 30_000]
    assert "nr_running" in queues["queue"].iloc[0]
    assert len(schedlab.queues_at(periodic, "10ms")) == 1


def test_sched_debug_is_the_text_of_the_kernel(periodic: schedlab.Trace) -> None:
    assert "cpu#0" in schedlab.sched_debug(periodic, "11ms")


def test_the_errors_name_the_argument(periodic: schedlab.Trace) -> None:
    with pytest.raises(schedlab.InputError, match=r"^from_: .*unit"):
        schedlab.explain(periodic, "10")
    with pytest.raises(TypeError, match=r"^times: 5"):
        schedlab.queues_at(periodic, [5])  # type: ignore[list-item]
    with pytest.raises(schedlab.InputError, match=r"^to: .*window"):
        schedlab.explain(periodic, "20ms", "10ms")
