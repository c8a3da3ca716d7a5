"""Numbers of things in messages."""

import pytest

import schedlab
from schedlab.counting import counted


def test_one_thing_is_singular(hogs: schedlab.Trace) -> None:
    assert [counted(n, "row") for n in (0, 1, 2, 1234)] == ["0 rows", "1 row", "2 rows", "1,234 rows"]
    cpus = len(hogs.meta["cpus"])
    assert f", {counted(cpus, 'CPU')}, " in repr(hogs)


@pytest.mark.parametrize("cpus", [1, 2])
def test_statistics_are_told_in_words(cpus: int) -> None:
    stats = schedlab.sim(kernel="linux-6.12", machine=str(cpus), workload="li:tasks=1", duration="20ms").stats()
    assert repr(stats) == f"<schedlab.Stats of 1 task on {counted(cpus, 'CPU')}>"
