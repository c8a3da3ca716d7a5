"""Turns the arguments of a verb into those of the command, and its messages about them back."""

import os
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd

from schedlab import _native

if TYPE_CHECKING:
    from schedlab.trace import Trace

PathLike = str | os.PathLike[str]
Duration = str | timedelta

# Options of the command whose argument has another name in Python, in every verb.
RENAMED = {"from": "from_"}

# What clap says of an option's value.
_REFUSED = re.compile(
    r"error: invalid value '(?P<value>.*?)' for '(?:--(?P<option>[\w-]+)|<)[^']*'(?:: )?(?P<why>.*)", re.DOTALL
)
_CHOICES = re.compile(r"\[possible values: (.*?)\]", re.DOTALL)


def duration(name: str, value: Duration | None) -> str | None:
    """Return a duration in the form that the command takes. The error names the argument."""
    if value is None:
        return None
    if isinstance(value, pd.Timedelta):
        value = f"{value.value}ns"
    elif isinstance(value, timedelta):
        # A timedelta is a whole number of microseconds, so this is exact.
        value = f"{value // timedelta(microseconds=1)}us"
    if not isinstance(value, str):
        raise TypeError(f'{name}: {value!r} is not a duration; write text with a unit ("250ms") or a timedelta')
    try:
        _native.duration_ns(value)
    except _native.InputError as error:
        raise _native.InputError(f"{name}: {error}") from None
    return value


def utf8(value: str) -> str:
    """Return text that can be passed on. What was no UTF-8 on the command line, or in a folder, cannot."""
    shown = value.encode(errors="surrogateescape").decode(errors="replace")
    if shown != value:
        raise _native.InputError(f'"{shown}" is not UTF-8; give the file a name that is')
    return value


def path_of(trace: "Trace | PathLike", name: str = "trace") -> str:
    """Return the path of a trace, which is given as a `Trace` or as a path."""
    path: object = getattr(trace, "path", trace)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{name}: {trace!r} is neither a Trace nor a path")
    return os.fspath(path)


def text(name: str, value: PathLike) -> str:
    """Return a name or a path as text. The error names the argument."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name}: {value!r} is neither text nor a path")
    return os.fspath(value)


def options(**arguments: object) -> list[str]:
    """Return arguments as options of the command.

    `None` and `False` are left out, `True` is an option without a value, and a list or a mapping repeats its option.
    """
    found = []
    for name, value in arguments.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is True:
            found.append(option)
        elif value is not None and value is not False:
            found += [f"{option}={text}" for text in _texts(name, value)]
    return found


def setting(value: object) -> str:
    """Return a tunable's value in the form that `--set` takes."""
    return str(int(value)) if isinstance(value, bool) else str(value)


def _texts(name: str, value: object) -> list[str]:
    """Return the text of each value of an option."""
    if isinstance(value, timedelta):
        return [str(duration(name, value))]
    if isinstance(value, (str, int, float)):
        return [str(value)]
    if isinstance(value, os.PathLike):
        return [os.fspath(value)]
    if isinstance(value, Mapping):
        return [f"{key}={setting(own)}" for key, own in value.items()]
    if isinstance(value, Iterable):
        return [text for own in value for text in _texts(name, own)]
    raise TypeError(f"{name}: {value!r} is not text, a number, a path, or a list of them")


def in_python(message: str) -> str:
    """Return a message of the command in terms of Python: an option is called by its argument's name."""
    if refused := _REFUSED.match(message):
        option, why = refused["option"], re.split("\n\nFor more information", refused["why"])[0].strip()
        if choices := _CHOICES.search(why):
            why = f'there is no "{refused["value"]}"; choose one of {choices[1]}'
        elif not re.match(rf"\W?{re.escape(refused['value'])}(?!\w)", why):
            why = f'"{refused["value"]}": {why}'
        return f"{_argument(option)}: {why}" if option else why
    message = (
        message.split("\n\nUsage:", maxsplit=1)[0]
        .split("\n\nFor more information", maxsplit=1)[0]
        .removeprefix("error: ")
    )
    return re.sub(r"^--([\w-]+)(?=[ :])", lambda own: _argument(own[1]) + ":", message).replace("::", ":", 1)


def naming(message: str, arguments: Iterable[str]) -> str:
    """Return a message of the command, with the argument that it is about if it quotes the value of one."""
    message = in_python(message)
    for own in arguments:
        option, _, value = own.partition("=")
        quoted = rf'"{re.escape(value)}"|\bno (CPU|process) {re.escape(value)}\b'
        name = _argument(option.removeprefix("--"))
        if option.startswith("--") and value and re.search(quoted, message) and not message.startswith(f"{name}:"):
            return f"{name}: {message}"
    return message


def _argument(option: str) -> str:
    """Return the name of an option's argument."""
    return RENAMED.get(option, option.replace("-", "_"))


def whole(name: str, value: Any) -> int:  # noqa: ANN401 (whatever the user gave)
    """Return a whole number that is not negative. The error names the argument."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: {value!r} is not a whole number")
    number = int(value)
    if not 0 <= number < 1 << 64:
        raise _native.InputError(f"{name}: {number} is out of range; write a number from 0 to {(1 << 64) - 1}")
    return number
