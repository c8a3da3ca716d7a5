"""The files that a verb writes.

A failure never costs the user a file: one that exists is replaced when the new one is complete. Devices and FIFOs are
written to in place.
"""

import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from schedlab._native import InputError
from schedlab.arguments import PathLike
from schedlab.trace import Trace, made


def written(output: PathLike | None, force: bool, make: Callable[[str], object]) -> Trace:
    """Let `make` write a trace to `output`, or to a file that is removed with the trace."""
    if output is None:
        return made(make)
    path = Path(output)
    check(path, "output:", force=force, fix="force=True")
    with replacing(path) as draft:
        try:
            make(str(draft))
        except InputError as error:
            if str(draft) not in str(error):
                raise
            raise InputError(f"output: {str(error).replace(str(draft), str(path))}") from None
    return Trace(path)


def check(path: Path, name: str, *, force: bool, fix: str = "--force") -> None:
    """Refuse a file that would be lost, or that cannot be written, before the work for it is done.

    `name` is what the error calls the output, and `fix` what allows to replace a file.
    """
    what = ""
    try:
        if path.is_dir():
            what = "is a folder; name a file in it"
        elif path.exists() and not _is_stream(path) and not force:
            what = f"exists already; choose another name or give {fix}"
        elif not path.parent.is_dir():
            what = f"there is no folder {path.parent}; make it first"
        elif not _is_stream(path):
            with tempfile.TemporaryFile(dir=_named(path).parent):
                pass
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
    if what:
        raise InputError(f"{name} {path}: {what}")


def write(path: Path, name: str, fill: Callable[[IO[bytes]], object]) -> None:
    """Let `fill` write a file completely, or not at all. `name` is what an error calls the output."""
    try:
        with replacing(path) as draft, draft.open("wb") as file:
            fill(file)
    except OSError as error:
        raise InputError(f"{name} {path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the name of a file to write, which then takes the place of `path`."""
    if _is_stream(path):
        yield path
        return
    named = _named(path)
    # It is beside the file, so that it can take its place at once.
    draft = named.with_name(f".{named.name}.new")
    try:
        yield draft
        draft.replace(named)
    finally:
        draft.unlink(missing_ok=True)


def _named(path: Path) -> Path:
    """Return the file to which symbolic links lead."""
    return path.resolve() if path.is_symlink() else path


def _is_stream(path: Path) -> bool:
    """Whether it is a device or a FIFO that keeps nothing."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)
