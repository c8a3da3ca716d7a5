"""What a prediction for another kernel is held to (scripts/across.py), on small figures worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def across(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("across")


def row(tid: int, recorded: float, baseline: float, asked: float, verdict: str = "same") -> dict[str, Any]:
    wait = {"recorded": recorded, "baseline": baseline, "asked": asked, "verdict": verdict}
    return {"kind": "task", "tid": tid, "figures": {"wait_us": wait, "run_us": {"recorded": 1000.0}}}


def figures(across: ModuleType, **some: int | list[float]) -> object:
    """Give a score with some figures; the others are 0."""
    return replace(across.added([]), **some)


def task(tid: int, name: str, wait_us: float) -> dict[str, Any]:
    return {"tid": tid, "name": name, "wait_us": wait_us}


def test_tasks_are_found_by_name_and_then_in_the_order_of_their_ids(across: ModuleType) -> None:
    here = [task(12, "cc", 50.0), task(9, "cc", 40.0), task(10, "make", 5.0), task(11, "gone", 5.0)]
    there = [task(107, "make", 6.0), task(110, "cc", 60.0), task(109, "cc", 45.0)]
    rows = [row(12, 50.0, 55.0, 66.0, "rises"), row(10, 5.0, 5.0, 5.0), row(11, 5.0, 5.0, 5.0)]
    rows.append({"kind": "role", "tid": 12, "figures": {}})
    found = across.collect(here, there, rows)
    assert set(found) == {("cc", 1), ("make", 0)}, "one is not in the other recording, and a role is no task"
    second = found["cc", 1]
    assert (second.here, second.there, second.baseline, second.asked) == ([50.0], [60.0], [55.0], [66.0])
    assert (second.told, found["make", 0].told) == ([True], [False])
    assert second.real == pytest.approx(0.2)
    assert second.predicted == pytest.approx(0.2)


def test_directions_and_sizes_are_counted_where_the_real_wait_changes(across: ModuleType) -> None:
    tasks = [
        across.Task([1000.0], [100.0], [150.0], [200.0], [280.0]),  # +50%, predicted +40%: right, off by a fifth
        across.Task([1000.0], [100.0], [80.0], [100.0], [110.0]),  # -20%, predicted +10%: wrong, off by 1.5
        across.Task([1000.0], [100.0], [109.0], [100.0], [300.0]),  # +9% is no change
        across.Task([1000.0], [100.0], [50.0], [100.0], [100.0]),  # -50%, predicted none: wrong, off by 1
    ]
    score = across.score(tasks)
    assert (score.compared, score.changed, score.right) == (4, 3, 1)
    assert sorted(score.sizes) == pytest.approx([0.2, 1.0, 1.5])
    assert score.size == pytest.approx(1.0)
    total = across.added([score, score])
    assert (total.compared, total.changed, total.right, total.size) == (8, 6, 2, pytest.approx(1.0))


def test_an_answer_is_right_if_the_wait_does_what_it_says(across: ModuleType) -> None:
    tasks = [
        across.Task([1000.0], [100.0], [150.0], [200.0], [280.0], [True, False]),
        across.Task([1000.0], [100.0], [95.0], [100.0], [150.0], [True]),  # said to rise, and it falls a little
        across.Task([1000.0], [100.0], [50.0], [100.0], [90.0], [False]),  # nothing was said
    ]
    score = across.score(tasks)
    assert (score.told, score.told_right) == (2, 1)
    assert "for 50%." in across.table({("a to b", "nice"): score})


def test_a_wait_of_nearly_nothing_is_relative_to_the_cpu_time(across: ModuleType) -> None:
    assert across.Task([1000.0], [0.0], [5.0], [0.0], [5.0]).real == pytest.approx(0.5), "5 of 10 us, not of 0"
    assert across.Task([0.0], [0.0], [0.0], [0.0], [0.0]).real == 0.0


def test_repeated_recordings_show_what_is_chance(across: ModuleType) -> None:
    first = {("hog", 0): across.Task([1000.0], [100.0], [130.0], [1.0], [2.0])}
    second = {("hog", 0): across.Task([1000.0], [120.0], [150.0], [1.0], [2.0])}
    sure = across.merged([first, second])["hog", 0]
    assert (sure.here, sure.there) == ([100.0, 120.0], [130.0, 150.0])
    assert (sure.is_sure, sure.real) == (True, pytest.approx(30 / 110))
    second["hog", 0].here = [135.0]
    assert not across.merged([first, second])["hog", 0].is_sure
    score = across.score([sure])
    assert (score.sure, score.sure_right) == (1, 1)


def test_other_recordings_are_held_to_each_recording_as_predictions_are(across: ModuleType) -> None:
    # +50%, -20% and +5%: the first is predicted to fall by the others, the second to rise, and the third is no change.
    one = across.Task([1000.0], [100.0] * 3, [150.0, 80.0, 105.0], [1.0], [2.0])
    assert one.again() == [False, False]
    # +50% and +20%.
    two = across.Task([1000.0], [100.0, 100.0], [150.0, 120.0], [1.0], [2.0])
    assert two.again() == [True, True]
    assert across.Task([1000.0], [100.0], [150.0], [1.0], [2.0]).again() == [], "there is no other one"
    score = across.score([one, two])
    assert (score.again, score.again_right) == (4, 2)
    assert "direction of 4 changes right for 50%." in across.table({("a to b", "nice"): score})


def test_tasks_that_are_alike_are_one(across: ModuleType) -> None:
    names = ["client-3", "kworker/0:1-events", "worker12", "rustc", "-1", "a--12"]
    assert [across.role(name) for name in names] == ["client", "kworker/*:*-events", "worker*", "rustc", "-*", "a"]
    one = across.Task([1000.0], [100.0], [130.0], [1.0], [2.0])
    tasks = {("hog-0", 0): one, ("hog-1", 0): one, ("beat", 0): one}
    role = {"kind": "role", "name": "hog", "figures": row(0, 200.0, 210.0, 300.0)["figures"]}
    found = across.together(tasks, [role, row(1, 0.0, 0.0, 0.0)], {"hog": 260.0, "beat": 130.0})
    assert set(found) == {("hog", 0), ("beat", 0)}
    hog = found["hog", 0]
    assert (hog.here, hog.there, hog.baseline, hog.asked) == ([200.0], [260.0], [210.0], [300.0])


def test_the_table_says_whether_the_bounds_are_met(across: ModuleType) -> None:
    right = figures(
        across, compared=5, changed=2, right=2, sure=1, sure_right=1, told=1, told_right=1, sizes=[0.1, 0.3]
    )
    none = figures(across, compared=3)
    text = across.table({("a to b", "nice"): right, ("b to a", "nice"): none})
    assert text.startswith("From a to b:\n")
    assert "| nice | 5 | 2 | 2 of 2 | - | 1 of 1 | 1 of 1 | 20% |" in text
    assert "| nice | 3 | 0 | - | - | - | - | - |" in text
    assert text.endswith(
        "Of 2 tasks that change by more than 10%, the direction is right for 100%, within the bound of 95%; "
        "the size of the change is off by 20% in the median, within the bound of 25%."
    )
    wrong = figures(across, compared=5, changed=2, right=1, sure=1, sure_right=1, sizes=[0.1, 0.9])
    assert across.table({("a to b", "nice"): wrong}).count("beyond the bound") == 2
