"""`schedlab tune` on this machine, with its own tunables: they are put back, however the search ends.

Two of memory's tunables are moved by little. Without root, or where they cannot be set, this is skipped.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schedlab import command

NAMES = ("vm.swappiness", "vm.dirty_background_ratio")
STUDY = """
backend = "live"
[load]
command = ["cat", "/proc/sys/vm/swappiness"]
[parameters]
"vm.swappiness" = {{ range = [{}, {}] }}
"vm.dirty_background_ratio" = {{ range = [{}, {}] }}
[objectives.number]
pattern = "([0-9]+)"
[search]
trials = 500
[live]
groups = ["vm"]
"""


def values() -> dict[str, str]:
    """Return what the kernel has now."""
    return {name: Path("/proc/sys", name.replace(".", "/")).read_text(encoding="ascii") for name in NAMES}


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    known = {own["name"]: own for own in command.call(["tunables", "--live"])["tunables"]}
    refused = [name for name in NAMES if name not in known or not known[name]["settable"]]
    if refused:
        pytest.skip(f"this machine does not let us set {', '.join(refused)}")
    # A journal of its own, so that nobody else's is touched.
    monkeypatch.setenv("SCHEDLAB_STATE", str(tmp_path / "state"))
    ranges = [max(1, int(known[name]["value"]) - 3 + 6 * side) for name in NAMES for side in (0, 1)]
    path = tmp_path / "s.toml"
    path.write_text(STUDY.format(*ranges), encoding="utf-8")
    return path


def tune(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "schedlab.tuning", *arguments], stdout=subprocess.DEVNULL)


def wait_for_a_change(before: dict[str, str], search: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + 60
    while values() == before and search.poll() is None:
        assert time.monotonic() < end, "the search changes nothing"
        time.sleep(0.002)


def test_a_search_finds_the_setting_and_leaves_no_trace(study: Path) -> None:
    before = values()
    line = [sys.executable, "-m", "schedlab.tuning", str(study), "--trials=6", "--json", "--quiet"]
    result = json.loads(subprocess.run(line, check=True, stdout=subprocess.PIPE).stdout)
    assert values() == before
    assert result["confirmed"]
    assert result["best"]["vm.swappiness"] < result["default"]["vm.swappiness"]


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_search_that_is_killed_leaves_the_machine_as_it_was(kill: signal.Signals, study: Path) -> None:
    before, draw = values(), random.Random(int(kill))
    search = tune(str(study), "--quiet", "--fresh")
    try:
        wait_for_a_change(before, search)
        time.sleep(draw.uniform(0, 0.3))
        os.kill(search.pid, kill)
        search.wait(timeout=60)
    finally:
        search.kill()
        search.wait()
        if kill == signal.SIGKILL:
            assert tune("--restore").wait() == 0
    assert values() == before


def test_the_next_search_puts_back_what_a_killed_one_left(study: Path) -> None:
    before = values()
    search = tune(str(study), "--quiet", "--fresh")
    try:
        wait_for_a_change(before, search)
    finally:
        search.kill()
        search.wait()
        assert tune(str(study), "--fresh", "--trials=1", "--quiet").wait() == 0
    assert values() == before
