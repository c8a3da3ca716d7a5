"""Holds predictions for another real kernel to what that kernel did with the same load.

A load is recorded under two kernels. The model of each recording is asked for the other kernel (`schedlab whatif`), and
the change of each task's wait that it predicts is compared with the change from the one recording to the other.
"""

import json
import re
import statistics
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

#: A task counts if its wait changes by more than this in reality, in the mean over the recordings.
CHANGED = 0.10
#: The least part of these whose direction is to be right, and the largest median error of the size of the change.
DIRECTIONS = 0.95
SIZE = 0.25
#: A change is relative to at least this part of the task's CPU time, as the errors of a model are.
LEAST = 0.01

#: A task in every recording of a load: its name, and which of the tasks of that name it is, by thread id.
Key = tuple[str, int]


@dataclass
class Task:
    """A task under both kernels: its waits in us, one for each recording or model."""

    cpu_us: list[float] = field(default_factory=list)
    #: In the recordings under the first kernel, and under the other.
    here: list[float] = field(default_factory=list)
    there: list[float] = field(default_factory=list)
    #: In the simulations as recorded, and as asked.
    baseline: list[float] = field(default_factory=list)
    asked: list[float] = field(default_factory=list)
    #: Whether the answers say that the wait rises or falls, or whether it does neither as far as they can tell.
    told: list[bool] = field(default_factory=list)

    def change(self, before: Sequence[float], after: Sequence[float]) -> float:
        """From one mean to the other: 0.1 is 10% more."""
        least = LEAST * statistics.fmean(self.cpu_us)
        first, second = statistics.fmean(before), statistics.fmean(after)
        base = max(first, least)
        return (second - first) / base if base > 0 else 0.0

    @property
    def real(self) -> float:
        """The change of the real wait."""
        return self.change(self.here, self.there)

    @property
    def predicted(self) -> float:
        """The change from one simulation to the other."""
        return self.change(self.baseline, self.asked)

    @property
    def is_right(self) -> bool:
        """Whether the wait rises where it is predicted to, or falls where that is."""
        return self.real * self.predicted > 0

    @property
    def is_sure(self) -> bool:
        """Whether all recordings under one kernel are on one side of all under the other."""
        return max(self.here) < min(self.there) or max(self.there) < min(self.here)

    def again(self) -> list[bool]:
        """Take each pair of recordings for a prediction by the others; say of those that change whether they agree."""
        pairs = list(zip(self.here, self.there, strict=True))
        agree = []
        for n, (before, after) in enumerate(pairs):
            rest = pairs[:n] + pairs[n + 1 :]
            change = self.change([before], [after])
            if rest and abs(change) > CHANGED:
                agree.append(change * self.change([a for a, _ in rest], [b for _, b in rest]) > 0)
        return agree


@dataclass
class Score:
    """How right the predictions are."""

    #: How many tasks are in the recordings under both kernels, and how many of them change.
    compared: int
    changed: int
    #: The direction is right for so many of these.
    right: int
    #: Those whose change is more than the scatter of the recordings, and the right ones of them.
    sure: int
    sure_right: int
    #: Those of all tasks of which an answer says that the wait rises or falls, and the right ones of them.
    told: int
    told_right: int
    #: How often a pair of recordings changes, and how often the other pairs have the same direction then: the tasks
    #: themselves, recorded again, are no better a prediction.
    again: int
    again_right: int
    #: The errors of the sizes of the changes: the difference of the two changes, by the real one.
    sizes: list[float]

    @property
    def size(self) -> float | None:
        """The median error of the size."""
        return statistics.median(self.sizes) if self.sizes else None


def score(tasks: Iterable[Task]) -> Score:
    """Compare the predicted changes with the real ones."""
    tasks = list(tasks)
    changed = [task for task in tasks if abs(task.real) > CHANGED]
    right = [task for task in changed if task.is_right]
    told = [task for task in tasks if any(task.told)]
    again = [agrees for task in tasks for agrees in task.again()]
    return Score(
        compared=len(tasks),
        changed=len(changed),
        right=len(right),
        sure=sum(task.is_sure for task in changed),
        sure_right=sum(task.is_sure for task in right),
        told=len(told),
        told_right=sum(task.is_right for task in told),
        again=len(again),
        again_right=sum(again),
        sizes=[abs(task.predicted - task.real) / abs(task.real) for task in changed],
    )


def added(scores: Iterable[Score]) -> Score:
    """Add up the scores of some tasks."""
    total = Score(0, 0, 0, 0, 0, 0, 0, 0, 0, [])
    for one in scores:
        add(total, one)
    return total


def add(total: Any, one: Any) -> None:  # noqa: ANN401 (two scores, or two tasks)
    """Add each number, and append each list, of one to those of the total."""
    for member in fields(total):
        setattr(total, member.name, getattr(total, member.name) + getattr(one, member.name))


def keys(tasks: Iterable[dict[str, Any]]) -> dict[int, Key]:
    """Give each thread id its key."""
    seen: Counter[str] = Counter()
    found: dict[int, Key] = {}
    for task in sorted(tasks, key=lambda task: int(task["tid"])):
        found[task["tid"]] = (task["name"], seen[task["name"]])
        seen[task["name"]] += 1
    return found


