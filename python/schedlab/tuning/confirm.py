"""Whether the winner is better than the default, on runs that the search never saw."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy import stats

from schedlab.tuning.score import differences, violation
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Pair

# Held-out seeds begin here; no search has as many.
HELD_OUT = 1_000_000


@dataclass
class Claim:
    """An objective of confirmed settings beside the default. An improvement of 0.1 is 10% better."""

    objective: str
    default: float
    best: float
    improvement: float
    interval: tuple[float, float]
    p: float
    confirmed: bool = False


@dataclass
class Confirmation:
    """Settings, run beside the default with held-out seeds."""

    claims: list[Claim]
    pairs: list[Pair]
    violation: float

    @property
    def confirmed(self) -> bool:
        """Whether at least one objective is better, and no constraint is broken."""
        return self.violation <= 0 and any(own.confirmed for own in self.claims)


def compare(study: Study, pairs: Sequence[Pair]) -> Confirmation:
    """Return what held-out pairs say of each objective. `holm` decides what is claimed."""
    claims = []
    for index, objective in enumerate(study.objectives):
        gains = [-own for own in differences(study, pairs, index)]
        low, high, p = paired(gains, study.confirm.level, study.confirm.least)
        default = fmean([own.default[index] or 0.0 for own in pairs])
        best = fmean([own.own[index] or 0.0 for own in pairs])
        claims.append(Claim(objective.name, default, best, fmean(gains), (low, high), p))
    return Confirmation(claims, list(pairs), violation(study, pairs))


def paired(gains: Sequence[float], level: float, least: float) -> tuple[float, float, float]:
    """Return the interval of the mean gain, and how likely it would be if the true gain were `least` or less.

    Student's t of the paired differences, and their signed ranks beside it: a few wild runs must not make a claim.
    """
    if len(gains) == 1:
        # One run says nothing of how others would differ.
        return -math.inf, math.inf, 1.0
    n, mean, scatter = len(gains), fmean(gains), stdev(gains)
    if scatter == 0:
        return mean, mean, 0.0 if mean > least else 1.0
    error = scatter / math.sqrt(n)
    reach = float(stats.t.ppf((1 + level) / 2, n - 1)) * error
    by_mean = 2 * float(stats.t.sf((mean - least) / error, n - 1))
    apart = [own - least for own in gains]
    by_rank = 2 * float(stats.wilcoxon(apart, alternative="greater", method="auto").pvalue) if any(apart) else 1.0
    return mean - reach, mean + reach, min(1.0, max(by_mean, by_rank))


def holm(claims: Sequence[Claim], level: float) -> None:
    """Decide which claims hold, so that the chance of a single false one among them is at most 1 - level."""
    ordered = sorted(claims, key=lambda own: own.p)
    for rank, own in enumerate(ordered):
        own.confirmed = own.p <= (1 - level) / (len(ordered) - rank)
        if not own.confirmed:
            break
