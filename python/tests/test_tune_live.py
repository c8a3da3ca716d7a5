"""`schedlab tune` on a machine: tunables are put back whatever happens.

The machine is a folder with a file for each tunable, and `schedlab tunables` a stand-in that journals as the command
does. What is tuned is a command whose result depends on the files.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from schedlab.tuning.real import undisturbed
from schedlab.tuning.tune import Interrupted

STAND_IN = """#!{python}
import json, os, sys
from pathlib import Path
home = Path(__file__).parent
knobs, journal, log = home / "knobs", home / "journal.json", home / "log"
arguments = [own for own in sys.argv[1:] if own != "--json"]
owner = int(arguments[arguments.index("--owner") + 1]) if "--owner" in arguments else None

def alive(pid):
    try:
        return "Z" not in Path(f"/proc/{{pid}}/stat").read_text().split(")")[1].split()[0]
    except OSError:
        return False

if "--live" in arguments:
    refused = {{"locked": "EPERM: locked down"}}
    rows = [
        {{"name": path.name, "group": "vm" if path.name == "swap" else "sched", "unit": "", "value": path.read_text(),
          "range": [0, 100], "choices": None, "settable": path.name not in refused, "reason": refused.get(path.name),
          "instead": "use alpha"}}
        for path in sorted(knobs.iterdir())
    ]
    print(json.dumps({{"tunables": rows}}))
elif "--apply" in arguments:
    lines = Path(arguments[arguments.index("--apply") + 1]).read_text().splitlines()
    wanted = {{json.loads(line.split(" = ")[0]): json.loads(line.split(" = ")[1]) for line in lines}}
    old = json.loads(journal.read_text()) if journal.exists() else {{"owner": owner, "values": {{}}}}
    for name in wanted:
        old["values"].setdefault(name, (knobs / name).read_text())
    journal.write_text(json.dumps(old))
    for name, value in wanted.items():
        (knobs / name).write_text(str(value))
    with log.open("a") as file:
        file.write(json.dumps(wanted) + "\\n")
    print(json.dumps({{"applied": []}}))
elif "--restore" in arguments:
    restored = []
    if journal.exists():
        old = json.loads(journal.read_text())
        if old["owner"] != owner and alive(old["owner"]):
            print(f"schedlab: process {{old['owner']}} has changed tunables and still runs", file=sys.stderr)
            sys.exit(4)
        for name, value in old["values"].items():
            (knobs / name).write_text(value)
            restored.append({{"name": name}})
        journal.unlink()
    print(json.dumps({{"restored": restored}}))
