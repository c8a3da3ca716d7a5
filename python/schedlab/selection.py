"""Selecting a part of a trace: a window of time, and tasks by name, id and cgroup."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

Duration = str | timedelta
Texts = str | Sequence[str]
Numbers = int | Sequence[int]


def duration_text(duration: Duration | None) -> str | None:
    """Return a duration in the form that the command takes."""
    if isinstance(duration, timedelta):
        # A timedelta is a whole number of microseconds, so this is exact.
        return f"{duration // timedelta(microseconds=1)}us"
    return duration


@dataclass(frozen=True)
class Selection:
    """A part of a trace. What is not given selects everything; what is given must all hold."""

    start: Duration | None = None
    """The first instant, counted from the trace's start."""
    end: Duration | None = None
    """The end, which is not part of it."""
    task: Texts = ()
    """Patterns of tasks' names, in which `*` stands for any text and `?` for one character."""
    pid: Numbers = ()
    """Thread ids, and ids of processes whose threads are meant."""
    group: Texts = ()
    """Patterns of cgroups' paths. The cgroups below a fitting one belong to it."""

    @property
    def tasks(self) -> list[str]:
        """The patterns of names."""
        return [self.task] if isinstance(self.task, str) else list(self.task)

    @property
    def pids(self) -> list[int]:
        """The ids."""
        return [self.pid] if isinstance(self.pid, int) else list(self.pid)

    @property
    def groups(self) -> list[str]:
        """The patterns of cgroups."""
        return [self.group] if isinstance(self.group, str) else list(self.group)

    def options(self) -> list[str]:
        """Return the selection as options of a verb."""
        options = [] if self.start is None else ["--from", str(duration_text(self.start))]
        options += [] if self.end is None else ["--to", str(duration_text(self.end))]
        options += [f"--task={pattern}" for pattern in self.tasks]
        options += [f"--pid={pid}" for pid in self.pids]
        return options + [f"--group={pattern}" for pattern in self.groups]