def collect(here: list[dict[str, Any]], there: list[dict[str, Any]], rows: list[dict[str, Any]]) -> dict[Key, Task]:
    """Put two recordings (`tasks` of `schedlab stats`) beside a prediction (`rows` of `schedlab whatif`).

    A task counts if `whatif` has a row for it and both recordings have it.
    """
    names = keys(here)
    other = {key: tid for tid, key in keys(there).items()}
    by_tid = {task["tid"]: task for task in there}
    tasks: dict[Key, Task] = {}
    for row in rows:
        key = names.get(row["tid"]) if row["kind"] == "task" else None
        if key is None or key not in other:
            continue
        real = by_tid[other[key]]["wait_us"]
        tasks[key] = predicted(row["figures"], real)
    return tasks


def predicted(figures: dict[str, Any], real: float) -> Task:
    """Put the figures of a row of `schedlab whatif` beside the wait in the other recording."""
    wait, cpu = figures["wait_us"], figures["run_us"]["recorded"]
    told = wait["verdict"] in ("rises", "falls")
    return Task([cpu], [wait["recorded"]], [real], [wait["baseline"]], [wait["asked"]], [told])


def merged(pairs: Iterable[dict[Key, Task]]) -> dict[Key, Task]:
    """Merge repeated recordings; a task that is not in all of them has fewer figures."""
    all_tasks: dict[Key, Task] = {}
    for pair in pairs:
        for key, task in pair.items():
            add(all_tasks.setdefault(key, Task()), task)
    return all_tasks


def together(tasks: dict[Key, Task], rows: list[dict[str, Any]], waits: dict[str, float]) -> dict[Key, Task]:
    """Put the tasks that are alike together, of which `whatif` has a row (a role). Others are alone.

    `waits` has what those of each role waited for in the other recording.
    """
    found: dict[Key, Task] = {}
    for row in rows:
        if row["kind"] == "role" and row["name"] in waits:
            found[row["name"], 0] = predicted(row["figures"], waits[row["name"]])
    return found | {key: task for key, task in tasks.items() if (role(key[0]), 0) not in found}


def role(name: str) -> str:
    """Name what tasks have in common whose names differ by numbers only, as `whatif` does."""
    starred = re.sub("[0-9]+", "*", name)
    return re.sub(r"(?<=.)[-_:/.#]+\*$", "", starred)


def ask(schedlab: str, here: Path, there: Path, kernel: str) -> tuple[dict[Key, Task], dict[Key, Task]]:
    """Ask the model of the one recording for the kernel of the other, and read what that one shows.

    Returns the tasks, and those that are alike together.
    """
    rows = run(schedlab, "whatif", str(here), "--kernel", kernel)["whatif"]["variants"][0]["rows"]
    recorded, other = (run(schedlab, "stats", str(file))["tasks"] for file in (here, there))
    tasks = collect(recorded, other, rows)
    roles = run(schedlab, "diff", str(here), str(there), "--by", "role", "--all")["rows"]
    waits = {row["name"]: row["figures"]["wait_us"]["b"] for row in roles if "wait_us" in row["figures"]}
    return tasks, together(tasks, rows, waits)


def run(schedlab: str, *words: str) -> dict[str, Any]:
    """Run a verb of the command; returns the document that it prints."""
    done = subprocess.run([schedlab, "--json", *words], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def part(some: int, of: int) -> str:
    """Format a part of a number."""
    return f"{some} of {of}" if of else "-"


def cells(one: Score) -> list[str]:
    """Format a score."""
    size = "-" if one.size is None else f"{one.size:.0%}"
    parts = (one.right, one.changed), (one.again_right, one.again)
    more = (one.sure_right, one.sure), (one.told_right, one.told)
    return [f"{one.compared}", f"{one.changed}", *(part(some, of) for some, of in parts + more), size]


def table(scores: dict[tuple[str, str], Score]) -> str:
    """Format the scores, by the direction between the kernels and the load, as a Markdown table."""
    heads = [
        "load",
        "tasks",
        "change",
        "direction right",
        "reality again",
        "beyond scatter",
        "answers right",
        "size off by",
    ]
    lines = []
    for direction in dict.fromkeys(direction for direction, _ in scores):
        of = {load: one for (to, load), one in scores.items() if to == direction}
        lines += [f"From {direction}:", "", f"| {' | '.join(heads)} |", "|---" + "|--:" * (len(heads) - 1) + "|"]
        lines += [f"| {load} | " + " | ".join(cells(one)) + " |" for load, one in of.items()]
        lines += ["| all | " + " | ".join(cells(added(of.values()))) + " |", ""]
    total = added(scores.values())
    if total.told:
        lines.append(
            f"Of {total.told} tasks of which the answer says that the wait rises or falls, it does so for "
            f"{total.told_right / total.told:.0%}."
        )
        lines.append("")
    if total.changed:
        share = total.right / total.changed
        directions = "within" if share >= DIRECTIONS else "beyond"
        size = total.size or 0.0
        sizes = "within" if size <= SIZE else "beyond"
        lines.append(
            f"Of {total.changed} tasks that change by more than {CHANGED:.0%}, the direction is right for {share:.0%}, "
            f"{directions} the bound of {DIRECTIONS:.0%}; the size of the change is off by {size:.0%} in the median, "
            f"{sizes} the bound of {SIZE:.0%}."
        )
    if total.again:
        lines.append("")
        lines.append(
            f"The other recordings of the same load under the same two kernels have the direction of {total.again} "
            f"changes right for {total.again_right / total.again:.0%}."
        )
    return "\n".join(lines).rstrip()
