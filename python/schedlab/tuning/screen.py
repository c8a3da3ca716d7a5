"""Screening: search on the simulator, take the best few to the real kernel, and say what the screening was worth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats

from schedlab.counting import counted
from schedlab.tuning.score import good, score
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Pair, Trial

# An agreement less likely than this by chance is taken for one.
_LEVEL = 0.05


@dataclass
class Screening:
    """How well the simulator's order agreed with the real kernel's."""

    kernel: str
    simulated_trials: int
    rows: list[dict[str, Any]]
    spearman: float | None
    p: float | None

    def sentence(self) -> str:
        """Return what the user may conclude."""
        if self.spearman is None or self.p is None:
            return "The ranks cannot be compared: the settings do not differ on one of the two sides."
        shown = self.spearman > 0 and self.p < _LEVEL
        worth = "screening pointed the right way" if shown else "this does not show that screening is worth much"
        return f"Spearman's rank correlation over {counted(len(self.rows), 'setting')} is {self.spearman:.2f}: {worth}."


def picked(study: Study, trials: Sequence[Trial], keep: int) -> list[Trial]:
    """Return the best trials for the real kernel, and as many from the rest of the order, its end among them.

    The ranks of the best alone would say little: they are close together. Of settings that did the same in every
    simulated run, the first is taken.
    """
    known = [(score(study, own.pairs).total, own.number, own) for own in trials if good(study, own.pairs)]
    distinct: dict[tuple[Pair, ...], Trial] = {}
    for _, _, own in sorted(known, key=lambda entry: entry[:2]):
        distinct.setdefault(tuple(own.pairs), own)
    ordered = list(distinct.values())
    if len(ordered) <= keep:
        return ordered
    spread = keep // 2
    best, rest = ordered[: keep - spread], ordered[keep - spread :]
    return best + [rest[len(rest) * (k + 1) // spread - 1] for k in range(spread)]


def agreement(study: Study, kernel: str, simulated: Sequence[Trial], real: Sequence[Trial], count: int) -> Screening:
    """Compare the simulator's losses of settings with the real kernel's."""
    rows: list[dict[str, Any]] = []
    for ours, theirs in zip(simulated, real, strict=True):
        if good(study, ours.pairs) and good(study, theirs.pairs):
            losses = (score(study, ours.pairs).total, score(study, theirs.pairs).total)
            rows.append({"settings": theirs.config, "simulated": -losses[0], "real": -losses[1]})
    sides = [[float(row[side]) for row in rows] for side in ("simulated", "real")]
    if len(rows) < 3 or any(len(set(side)) == 1 for side in sides):  # noqa: PLR2004
        return Screening(kernel, count, rows, None, None)
    found = stats.spearmanr(sides[0], sides[1])
    return Screening(kernel, count, rows, float(found.statistic), float(found.pvalue))
