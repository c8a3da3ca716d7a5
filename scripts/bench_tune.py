"""Measures `schedlab tune`: how near it comes to the optimum, against random search, and what it claims of nothing.

For each study: the best of an exhaustive grid, and what searches with ten seeds find, all of them judged on the same
runs, which no search has seen. Then a study in which all settings are equally good and no two runs alike: how often is
an improvement claimed? The figures are printed and written into docs/tune.md, between its markers.

    .venv/bin/python scripts/bench_tune.py [STUDY...] [--seeds 10] [--null 100] [--write]
"""

import argparse
import itertools
import os
import re
import time
import zlib
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schedlab.tuning import flow, study
from schedlab.tuning.objective import Run
from schedlab.tuning.progress import Progress
from schedlab.tuning.score import good, score
from schedlab.tuning.simulated import Simulation, simulation
from schedlab.tuning.space import Space
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Bench
from schedlab.tuning.tune import Found, Tuning

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tune.md"
STUDIES = ("studies/build.toml", "studies/stun.toml", "studies/cfs-20.toml")
TRIALS = 190
# The runs on which all are judged: no search and no confirmation uses these seeds.
JUDGED = range(5_000_000, 5_001_000)
GRID = range(6_000_000, 6_000_008)
# The grid has about so many settings, and so many of the best are judged.
SETTINGS, BEST = 1000, 12
QUIET = Progress(quiet=True)

Config = dict[str, Any]


class Judge:
    """The worth of settings on many runs: the part of the default's value; worse than 1 where a constraint breaks."""

    def __init__(self, own: Study, pool: ThreadPoolExecutor) -> None:
        self.study = own
        self.bench = flow.simulation_bench(own, pool)

    def worth(self, configs: list[Config], seeds: range) -> list[float]:
        """Return the worth of each."""
        pairs = self.bench.pairs([(config, seed) for config in configs for seed in seeds])
        each = [pairs[k * len(seeds) : (k + 1) * len(seeds)] for k in range(len(configs))]
        return [1 + score(self.study, part).told[0] if good(self.study, part) else 9.0 for part in each]


def exhaustive(judge: Judge, space: Space) -> float:
    """Return the worth of the best of a grid over all parameters, of which the first ones have more points."""
    points = [2] * len(space.parameters)
    while True:
        k = min(range(len(points)), key=lambda k: (points[k], k))
        points[k] += 1
        if _product(points) > SETTINGS:
            points[k] -= 1
            break
    axes = [own.values(count) for own, count in zip(space.parameters, points, strict=True)]
    grid = [space.complete(dict(zip(space.names, values, strict=True))) for values in itertools.product(*axes)]
    worth = judge.worth(grid, GRID)
    best = sorted(range(len(grid)), key=lambda k: worth[k])[:BEST]
    return min(judge.worth([grid[k] for k in best], JUDGED))


def _product(numbers: list[int]) -> int:
    found = 1
    for own in numbers:
        found *= own
    return found


def best_of(found: Found) -> Config:
    """Return what a search recommends: the default if nothing was confirmed."""
    return dict(found.best[0].config if found.best else found.space.default)


def measured(path: str, seeds: int, pool: ThreadPoolExecutor) -> list[str]:
    """Return the rows of a study."""
    judge = Judge(study.read(ROOT / path), pool)
    optimum = exhaustive(judge, judge.bench.space)
    worth: dict[str, list[float]] = {"auto": [], "random": []}
    seconds = []
    for seed in range(1, seeds + 1):
        for method in ("auto", "random"):
            own = study.read(ROOT / path, {"seed": seed, "method": method, "trials": TRIALS})
            start = time.process_time()
            result = flow.tune(own, flow.Options(keep=False), QUIET)
            if method == "auto":
                seconds.append(time.process_time() - start)
            worth[method] += judge.worth([best_of(result)], JUDGED)
        print(f"{path} seed {seed}: auto {worth['auto'][-1]:.4f}, random {worth['random'][-1]:.4f}", flush=True)
    print(f"{path}: the best of the grid {optimum:.4f}", flush=True)
    near = sum(own <= 1.03 * optimum for own in worth["auto"])
    behind = sum(a < b for a, b in zip(worth["auto"], worth["random"], strict=True))
    name = path.removeprefix("studies/")
    return [
        f"| [{name}](../{path}) | {1 - optimum:.1%} | {_range(worth['auto'])} | {near} of {seeds} "
        f"| {_range(worth['random'])} | {behind} of {seeds} | {max(seconds):.0f} s |"
    ]


