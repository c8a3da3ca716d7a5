"""Finds and calls the `schedlab` command that is installed with the package."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from schedlab._native import InputError, NotPermittedError, SchedlabError
from schedlab.arguments import naming
from schedlab.remarks import is_summary, warn

# The exit statuses of the command.
DONE = 0
FAILED = 1
BAD_INPUT = 2
UNDECIDED = 3
NOT_PERMITTED = 4

# The verbs that can take long. They show their progress if standard error is a terminal.
_LONG = ("record", "run", "whatif")

_PREFIX = "schedlab: "


def binary() -> Path:
    """Return the path of the command that was installed with this package."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", f"{os.name}_user")]
    # `pip install --target` installs it beside the package.
    folders.append(str(Path(__file__).parent.parent / "bin"))
    for folder in folders:
        path = Path(folder) / "schedlab"
        if path.is_file():
            return path
    raise FileNotFoundError(f"the command schedlab is in none of {', '.join(folders)}; install the package again")


def call(arguments: Sequence[str]) -> Any:  # noqa: ANN401 (any JSON)
    """Call the command with `--json` and return its document, or `None` if it printed none.

    Raises the command's error if it did not succeed.
    """
    return call_with_status(arguments, (DONE,))[1]


def call_with_status(arguments: Sequence[str], allowed: Collection[int]) -> tuple[int, Any]:
    """Call the command with `--json` and return its exit status and its document.

    Its remarks become warnings. A status that is not `allowed` raises the command's error.
    """
    done = _run(["--json", *arguments], allowed)
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None


def text(arguments: Sequence[str]) -> str:
    """Call the command and return the text that it prints."""
    return _run(arguments, (DONE,)).stdout


def _run(arguments: Sequence[str], allowed: Collection[int]) -> subprocess.CompletedProcess[str]:
    """Run the command to its end. Its remarks become warnings, and its failure an exception."""
    # A progress bar needs the terminal, so standard error is not captured there.
    watched = sys.stderr.isatty() and any(verb in arguments[:2] for verb in _LONG)
    done = subprocess.run(
        [binary(), *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if watched else subprocess.PIPE,
        text=True,
        errors="replace",
    )
    said = done.stderr or ""
    if done.returncode not in allowed:
        verb = next(own for own in arguments if not own.startswith("-"))
        raise _error(
            done.returncode, _last_error(said, arguments) or f"schedlab {verb} ended with status {done.returncode}"
        )
    for line in said.splitlines():
        if not line.startswith(_PREFIX):
            # A command that was recorded wrote it.
            print(line, file=sys.stderr)
        elif not is_summary(remark := line.removeprefix(_PREFIX)):
            warn(remark)
    return done


def _last_error(said: str, arguments: Sequence[str]) -> str:
    """Return the error that ended the command: remarks may stand before it."""
    return naming(said.strip().split("\n" + _PREFIX)[-1].removeprefix(_PREFIX), arguments)


def _error(status: int, message: str) -> SchedlabError:
    """Return the exception for an exit status."""
    kinds = {BAD_INPUT: InputError, NOT_PERMITTED: NotPermittedError}
    return kinds.get(status, SchedlabError)(message)
