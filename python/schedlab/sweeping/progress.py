"""How far a sweep is, in a line that is written over and over where standard error is a terminal."""

import sys
import time
from collections import deque

# The line changes no more often than this, and the speed is that of these last seconds.
_EVERY_S = 0.2
_WINDOW_S = 20.0


class Progress:
    """The state of a sweep, for its user."""

    def __init__(self, count: int, done: int, failed: int, *, quiet: bool = False) -> None:
        self.count, self.done, self.failed = count, done, failed
        self._shown = not quiet and sys.stderr.isatty()
        self._last = 0.0
        self._seen: deque[tuple[float, int]] = deque([(time.monotonic(), done)])

    def add(self, rows: int, failed: int) -> None:
        """Note rows that are done."""
        self.done += rows
        self.failed += failed
        self.show()

    def show(self, remark: str = "") -> None:
        """Write the line anew, if it is time."""
        now = time.monotonic()
        if not self._shown or now - self._last < _EVERY_S:
            return
        self._last = now
        self._seen.append((now, self.done))
        while now - self._seen[0][0] > _WINDOW_S:
            self._seen.popleft()
        print(f"\r\033[K{self._text(remark)}", end="", file=sys.stderr, flush=True)

    def _text(self, remark: str) -> str:
        (since, before), (now, done) = self._seen[0], self._seen[-1]
        text = f"{self.done:,} of {self.count:,} ({100 * self.done // self.count}%)"
        if self.failed:
            text += f", {self.failed:,} failed"
        if done > before:
            speed = (done - before) / (now - since)
            text += f", {speed:,.0f} a second, {spoken((self.count - self.done) / speed)} left"
        return f"{text}, {remark}" if remark else text

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def spoken(seconds: float) -> str:
    """Return a time as somebody says it: `2 h 5 min`."""
    if seconds < 9.95:  # noqa: PLR2004 (one decimal below 10 s)
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 (a minute)
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:  # noqa: PLR2004 (an hour)
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