def _range(worth: list[float]) -> str:
    return f"{1 - max(worth):.1%} to {1 - min(worth):.1%}"


# The load could feel the latency alone, and `Shuffled` leaves it as it is.
NULL = """
kernel = "linux-6.1"
machine = "2"
duration = "300ms"
[load]
inline = '''{ "tasks": {
  "worker": { "instance": 4, "loop": -1, "run": { "mean": 4000, "sd": 2500 }, "sleep": { "mean": 3000, "sd": 2000 } },
  "editor": { "loop": -1, "run": { "mean": 1000, "sd": 800 }, "sleep": { "mean": 9000, "sd": 7000 } } } }'''
[parameters]
latency_ns = { range = [100_000, 1_000_000_000] }
sched_rr_timeslice_ms = {}
NEXT_BUDDY = {}
[objectives.latency]
value = "max(latency_p99_us['editor'])"
[search]
trials = 24
repeats = [2, 4]
"""


@dataclass(frozen=True)
class Shuffled:
    """Every setting draws seeds of its own, and is simulated as the default."""

    simulation: Simulation

    def run(self, settings: dict[str, str], seed: int) -> Run:
        """Simulate the default with another seed."""
        return self.simulation.run({}, zlib.crc32(f"{settings} {seed}".encode()))


def null(seeds: int, pool: Executor, folder: Path) -> tuple[int, int]:
    """Return how many of so many null studies claim an improvement, and how many had a candidate that was tested."""
    path = folder / "null.toml"
    path.write_text(NULL, encoding="utf-8")
    claims = tested = 0
    for seed in range(1, seeds + 1):
        own = study.read(path, {"seed": seed})
        space = flow.simulation_bench(own, pool).space
        found = Tuning(own, Bench(space, Shuffled(simulation(own)), pool, repeatable=True), None, QUIET).run()
        claims += found.best is not None
        tested += bool(found.confirmations)
    path.unlink()
    return claims, tested


def overhead(pool: ThreadPoolExecutor) -> str:
    """Return what a trial costs beside its simulations, in CPU time of this thread."""
    own = study.read(ROOT / STUDIES[0], {"trials": TRIALS})
    tuning = Tuning(own, flow.simulation_bench(own, pool), None, QUIET)
    start = time.thread_time()
    tuning.search([])
    taken = 1e3 * (time.thread_time() - start) / TRIALS
    return f"A trial takes {taken:.1f} ms of CPU time beside its simulations."


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", default=STUDIES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--null", type=int, default=100)
    parser.add_argument("--write", action="store_true", help="write the figures into docs/tune.md")
    given = parser.parse_args()
    lines = [
        "| study | the best of a grid | found | within 3% of the grid's best | found by random search | random search "
        "is behind | CPU time of a search, at most |",
        "|---|---|---|---|---|---|---|",
    ]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for path in given.studies:
            lines += measured(path, given.seeds, pool)
        claims, tested = null(given.null, pool, ROOT)
        said = f"{claims} of {given.null} null studies claim an improvement; {tested} had a candidate that was tested."
        lines += ["", said, overhead(pool)]
    print("\n".join(lines))
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        block = "<!-- bars: written by make bench-tune -->\n\n{}\n\n<!-- bars: end -->".format("\n".join(lines))
        PAGE.write_text(re.sub(r"<!-- bars: .*<!-- bars: end -->", lambda _: block, text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
