"""Which parameters matter: over the whole search, and of the winner's changes."""

import warnings
from collections.abc import Sequence
from statistics import fmean

import numpy as np

from schedlab.tuning.score import good, score
from schedlab.tuning.search import Settings
from schedlab.tuning.space import Space
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Bench, Trial

# With fewer trials than this, a forest has nothing to learn from.
_LEAST_TRIALS = 12
# If the forest explains less than this of the variance of trials that a tree has not seen, it has learnt noise.
_LEAST_R2 = 0.1
_KEEP = 0.95
# The settings over which the forest's mean is taken.
_ANYWHERE = 400


def fanova(study: Study, space: Space, trials: Sequence[Trial]) -> dict[str, float]:
    """Return the part of the variance of the loss that each parameter explains by itself (functional ANOVA).

    A random forest learns the loss; the variance of its mean along one parameter is that parameter's part. All parts
    are 0 if the losses do not follow from the settings. Settings far worse than the default are cut, because what makes
    them worse is not what makes others better.
    """
    from sklearn.ensemble import RandomForestRegressor  # noqa: PLC0415 (takes a second to import)

    kept = [own for own in trials if good(study, own.pairs)]
    if len(kept) < _LEAST_TRIALS:
        return {}
    losses = np.array([fmean(score(study, own.pairs).told) for own in kept])
    losses = np.minimum(losses, np.quantile(losses, 0.9))
    if losses.std() < 1e-12:  # noqa: PLR2004
        return dict.fromkeys(space.names, 0.0)
    points = np.array([[p.part(own.config[p.name]) for p in space.parameters] for own in kept])
    forest = RandomForestRegressor(100, min_samples_leaf=2, oob_score=True, random_state=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forest.fit(points, losses)
    if forest.oob_score_ < _LEAST_R2:
        return dict.fromkeys(space.names, 0.0)
    # The marginal of a parameter: the forest's mean over settings anywhere, with this parameter held.
    anywhere = np.random.default_rng(1).random((_ANYWHERE, len(space.parameters)))
    found = {}
    for index, own in enumerate(space.parameters):
        means = []
        for place in _places(len(own.choices)):
            held = anywhere.copy()
            held[:, index] = place
            means.append(float(forest.predict(held).mean()))
        found[own.name] = float(np.var(means))
    # The whole is at least the sum of its parts; that of a sample may be a little less.
    total = max(float(forest.predict(anywhere).var()), sum(found.values())) or 1.0
    return {name: part / total for name, part in found.items()}


def _places(choices: int) -> list[float]:
    count = choices or 12
    return [(k + 0.5) / count for k in range(count)]


def essential(study: Study, bench: Bench, winner: Settings, seeds: Sequence[int]) -> tuple[Settings, float]:
    """Return the fewest of the winner's changes that keep 95% of its gain, and the part that they keep.

    One change after the other is taken back: always the one whose loss costs least, as long as enough is kept.
    """
    space = bench.space
    gain = _gain(study, bench, [winner], seeds)[0]
    left, kept = dict(winner), 1.0
    while gain > 0 and len(space.changes(left)) > 1:
        without = [space.complete({**left, name: space.default[name]}) for name in space.changes(left)]
        gains = _gain(study, bench, without, seeds)
        most = max(range(len(without)), key=lambda k: gains[k])
        if gains[most] < _KEEP * gain:
            break
        left, kept = without[most], gains[most] / gain
    return left, kept


def _gain(study: Study, bench: Bench, configs: Sequence[Settings], seeds: Sequence[int]) -> list[float]:
    """Return the gain of settings over the default; none for those that cannot run or break a constraint."""
    pairs = bench.pairs([(config, seed) for config in configs for seed in seeds])
    found = []
    for index in range(len(configs)):
        own = pairs[index * len(seeds) : (index + 1) * len(seeds)]
        known = score(study, own) if good(study, own) else None
        found.append(-fmean(known.losses) if known and known.feasible else -1.0)
    return found
