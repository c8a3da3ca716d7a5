"""The ways through a study: on one backend, screened on the simulator first, or one group of parameters at a time."""

import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from schedlab._native import InputError
from schedlab.counting import counted
from schedlab.sweeping import cluster
from schedlab.tuning import catalogue, confirm, kept, racing, screen, simulated, space
from schedlab.tuning.guard import Guard, available
from schedlab.tuning.home import home
from schedlab.tuning.objective import Run
from schedlab.tuning.progress import Progress
from schedlab.tuning.real import Live, Program, Recording
from schedlab.tuning.space import Space
from schedlab.tuning.storage import Storage
from schedlab.tuning.study import Study
from schedlab.tuning.trials import Bench, Runner, Trial
from schedlab.tuning.tune import Found, Interrupted, Tuning

# The order in which --cycle takes the groups; others follow.
_GROUPS = ("sched", "vm", "disk")

# Memory that is to be available for each guest, in bytes: a small one uses half as much.
_GUEST = 1 << 30


@dataclass(frozen=True)
class Options:
    """What the command line says beside the study."""

    storage: str | None = None
    fresh: bool = False
    jobs: int = 0
    cluster: str | None = None
    keep: bool = True
    """Whether trials are kept in a file where `storage` names none."""
    traces: str | None = None
    """A folder for the traces of the default and of the best settings."""
    force: bool = False
    """Whether that folder may have files already."""


@dataclass(frozen=True)
class Renamed:
    """The simulator in the place of a kernel that has other names for some of the parameters."""

    simulation: Runner
    names: dict[str, str]

    def run(self, settings: dict[str, str], seed: int) -> Run:
        """Run with the simulated kernel's names."""
        return self.simulation.run({self.names.get(name, name): value for name, value in settings.items()}, seed)


@dataclass(frozen=True)
class Fixed:
    """A runner with some settings that are kept from before."""

    runner: Runner
    settings: dict[str, str]

    def run(self, settings: dict[str, str], seed: int) -> Run:
        """Run with the kept settings, too."""
        return self.runner.run({**self.settings, **settings}, seed)


