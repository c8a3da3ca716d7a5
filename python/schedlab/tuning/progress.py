"""What the user sees meanwhile, on standard error."""

import sys
import time
from typing import TextIO

_EVERY_S = 0.25


class Progress:
    """A line with the best so far: rewritten in place on a terminal, and now and then elsewhere."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._quiet = quiet
        self._shown = 0.0
        self._width = 0

    def show(self, text: str) -> None:
        """Show how far it is, if it is a terminal."""
        now = time.monotonic()
        if self._quiet or not self._terminal or now - self._shown < _EVERY_S:
            return
        self._shown = now
        self._write(text[:110])

    def say(self, text: str) -> None:
        """Say something that stays."""
        if not self._quiet:
            self.clear()
            print(f"schedlab-tune: {text}", file=self._stream, flush=True)

    def clear(self) -> None:
        """Remove the line."""
        if self._width:
            self._write("")
            print("\r", end="", file=self._stream, flush=True)
            self._width = 0

    def _write(self, text: str) -> None:
        print(f"\r{text:<{self._width}}", end="", file=self._stream, flush=True)
        self._width = len(text)
