"""How often each trial is repeated: settings that are shown to be behind the best are given up early."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from schedlab.tuning.confirm import compare
from schedlab.tuning.score import Score, broken, differences, good, reach, risk, score
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Bench, Pair, Trial

# Settings are given up if they are behind the best with this probability, over all the times that it is asked.
_SURE = 0.95
# The seeds of the final race are in so many parts.
_ROUNDS = 4


class Place(NamedTuple):
    """Where a trial stands among others. The least is the best."""

    doubtful: bool
    """Whether its runs do not show a gain."""
    risk: float
    """How likely it breaks a constraint; 0 is hardly ever."""
    loss: float
    number: int


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
        self._level = sure(len(self.rungs) - 1)
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
        if broken(self.study, trial.pairs, self._level):
            return True
        rivals = [rival for rival, known in self.front if known.feasible]
        return any(is_behind(self.study, trial.pairs, rival.pairs, self._level) for rival in rivals)

    def told(self, trial: Trial) -> list[float]:
        """Return what the search learns of a trial.

        Seeds differ by more than settings: what was given up after a few of them is as far from the best of all seeds
        as it was from the best with the same seeds. Settings that cannot run are much worse than the default.
        """
        if not good(self.study, trial.pairs):
            return [1.0] * len(self.study.objectives)
        own = score(self.study, trial.pairs)
        best = self.best
        if not self.bench.repeatable or not own.feasible or best is None or not best[1].feasible:
            return own.told
        same = score(self.study, best[0].pairs[: len(trial.pairs)])
        return [loss + whole - part for loss, whole, part in zip(own.losses, best[1].losses, same.losses, strict=True)]

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


def sure(times: int) -> float:
    """Return how sure each answer must be, so that all of so many are right with the probability of `_SURE`."""
    return 1 - (1 - _SURE) / max(1, times)


def is_behind(study: Study, ours: Sequence[Pair], theirs: Sequence[Pair], level: float) -> bool:
    """Return whether pairs are worse than others with the same seeds in every objective, with this probability."""
    return all(_is_worse(study, ours, theirs, index=k, level=level) for k in range(len(study.objectives)))


def _is_worse(study: Study, ours: Sequence[Pair], theirs: Sequence[Pair], *, index: int, level: float) -> bool:
    own = differences(study, ours, index)
    other = differences(study, theirs[: len(own)], index)
    apart = [a - b for a, b in zip(own, other, strict=True)]
    return fmean(apart) - reach(apart, level) > 0


def final(study: Study, bench: Bench, trials: Sequence[Trial], seeds: Sequence[int]) -> tuple[Trial, Place] | None:
    """Return the best of trials that come close, by runs with more seeds; none if none is better than the default.

    Beside it stands its place among those of other races.

    A trial is best in the search also by luck. So all of them run with the same new seeds, a part of these at a time,
    and who is shown to be behind the first of a round takes no part in the next.
    """
    known = {own.number: list(own.pairs) for own in trials}
    running = list(trials)
    rounds = [seeds[k * len(seeds) // _ROUNDS : (k + 1) * len(seeds) // _ROUNDS] for k in range(_ROUNDS)]
    for part in (own for own in rounds if own):
        for own, pairs in zip(running, extend(bench, running, part), strict=True):
            known[own.number] += pairs
        running = [own for own in running if _is_gain(study, known[own.number])]
        if not running:
            return None
        first = min(running, key=lambda own: place(study, own, known[own.number]))
        leader, level = known[first.number], sure(_ROUNDS)
        running = [own for own in running if not is_behind(study, known[own.number], leader, level)]
        if len(running) == 1:
            break
    best = min(running, key=lambda own: place(study, own, known[own.number]), default=None)
    return (best, place(study, best, known[best.number])) if best else None


def _is_gain(study: Study, pairs: Sequence[Pair]) -> bool:
    if not good(study, pairs):
        return False
    known = score(study, pairs)
    return known.feasible and known.total < 0


def place(study: Study, own: Trial, pairs: Sequence[Pair]) -> Place:
    """Return the place of a trial, the best first.

    What is not shown to gain anything stands last: settings that do next to nothing keep every constraint as surely as
    the default. Of the others, those that keep the constraints by chance alone stand last, the surest first.
    """
    shown = any(own.p <= 1 - study.confirm.level for own in compare(study, pairs).claims)
    return Place(not shown, risk(study, pairs), score(study, pairs).total, own.number)


def extend(bench: Bench, trials: Sequence[Trial], seeds: Sequence[int]) -> list[list[Pair]]:
    """Return more pairs of each trial, all with the same seeds."""
    requests = [(own, seed) for seed in seeds for own in trials]
    pairs = bench.pairs([(own.config, seed) for own, seed in requests])
    found: dict[int, list[Pair]] = {id(own): [] for own in trials}
    for (own, _), pair in zip(requests, pairs, strict=True):
        found[id(own)].append(pair)
    return [found[id(own)] for own in trials]
