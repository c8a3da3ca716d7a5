"""`schedlab tune` on the simulator: null studies, a planted optimum, kills, constraints, the report."""

import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import pandas as pd
import pytest

from schedlab.tuning import cli, flow, outcome, study
from schedlab.tuning.objective import Run
from schedlab.tuning.progress import Progress
from schedlab.tuning.score import good, score
from schedlab.tuning.simulated import Simulation, simulation
from schedlab.tuning.trials import Bench, Runner
from schedlab.tuning.tune import Found, Tuning

P = ParamSpec("P")
T = TypeVar("T")
# A build's long and short jobs beside an editor. Every number is drawn by the seed.
LOAD = """
{ "global": { "x-start": "fork" }, "tasks": {
  "make": { "loop": 6, "run": { "mean": 400, "sd": 100 }, "fork_1": "cc", "fork_2": "cc", "fork_3": "sh",
            "sleep": { "mean": 130000, "sd": 20000 } },
  "cc": { "instance": 0, "loop": 1, "run": { "mean": 90000, "sd": 20000 } },
  "sh": { "instance": 0, "loop": 4, "run": { "mean": 4000, "sd": 1000 }, "sleep": { "mean": 3000, "sd": 900 } },
  "editor": { "loop": 50, "run": { "mean": 1500, "sd": 500 }, "sleep": { "mean": 15000, "sd": 4000 } } } }
"""
BUILD = f"""
kernel = "linux-6.1"
machine = "1"
[load]
inline = '''{LOAD}'''
[objectives.turnaround]
value = "mean(turnaround_s['cc*', 'sh*'])"
[search]
trials = 60
repeats = [2, 8]
"""
THREE = """
[parameters]
latency_ns = { range = [100_000, 1_000_000_000] }
min_granularity_ns = { range = [100_000, 1_000_000_000] }
wakeup_granularity_ns = { range = [0, 1_000_000_000] }
"""


def read(folder: Path, text: str, **changes: str | int) -> study.Study:
    path = folder / "s.toml"
    path.write_text(text, encoding="utf-8")
    return study.read(path, changes)


def tuned(own: study.Study, *, fresh: bool = True, storage: str | None = None) -> tuple[Found, dict[str, Any]]:
    found = flow.tune(own, flow.Options(storage, fresh=fresh), Progress(quiet=True))
    return found, json.loads(json.dumps(outcome.document(own, found)))


