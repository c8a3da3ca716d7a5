"""Selecting a part of a trace: a window of time, and tasks by name, id and cgroup."""

from collections.abc import Sequence
from dataclasses import dataclass

from schedlab.arguments import Duration, duration, options

Texts = str | Sequence[str]
Numbers = int | Sequence[int]


@dataclass(frozen=True)
class Selection:
    """A part of a trace. What is not given selects everything; what is given must all hold."""

    from_: Duration | None = None
    """The first instant, counted from the trace's start."""
    to: Duration | None = None
    """The end, which is not part of it."""
    task: Texts = ()
    """Patterns of tasks' names, in which `*` stands for any text and `?` for one character."""
    pid: Numbers = ()
    """Thread ids, and ids of processes whose threads are meant."""
    group: Texts = ()
    """Patterns of cgroups' paths. The cgroups below a fitting one belong to it."""

    def options(self) -> list[str]:
        """Return the selection as options of a verb."""
        from_, to = duration("from_", self.from_), duration("to", self.to)
        return options(from_=from_, to=to, task=self.task, pid=self.pid, group=self.group)

    def native(self) -> tuple[str | None, str | None, list[str], list[int], list[str]]:
        """Return the selection as arguments of a native function."""
        return (
            duration("from_", self.from_),
            duration("to", self.to),
            [self.task] if isinstance(self.task, str) else list(self.task),
            [self.pid] if isinstance(self.pid, int) else list(self.pid),
            [self.group] if isinstance(self.group, str) else list(self.group),
        )
