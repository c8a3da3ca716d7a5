"""The command `schedlab-tune`, which `schedlab tune` runs."""

import argparse
import json
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from schedlab import command, output, program
from schedlab._native import InputError
from schedlab.sweeping import cluster

_ABOUT = """Find the settings that suit a load, confirm them on runs that the search never saw, and leave the machine
as it was."""
_EPILOG = """examples:
  schedlab tune studies/build.toml
  schedlab tune studies/build.toml -o report.html --settings best.toml
  schedlab tune study.toml --on live                  on this machine, which is put back at the end
  schedlab tune study.toml --on vm:debian-6.1 --screen sim
  schedlab tune --restore                             put back what a killed search left

Exit status: 0 done, also if nothing is better than the default; 2 bad input; 3 interrupted; 4 not permitted here.
"""


def _parser() -> program.Parser:
    parser = program.Parser("tune", _ABOUT, _EPILOG)
    add = parser.add_argument
    add("study", nargs="?", metavar="STUDY.toml", help="the study: load, parameters, objectives, budget")
    add("--json", action="store_true", help="print one JSON document on standard output instead of text")
    add("--on", metavar="WHERE", help="sim, live, or vm:KERNEL, in place of the study's backend")
    add("--method", metavar="METHOD", help="in place of the study's method")
    add("--trials", type=int, metavar="N", help="in place of the study's number of trials")
    add("--time", metavar="TIME", help='in place of the study\'s limit of time ("2m")')
    add("--seed", type=int, metavar="N", help="in place of the search's seed")
    add("--deterministic", action="store_true", help="guests count time in instructions: equal runs, equal results")
    add("--screen", choices=["sim"], help="search on the simulator, and take the best few to the study's backend")
    add("--cycle", action="store_true", help="tune scheduler, memory, disk one after the other; keep only what helps")
    add("-o", "--output", type=Path, metavar="FILE", help="write a report: one self-contained HTML page")
    add("--keep", metavar="DIR", help="keep a trace of the default and one of the best settings, with pages of both")
    add(
        "--settings",
        type=Path,
        metavar="FILE",
        help="write the best settings, for schedlab tunables --apply and --profile",
    )
    add("--force", action="store_true", help="overwrite these files if they exist")
    add("--storage", metavar="FILE|URL", help="where trials are kept, to go on later (default: STUDY.trials)")
    add("--fresh", action="store_true", help="forget the trials that are kept, and begin anew")
    add(
        "-j",
        "--jobs",
        type=cluster.workers,
        default=0,
        metavar="N",
        help="runs at once that do not disturb each other (default: one for each core)",
    )
    add("--cluster", metavar="ADDRESS", help="simulate on a Dask cluster (tcp://host:8786)")
    add("--restore", action="store_true", help="put back the tunables of this machine that a killed search left")
    add("--schema", action="store_true", help="print the JSON Schema of a study")
    add("--quiet", action="store_true", help="show no progress")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: program.say(str(message))
        return program.ended(lambda: _run(_parser().given(arguments)), extra="tune", interrupted=command.UNDECIDED)


def _run(given: argparse.Namespace) -> int:
    from schedlab.tuning import outcome, real, schema, study  # noqa: PLC0415 (--help does not wait for Optuna)

    if given.schema:
        program.printed(json.dumps(schema.schema(), indent=2))
        return command.DONE
    if given.restore:
        return _restored(real.restore(), as_json=given.json)
    if given.study is None:
        raise InputError("which study? schedlab tune STUDY.toml")
    own = study.read(Path(given.study), _changes(given))
    for option in ("output", "settings"):
        if path := getattr(given, option):
            output.check(path, f"--{option}", force=given.force)
    found = _found(given, own)
    result = outcome.document(own, found)
    try:
        if given.output:
            from schedlab.tuning.report import report  # noqa: PLC0415

            page = report(own, found.space, result, given.output)
            output.write(given.output, "--output", lambda file: file.write(page.encode()))
        if given.settings:
            settings = outcome.settings_file(own, result)
            output.write(given.settings, "--settings", lambda file: file.write(settings.encode()))
    finally:
        # What a long search found is not lost with the disk that is full.
        program.printed(json.dumps(result, indent=2) if given.json else outcome.text(own, result))
    return command.UNDECIDED if found.interrupted else command.DONE


def _found(given: argparse.Namespace, own: Any) -> Any:  # noqa: ANN401 (a study; what was found)
    from schedlab.tuning import flow  # noqa: PLC0415
    from schedlab.tuning.progress import Progress  # noqa: PLC0415

    options = flow.Options(given.storage, given.fresh, given.jobs, given.cluster, traces=given.keep, force=given.force)
    with _signals():
        return flow.run(own, options, Progress(quiet=given.quiet), screen=given.screen, cycle=given.cycle)


@contextmanager
def _signals() -> Iterator[None]:
    """Turn the signals that ask for the end into an exception, once: what follows is not interrupted again."""
    from schedlab.tuning.real import ENDING  # noqa: PLC0415
    from schedlab.tuning.tune import Interrupted  # noqa: PLC0415

    def interrupt(number: int, _: FrameType | None) -> None:
        for own in before:
            signal.signal(own, signal.SIG_IGN)
        raise Interrupted(f"signal {number}")

    before = {own: signal.signal(own, interrupt) for own in ENDING}
    try:
        yield
    except Interrupted:
        raise KeyboardInterrupt from None
    finally:
        for own, handler in before.items():
            signal.signal(own, handler)


def _changes(given: argparse.Namespace) -> dict[str, Any]:
    """Return the keys of the study that the command line sets."""
    from schedlab.tuning.study import changed  # noqa: PLC0415

    try:
        return changed(
            on=given.on,
            method=given.method,
            trials=given.trials,
            time=given.time,
            seed=given.seed,
            deterministic=given.deterministic,
        )
    except InputError as error:
        raise InputError(f"--{error}") from None


def _restored(document: Any, *, as_json: bool) -> int:  # noqa: ANN401 (the command's document)
    from schedlab.tuning.flow import names_of  # noqa: PLC0415

    program.printed(
        json.dumps(document, indent=2) if as_json else f"put back: {names_of(document) or 'nothing was left'}"
    )
    return command.DONE
