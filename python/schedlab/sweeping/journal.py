"""The rows of a sweep as they come, in a file that survives whatever ends the command.

It is an Arrow IPC stream without an end: any Arrow reader can look into it while the sweep runs. Batches are appended
whole. One that a kill cut short is dropped when the file is opened again. In memory is only where each batch stands.
"""

import fcntl
import json
import os
import time
from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from schedlab._native import InputError

_META = b"schedlab.sweep"

# How every message of an Arrow stream begins.
_MARK = b"\xff\xff\xff\xff"

# Rows that have been written for this long are made to survive a loss of power, too.
_SYNC_S = 5.0

# A longer value is not shown.
_MOST_SHOWN = 200


@dataclass(frozen=True, order=True)
class _Place:
    """Rows of consecutive points, and where they stand in the file."""

    first: int
    count: int
    offset: int


class Journal:
    """An open journal."""

    def __init__(self, path: Path, schema: pa.Schema, content: Mapping[str, Any]) -> None:
        """Open the journal of a sweep, or begin one."""
        self.path = path
        self.resumed = 0
        """How many rows it had when it was opened."""
        self.failed = 0
        """How many rows have an error."""
        self._places: list[_Place] = []
        self._schema = schema.with_metadata({_META: json.dumps(content, ensure_ascii=False).encode()})
        self._synced = time.monotonic()
        try:
            path.touch()
            self._file = path.open("r+b")
        except OSError as error:
            raise InputError(f"{path}: cannot open it: {error.strerror}") from None
        try:
            _lock(path, self._file)
            self._read(content)
        except BaseException:
            self._file.close()
            raise

    @staticmethod
    def remove_old(path: Path) -> None:
        """Remove a journal that is to be begun anew, unless somebody is writing it."""
        if path.exists():
            with path.open("rb") as file:
                _lock(path, file)
                path.unlink()

    def _read(self, content: Mapping[str, Any]) -> None:
        """Find the batches that are in the file, and cut off what is no whole batch."""
        size = os.fstat(self._file.fileno()).st_size
        schema = self._message_schema(size)
        if schema is None:
            self._file.truncate(0)
            self._file.seek(0)
            self._file.write(self._schema.serialize().to_pybytes())
            self._file.flush()
            return
        _refuse_other(self.path, schema, content)
        end = self._file.tell()
        while (found := self._batch_at(end)) is not None:
            self._add(found, end)
            self.resumed += found.num_rows
            end = self._file.tell()
        self._file.truncate(end)
        self._file.seek(end)

    def _message_schema(self, size: int) -> pa.Schema | None:
        """Return the schema at the beginning; None if the file was cut before its end."""
        if size == 0:
            return None
        start = os.pread(self._file.fileno(), len(_MARK), 0)
        try:
            return pa.ipc.read_schema(pa.ipc.read_message(self._file))
        except (pa.ArrowException, OSError, EOFError, ValueError):
            if size <= len(self._schema.serialize()) and _MARK.startswith(start):
                return None
        raise InputError(f"{self.path}: is no journal of a sweep; remove it or name another output")

    def _batch_at(self, offset: int) -> pa.RecordBatch | None:
        """Return the batch at a place of the file, after which the file is then; None where there is no whole one."""
        self._file.seek(offset)
        try:
            return pa.ipc.read_record_batch(pa.ipc.read_message(self._file), self._schema)
        except (pa.ArrowException, OSError, EOFError, ValueError):
            return None

    def _add(self, batch: pa.RecordBatch, offset: int) -> None:
        insort(self._places, _Place(batch["point"][0].as_py(), batch.num_rows, offset))
        self.failed += batch.num_rows - batch["error"].null_count

    def append(self, batch: pa.RecordBatch) -> None:
        """Append rows of consecutive points."""
        offset = self._file.tell()
        try:
            self._file.write(batch.serialize())
            self._file.flush()
        except OSError as error:
            raise InputError(f"{self.path}: cannot write it: {error.strerror}; what is in it is kept") from None
        self._add(batch, offset)
        if time.monotonic() - self._synced > _SYNC_S:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()

    def gaps(self, count: int) -> list[tuple[int, int]]:
        """Return the points from 0 to `count` that are not there, as ranges from the first to after the last."""
        found, at = [], 0
        for place in self._places:
            if place.first > at:
                found.append((at, place.first))
            at = max(at, place.first + place.count)
        return found + ([(at, count)] if at < count else [])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give all rows in the order of the points."""
        for place in self._places:
            batch = self._batch_at(place.offset)
            if batch is None:
                raise InputError(f"{self.path}: cannot be read any more at {place.offset}; run the sweep with --force")
            yield batch

    @property
    def metadata(self) -> Mapping[bytes, bytes]:
        """What describes the sweep in the file."""
        return dict(self._schema.metadata or {})

    def close(self) -> None:
        """Close the file. It can be opened again later."""
        os.fsync(self._file.fileno())
        self._file.close()

    def remove(self) -> None:
        """Remove the file."""
        self.path.unlink()
        self._file.close()


def _lock(path: Path, file: IO[bytes]) -> None:
    """Take the lock of a journal, which ends with the process."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(f"{path}: another sweep is writing it; wait for that or name another output") from None


def _refuse_other(path: Path, schema: pa.Schema, content: Mapping[str, Any]) -> None:
    """Refuse to add the rows of one sweep to those of another, and say what differs."""
    try:
        before = json.loads((schema.metadata or {})[_META])
    except (KeyError, ValueError):
        raise InputError(f"{path}: is no journal of a sweep; remove it or name another output") from None
    # As it is after a way through JSON.
    now = json.loads(json.dumps(content))
    changes = [_change(key, before, now) for key in dict.fromkeys([*before, *now]) if before.get(key) != now.get(key)]
    if changes:
        more = f" (and {len(changes) - 1} more)" if len(changes) > 1 else ""
        raise InputError(
            f"{path}: was begun by another sweep: {changes[0]}{more}; undo the change to go on with it, name another "
            "output, or begin anew with --force"
        )


def _change(key: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return in words how a key differs."""
    if key not in before or key not in now:
        return f"{key} was {'not there' if key in now else 'there'}"
    texts = [json.dumps(own[key], ensure_ascii=False) for own in (before, now)]
    if max(map(len, texts)) > _MOST_SHOWN:
        return f"{key} was different"
    return f"{key} was {texts[0]} and is {texts[1]}"
