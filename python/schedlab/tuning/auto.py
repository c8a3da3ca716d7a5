"""The default method: the ends and the middle of the space, lines through the best, steps around them, and TPE.

The corners of the space and an even spread come first. Then one parameter at a time goes along its whole scale, from a
few good settings that are far apart, so that a second hill is not missed. Most of the rest is for steps from the best
settings, whose length follows their success, and for TPE, which finds parameters that matter together. At the end one
parameter at a time goes to both sides of the best, ever less far.
"""

import itertools
import warnings
from collections.abc import Sequence

import optuna

from schedlab.tuning.search import Sampled, Searcher, Settings, evenly, shuffled
from schedlab.tuning.space import Parameter, Space, Value, key

_GROW, _SHRINK = 1.6, 0.85
_LEAST, _MOST = 0.01, 0.5
_TRIES = 40
# These parts of the budget go to the corners, to settings anywhere, and to lines. Some of the even settings are at the
# ends of their ranges, where the best often is: a scale is taken to reach this far beyond its ends.
_CORNERS, _EVEN, _LINES = 0.1, 0.2, (0.2, 0.15, 0.1)
_BEYOND = 0.1
# One step in so many goes anywhere along its parameters.
_FAR = 4
_GOOD, _GREED = 16, 0.4
_HILLS = 3
# Lines have so many points, and go through settings of which at least one parameter is this far apart on its scale.
_POINTS, _APART = 7, 0.3
# This part of the budget is for both sides of the best, at first so far from it on each parameter's scale.
_REFINE, _ASIDE = 0.15, 0.08


class Auto(Searcher):
    """The mixture of an even start, steps around the best, and TPE."""

    def __init__(self, space: Space, trials: int, seed: int) -> None:
        self._space = space
        self._random = shuffled(seed)
        even = evenly(space, max(len(space.parameters) + 6, int(_EVEN * trials)), seed, _BEYOND)
        self._first = [*_corners(space, int(_CORNERS * trials)), *even]
        self._lines = [int(part * trials) for part in _LINES]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler = optuna.samplers.TPESampler(
                seed=seed, multivariate=True, group=True, constant_liar=True, n_startup_trials=1
            )
        self._tpe = Sampled(space, sampler, 1)
        self._known: dict[str, tuple[float, Settings]] = {}
        self._stepped: dict[str, float] = {}
        self._reach = 0.25
        self._turn = 0
        self._refine_from = trials - int(_REFINE * trials)
        self._middle, self._aside = "", _ASIDE

    def tell(self, config: Settings, losses: Sequence[float]) -> None:
        """Learn; a step that helped makes the next ones longer."""
        own, loss = key(config), sum(losses) / len(losses)
        if own in self._stepped:
            better = loss < self._stepped.pop(own)
            self._reach = min(_MOST, max(_LEAST, self._reach * (_GROW if better else _SHRINK)))
        self._known[own] = (loss, config)
        self._tpe.tell(config, [loss])

    def ask(self, count: int) -> list[Settings]:
        """Propose settings that were not tried."""
        found: list[Settings] = []
        for _ in range(count * _TRIES):
            own = self._propose()
            if key(own) not in self._known and own not in found:
                found.append(own)
            if len(found) == count:
                break
        return found

    def _propose(self) -> Settings:
        self._first = [own for own in self._first if key(own) not in self._known]
        if not self._first and self._lines:
            self._first = self._along(self._lines.pop(0))
        if not self._first and len(self._known) >= self._refine_from:
            self._first = self._sides()
        if self._first:
            return self._first.pop(0)
        self._turn += 1
        if self._turn % 4 == 0 or len(self._known) < 2:  # noqa: PLR2004
            asked = self._tpe.ask(1)
            if asked:
                return asked[0]
        return self._step()

    def _along(self, count: int) -> list[Settings]:
        """Return lines through good settings that are far apart: one parameter each, along its whole scale."""
        apart: list[Settings] = []
        for _, config in sorted(self._known.values(), key=lambda own: own[0]):
            if all(self._distance(config, other) > _APART for other in apart):
                apart.append(config)
        found: list[Settings] = []
        for middle in apart[:_HILLS]:
            lines = [
                self._space.complete({**middle, own.name: value})
                for own in self._space.active(middle)
                for value in self._values(own)
            ]
            fresh = [config for config in lines if key(config) not in self._known and config not in found]
            found += self._random.sample(fresh, min(len(fresh), count // _HILLS))
        return found

    def _sides(self) -> list[Settings]:
        """Return the settings on both sides of the best, one parameter at a time; nearer if it is still the best."""
        _, best = min(self._known.values(), key=lambda own: own[0])
        self._aside = self._aside / 2 if key(best) == self._middle else self._aside
        self._middle = key(best)
        found: list[Settings] = []
        for own in self._space.active(best):
            place = own.part(best[own.name])
            values = own.choices or (own.at(place - self._aside), own.at(place + self._aside))
            found += [self._space.complete({**best, own.name: value}) for value in values]
        return [config for config in found if key(config) not in self._known]

    def _values(self, own: Parameter) -> list[Value]:
        """Return values along the whole scale, its ends included, elsewhere each time."""
        if own.choices:
            return own.values(0)
        inner = [(k + self._random.random()) / (_POINTS - 2) for k in range(_POINTS - 2)]
        return list(dict.fromkeys(own.at(place) for place in (0.0, 1.0, *inner)))

    def _distance(self, one: Settings, other: Settings) -> float:
        return max(abs(own.part(one[own.name]) - own.part(other[own.name])) for own in self._space.parameters)

    def _step(self) -> Settings:
        """Change one parameter or a few of one of the best settings."""
        best = sorted(self._known.values(), key=lambda own: own[0])[:_GOOD]
        # Most steps are around the very best; the others keep a second hill from being forgotten.
        _, middle = best[min(int(self._random.expovariate(_GREED)), len(best) - 1)]
        active = self._space.active(middle)
        chosen = [own for own in active if self._random.random() < 1.5 / len(active)] or [self._random.choice(active)]
        far = self._turn % _FAR == 1
        config = self._space.complete(
            {**middle, **{own.name: self._near(own, middle[own.name], far=far) for own in chosen}}
        )
        if far:
            return config
        self._stepped[key(config)] = best[0][0]
        return config

    def _near(self, own: Parameter, value: Value, *, far: bool) -> Value:
        if own.choices:
            return self._random.choice([other for other in own.choices if other != value] or [value])
        place = own.part(value)
        for _ in range(_TRIES):
            step = self._random.uniform(-_BEYOND, 1 + _BEYOND) if far else self._random.gauss(place, self._reach)
            if (found := own.at(step)) != value:
                return found
        return value


def _corners(space: Space, count: int) -> list[Settings]:
    """Return all combinations of the parameters' ends if they are few, and each end by itself otherwise."""
    ends = [(own.at(0.0), own.at(1.0)) for own in space.parameters]
    if 2 ** len(ends) <= count:
        return [space.complete(dict(zip(space.names, values, strict=True))) for values in itertools.product(*ends)]
    single = [space.complete({own.name: end}) for own, both in zip(space.parameters, ends, strict=True) for end in both]
    return single[:count]
