"""How far apart two recordings are (scripts/apart.py), on small figures worked out by hand."""

from collections.abc import Callable
from types import ModuleType

import pytest

Both = tuple[float, float]


@pytest.fixture(scope="module")
def apart(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("apart")


def task(cpu: float, wait: Both) -> dict[str, Both]:
    return {"run_us": (cpu, cpu), "wait_us": wait}


def test_the_second_recording_is_held_to_the_first(apart: ModuleType) -> None:
    whole = {
        "duration_us": (10_000.0, 10_000.0),
        "wait_us": (400.0, 440.0),
        "slices": (50.0, 45.0),
        "latency_p50_us": (10.0, 15.0),
    }
    tasks = [task(1000.0, (100.0, 110.0)), task(900.0, (200.0, 240.0)), task(800.0, (100.0, 90.0))]
    tasks.append(task(99.0, (1.0, 1000.0)))  # under 1% of a CPU: not judged
    found = apart.compared(whole, tasks)
    errors = found["errors"]
    assert errors["wait"] == pytest.approx(0.1)
    assert errors["slices"] == pytest.approx(-0.1)
    assert errors["latency_p50"] == pytest.approx(0.5)
    assert errors["latency_p99"] is None, "too few wake-ups for one"
    assert (errors["task_wait_median"], errors["task_wait_p90"]) == (pytest.approx(0.1), pytest.approx(0.2))
    assert (found["recorded"]["latency_p50_us"], found["simulated"]["latency_p50_us"]) == (10.0, 15.0)


def test_a_wait_of_nearly_nothing_is_relative_to_the_cpu_time(apart: ModuleType) -> None:
    whole = {"duration_us": (10_000.0, 10_000.0), "slices": (1.0, 1.0)}
    errors = apart.compared(whole, [task(1000.0, (0.0, 5.0))])["errors"]
    assert errors["task_wait_median"] == pytest.approx(0.5), "5 of 10 us, not of 0"
    assert errors["wait"] is None


def test_ranks_of_equal_waits_are_shared(apart: ModuleType) -> None:
    assert apart.ranks([30.0, 10.0, 10.0, 20.0]) == [3.0, 0.5, 0.5, 2.0]
    assert apart.spearman([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]) == pytest.approx(1.0)
    assert apart.spearman([1.0, 2.0, 3.0], [30.0, 20.0, 10.0]) == pytest.approx(-1.0)
    assert apart.spearman([1.0, 2.0], [1.0, 2.0]) is None, "two say nothing"
    assert apart.spearman([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]) is None
