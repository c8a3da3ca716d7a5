"""Fixtures that the tests share."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import schedlab

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="session")
def script() -> Callable[[str], ModuleType]:
    """Import a file of scripts/ by its name."""

    def imported(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return imported


@pytest.fixture(scope="session")
def hogs() -> schedlab.Trace:
    """Three hogs on two CPUs for a second, under CFS."""
    load = {"tasks": {"hog": {"instance": 3, "loop": -1, "run": 10_000}}}
    return schedlab.sim(kernel="linux-6.1", machine="2", workload=load, duration="1s")