@contextmanager
def bench(study: Study, options: Options, progress: Progress) -> Iterator[Bench]:
    """Prepare the trials of a study: its parameters, and where they run."""
    if study.backend == "sim":
        with cluster.connect(options.cluster, options.jobs or None) as pool:
            yield simulation_bench(study, pool.executor)
        return
    if study.backend == "command":
        yield Bench(space.build(study, {}, "the study"), Program(study, guard(study)), None, repeatable=False)
        return
    if study.backend == "live":
        runner = Live(_runner(study), study.live.settle_s)
        if names_of(runner.tunables.recovered):
            progress.say(f"put back what an earlier search left: {names_of(runner.tunables.recovered)}")
        try:
            yield Bench(live_space(study), runner, None, repeatable=False)
        finally:
            runner.close()
        return
    known = catalogue.of_kernel(study.kernel, study.machine) if study.kernel else {}
    own = space.build(study, known, study.kernel or study.backend)
    recording = Recording(study, simulated.workload(study), study.backend, guard(study))
    if not study.deterministic:
        yield Bench(own, recording, None, repeatable=False)
        return
    # What counts instructions is not disturbed by what runs beside it.
    count = max(1, min(options.jobs or cluster.cores(), available() // _GUEST))
    with cluster.connect(workers=count) as pool:
        try:
            yield Bench(own, recording, pool.executor, repeatable=True, portion=count)
        finally:
            recording.guard.over.set()


def simulation_bench(study: Study, pool: Executor) -> Bench:
    """Return trials on the simulator."""
    simulation = simulated.simulation(study)
    kernel = study.kernel or simulated.recorded_kernel(simulation.workload)
    if not kernel:
        fix = 'write kernel = "linux-6.1"; schedlab kernels lists them'
        raise study.document.error(("kernel",), "there is none", fix)
    try:
        known = catalogue.of_kernel(kernel, simulation.machine.path() if simulation.machine else "")
    except InputError as error:
        key = "kernel" if "no kernel" in str(error) else "machine"
        raise study.document.error((key,), re.sub(r"^(--)?(kernel|machine)[ :]+", "", str(error))) from None
    return Bench(space.build(study, known, kernel), simulation, pool, repeatable=True)


def live_space(study: Study) -> Space:
    """Return the parameters on this machine. What it refuses is said before anything is tried."""
    known = catalogue.of_machine()
    groups = study.live.groups
    for name in study.parameters:
        if groups and name in known and known[name].group not in groups:
            fix = f"write groups = {json.dumps([*groups, known[name].group])}"
            what = f"{name} is of the group {known[name].group}, which may not be changed"
            raise study.document.error(("live", "groups"), what, fix)
    catalogue.refuse_unsettable(known, tuple(study.parameters))
    return space.build(study, known, "this machine")


def guard(study: Study) -> Guard:
    """Return the machine's limits."""
    return Guard(study.live.watchdog, study.live.every_s, study.live.free_memory)


def _runner(study: Study) -> Program | Recording:
    if "command" in study.load:
        return Program(study, guard(study))
    return Recording(study, simulated.workload(study), "live", guard(study))


def names_of(document: Any) -> str:  # noqa: ANN401 (the command's document)
    """Return the names of the tunables that `schedlab tunables --restore` put back; nothing if there were none."""
    rows = document.get("restored", []) if isinstance(document, dict) else document or []
    return ", ".join(str(own.get("name", own) if isinstance(own, dict) else own) for own in rows)


def run(study: Study, options: Options, progress: Progress, *, screen: str | None = None, cycle: bool = False) -> Found:
    """Go through a study in the way that is asked for."""
    if screen not in (None, "sim"):
        raise InputError(f'screen: there is no "{screen}"; write sim')
    if screen and cycle:
        raise InputError("screen and cycle exclude each other")
    way = by_group if cycle else screened if screen else tune
    if options.traces:
        kept.check(study, Path(options.traces), force=options.force)
    try:
        found = way(study, options, progress)
        if options.traces and found.best:
            progress.show("tracing the default and the best settings")
            with bench(study, options, progress) as own:
                if isinstance(own.runner, kept.Traced):
                    found.looks = kept.keep(study, own.runner, found.space, found.best, Path(options.traces))
        return found
    finally:
        progress.clear()


def tune(study: Study, options: Options, progress: Progress) -> Found:
    """Search on the study's backend."""
    with bench(study, options, progress) as own, _storage(study, options) as storage:
        start = _start(study, own.space)
        _check_default(study, own)
        return Tuning(study, own, storage, progress).run(start)


def _start(study: Study, own: Space) -> list[tuple[str, dict[str, Any]]]:
    """Return the settings that the study names."""
    found = []
    for number, config in enumerate(study.search.start):
        given = {name: value for name, value in config.items() if name != "name"}
        if not given:
            raise study.document.error(("search", "start"), "names no parameter", "write { NAME = VALUE }")
        name = str(config.get("name", f"start {number + 1}"))
        found.append((name, space.check_settings(own, study.document, ("search", "start"), given)))
    return found


def _check_default(study: Study, own: Bench) -> None:
    """Run the default once: what is wrong with the load or with a measure is found here."""
    try:
        run = own.first(study.search.seed * 10_000)
    except InputError as error:
        raise _blamed(study, str(error)) from None
    if not run.good:
        names = [measure.name for measure, value in zip(study.measures, run.values, strict=True) if value is None]
        where = ("objectives" if names[0] in {o.name for o in study.objectives} else "constraints", names[0])
        if "command" in study.load and len(names) == len(study.measures) > 0 and not run.why.startswith(names[0]):
            where = ("load", "command")
        raise study.document.error(where, f"has no value with the default settings: {run.why}")


def _blamed(study: Study, message: str) -> InputError:
    """Return the error about a run of the default, with the key of the study that it is about."""
    error, said = study.document.error, "the load does not run with the default settings: "
    if message.startswith(str(study.path)):
        return InputError(message)
    if message.startswith("live.watchdog: "):
        return error(("live", "watchdog"), message.removeprefix("live.watchdog: "), "name a program that is there")
    if unknown := re.search(r'"[^"]*" is no kernel; .*|the kernel \S+ is not on this machine; .*', message):
        in_file = study.document.line("backend")
        return error(("backend",), unknown[0]) if in_file else InputError(unknown[0])
    if message.startswith("duration: ") and study.duration:
        return error(("duration",), message.removeprefix("duration: "))
    for kind, own in (("objectives", study.objectives), ("constraints", study.constraints)):
        for measure in (one.measure for one in own):
            if measure.value and message.startswith(f'"{measure.value}": '):
                return error((kind, measure.name, "value"), message)
    kind = next(own for own in ("workload", "inline", "model", "command") if own in study.load)
    # The text of a study is in a file of ours for the simulator.
    message = re.sub(rf"{re.escape(home())}/\S*?:(\d+): ", r"line \1 of the text: ", message)
    setting = re.match(r"--set (\S+): ", message)
    path = ("parameters", setting[1]) if setting else ("load", kind)
    return error(path, said + message.removeprefix(setting[0] if setting else "workload: "))


@contextmanager
def _storage(study: Study, options: Options, suffix: str = "") -> Iterator[Storage | None]:
    if not (options.storage or options.keep):
        yield None
        return
    place = options.storage or str(study.path.with_suffix(".trials"))
    name = f"{study.path.stem}-{study.fingerprint}{suffix}"
    storage = Storage(place, name, len(study.objectives), fresh=options.fresh)
    try:
        yield storage
    finally:
        storage.close()


def screened(study: Study, options: Options, progress: Progress) -> Found:
    """Search on the simulator, and take the best few to the study's backend."""
    if study.backend == "sim":
        fix = 'name the real kernel: backend = "live" or "vm:debian-6.1", or --on'
        raise study.document.error(("backend",), "sim needs no screening on the simulator", fix)
    if "command" in study.load:
        raise study.document.error(("load", "command"), "cannot be simulated", "record it, and write model = TRACE")
    kernel = study.screen.kernel or study.kernel
    if not kernel:
        raise study.document.error(("screen", "kernel"), "there is none", 'write kernel = "linux-6.1"')
    with bench(study, options, progress) as real:
        # One after the other: both are in the same file, which only one may hold.
        with (
            cluster.connect(options.cluster, options.jobs or None) as pool,
            _storage(study, options, "-sim") as kept,
        ):
            runner = Renamed(simulated.simulation(study, kernel, study.screen.machine), dict(study.screen.names))
            model = Bench(real.space, runner, pool.executor, repeatable=True)
            _check_default(study, model)
            search = Tuning(replace(study, backend="sim"), model, kept, progress)
            search.search(_start(study, real.space))
        with _storage(study, options, "-real") as kept:
            return _on_real(study, kernel, search, Tuning(study, real, kept, progress))


def _on_real(study: Study, kernel: str, search: Tuning, tuning: Tuning) -> Found:
    """Run the best simulated settings on the real kernel, compare the ranks, and confirm the best there."""
    real, progress = tuning.bench, tuning.progress
    _check_default(study, real)
    chosen = screen.picked(study, [own for own in search.trials if own.number], study.screen.keep)
    again = [Trial(0, dict(real.space.default), name="default")]
    again += [Trial(k, dict(own.config), name=f"simulated {own.number}") for k, own in enumerate(chosen, 1)]
    progress.show(f"running {counted(len(chosen), 'setting')} on {study.backend}")
    try:
        for own, pairs in zip(again, racing.extend(real, again, tuning.seeds), strict=True):
            own.pairs = pairs
            own.state = "complete" if all(None not in pair.own for pair in pairs) else "failed"
            tuning.trials.append(own)
            tuning.race.add(own)
        found = tuning.found()
        found.screening = screen.agreement(study, kernel, chosen, again[1:], len(search.trials) - 1)
        tuning.decide(found)
    except Interrupted:
        found = tuning.found()
        found.interrupted = True
    found = tuning.finished(found)
    found.runs += search.bench.runs
    return found


def by_group(study: Study, options: Options, progress: Progress) -> Found:
    """Tune one group of parameters after the other; each is kept only if it is confirmed to help."""
    with bench(study, options, progress) as own:
        _check_default(study, own)
        names = {parameter.group or "other" for parameter in own.space.parameters}
        order = [*(g for g in _GROUPS if g in names), *sorted(names - set(_GROUPS))]
        trials: list[Trial] = []
        remarks: list[str] = []
        kept, start = dict(own.space.default), time.monotonic()
        part = replace(
            study,
            search=replace(study.search, trials=max(1, study.search.trials // len(order)), start=()),
            confirm=replace(study.confirm, level=1 - (1 - study.confirm.level) / len(order), essential=False),
        )
        for turn, group in enumerate(order):
            seeded = replace(part, search=replace(part.search, seed=study.search.seed * 100 + turn + 1))
            found = _group(seeded, own, group, kept=kept, options=options, progress=progress)
            trials += found.trials if not trials else found.trials[1:]
            kept.update(found.best[0].config if found.best else {})
            remarks.append(f"{group}: {_verdict(found)}")
            if found.interrupted:
                found.remarks = remarks
                return found
        for number, trial in enumerate(trials):
            trial.number = number
        found = _whole(study, own, kept, trials=trials, remarks=remarks, options=options, progress=progress)
        found.seconds = time.monotonic() - start
        return found


def _verdict(found: Found) -> str:
    """Return what became of a group, and how far its best settings changed the first objective."""
    known = [held for _, held in found.confirmations]
    if not known:
        return "nothing that was tried was better, taken back"
    own = (found.best[1] if found.best else known[0]).claims[0]
    low, high = own.interval
    changed = f"{own.improvement:+.1%} ({low:+.1%} to {high:+.1%})"
    return f"kept, {changed}" if found.best else f"no better, {changed}, taken back"


def _group(
    study: Study, own: Bench, group: str, *, kept: dict[str, Any], options: Options, progress: Progress
) -> Found:
    """Tune one group, the others as kept."""
    members = [p.name for p in own.space.parameters if (p.group or "other") == group]
    fixed = {name: str(value) for name, value in kept.items() if name not in members}
    part = Space([replace(p, default=kept[p.name]) for p in own.space.parameters if p.name in members])
    progress.show(f"group {group}: {', '.join(members)}")
    inner = Bench(part, Fixed(own.runner, fixed), own.executor, repeatable=own.repeatable)
    with _storage(study, options, f"-{group}") as storage:
        found = Tuning(study, inner, storage, progress).run()
    own.runs += inner.runs
    own.run_s += inner.run_s
    for trial in found.trials:
        trial.config, trial.name = {**kept, **trial.config}, trial.name or group
    return found


def _whole(
    study: Study,
    own: Bench,
    kept: dict[str, Any],
    *,
    trials: list[Trial],
    remarks: list[str],
    options: Options,
    progress: Progress,
) -> Found:
    """Confirm all that was kept against the default, on runs that no group has seen."""
    winner = Trial(len(trials), kept, name="cycle")
    found = Found(own.space, trials, winner, [], remarks=remarks)
    if own.space.changes(kept):
        with _storage(study, options, "-whole") as storage:
            tuning = Tuning(study, own, storage, progress)
            tuning.held_out = [seed + confirm.HELD_OUT for seed in tuning.held_out]
            tuning.confirm(found, winner)
        confirm.holm([claim for _, known in found.confirmations for claim in known.claims], study.confirm.level)
    found.runs, found.run_seconds = own.runs, own.run_s
    return found
