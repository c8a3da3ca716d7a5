"""What a trial is worth: how far its objectives are from the default's, and whether it keeps the constraints."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, stdev

from scipy import stats

from schedlab.tuning.study import Study
from schedlab.tuning.trials import Pair

# How sure it must be that a constraint holds.
_SURE = 0.95


@dataclass(frozen=True)
class Score:
    """The worth of a trial. A loss is relative to the default: -0.1 is 10% better."""

    losses: tuple[float, ...]
    violation: float

    @property
    def feasible(self) -> bool:
        """Whether it keeps all constraints."""
        return self.violation <= 0

    @property
    def told(self) -> list[float]:
        """Return what a search minimises: settings that break a constraint are worse than the default."""
        if self.feasible:
            return list(self.losses)
        # From 0.1 to 1.1, and less the nearer a bound is, however far: what breaks it by 10 times is as useless as what
        # breaks it by 1000 times, but shows the way.
        missed = math.log1p(self.violation)
        return [max(own, 0.0) + 0.1 + missed / (1 + missed) for own in self.losses]

    @property
    def total(self) -> float:
        """Return the mean loss over the objectives."""
        return fmean(self.told)

    def dominates(self, other: "Score") -> bool:
        """Return whether it is at least as good in every objective, and better in one."""
        pairs = list(zip(self.told, other.told, strict=True))
        return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)


def scale(values: Sequence[float]) -> float:
    """Return what differences are measured by: the mean of the default, or 1 where that is 0."""
    return abs(fmean(values)) or 1.0


def differences(study: Study, pairs: Sequence[Pair], index: int) -> list[float]:
    """Return by how much each pair is worse than the default in an objective, relative to the default's mean."""
    sign = -1 if study.objectives[index].maximize else 1
    by = scale([own.default[index] or 0.0 for own in pairs])
    return [sign * ((own.own[index] or 0.0) - (own.default[index] or 0.0)) / by for own in pairs]


def good(study: Study, pairs: Sequence[Pair]) -> bool:
    """Return whether every pair has all numbers."""
    count = len(study.measures)
    return bool(pairs) and all(
        len(own.own) == count and None not in own.own and None not in own.default for own in pairs
    )


def score(study: Study, pairs: Sequence[Pair]) -> Score:
    """Return the worth of pairs that have all numbers."""
    losses = tuple(fmean(differences(study, pairs, k)) for k in range(len(study.objectives)))
    return Score(losses, violation(study, pairs))


def reach(values: Sequence[float], level: float, runs: float = math.inf) -> float:
    """Return how far the mean of so many other runs is from that of values at most, to one side, with this probability.

    It is Student's t: of infinitely many runs, the true mean. One value says nothing of how far.
    """
    count = len(values)
    if count < 2:  # noqa: PLR2004 (one has no scatter)
        return math.inf
    return _quantile(level, count - 1) * stdev(values) * math.sqrt(1 / count + 1 / runs)


@lru_cache(maxsize=1024)
def _quantile(level: float, freedom: int) -> float:
    return float(stats.t.ppf(level, freedom))


def safe(study: Study, pairs: Sequence[Pair]) -> bool:
    """Return whether the constraints hold by so much that they will in the held-out runs: 19 times out of 20."""
    return risk(study, pairs) <= 0


def risk(study: Study, pairs: Sequence[Pair]) -> float:
    """Return how likely a bound is broken in the held-out runs: 0 if in 1 of 20 sets at most, 1 if in every other."""
    found = 0.0
    for over in _overshoots(study, pairs):
        mean, far = fmean(over), reach(over, _SURE, study.confirm.runs)
        if mean + far > 0:
            found = max(found, 1 + mean / far if far > 0 else math.inf)
    return found


def broken(study: Study, pairs: Sequence[Pair], level: float) -> bool:
    """Return whether a constraint is broken by so much that other runs will break it too, with this probability."""
    return any(fmean(over) - reach(over, level) > 0 for over in _overshoots(study, pairs))


def _overshoots(study: Study, pairs: Sequence[Pair]) -> Iterator[list[float]]:
    """Yield by how much each pair is beyond a bound. What a seed does to the default it does to the other too."""
    for index, constraint in enumerate(study.constraints, len(study.objectives)):
        for bound, sign in ((constraint.least, -1), (constraint.most, 1)):
            if bound is not None:
                yield [sign * ((own.own[index] or 0.0) - bound.of(own.default[index] or 0.0)) for own in pairs]


def violation(study: Study, pairs: Sequence[Pair]) -> float:
    """Return by how much the constraints are broken, relative to their bounds; 0 if all hold."""
    total = sum(violations(study, pairs).values())
    # Sums of binary fractions differ in their last digits.
    return total if total > 1e-9 else 0.0  # noqa: PLR2004


def violations(study: Study, pairs: Sequence[Pair]) -> dict[str, float]:
    """Return by how much each constraint is broken, relative to its bounds."""
    found = {}
    for index, constraint in enumerate(study.constraints, len(study.objectives)):
        total = 0.0
        default = fmean([own.default[index] or 0.0 for own in pairs])
        mean = fmean([own.own[index] or 0.0 for own in pairs])
        if constraint.least is not None:
            bound = constraint.least.of(default)
            total += max(0.0, (bound - mean) / (abs(bound) or 1.0))
        if constraint.most is not None:
            bound = constraint.most.of(default)
            total += max(0.0, (mean - bound) / (abs(bound) or 1.0))
        found[constraint.measure.name] = total
    return found
