"""How often each trial is repeated: settings that fall behind the best are given up early."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from schedlab.tuning.score import Score, differences, good, score
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Bench, Pair, Trial

# A trial is given up when the mean of its distance from the best is this many standard errors above 0.
_BEHIND = 1.0


class Race:
    """The trials of a search, and the best of them so far."""

    def __init__(self, study: Study, bench: Bench, seeds: Sequence[int]) -> None:
        self.study = study
        self.bench = bench
        self.seeds = list(seeds)
        least, most = study.search.repeats
        self.rungs = [min(least, most)]
        while self.rungs[-1] < most:
            self.rungs.append(min(2 * self.rungs[-1], most))
        self.front: list[tuple[Trial, Score]] = []

    def run(self, trials: Sequence[Trial]) -> None:
        """Run trials together, rung by rung. Those that fall behind stay with the repeats that they have."""
        running = list(trials)
        for rung in self.rungs:
            requests = [(own, seed) for own in running for seed in self.seeds[len(own.pairs) : rung]]
            pairs = self.bench.pairs([(own.config, seed) for own, seed in requests])
            for (own, _), pair in zip(requests, pairs, strict=True):
                own.pairs.append(pair)
            for own in running:
                self._judge(own)
            running = [own for own in running if own.state == "complete"]
        for own in running:
            self.add(own)

    def _judge(self, trial: Trial) -> None:
        if not good(self.study, trial.pairs):
            trial.state, trial.why = "failed", self.bench.reason(trial.config, [own.seed for own in trial.pairs])
        elif self._behind(trial):
            trial.state = "pruned"

    def _behind(self, trial: Trial) -> bool:
        if len(trial.pairs) >= self.rungs[-1]:
            return False
        own = score(self.study, trial.pairs)
        if not own.feasible:
            return len(trial.pairs) > self.rungs[0]
        rivals = [rival for rival, known in self.front if known.feasible]
        return any(all(self._is_worse(trial, rival, k) for k in range(len(own.losses))) for rival in rivals)

    def _is_worse(self, trial: Trial, rival: Trial, index: int) -> bool:
        """Return whether a trial is clearly worse than a rival in an objective, with the same seeds."""
        ours = differences(self.study, trial.pairs, index)
        theirs = differences(self.study, rival.pairs[: len(trial.pairs)], index)
        apart = [a - b for a, b in zip(ours, theirs, strict=False)]
        mean = fmean(apart)
        if mean <= 0 or len(apart) < 2:  # noqa: PLR2004 (one has no scatter)
            return mean > 0 and self.bench.repeatable is False
        return mean > _BEHIND * stdev(apart) / math.sqrt(len(apart))

    def add(self, trial: Trial) -> None:
        """Take a trial with all repeats into account: the front are those that no other dominates."""
        if trial.state != "complete" or len(trial.pairs) < self.rungs[-1]:
            return
        own = score(self.study, trial.pairs)
        if any(other.dominates(own) or other.told == own.told for _, other in self.front):
            return
        self.front = [(rival, known) for rival, known in self.front if not own.dominates(known)]
        self.front.append((trial, own))

    @property
    def best(self) -> tuple[Trial, Score] | None:
        """The trial of the front with the least mean loss, once one has all its repeats."""
        return min(self.front, key=lambda entry: entry[1].total, default=None)


def extend(bench: Bench, trials: Sequence[Trial], seeds: Sequence[int]) -> list[list[Pair]]:
    """Return more pairs of each trial, all with the same seeds."""
    requests = [(own, seed) for seed in seeds for own in trials]
    pairs = bench.pairs([(own.config, seed) for own, seed in requests])
    found: dict[int, list[Pair]] = {id(own): [] for own in trials}
    for (own, _), pair in zip(requests, pairs, strict=True):
        found[id(own)].append(pair)
    return [found[id(own)] for own in trials]
