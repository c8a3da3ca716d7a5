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

# The exit statuses of the command.
DONE = 0
FAILED = 1
BAD_INPUT = 2
UNDECIDED = 3
NOT_PERMITTED = 4


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

    Progress goes to this process's standard error. A status that is not `allowed` raises the command's error.
    """
    # A progress bar needs the terminal, so standard error is captured only if it is not one.
    watched = sys.stderr.isatty()
    done = subprocess.run(
        [binary(), "--json", *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if watched else subprocess.PIPE,
        text=True,
    )
    if done.returncode not in allowed:
        said = done.stderr.strip().removeprefix("schedlab: ") if done.stderr else ""
        raise _error(done.returncode, said or f"schedlab {arguments[0]} ended with status {done.returncode}")
    return done.returncode, json.loads(done.stdout) if done.stdout.strip() else None


def _error(status: int, message: str) -> SchedlabError:
    """Return the exception for an exit status."""
    kinds = {BAD_INPUT: InputError, NOT_PERMITTED: NotPermittedError}
    return kinds.get(status, SchedlabError)(message)
