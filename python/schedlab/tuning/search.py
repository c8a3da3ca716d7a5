"""The methods: each proposes settings, and learns what they were worth."""

import itertools
import random
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler, CmaEsSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.trial import create_trial

from schedlab.tuning.space import Parameter, Space, Value, key
from schedlab.tuning.study import Study

Settings = dict[str, Value]


class Searcher(ABC):
    """A method of search."""

    @abstractmethod
    def ask(self, count: int) -> list[Settings]:
        """Propose up to this many settings; none once there is nothing left to try."""

    @abstractmethod
    def tell(self, config: Settings, losses: Sequence[float]) -> None:
        """Learn what settings were worth, whether they were asked for or not."""


class Sampled(Searcher):
    """A method of Optuna's. It sees each number as its place on the scale, from 0 to 1."""

    def __init__(self, space: Space, sampler: BaseSampler, objectives: int) -> None:
        self._space = space
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(sampler=sampler, directions=["minimize"] * objectives)
        self._open: dict[str, optuna.Trial] = {}

    def ask(self, count: int) -> list[Settings]:
        """Propose settings; those that are being tried already are not proposed again."""
        found = []
        for _ in range(count):
            trial = self._study.ask()
            config = self._config(trial)
            if key(config) in self._open:
                self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
                continue
            self._open[key(config)] = trial
            found.append(config)
        return found

    def _config(self, trial: optuna.Trial) -> Settings:
        config: Settings = dict(self._space.default)
        for own in self._space.parameters:
            if own in self._space.active(config):
                config[own.name] = self._suggest(trial, own)
        return self._space.complete(config)

    @staticmethod
    def _suggest(trial: optuna.Trial, own: Parameter) -> Value:
        if own.choices:
            return own.choices[trial.suggest_categorical(own.name, range(len(own.choices)))]
        return own.at(trial.suggest_float(own.name, 0.0, 1.0))

    def tell(self, config: Settings, losses: Sequence[float]) -> None:
        """Learn."""
        if trial := self._open.pop(key(config), None):
            self._study.tell(trial, list(losses))
            return
        active = self._space.active(config)
        places: dict[str, Any] = {
            own.name: own.choices.index(config[own.name]) if own.choices else own.part(config[own.name])
            for own in active
        }
        scales: dict[str, BaseDistribution] = {
            own.name: CategoricalDistribution(range(len(own.choices))) if own.choices else FloatDistribution(0.0, 1.0)
            for own in active
        }
        self._study.add_trial(create_trial(params=places, distributions=scales, values=list(losses)))


class Planned(Searcher):
    """A method that goes through settings by a plan. Single objective: the plan looks at the mean of the losses."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.losses: dict[str, float] = {}
        self._plan = self.plan()
        self._batch: list[Settings] = []

    @abstractmethod
    def plan(self) -> Iterator[list[Settings]]:
        """Yield batches; the losses of one are known when the next is asked for."""

    def ask(self, count: int) -> list[Settings]:
        """Propose the next settings of the plan."""
        while not self._batch:
            batch = next(self._plan, None)
            if batch is None:
                return []
            self._batch = [own for own in unique(batch) if key(own) not in self.losses]
        found, self._batch = self._batch[:count], self._batch[count:]
        return found

    def tell(self, config: Settings, losses: Sequence[float]) -> None:
        """Learn."""
        self.losses[key(config)] = sum(losses) / len(losses)

    def best(self, among: Sequence[Settings]) -> Settings:
        """Return those of settings with the least loss; what has none is not taken."""
        return min(among, key=lambda own: self.losses.get(key(own), float("inf")))


class Grid(Planned):
    """Every combination of each parameter's values."""

    def __init__(self, space: Space, points: int) -> None:
        self._points = points
        super().__init__(space)

    def plan(self) -> Iterator[list[Settings]]:
        """Yield one combination after the other."""
        axes = [own.values(self._points) for own in self.space.parameters]
        for values in itertools.product(*axes):
            yield [self.space.complete(dict(zip(self.space.names, values, strict=True)))]