def test_what_needs_no_search_does_without_optuna() -> None:
    def tune(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = "import sys; sys.modules['optuna'] = None; from schedlab.tuning import cli; sys.exit(cli.main())"
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert tune("--help").returncode == 0
    without = tune("study.toml")
    assert (without.returncode, without.stderr) == (
        4,
        "schedlab: optuna is not installed: pip install 'schedlab[tune]'\n",
    )


@pytest.fixture(scope="module")
def bench(script: Callable[[str], ModuleType]) -> ModuleType:
    return script("bench_tune")


@pytest.fixture(scope="module")
def null(bench: ModuleType) -> str:
    """Return a study of parameters that do nothing."""
    return re.sub(r"latency_ns = .*\n", "", bench.NULL)


def test_parameters_that_do_nothing_are_no_improvement(null: str, tmp_path: Path) -> None:
    _, result = tuned(read(tmp_path, null))
    assert result["confirmed"] is False
    assert result["best"] == result["default"]
    assert result["improvement"] == 0
    assert set(result["importance"].values()) == {0}


def test_a_noisy_null_study_claims_next_to_nothing(bench: ModuleType, tmp_path: Path) -> None:
    claims, tested = bench.null(8, _Here(), tmp_path)
    assert tested > 4, "there were candidates"
    # At 2.5% each, three claims of eight have a probability of 0.1%; the seeds are fixed, so that it is no lottery.
    assert claims <= 2


def test_no_better_than_the_default_is_an_answer(null: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = read(tmp_path, null)
    settings = tmp_path / "best.toml"
    assert cli.main([str(own.path), "--settings", str(settings)]) == 0
    assert "No better than the default" in capsys.readouterr().out
    assert "=" not in settings.read_text(encoding="utf-8")


def test_the_optimum_that_exhaustive_search_shows_is_found(tmp_path: Path) -> None:
    held_out, ours = range(600, 640), []
    for seed in (1, 2, 3):
        own = read(tmp_path, BUILD.replace("[2, 8]", "[4, 32]") + THREE, seed=seed, trials=150)
        found, result = tuned(own)
        assert result["confirmed"]
        assert result["interval"][0] > 0
        assert result["trials"] <= 150
        bench = flow.simulation_bench(own, _Here())
        ours += _losses(own, bench, [result["best"]], held_out)
    axes = [parameter.values(6) for parameter in found.space.parameters]
    grid = [dict(zip(found.space.names, values, strict=True)) for values in itertools.product(*axes)]
    losses = _losses(own, bench, grid, range(500, 508))
    exhaustive = _losses(own, bench, [grid[losses.index(min(losses))]], held_out)[0]
    assert exhaustive < -0.4, "there is something to find"
    # The best is on a narrow ridge behind a valley: two searches in ten stay on the plateau before it, which is 18%
    # behind (of 200 seeds that are not used here).
    assert sum(1 + loss <= 1.03 * (1 + exhaustive) for loss in ours) >= 2
    assert all(1 + loss <= 1.18 * (1 + exhaustive) for loss in ours)


def _losses(own: study.Study, bench: Bench, configs: list[dict[str, Any]], seeds: range) -> list[float]:
    pairs = bench.pairs([(config, seed) for config in configs for seed in seeds])
    each = [pairs[k * len(seeds) : (k + 1) * len(seeds)] for k in range(len(configs))]
    return [score(own, part).losses[0] if good(own, part) else 9.0 for part in each]


class _Here(Executor):
    """An executor that works at once."""

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        done: Future[T] = Future()
        done.set_result(function(*arguments, **named))
        return done


@dataclass(frozen=True)
class Planted:
    """A load whose turnaround is least at known settings, on top of what the simulator says of the default."""

    simulation: Simulation

    def run(self, settings: dict[str, str], seed: int) -> Run:
        """Simulate the default, and take what the settings are worth."""
        own = self.simulation.run({}, seed)
        away = [math.log10(max(1.0, float(settings[name]))) - at for name, at in PLANTED.items()]
        factor = 0.7 + 0.05 * sum(one * one for one in away)
        return Run(tuple(None if value is None else factor * value for value in own.values), own.why, own.seconds)


# The decimal logarithms of the settings that are best.
PLANTED = {"latency_ns": 7.5, "min_granularity_ns": 5.8, "wakeup_granularity_ns": 8.2}


def test_a_planted_optimum_is_found(tmp_path: Path) -> None:
    for seed in (1, 2):
        own = read(tmp_path, BUILD.replace("trials = 60", "trials = 120") + THREE, seed=seed)
        simulated = flow.simulation_bench(own, _Here())
        bench = Bench(simulated.space, Planted(simulation(own)), None, repeatable=True)
        found = Tuning(own, bench, None, Progress(quiet=True)).run()
        assert found.best
        settings, known = found.best
        away = [math.log10(max(1.0, settings.config[name])) - at for name, at in PLANTED.items()]
        # The optimum is 0.7 of what the load takes with the very best settings.
        assert 0.05 * sum(one * one for one in away) <= 0.03 * 0.7, settings.config
        assert known.claims[0].improvement > 0.2
        assert sum(found.importance.values()) <= 1 + 1e-9


@pytest.mark.parametrize("method", ["tpe", "cmaes", "gp", "nsga2", "random", "grid", "one-at-a-time", "global-then-1d"])
def test_every_method_searches(method: str, tmp_path: Path) -> None:
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 30\npoints = 3") + THREE, method=method)
    found, result = tuned(own)
    configs = [tuple(trial.config.items()) for trial in found.trials]
    assert 20 <= result["trials"] <= 30
    assert len(set(configs)) >= len(configs) - 3
    assert all(1e5 <= trial.config["latency_ns"] <= 1e9 for trial in found.trials)


def test_the_same_study_gives_the_same_result_whatever_the_cores(tmp_path: Path) -> None:
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 20") + THREE)
    results = []
    for jobs in (1, 3):
        found = flow.tune(own, flow.Options(fresh=True, jobs=jobs), Progress(quiet=True))
        results.append(outcome.document(own, found))
    for result in results:
        result.pop("seconds")
        result.pop("run_seconds")
    assert results[0] == results[1]


def test_a_search_goes_on_after_kill_9(tmp_path: Path) -> None:
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 4000") + THREE)
    kept = tmp_path / "s.trials"
    process = subprocess.Popen([sys.executable, "-m", "schedlab.tuning", str(own.path), "--quiet"])
    try:
        _until(lambda: kept.exists() and kept.read_bytes().count(b"schedlab") >= 12)
    finally:
        process.kill()
        process.wait()
    with kept.open("ab") as file:
        file.write(b'{"op_code": 4, "worker_id": "half a li')
    shorter = read(tmp_path, BUILD + THREE, trials=4)
    found, _ = tuned(shorter, fresh=False)
    numbers = [trial.number for trial in found.trials]
    assert len(numbers) >= 12, "the trials of the killed search are there"
    assert numbers == list(range(len(numbers)))
    more, result = tuned(read(tmp_path, BUILD + THREE, trials=len(numbers) + 5), fresh=False)
    assert [t.config for t in more.trials][: len(numbers)] == [t.config for t in found.trials]
    assert result["trials"] == len(numbers) + 5


class _Killed(BaseException):
    """Stands for `kill -9`: nothing of the search is done after it."""


@dataclass
class _Mortal:
    """A runner that dies before a run."""

    runner: Runner
    left: int
    seeds: list[int] = field(default_factory=list)

    def run(self, settings: dict[str, str], seed: int) -> Run:
        if self.left == 0:
            raise _Killed
        self.left -= 1
        self.seeds.append(seed)
        return self.runner.run(settings, seed)


@pytest.mark.parametrize(("repeatable", "portion"), [(True, 1), (True, 3), (False, 1)])
@pytest.mark.parametrize("screen", [None, "sim"])
def test_no_pair_of_a_real_kernel_is_run_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repeatable: bool, portion: int, screen: str | None
) -> None:
    # In the place of a guest stands the simulator, and the search is killed again and again, wherever it is.
    text = BUILD.replace('machine = "1"', 'machine = "1"\nbackend = "vm:debian-6.1"\ndeterministic = true') + THREE
    own = read(tmp_path, text.replace("trials = 60", "trials = 5") + "[screen]\nkeep = 4\n[confirm]\nruns = 6\n")
    space = flow.simulation_bench(own, _Here()).space

    def found(left: int) -> tuple[dict[str, Any], _Mortal]:
        """Return the result and what ran, of processes that die after so many runs and go on."""
        total = _Mortal(simulation(own), 0)
        fresh = True
        while True:
            mortal = _Mortal(simulation(own), left)

            @contextmanager
            def guests(*_: object, mortal: _Mortal = mortal) -> Iterator[Bench]:
                yield Bench(space, mortal, None, repeatable=repeatable, portion=portion)

            monkeypatch.setattr(flow, "bench", guests)
            try:
                result = outcome.document(
                    own, flow.run(own, flow.Options(fresh=fresh), Progress(quiet=True), screen=screen)
                )
            except _Killed:
                fresh = False
                total.left += 1
                total.seeds += mortal.seeds
                continue
            total.seeds += mortal.seeds
            for name in ("seconds", "run_seconds", "runs"):
                result.pop(name, None)
            return result, total

    whole, once = found(100_000)
    assert len(once.seeds) > 20
    for left in (7, 12):
        result, total = found(left)
        assert total.left > 1, "it was killed several times"
        # Each start runs the default once to see whether the load runs; the pairs that were interrupted are run again.
        assert len(total.seeds) <= len(once.seeds) + 2 * portion * total.left
        assert result == whole


def test_signals_end_a_search_and_report_what_it_found(tmp_path: Path) -> None:
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 4000") + THREE)
    kept = tmp_path / "s.trials"
    command = [sys.executable, "-m", "schedlab.tuning", str(own.path), "--json", "--quiet"]
    for number in (signal.SIGINT, signal.SIGTERM):
        kept.unlink(missing_ok=True)
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            _until(lambda: kept.exists() and kept.read_bytes().count(b"schedlab") >= 5)
            process.send_signal(number)
            output, _ = process.communicate(timeout=60)
        finally:
            process.kill()
        result = json.loads(output)
        assert process.returncode == 3
        assert result["interrupted"]
        assert not result["confirmed"]
        assert result["best"] == result["default"]
        assert len(result["history"]) >= 5


def _until(holds: Callable[[], bool], limit_s: float = 60) -> None:
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def test_two_searches_do_not_share_a_file(tmp_path: Path) -> None:
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 4000") + THREE)
    process = subprocess.Popen([sys.executable, "-m", "schedlab.tuning", str(own.path), "--quiet"])
    try:
        _until(lambda: (tmp_path / "s.trials").exists() and (tmp_path / "s.trials").stat().st_size > 0)
        with pytest.raises(Exception, match="another search keeps its trials there"):
            tuned(own)
    finally:
        process.kill()
        process.wait()


def test_a_damaged_file_of_trials_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 3") + THREE)
    kept = tmp_path / "s.trials"
    tuned(own, storage=str(kept))
    lines = kept.read_bytes().splitlines(keepends=True)
    for damaged in ([b'{"x": 1}\n'], [*lines[:3], b"no JSON\n", *lines[4:]], [*lines, b'{"op_code": 99}\n']):
        kept.write_bytes(b"".join(damaged))
        assert cli.main([str(own.path), "--quiet"]) == 2
        said = f"schedlab: {kept}: is a damaged file of trials; remove it, or name another with --storage\n"
        assert capsys.readouterr().err == said
        assert kept.read_bytes() == b"".join(damaged)


def test_trials_can_be_kept_in_a_database(tmp_path: Path) -> None:
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 3") + THREE)
    place = f"sqlite:///{tmp_path}/trials.db"
    tuned(own, storage=place)
    found, _ = tuned(read(tmp_path, BUILD.replace("trials = 60", "trials = 5") + THREE), storage=place, fresh=False)
    assert len(found.trials) == 6


def test_a_constraint_is_kept(tmp_path: Path) -> None:
    free, bound = BUILD + THREE, BUILD + THREE
    bound += '[constraints.editor]\nvalue = "latency_p99_us[\'editor\']"\nmost = "105%"\n'
    _, without = tuned(read(tmp_path, free))
    own = read(tmp_path, bound)
    found, result = tuned(own)
    assert without["confirmed"]
    if result["confirmed"]:
        row = result["constraints"][0]
        assert row["held"]
        assert row["best"] <= 1.05 * row["default"]
    broken = [trial for trial in result["history"] if trial["state"] == "infeasible"]
    told = [
        score(own, t.pairs).told[0] for t in found.trials if good(own, t.pairs) and not score(own, t.pairs).feasible
    ]
    assert broken or told, "some settings delay the editor"
    assert all(loss > 0 for loss in told)


def test_a_constraint_that_nothing_keeps_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bound = '[constraints.work]\nvalue = "sum(run_s)"\nmost = 0.001\n'
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 5") + THREE + bound)
    assert cli.main([str(own.path), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(
        rf"schedlab: {own.path}:\d+: constraints.work: nothing that was tried keeps it; the default has [0-9.]+; "
        r"write a bound that some settings keep\n",
        said,
    )


def test_several_objectives_have_a_front(tmp_path: Path) -> None:
    text = BUILD + THREE + "[objectives.editor]\nvalue = \"latency_mean_us['editor']\"\n"
    text = text.replace("trials = 60", "trials = 40")
    own = read(tmp_path, text)
    found, result = tuned(own)
    assert result["front"]
    for member in result["front"]:
        assert [claim["name"] for claim in member["objectives"]] == ["turnaround", "editor"]
    scores = [score(own, trial.pairs) for trial in found.front]
    assert not any(a.dominates(b) for a in scores for b in scores)


def test_named_settings_come_first_and_essential_changes_last(tmp_path: Path) -> None:
    start = 'start = [{ name = "paper", latency_ns = 1_000_000_000 }]\n'
    text = BUILD.replace("trials = 60\n", "trials = 20\n" + start)
    found, result = tuned(read(tmp_path, text + THREE))
    assert [trial.name for trial in found.trials[:2]] == ["default", "paper"]
    assert found.trials[1].config["latency_ns"] == 1_000_000_000
    if result["essential"]:
        assert set(result["essential"]["changes"].items()) <= set(result["changes"].items())
        assert result["essential"]["keeps"] >= 0.95 or len(result["essential"]["changes"]) == len(result["changes"])


def test_the_report_needs_no_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 20") + THREE + "START_DEBIT = {}\n")
    page, settings = tmp_path / "r.html", tmp_path / "best.toml"
    assert cli.main([str(own.path), "-o", str(page), "--settings", str(settings), "--quiet"]) == 0
    text = page.read_text(encoding="utf-8")
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)\s*=", text)
    assert not re.findall(r"@import|url\(\s*['\"]?https?:", text)
    for section in ("Before and after", "History", "Slices", "Contours", "Choices"):
        assert f"<h2>{section}</h2>" in text
    assert "turnaround" in capsys.readouterr().out
    assert cli.main([str(own.path), "-o", str(page), "--quiet"]) == 2
    assert f"--output {page}: exists already; choose another name or give --force" in capsys.readouterr().err
    lines = settings.read_text(encoding="utf-8").splitlines()
    assert all(line.startswith("# effect: ") for line in lines[:-1] if line.startswith("# effect"))
    assert any(re.fullmatch(r'"\w+" = \d+', line) for line in lines) or "nothing to set" in lines[-1]


def test_a_trial_adds_little_to_its_simulation(tmp_path: Path) -> None:
    # By CPU time of this thread, so that what else runs on the machine does not count; all simulations are elsewhere.
    own = read(tmp_path, BUILD.replace("repeats = [2, 8]", "repeats = [2, 2]") + THREE)
    with flow.bench(own, flow.Options(jobs=1), Progress(quiet=True)) as bench:
        bench.executor = _Free()
        start = time.thread_time()
        tuning = Tuning(own, bench, None, Progress(quiet=True))
        tuning.search([])
        taken = time.thread_time() - start - _Free.seconds
    assert len(tuning.trials) == 61
    assert taken / 60 < 0.020, f"{1e3 * taken / 60:.1f} ms"


class _Free(_Here):
    """An executor whose own CPU time is known."""

    seconds = 0.0

    def submit(self, function: Callable[P, T], /, *arguments: P.args, **named: P.kwargs) -> Future[T]:
        start = time.thread_time()
        found = super().submit(function, *arguments, **named)
        _Free.seconds += time.thread_time() - start
        return found


def test_screening_says_how_well_the_orders_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # In the place of a guest stands the simulator with all costs left out: another kernel, and nearly the same order.
    text = BUILD.replace('machine = "1"', 'machine = "1"\nbackend = "vm:debian-6.1"\ndeterministic = true') + THREE
    own = read(tmp_path, text.replace("trials = 60", "trials = 24") + "[screen]\nkeep = 10\n")

    @contextmanager
    def guests(*_: object) -> Iterator[Bench]:
        bench = flow.simulation_bench(own, _Here())
        yield Bench(bench.space, replace(simulation(own), costs=False), None, repeatable=True)

    monkeypatch.setattr(flow, "bench", guests)
    found = flow.run(own, flow.Options(fresh=True), Progress(quiet=True), screen="sim")
    result = outcome.document(own, found)
    rows = result["screening"]["rows"]
    assert len(rows) == 10
    assert [row["simulated"] for row in rows] == sorted((row["simulated"] for row in rows), reverse=True)
    assert len({row["simulated"] for row in rows}) > 3, "not the best alone"
    # Costs decide among the best, which are within 1% of each other; the order of all is nearly the same.
    ranks = pd.DataFrame(rows)[["simulated", "real"]].rank().corr()
    assert result["screening"]["spearman"] == pytest.approx(ranks.loc["simulated", "real"])
    assert result["screening"]["spearman"] > 0.8
    shown = outcome.text(own, result)
    assert "Screening: 24 trials on the simulated linux-6.1" in shown
    assert f"{rows[0]['simulated']:+.1%}" in shown


def test_no_file_is_left_over(tmp_path: Path) -> None:
    own = read(tmp_path, BUILD.replace("trials = 60", "trials = 3") + THREE)
    done = subprocess.run(
        [sys.executable, "-m", "schedlab.tuning", str(own.path), "--json"],
        check=True,
        capture_output=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert json.loads(done.stdout)["trials"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml", "s.trials"]
