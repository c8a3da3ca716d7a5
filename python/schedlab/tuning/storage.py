"""Where trials are kept, so that a search goes on after its process was killed."""

import fcntl
import json
import os
import warnings
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

from schedlab._native import InputError
from schedlab.tuning.space import Parameter, Space, key
from schedlab.tuning.trials import Pair, Trial

_STATES = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}
_OWN = "schedlab"
_PAIR = "schedlab pair "


class _Held(JournalFileOpenLock):
    """No lock: this process holds the file as long as it runs."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


class Storage:
    """The trials of one study, in a file of Optuna's, or in a database by its URL.

    It is also the memory of a bench of a real kernel: a pair of runs is kept as soon as it was run, whatever it was run
    for. `take` hands out what no kept trial has.
    """

    def __init__(self, place: str, name: str, objectives: int, *, fresh: bool) -> None:
        self.place = place
        self._file: int | None = None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._pairs: defaultdict[tuple[str, int], deque[Pair]] = defaultdict(deque)
        self._kept = 0
        try:
            self._optuna = self._open(place, name, objectives, fresh)
            self._remember()
        except BaseException:
            self.close()
            raise

    def _open(self, place: str, name: str, objectives: int, fresh: bool) -> optuna.Study:
        try:
            storage = place if "://" in place else JournalStorage(self._journal(Path(place)))
            if fresh and name in optuna.get_all_study_names(storage):
                optuna.delete_study(study_name=name, storage=storage)
            return optuna.create_study(
                storage=storage, study_name=name, directions=[StudyDirection.MINIMIZE] * objectives, load_if_exists=True
            )
        except InputError:
            raise
        except OSError as error:
            raise InputError(f"{place}: {error.strerror}; name another file with --storage") from None
        except Exception as error:
            if self._file is None:
                raise InputError(f"{place}: cannot keep trials there: {error}") from None
            raise InputError(
                f"{place}: is a damaged file of trials; remove it, or name another with --storage"
            ) from None

    def _journal(self, path: Path) -> JournalFileBackend:
        """Take a file for this process alone, and cut off a line that a killed process left half-written."""
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{path}: another search keeps its trials there; wait, or name another file") from None
        content = path.read_bytes()
        if content and not content.startswith(b"{"):
            raise InputError(f"{path}: is no file of trials; name another with --storage")
        if not content.endswith(b"\n"):
            os.ftruncate(self._file, content.rfind(b"\n") + 1)
        return JournalFileBackend(str(path), lock_obj=_Held(str(path)))

    def load(self) -> list[Trial]:
        """Return the trials that are kept, in their order."""
        kept = self._optuna.get_trials(deepcopy=False)
        found = [json.loads(own.user_attrs[_OWN]) for own in kept if _OWN in own.user_attrs]
        return [Trial.of_json(own) for own in found]

    def add(self, space: Space, trial: Trial, losses: Sequence[float] | None) -> None:
        """Keep a trial."""
        active = space.active(trial.config)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._optuna.add_trial(
                create_trial(
                    state=_STATES[trial.state] if losses is not None else TrialState.FAIL,
                    params={own.name: trial.config[own.name] for own in active},
                    distributions={own.name: distribution(own) for own in active},
                    values=list(losses) if losses is not None and trial.state == "complete" else None,
                    user_attrs={_OWN: json.dumps(trial.as_json())},
                )
            )

    def _remember(self) -> None:
        kept = [json.loads(own) for name, own in sorted(self._optuna.user_attrs.items()) if name.startswith(_PAIR)]
        self._kept = len(kept)
        for settings, seed, default, own in kept:
            self._pairs[settings, seed].append(Pair(seed, tuple(default), tuple(own)))
        for trial in self.load():
            for pair in trial.pairs:
                self.take(key(trial.config), pair.seed)

    def take(self, settings: str, seed: int) -> Pair | None:
        """Return a pair of these settings that was kept, each only once."""
        known = self._pairs.get((settings, seed))
        return known.popleft() if known else None

    def keep(self, settings: str, pair: Pair) -> None:
        """Keep a pair that was just run."""
        row = [settings, pair.seed, list(pair.default), list(pair.own)]
        self._optuna.set_user_attr(f"{_PAIR}{self._kept:06}", json.dumps(row))
        self._kept += 1

    def close(self) -> None:
        """Let others have the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def distribution(own: Parameter) -> BaseDistribution:
    """Return a parameter's values as Optuna writes them."""
    if own.choices:
        return CategoricalDistribution(own.choices)
    if own.whole:
        return IntDistribution(int(own.low), int(own.high))
    return FloatDistribution(own.low, own.high)