class OneByOne(Planned):
    """One parameter after the other, each at its best value so far, until a whole round finds nothing better."""

    def __init__(self, space: Space, points: int, start: Settings | None = None) -> None:
        self._points = points
        self._at = start or dict(space.default)
        super().__init__(space)

    def plan(self) -> Iterator[list[Settings]]:
        """Yield the values of one parameter at a time."""
        yield [self._at]
        for width in itertools.count():
            before = key(self._at)
            for own in self.space.parameters:
                line = [self.space.complete({**self._at, own.name: value}) for value in self._values(own, width)]
                yield line
                self._at = self.best([self._at, *line])
            # A round that changed nothing is repeated with values closer together, as far as they differ.
            if key(self._at) == before and width >= 3:  # noqa: PLR2004
                return

    def _values(self, own: Parameter, width: int) -> list[Value]:
        """Return values along the whole scale in the first round, and closer around the best in later ones."""
        if own.choices or width == 0:
            return own.values(self._points)
        middle, reach = own.part(self._at[own.name]), 0.5**width
        steps = [middle + reach * (2 * k / (self._points - 1) - 1) for k in range(self._points)]
        return list(dict.fromkeys(own.at(step) for step in steps))


class GlobalThenLine(OneByOne):
    """First anywhere in the space, evenly, and then one parameter at a time from the best that was found."""

    def __init__(self, space: Space, points: int, trials: int, seed: int) -> None:
        self._anywhere = evenly(space, max(points, trials // 2), seed)
        super().__init__(space, points)

    def plan(self) -> Iterator[list[Settings]]:
        """Yield the settings all over the space, then lines through it."""
        yield self._anywhere
        self._at = self.best([self._at, *self._anywhere])
        yield from super().plan()


def evenly(space: Space, count: int, seed: int, beyond: float = 0.0) -> list[Settings]:
    """Return settings that are spread evenly over the space (a scrambled Halton sequence).

    What lies `beyond` the end of a scale stands for the end.
    """
    from scipy.stats import qmc  # noqa: PLC0415 (takes a second to import)

    points = qmc.Halton(len(space.parameters), seed=seed).random(count) * (1 + 2 * beyond) - beyond
    return [
        space.complete({own.name: own.at(float(part)) for own, part in zip(space.parameters, row, strict=True)})
        for row in points
    ]


def unique(configs: Sequence[Settings]) -> list[Settings]:
    """Return settings without repetitions."""
    return list({key(own): own for own in configs}.values())


def searcher(study: Study, space: Space) -> Searcher:
    """Return the method that a study asks for."""
    own, count = study.search, len(study.objectives)
    if own.method == "grid":
        return Grid(space, own.points)
    if own.method == "one-at-a-time":
        return OneByOne(space, own.points)
    if own.method == "global-then-1d":
        return GlobalThenLine(space, own.points, own.trials, own.seed)
    if own.method == "gp":
        from schedlab.tuning.gaussian import Gaussian  # noqa: PLC0415 (scikit-learn takes a second to import)

        return Gaussian(space, own.seed)
    if own.method == "auto" and count == 1:
        from schedlab.tuning.auto import Auto  # noqa: PLC0415

        return Auto(space, own.trials, own.seed)
    with warnings.catch_warnings():
        # Optuna calls options experimental that have been there for years.
        warnings.simplefilter("ignore")
        samplers: dict[str, Any] = {
            "tpe": lambda: TPESampler(seed=own.seed, multivariate=True, group=True, constant_liar=True),
            "cmaes": lambda: CmaEsSampler(seed=own.seed, warn_independent_sampling=False),
            "nsga2": lambda: NSGAIISampler(seed=own.seed, population_size=max(10, min(50, own.trials // 6))),
            "random": lambda: RandomSampler(seed=own.seed),
        }
        return Sampled(space, samplers["tpe" if own.method == "auto" else own.method](), count)


def shuffled(seed: int) -> random.Random:
    """Return a source of random numbers of its own."""
    return random.Random(seed)
