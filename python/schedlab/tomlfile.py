"""TOML files that a user writes, with the line of every key, so that an error can name it.

The parser of the standard library does not say where a key stood. `_Lines` finds that: it walks over the text of a file
that is known to be correct TOML and notes the line of each key and of each element of an array.
"""

import copy
import difflib
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schedlab._native import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# A file larger than this is not one that a user wrote.
_MOST_BYTES = 64 << 20

_KEY = re.compile(r"""[ \t]*(?:([A-Za-z0-9_-]+)|"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)')[ \t]*""")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRINGS = (
    re.compile(r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'(?!''))*'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_SCALAR = re.compile(r"[^,\]}#\n]+")


class Document:
    """A TOML file: its values, and errors that name the line of a key."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        """The file."""
        try:
            self.values: dict[str, Any] = tomllib.loads(text)
            """What the file says."""
            self._lines = _Lines(text).lines
        except tomllib.TOMLDecodeError as error:
            found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error))
            where, what = (f":{found[2]}", found[1]) if found else ("", str(error))
            raise InputError(f"{path}{where}: {what[:1].lower()}{what[1:]}; write TOML: key = value") from None
        except RecursionError:
            raise InputError(f"{path}: has lists or tables within each other too deeply") from None
        except ValueError:
            # What the parser of the standard library says of a number with thousands of digits.
            raise InputError(f"{path}: has a number with more digits than any key takes") from None

    @classmethod
    def of(cls, values: Mapping[str, Any], name: str) -> "Document":
        """Return values that are in no file. Errors name the keys; paths count from the current folder."""
        own = cls(Path(name), "")
        own.values = copy.deepcopy(dict(values))
        return own

    def line(self, key: str) -> int | None:
        """Return the line of a key (`settings.nr_requests`, `kernels[1].name`), or of the nearest that contains it."""
        while key and key not in self._lines:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return self._lines.get(key)

    def error(self, key: str | Sequence[str], what: str, fix: str | None = None) -> InputError:
        """Return an error about a key or about the names that lead to it: `FILE:LINE: KEY: WHAT; FIX`."""
        key = key if isinstance(key, str) else ".".join(key)
        line = self.line(key)
        where = f"{self.path}:{line}" if line else str(self.path)
        return InputError(f"{where}: {key + ': ' if key else ''}{what}{'; ' + fix if fix else ''}")

    def refuse_unknown(self, table: Mapping[str, object], known: Iterable[str], within: str = "") -> None:
        """Refuse the first key of a table that is not known, and name the nearest one that is."""
        names = list(known)
        for key in table:
            if key not in names:
                raise self.error(f"{within}.{key}" if within else key, f'"{key}" is no key', suggestion(key, names))


def read(path: str | Path) -> Document:
    """Read a TOML file. Raises `InputError` if it cannot be read or is not TOML."""
    file = Path(path)
    try:
        with file.open("rb") as source:
            content = source.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file}: cannot read it: {error.strerror or error}") from None
    if len(content) > _MOST_BYTES:
        raise InputError(f"{file}: is larger than {_MOST_BYTES >> 20} MiB; name a TOML file")
    try:
        # TOML's own line ends are \n and \r\n.
        return Document(file, content.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"{file}:{line}: is not UTF-8; save the file as UTF-8 text") from None


def is_number(value: object) -> bool:
    """Whether a value is a number that the kernel or a float can have."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value) if isinstance(value, float) else -(1 << 63) <= value < 1 << 64


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like this one, if any is."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the advice for a name that is not known: the one that is most like it, or all of them."""
    names = list(known)
    near = nearest(name, names)
    return f'did you mean "{near}"?' if near else f"known: {', '.join(names)}"


class _Lines:
    """The lines of the keys of a correct TOML text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: dict[str, int] = {}
        self._counted, self._line = 0, 1
        self._tables: dict[str, int] = {}
        self._document()

    def _here(self, at: int) -> int:
        """Return the line of a place; places only go forward."""
        self._line += self.text.count("\n", self._counted, at)
        self._counted = at
        return self._line

    def _note(self, path: str, at: int) -> None:
        self.lines.setdefault(path, self._here(at))

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def _document(self) -> None:
        at, table = self._skip(0), ""
        while at < len(self.text):
            if self.text.startswith("[[", at):
                keys, end = self._keys(at + 2)
                name = self._inner(keys[:-1])
                name = f"{name}.{keys[-1]}" if name else keys[-1]
                number = self._tables.get(name, 0)
                self._tables[name] = number + 1
                self._note(name, at)
                table = f"{name}[{number}]"
                self._note(table, at)
                at = end + 2
            elif self.text[at] == "[":
                keys, end = self._keys(at + 1)
                table = self._inner(keys)
                self._note(table, at)
                at = end + 1
            else:
                at = self._pair(at, table)
            at = self._skip(at)

    def _inner(self, keys: list[str]) -> str:
        """Return the path of a table; within an array of tables it is the last one's."""
        path = ""
        for key in keys:
            path = f"{path}.{key}" if path else key
            if path in self._tables:
                path = f"{path}[{self._tables[path] - 1}]"
        return path

    def _keys(self, at: int) -> tuple[list[str], int]:
        """Return a dotted key and where it ends."""
        keys = []
        while found := _KEY.match(self.text, at):
            keys.append(next(own for own in found.groups() if own is not None))
            at = found.end()
            if self.text[at : at + 1] != ".":
                break
            at += 1
        return keys, at

    def _pair(self, at: int, table: str) -> int:
        """Note a key and its value; return where the value ends."""
        start = at
        keys, at = self._keys(at)
        path = table
        for key in keys:
            path = f"{path}.{key}" if path else key
            self._note(path, start)
        # An endless loop would be worse than a missing line.
        return max(self._value(self._skip(at + 1), path), start + 1)

    def _value(self, at: int, path: str) -> int:
        """Note what is within a value; return where it ends."""
        if self.text[at : at + 1] == "[":
            return self._array(at, path)
        if self.text[at : at + 1] == "{":
            return self._table(at, path)
        for pattern in _STRINGS:
            if found := pattern.match(self.text, at):
                return found.end()
        found = _SCALAR.match(self.text, at)
        return found.end() if found else at + 1

    def _array(self, at: int, path: str) -> int:
        at, number = self._skip(at + 1), 0
        while at < len(self.text) and self.text[at] != "]":
            self._note(f"{path}[{number}]", at)
            at = self._skip(self._value(at, f"{path}[{number}]"))
            if self.text[at : at + 1] == ",":
                at = self._skip(at + 1)
            number += 1
        return at + 1

    def _table(self, at: int, path: str) -> int:
        at = self._skip(at + 1)
        while at < len(self.text) and self.text[at] != "}":
            at = self._skip(self._pair(at, path))
            if self.text[at : at + 1] == ",":
                at = self._skip(at + 1)
        return at + 1
