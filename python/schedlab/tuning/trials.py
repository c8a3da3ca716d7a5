"""Trials: settings, each run paired with a run of the default under the same conditions."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Protocol

from schedlab._native import InputError
from schedlab.tuning.objective import Run
from schedlab.tuning.space import Config, Space, key

# This many runs in a row that the machine's limits stopped are enough to give up.
_MOST_STOPS = 3


@dataclass(frozen=True)
class Pair:
    """A run of the default and one of the trial's settings: with the same seed, or one after the other."""

    seed: int
    default: tuple[float | None, ...]
    own: tuple[float | None, ...]


@dataclass
class Trial:
    """Settings that were tried."""

    number: int
    config: dict[str, Any]
    pairs: list[Pair] = field(default_factory=list)
    state: str = "complete"
    why: str = ""
    name: str = ""
    told: list[float] = field(default_factory=list)
    """The losses that the search learnt of it: those of all seeds, as far as they were known."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data, for the storage."""
        pairs = [[own.seed, list(own.default), list(own.own)] for own in self.pairs]
        return {**vars(self), "pairs": pairs}

    @staticmethod
    def of_json(data: Mapping[str, Any]) -> "Trial":
        """Return what `as_json` made."""
        pairs = [Pair(seed, tuple(default), tuple(own)) for seed, default, own in data["pairs"]]
        return Trial(**{**data, "pairs": pairs})


class Runner(Protocol):
    """Something that runs a load with settings."""

    def run(self, settings: dict[str, str], seed: int) -> Run:
        """Run it once."""


class Memory(Protocol):
    """Where pairs are kept, so that what was run before its process was killed need not be run again."""

    def take(self, settings: str, seed: int) -> Pair | None:
        """Return a pair of these settings that was run earlier, each only once."""

    def keep(self, settings: str, pair: Pair) -> None:
        """Keep a pair that was just run."""


class Bench:
    """Runs trials beside the default.

    Where equal runs give equal results, a run is made once: the default's runs are shared, and many go on at the same
    time. Elsewhere each run of a trial follows a run of the default of its own: A B A B. What a `memory` keeps is run
    in portions of this many pairs.
    """

    def __init__(
        self, space: Space, runner: Runner, executor: Executor | None, *, repeatable: bool, portion: int = 1
    ) -> None:
        self.space = space
        self.runner = runner
        self.executor = executor
        self.repeatable = repeatable
        self.portion = portion
        self.runs = 0
        self.run_s = 0.0
        self.last_why = ""
        self.memory: Memory | None = None
        self._known: dict[tuple[str, int], Run] = {}
        self._stops = 0

    def first(self, seed: int) -> Run:
        """Run the default. An error of it is the study's."""
        run = self.runner.run(self.space.settings(self.space.default), seed)
        self._count(run)
        if self.repeatable:
            self._known[key(self.space.default), seed] = run
        return run

    def pairs(self, requests: Sequence[tuple[Config, int]]) -> list[Pair]:
        """Run each settings with its seed, and the default beside it."""
        if self.memory is None:
            return self._run(requests)
        found: list[Pair] = []
        for first in range(0, len(requests), self.portion):
            found += self._remembered(self.memory, requests[first : first + self.portion])
        return found

    def _run(self, requests: Sequence[tuple[Config, int]]) -> list[Pair]:
        if self.repeatable:
            return self._shared(requests)
        return [self._interleaved(config, seed) for config, seed in requests]

    def _remembered(self, memory: Memory, requests: Sequence[tuple[Config, int]]) -> list[Pair]:
        """Return pairs of an earlier process; run the others and keep them before anything else is run."""
        found: dict[int, Pair] = {}
        fresh: dict[tuple[str, int], int] = {}
        for index, (config, seed) in enumerate(requests):
            named = (key(config), seed)
            known = named in self._known or named in fresh
            if not known and (pair := memory.take(*named)) is not None:
                found[index] = pair
                self.know(config, pair)
            elif not known:
                fresh[named] = index
        rest = [index for index in range(len(requests)) if index not in found]
        for index, pair in zip(rest, self._run([requests[index] for index in rest]), strict=True):
            config, seed = requests[index]
            if fresh.get((key(config), seed)) == index:
                memory.keep(key(config), pair)
            self.know(config, pair)
            found[index] = pair
        return [found[index] for index in range(len(requests))]

    def know(self, config: Config, pair: Pair) -> None:
        """Take note of a pair that was run. Where equal runs give equal results, they are not made again."""
        if self.repeatable:
            self._known.setdefault((key(self.space.default), pair.seed), Run(pair.default))
            self._known.setdefault((key(config), pair.seed), Run(pair.own))

    def _interleaved(self, config: Config, seed: int) -> Pair:
        default = self._one(self.space.default, seed)
        own = self._one(config, seed)
        self.last_why = own.why or default.why
        return Pair(seed, default.values, own.values)

    def _one(self, config: Config, seed: int) -> Run:
        run = attempt(self.runner, self.space.settings(config), seed)
        self._count(run)
        stopped = not run.good and not run.seconds
        self._stops = self._stops + 1 if stopped else 0
        if self._stops >= _MOST_STOPS:
            raise InputError(f"{_MOST_STOPS} runs in a row were stopped, the last because {run.why}")
        return run

    def _shared(self, requests: Sequence[tuple[Config, int]]) -> list[Pair]:
        wanted: dict[str, tuple[Config, list[int]]] = {}
        for config, seed in [*((self.space.default, seed) for _, seed in requests), *requests]:
            own = key(config)
            if (own, seed) not in self._known and seed not in wanted.setdefault(own, (config, []))[1]:
                wanted[own][1].append(seed)
        jobs = [
            (own, self.space.settings(config), part)
            for own, (config, seeds) in wanted.items()
            for part in (([seed] for seed in seeds) if self.portion > 1 else [seeds])
            if part
        ]
        for (own, _, seeds), runs in zip(jobs, self._spread(jobs), strict=True):
            for seed, run in zip(seeds, runs, strict=True):
                self._known[own, seed] = run
                self._count(run)
        default = key(self.space.default)
        found = []
        for config, seed in requests:
            run = self._known[key(config), seed]
            self.last_why = run.why or self.last_why
            found.append(Pair(seed, self._known[default, seed].values, run.values))
        return found

    def _spread(self, jobs: Sequence[tuple[str, dict[str, str], list[int]]]) -> list[list[Run]]:
        """Run jobs, at the same time where there is an executor."""
        if self.executor is None:
            return [attempts(self.runner, settings, seeds) for _, settings, seeds in jobs]
        futures = [self.executor.submit(attempts, self.runner, settings, seeds) for _, settings, seeds in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            raise

    def _count(self, run: Run) -> None:
        self.runs += 1
        self.run_s += run.seconds

    def reason(self, config: Config, seeds: Sequence[int]) -> str:
        """Return why settings have no value, where that is known."""
        runs = (self._known.get((key(config), seed)) for seed in seeds)
        return next((run.why for run in runs if run and run.why), self.last_why)


def attempt(runner: Runner, settings: dict[str, str], seed: int) -> Run:
    """Run once. Settings with which the load cannot run have no value; that the default can is known by then."""
    try:
        return runner.run(settings, seed)
    except InputError as error:
        return Run((None,), str(error), 1e-9)


def attempts(runner: Runner, settings: dict[str, str], seeds: Sequence[int]) -> list[Run]:
    """Run with each seed: what a worker does at once."""
    return [attempt(runner, settings, seed) for seed in seeds]
