"""`schedlab tune` finds a planted optimum: narrow, away from a broad hill, under noise that seeds make."""

import math
import random
import zlib

import pytest

from schedlab.tuning import study
from schedlab.tuning.objective import Run
from schedlab.tuning.progress import Progress
from schedlab.tuning.space import Parameter, Space
from schedlab.tuning.trials import Bench
from schedlab.tuning.tune import Tuning

SPACE = Space([Parameter(name, 0.5, low=0.0, high=1.0, whole=False) for name in ("a", "b", "c")])
BROAD, NARROW, WIDTH = (0.3, 0.4, 0.6), (0.85, 0.8, 0.3), 0.18


def worth(settings: dict[str, str]) -> float:
    """Return what settings are truly worth: the less the better, at best about 0.68."""
    place = [float(settings[name]) for name in SPACE.names]
    broad = sum((a - b) ** 2 for a, b in zip(place, BROAD, strict=True))
    narrow = sum((a - b) ** 2 * weight for a, b, weight in zip(place, NARROW, (1, 1, 0.1), strict=True)) / WIDTH**2
    return 1 - 0.25 * math.exp(-2 * broad) - 0.3 * math.exp(-narrow / 2)


class Noisy:
    """A load whose level, and how much the settings matter to it, follow from the seed; and some noise of each run."""

    def run(self, settings: dict[str, str], seed: int) -> Run:
        """Return a run's number."""
        draw = random.Random(seed)
        level, slope = math.exp(draw.gauss(0, 0.3)), draw.gauss(0, 0.3)
        own = random.Random(zlib.crc32(f"{settings} {seed}".encode()))
        return Run((level * (1 - (1 - worth(settings)) * (1 + slope)) * math.exp(own.gauss(0, 0.05)),))


def found(seed: int) -> float:
    """Return what a search recommends is truly worth."""
    own = study.read(
        {
            "load": {"workload": "li"},
            "parameters": {name: {"range": [0.0, 1.0]} for name in SPACE.names},
            "objectives": {"loss": {"value": "sum(run_s)"}},
            "search": {"trials": 190, "repeats": [4, 16], "seed": seed},
        }
    )
    best = Tuning(own, Bench(SPACE, Noisy(), None, repeatable=True), None, Progress(quiet=True)).run().best
    return worth(SPACE.settings(best[0].config if best else SPACE.default))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_narrow_optimum_beside_a_broad_hill_is_found(seed: int) -> None:
    optimum = min(
        worth({"a": str(a / 50), "b": str(b / 50), "c": str(c / 10)})
        for a in range(51) for b in range(51) for c in range(11)
    )  # fmt: skip
    assert found(seed) <= 1.03 * optimum
