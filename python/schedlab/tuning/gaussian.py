"""Search by a Gaussian process: a smooth guess of the loss everywhere, and where it promises most.

The process is scikit-learn's. Optuna has one too, but it needs PyTorch, which is larger than all the rest together.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from schedlab.tuning.search import Searcher, Settings, evenly
from schedlab.tuning.space import Space, key

# The scales of the process are fitted anew after this many trials.
_REFIT = 8
_CANDIDATES = 600


class Gaussian(Searcher):
    """Expected improvement over the best, by a Gaussian process with a Matérn kernel."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space = space
        self._random = np.random.default_rng(seed)
        self._known: dict[str, tuple[Settings, float]] = {}
        self._first = evenly(space, 2 * len(space.parameters) + 4, seed)
        self._kernel = ConstantKernel(1.0) * Matern([0.5] * self._width, (0.02, 20.0), nu=2.5) + WhiteKernel(1e-3)
        self._fitted = 0

    @property
    def _width(self) -> int:
        return sum(len(own.choices) or 1 for own in self._space.parameters)

    def tell(self, config: Settings, losses: Sequence[float]) -> None:
        """Learn."""
        self._known[key(config)] = (config, sum(losses) / len(losses))

    def ask(self, count: int) -> list[Settings]:
        """Propose settings: evenly at first, then where the process promises an improvement."""
        self._first = [own for own in self._first if key(own) not in self._known]
        if self._first:
            found, self._first = self._first[:count], self._first[count:]
            return found
        points = np.array([self._encode(config) for config, _ in self._known.values()])
        losses = np.array([loss for _, loss in self._known.values()])
        # What is far worse than the default says nothing about where the best is.
        losses = np.minimum(losses, np.median(losses) + 2 * (np.median(losses) - losses.min()) + 1e-9)
        return self._promising(count, points, losses)

    def _promising(self, count: int, points: NDArray[np.float64], losses: NDArray[np.float64]) -> list[Settings]:
        found: list[Settings] = []
        for _ in range(count):
            process = self._process(points, losses)
            candidates = [own for own in self._candidates() if key(own) not in self._known and own not in found]
            if not candidates:
                break
            encoded = np.array([self._encode(own) for own in candidates])
            mean, scatter = process.predict(encoded, return_std=True)
            gain = losses.min() - mean
            ratio = gain / np.maximum(scatter, 1e-12)
            pick = int(np.argmax(gain * norm.cdf(ratio) + scatter * norm.pdf(ratio)))
            found.append(candidates[pick])
            # The next of the same batch is chosen as if this one were as expected.
            points, losses = np.vstack([points, encoded[pick]]), np.append(losses, mean[pick])
        return found

    def _process(self, points: NDArray[np.float64], losses: NDArray[np.float64]) -> GaussianProcessRegressor:
        refit = len(losses) >= self._fitted + _REFIT or not self._fitted
        optimizer = "fmin_l_bfgs_b" if refit else None
        process = GaussianProcessRegressor(self._kernel, normalize_y=True, optimizer=optimizer, random_state=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            process.fit(points, losses)
        if refit:
            self._kernel, self._fitted = process.kernel_, len(losses)
        return process

    def _candidates(self) -> list[Settings]:
        """Return settings anywhere, and some near the best."""
        anywhere = self._random.random((_CANDIDATES // 2, len(self._space.parameters)))
        best = sorted(self._known.values(), key=lambda own: own[1])[:3]
        near = []
        for config, _ in best:
            middle = np.array([own.part(config[own.name]) for own in self._space.parameters])
            steps = self._random.normal(0, 0.1, (_CANDIDATES // 6, len(middle)))
            steps *= self._random.random(steps.shape) < max(0.4, 1.5 / len(middle))
            near.append(np.clip(middle + steps, 0, 1))
        rows = np.vstack([anywhere, *near])
        names = self._space.parameters
        settings = [
            self._space.complete({own.name: own.at(float(part)) for own, part in zip(names, row, strict=True)})
            for row in rows
        ]
        return list({key(own): own for own in settings}.values())

    def _encode(self, config: Settings) -> NDArray[np.float64]:
        """Return settings as coordinates: one for a number, and one for each value of a category."""
        found: list[float] = []
        for own in self._space.parameters:
            if own.choices:
                found += [0.5 * (config[own.name] == value) for value in own.choices]
            else:
                found.append(own.part(config[own.name]))
        return np.array(found)