"""
PROGRAM = """
import sys
from pathlib import Path
from schedlab import command
command.binary = lambda: Path(sys.argv[1])
from schedlab.tuning.cli import main
sys.exit(main(sys.argv[2:]))
"""
# The rate is best at alpha = 20 and does not depend on swap; the noise is the machine's own.
LOAD = """#!/bin/sh
alpha=$(cat {home}/knobs/alpha)
echo $alpha >> {home}/seen
noise=$(od -An -N1 -tu1 /dev/urandom)
away=$((alpha > 20 ? alpha - 20 : 20 - alpha))
echo "rate: $((1000 - 10 * away + noise / 8))"
"""
STUDY = """
backend = "live"
[load]
command = ["{load}"]
[parameters]
alpha = {{}}
swap = {{}}
[objectives.rate]
pattern = "rate: ([0-9.]+)"
direction = "maximize"
[search]
trials = {trials}
repeats = [2, 4]
[confirm]
runs = 8
essential = false
"""


class Machine:
    """A machine to tune."""

    def __init__(self, home: Path) -> None:
        self.home = home
        (home / "knobs").mkdir()
        for name, value in (("alpha", "60"), ("swap", "30"), ("locked", "1")):
            (home / "knobs" / name).write_text(value, encoding="utf-8")
        for name, text in (("schedlab", STAND_IN), ("load", LOAD)):
            path = home / name
            path.write_text(text.format(python=sys.executable, home=home), encoding="utf-8")
            path.chmod(0o755)
        self.study("")

    def study(self, more: str, *, trials: int = 12, old: str = "", new: str = "") -> None:
        """Write the study."""
        text = STUDY.format(load=self.home / "load", trials=trials).replace(old, new) if old else None
        text = text or STUDY.format(load=self.home / "load", trials=trials)
        (self.home / "s.toml").write_text(text + more, encoding="utf-8")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the command."""
        given = arguments or (str(self.home / "s.toml"), "--json", "--quiet")
        command = [sys.executable, "-c", PROGRAM, str(self.home / "schedlab"), *given]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command to its end."""
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=120)
        return process.returncode, output, errors

    def result(self) -> dict[str, Any]:
        """Run the study and return its result."""
        status, output, errors = self.run()
        assert status == 0, errors
        found: dict[str, Any] = json.loads(output)
        return found

    @property
    def knobs(self) -> dict[str, str]:
        """The tunables as they are."""
        return {path.name: path.read_text(encoding="utf-8") for path in (self.home / "knobs").iterdir()}

    @property
    def applied(self) -> list[dict[str, int]]:
        """The settings that were made, in their order."""
        log = self.home / "log"
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []

    def until(self, count: int) -> None:
        """Wait until so many settings were made."""
        end = time.monotonic() + 60
        while len(self.applied) < count:
            assert time.monotonic() < end, "it takes too long"
            time.sleep(0.02)


BEFORE = {"alpha": "60", "swap": "30", "locked": "1"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_best_setting_is_found_and_everything_is_put_back(machine: Machine) -> None:
    machine.study("", trials=20)
    result = machine.result()
    assert result["confirmed"]
    assert result["improvement"] > 0.3
    assert abs(result["best"]["alpha"] - 20) < 15
    assert machine.knobs == BEFORE
    assert not (machine.home / "journal.json").exists()


def test_trials_are_interleaved_with_the_default(machine: Machine) -> None:
    machine.study("", trials=3)
    machine.result()
    seen = (machine.home / "seen").read_text(encoding="utf-8").split()
    # The first run is the check that the default works; then A B A B, where A is the default.
    assert seen[1::2] == ["60"] * len(seen[1::2])
    assert len(set(seen[2::2])) > 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_the_machine_as_it_was(machine: Machine, number: signal.Signals) -> None:
    machine.study("", trials=500)
    process = machine.start()
    machine.until(5)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    if number == signal.SIGKILL:
        assert (machine.home / "journal.json").exists()
        status, output, _ = machine.run("--restore")
        assert status == 0
        assert "put back: alpha, swap" in output
        assert machine.run("--restore")[1].strip() == "put back: nothing was left"
    else:
        assert process.returncode == 3
        assert json.loads(output)["interrupted"]
    assert machine.knobs == BEFORE


def test_the_next_start_puts_back_what_a_killed_one_left(machine: Machine) -> None:
    machine.study("", trials=500)
    process = machine.start()
    machine.until(5)
    process.kill()
    process.communicate()
    machine.study("", trials=1)
    status, output, errors = machine.run(str(machine.home / "s.toml"), "--json")
    assert status == 0
    assert "put back what an earlier search left: alpha, swap" in errors
    assert json.loads(output)["default"] == {"alpha": 60, "swap": 30}
    assert machine.knobs == BEFORE


def test_two_searches_do_not_change_one_machine(machine: Machine) -> None:
    machine.study("", trials=500)
    process = machine.start()
    machine.until(3)
    status, _, errors = machine.run(str(machine.home / "s.toml"), "--storage", str(machine.home / "other"), "--json")
    process.terminate()
    process.communicate()
    assert status == 4
    assert "still runs" in errors
    assert machine.knobs == BEFORE


def test_what_the_machine_refuses_is_said_first(machine: Machine) -> None:
    machine.study("", old="swap = {}", new="locked = {}")
    status, _, errors = machine.run()
    assert status == 4
    assert errors.strip() == "schedlab: this machine refuses locked: EPERM: locked down; use alpha"
    assert not machine.applied


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("alpha = {}", "alpha = { range = [0, 500] }", "alpha takes 0 to 100"),
        ("alpha = {}", "alpah = {}", 'did you mean "alpha"?'),
        (
            "[search]",
            '[live]\ngroups = ["vm"]\n[search]',
            "live.groups: alpha is of the group sched, which may not be changed",
        ),
        ("rate: (", "speed: (", "has no value with the default settings"),
    ],
)
def test_wrong_studies_change_nothing(machine: Machine, old: str, new: str, said: str) -> None:
    machine.study("", old=old, new=new)
    status, _, errors = machine.run()
    assert status == 2
    assert said in errors
    assert machine.knobs == BEFORE


def test_a_watchdog_stops_trials_and_rolls_back(machine: Machine) -> None:
    # The watchdog objects to values above 70, as a service would that no longer answers.
    dog = machine.home / "dog"
    dog.write_text(f"#!/bin/sh\nexec test $(cat {machine.home}/knobs/alpha) -le 70\n", encoding="utf-8")
    dog.chmod(0o755)
    machine.study(f'[live]\nwatchdog = ["{dog}"]\n', trials=10)
    status, output, errors = machine.run()
    assert machine.knobs == BEFORE
    if status == 0:
        result = json.loads(output)
        failed = [own for own in result["history"] if own["state"] == "failed"]
        assert all("watchdog command" in own["why"] for own in failed)
        assert failed
        assert max(own["settings"]["alpha"] for own in result["history"] if own["state"] == "complete") <= 70
        assert all(int(value) <= 70 for value in (machine.home / "seen").read_text(encoding="utf-8").split())
    else:
        assert "3 runs in a row were stopped" in errors


def test_too_little_memory_ends_the_search(machine: Machine) -> None:
    machine.study('[live]\nfree_memory = "900000G"\n')
    status, _, errors = machine.run()
    assert status == 2
    assert "MiB of memory were available" in errors
    assert machine.knobs == BEFORE


def test_the_cycle_keeps_only_the_group_that_helps(machine: Machine) -> None:
    machine.study("", trials=16)
    status, output, errors = machine.run(str(machine.home / "s.toml"), "--cycle", "--json", "--quiet")
    assert status == 0, errors
    result = json.loads(output)
    assert result["confirmed"]
    assert abs(result["best"]["alpha"] - 20) < 20
    assert result["remarks"][0].startswith("sched: kept")
    assert re.match(r"sched: kept, \+\d+\.\d% \(\+\d+\.\d% to \+\d+\.\d%\)", result["remarks"][0])
    assert result["remarks"][1].startswith("vm: ")
    assert result["seconds"] > 0
    assert [trial["number"] for trial in result["history"]] == list(range(result["trials"] + 1))
    runs = len((machine.home / "seen").read_text(encoding="utf-8").split())
    assert result["runs"] == runs, "no run is counted twice"
    assert machine.knobs == BEFORE
    groups = [{name for name, value in own.items() if str(value) != BEFORE[name]} for own in machine.applied]
    assert groups.index({"alpha"}) < next((k for k, own in enumerate(groups) if "swap" in own), len(groups))


def test_a_command_finds_its_parameters(tmp_path: Path) -> None:
    study = tmp_path / "s.toml"
    script = "echo rate: $((100 - {threads} * {threads})) $SCHEDLAB_threads"
    study.write_text(
        f'[load]\ncommand = ["sh", "-c", "{script}"]\n[parameters]\nthreads = {{ range = [1, 9], default = 5 }}\n'
        '[objectives.rate]\npattern = "rate: ([0-9]+)"\ndirection = "maximize"\n'
        "[search]\ntrials = 9\n[confirm]\nruns = 6\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "schedlab.tuning", str(study), "--json", "--quiet"],
        check=True,
        capture_output=True,
        env=dict(os.environ),
    )
    result = json.loads(done.stdout)
    assert result["best"] == {"threads": 1}
    assert result["improvement"] == pytest.approx(99 / 75 - 1)


def test_a_signal_does_not_break_into_a_change_of_the_machine() -> None:
    def ends(number: int, _: object) -> None:
        raise Interrupted(f"signal {number}")

    def change() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGTERM)
            done.append("the change")

    before = signal.signal(signal.SIGTERM, ends)
    done: list[str] = []
    try:
        with pytest.raises(Interrupted):
            change()
        assert done == ["the change"]
        with pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
