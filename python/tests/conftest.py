"""Fixtures that the tests share."""

import pytest

import schedlab


@pytest.fixture(scope="session")
def hogs() -> schedlab.Trace:
    """Three hogs on two CPUs for a second, under CFS."""
    load = {"tasks": {"hog": {"instance": 3, "loop": -1, "run": 10_000}}}
    return schedlab.sim(kernel="linux-6.1", machine="2", workload=load, duration="1s")
