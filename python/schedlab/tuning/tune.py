"""A study from its file to its result: search, racing, confirmation, and what mattered."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from schedlab.counting import counted
from schedlab.tuning import confirm, importance, racing
from schedlab.tuning.progress import Progress
from schedlab.tuning.score import good, score, violations
from schedlab.tuning.search import Searcher, searcher
from schedlab.tuning.space import Space, key
from schedlab.tuning.storage import Storage
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Bench, Pair, Trial

# Settings are tried in groups of this size, whatever the number of cores, so that the result does not depend on it.
_TOGETHER = 4
# At most so many are raced for the first place, and so many of a front are confirmed.
_FINALISTS, _REAL_FINALISTS = 12, 2
# If those keep the constraints by chance alone, the next ones are raced: at most so many times, where a run takes
# milliseconds.
_RACES = 8
# Where a run takes milliseconds, the final race has so many times the repeats of the search: seeds differ by several
# times what the best settings differ by.
_FINAL = 8
_FRONT = 5
# Two searches with different seeds share no run.
_SEEDS = 10_000


class Interrupted(Exception):  # noqa: N818 (it is no error)
    """A signal asked for the end. What was found so far is reported."""


@dataclass
class Found:
    """What a search found."""

    space: Space
    trials: list[Trial]
    winner: Trial
    front: list[Trial]
    confirmations: list[tuple[Trial, confirm.Confirmation]] = field(default_factory=list)
    essential: dict[str, Any] | None = None
    kept: float = 1.0
    importance: dict[str, float] = field(default_factory=dict)
    screening: Any = None
    interrupted: bool = False
    remarks: list[str] = field(default_factory=list)
    looks: dict[str, dict[str, Any]] = field(default_factory=dict)
    runs: int = 0
    seconds: float = 0.0
    run_seconds: float = 0.0

    @property
    def best(self) -> tuple[Trial, confirm.Confirmation] | None:
        """The confirmed settings; of several, those that improve the objectives most on average."""
        held = [own for own in self.confirmations if own[1].confirmed]
        return max(held, key=lambda own: sum(c.improvement for c in own[1].claims), default=None)


class Tuning:
    """A search on a bench."""

    def __init__(self, study: Study, bench: Bench, storage: Storage | None, progress: Progress) -> None:
        self.study = study
        self.bench = bench
        self.space = bench.space
        self.storage = storage
        self.progress = progress
        first = study.search.seed * _SEEDS
        self.seeds = list(range(first, first + study.search.repeats[1]))
        # A run of the simulator takes milliseconds, and one of a real kernel seconds.
        self.simulated = study.backend == "sim"
        if not self.simulated and storage is not None:
            bench.memory = storage
        more = (_FINAL if self.simulated else 1) * len(self.seeds)
        self.more_seeds = range(first + len(self.seeds), first + len(self.seeds) + more)
        self.held_out = [confirm.HELD_OUT + first + k for k in range(study.confirm.runs)]
        self.race = racing.Race(study, bench, self.seeds)
        self.trials: list[Trial] = []
        self._start = time.monotonic()

    def run(self, start: Sequence[tuple[str, dict[str, Any]]] = ()) -> Found:
        """Search, confirm, and find out what mattered."""
        try:
            self.search(start)
            found = self.found()
            self.decide(found)
        except Interrupted:
            found = self.found()
            found.interrupted = True
        return self.finished(found)

    def search(self, start: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Try settings until the budget is used up or nothing is left to try."""
        method = searcher(self.study, self.space)
        self._resume(method)
        named = [("default", self.space.default), *start]
        known = {key(own.config) for own in self.trials}
        fresh = [(name, config) for name, config in named if key(config) not in known]
        self._try(
            method, [Trial(len(self.trials) + k, dict(config), name=name) for k, (name, config) in enumerate(fresh)]
        )
        batch = _TOGETHER if self.bench.repeatable else 1
        while not self._over():
            configs = method.ask(min(batch, self.study.search.trials + 1 - len(self.trials)))
            if not configs:
                break
            self._try(method, [Trial(len(self.trials) + k, dict(config)) for k, config in enumerate(configs)])
        self._refuse_unkept()

    def _resume(self, method: Searcher) -> None:
        if self.storage is None:
            return
        for trial in self.storage.load():
            trial.number = len(self.trials)
            self.trials.append(trial)
            self.race.add(trial)
            method.tell(trial.config, trial.told)
            for pair in trial.pairs:
                self.bench.know(trial.config, pair)
        if self.trials:
            kept, are = counted(len(self.trials), "trial"), "is" if len(self.trials) == 1 else "are"
            self.progress.say(f"{kept} {are} in {self.storage.place}; the search goes on from there")

    def _try(self, method: Searcher, trials: list[Trial]) -> None:
        if not trials:
            return
        self.race.run(trials)
        for own in trials:
            own.told = self.race.told(own)
            method.tell(own.config, own.told)
            self.trials.append(own)
            if self.storage:
                known = good(self.study, own.pairs)
                self.storage.add(self.space, own, score(self.study, own.pairs).losses if known else None)
        self.progress.show(self._line())

    def _over(self) -> bool:
        limit = self.study.search.time_s
        late = limit is not None and time.monotonic() - self._start > limit
        # The default is no trial.
        return late or len(self.trials) > self.study.search.trials

    def _line(self) -> str:
        own, known = self.race.best or (None, None)
        name = self.study.objectives[0].name
        best = f"{name} {-known.losses[0]:+.1%}" if own and known and own.number else "the default"
        done = len(self.trials) - 1
        trials, runs = counted(self.study.search.trials, "trial"), counted(self.bench.runs, "run")
        return f"{done} of {trials}, {runs}; best so far: {best}"

    def found(self) -> Found:
        """Return what the search found so far."""
        best = self.race.best
        if best is None:
            failed = next((own for own in self.trials if own.state == "failed"), None)
            if failed is None:
                raise Interrupted
            fix = "let the load or its time be longer, or measure something that every run has"
            raise self.study.document.error((), f"no trial has a value in all its runs: {failed.why}", fix)
        front = [own for own, known in self.race.front if known.feasible]
        return Found(self.space, self.trials, best[0], sorted(front, key=lambda own: own.number))

    def _refuse_unkept(self) -> None:
        """Refuse a constraint that everything breaks by so much that it was given up."""
        if self.race.best is not None or any(own.state != "pruned" for own in self.trials):
            return
        broken = violations(self.study, self.trials[0].pairs)
        name = max(broken, key=lambda own: broken[own])
        index = [own.name for own in self.study.measures].index(name)
        default = fmean([pair.default[index] or 0.0 for pair in self.trials[0].pairs])
        fix = "write a bound that some settings keep"
        what = f"nothing that was tried keeps it; the default has {default:.5g}"
        raise self.study.document.error(("constraints", name), what, fix)

    def decide(self, found: Found) -> None:
        """Choose the winner among the best, confirm it, and find the changes that matter."""
        chosen = self._front(found) if len(self.study.objectives) > 1 else self._winner(found)
        for own in chosen:
            self.progress.show(f"confirming {dict(self.space.changes(own.config))}")
            self.confirm(found, own)
        claims = [claim for _, known in found.confirmations for claim in known.claims]
        confirm.holm(claims, self.study.confirm.level)
        best = found.best
        if best and self.study.confirm.essential and len(self.space.changes(best[0].config)) > 1:
            self.progress.show("looking for the changes that matter")
            seeds = [*self.seeds, *(self.more_seeds[: 2 * len(self.seeds)] if self.simulated else ())]
            found.essential, found.kept = importance.essential(self.study, self.bench, best[0].config, seeds)

    def confirm(self, found: Found, own: Trial) -> None:
        """Run settings beside the default with held-out seeds."""
        pairs = self.bench.pairs([(own.config, seed) for seed in self.held_out])
        if good(self.study, pairs):
            found.confirmations.append((own, confirm.compare(self.study, pairs)))
            return
        missing = sum(not good(self.study, [pair]) for pair in pairs)
        why = self.bench.reason(own.config, self.held_out)
        found.remarks.append(f"{missing} of {len(pairs)} held-out runs of the best settings have no value: {why}")

    def _winner(self, found: Found) -> list[Trial]:
        """Return the best of a race between those that may be the best; nothing if that is the default."""
        complete = [own for own in self.trials if own.state == "complete" and self._ready(own)]
        ordered = sorted(complete, key=lambda own: racing.place(self.study, own, own.pairs))
        few, races = (_FINALISTS, _RACES) if self.simulated else (_REAL_FINALISTS, 1)
        # Settings that did the same in every run are one finalist, the first that was tried.
        distinct: dict[tuple[Pair, ...], Trial] = {}
        for own in ordered:
            if self.space.changes(own.config):
                distinct.setdefault(tuple(own.pairs), own)
        finalists = list(distinct.values())
        won: list[tuple[Trial, racing.Place]] = []
        for first in range(0, min(len(finalists), few * races), few):
            best = racing.final(self.study, self.bench, finalists[first : first + few], self.more_seeds)
            won += [best] if best else []
            if best and best[1].risk == 0:
                break
        if not won:
            return []
        found.winner = min(won, key=lambda own: own[1])[0]
        return [found.winner]

    def _ready(self, trial: Trial) -> bool:
        return len(trial.pairs) >= self.race.rungs[-1] and score(self.study, trial.pairs).feasible

    def _front(self, found: Found) -> list[Trial]:
        """Return some of the front, from one end to the other."""
        own = [trial for trial in found.front if self.space.changes(trial.config)]
        own.sort(key=lambda trial: score(self.study, trial.pairs).losses)
        step = max(1.0, (len(own) - 1) / (_FRONT - 1))
        picked = sorted({round(k * step) for k in range(_FRONT) if round(k * step) < len(own)})
        return [own[k] for k in picked]

    def finished(self, found: Found) -> Found:
        """Add what is known at the end."""
        found.importance = importance.fanova(self.study, self.space, self.trials)
        found.runs, found.run_seconds = self.bench.runs, self.bench.run_s
        found.seconds = time.monotonic() - self._start
        failed = [own for own in self.trials if own.state == "failed"]
        if failed:
            many = f"{len(failed)} trials have no value, the first" if len(failed) > 1 else "1 trial has no value,"
            found.remarks.append(f"{many} because {failed[0].why}")
        return found
