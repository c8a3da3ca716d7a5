"""`schedlab tune --screen sim`: found on the simulator, confirmed on a real 6.1 in guests that count their time."""

import json
import shutil
from pathlib import Path

import pytest

from schedlab import command
from schedlab.tuning import flow, outcome, study
from schedlab.tuning.progress import Progress

KERNEL = "debian-6.1"
STUDY = f"""
backend = "vm:{KERNEL}"
deterministic = true
kernel = "linux-6.1"
machine = "1"
[load]
inline = '''
{{ "tasks": {{
  "job": {{ "instance": 3, "loop": 1, "run": {{ "mean": 40000, "sd": 10000 }} }},
  "editor": {{ "loop": 4, "run": 1500, "sleep": 15000 }} }} }}
'''
[parameters]
min_granularity_ns = {{ range = [100_000, 1_000_000_000] }}
wakeup_granularity_ns = {{ range = [0, 1_000_000_000] }}
[objectives.turnaround]
value = "mean(turnaround_s['job*'])"
[search]
trials = 12
repeats = [1, 1]
[confirm]
runs = 6
essential = false
[screen]
keep = 3
"""


def test_the_screening_s_best_run_in_guests(tmp_path: Path) -> None:
    kernels = {own["name"]: own["image"] for own in command.call(["vm", "list"])["kernels"]}
    if not kernels.get(KERNEL) or shutil.which("qemu-system-x86_64") is None:
        pytest.skip(f"QEMU or {KERNEL} is not here: schedlab vm fetch {KERNEL}")
    path = tmp_path / "s.toml"
    path.write_text(STUDY, encoding="utf-8")
    own = study.read(path)
    found = flow.run(own, flow.Options(keep=False), Progress(quiet=True), screen="sim")
    screening = found.screening
    assert len(screening.rows) == 3
    assert screening.simulated_trials == 12
    assert screening.spearman is not None
    # The same seed in another guest gives the same number: the column is the real kernel's, not the simulator's.
    best = screening.rows[0]
    assert best["real"] != best["simulated"]
    with flow.bench(own, flow.Options(keep=False), Progress(quiet=True)) as guests:
        (pair,) = guests.pairs([(best["settings"], 10_000)])
    default, ours = pair.default[0], pair.own[0]
    assert default is not None
    assert ours is not None
    assert best["real"] == pytest.approx(1 - ours / default)
    shown = outcome.text(own, json.loads(json.dumps(outcome.document(own, found))))
    assert f"Spearman's rank correlation over 3 settings is {screening.spearman:.2f}" in shown
