"""Holds simulations of recorded loads to the recordings, and writes the table into docs/model.md.

Nine loads are recorded, on this kernel or in a guest. Each recording is modelled, and the model is simulated as
recorded (`schedlab model --validate`). The table has the errors, and whether they are within the bounds below. Each
load is recorded once more, and another table has how far that recording is from the first, by the same measures
(apart.py). Nothing else should run on the machine meanwhile; a deterministic guest does not mind.

With `--against` the loads are recorded in guests of two kernels, and the predictions of each for the other are held to
what the other did (across.py).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import across
import apart

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "model.md"
WHATIF = HERE.parent / "docs" / "whatif.md"
SCHEDLAB = HERE.parent / "build" / "wheel" / "scripts" / "schedlab"

#: What `schedlab model --validate` found.
Found = dict[str, Any]

#: The loads, by name. Those with a command are that command on this kernel, and a workload file in a guest.
LOADS = {
    "compile": "a compile",
    "messaging": "messaging",
    "pipeline": "a pipeline",
    "server": "a server with clients",
    "player": "a player beside hogs",
    "cgroups": "three cgroups, weights and a quota",
    "pinned": "pinned threads",
    "nice": "nice levels",
    "classes": "FIFO and deadline beside ordinary",
}
#: What stands for `perf bench sched messaging` in a guest.
MESSAGING = "messaging:groups=1,fds=10,loops=2000"

COMPILE = """
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    { seq 1 150 | sed 's/.*/int f&(int a) { int s = 0; for (int i = 0; i < a; i++) s += i * a % (i + &); return s; }/'
    } > "$DIR/$i.c"
done
ls "$DIR"/*.c | xargs -P 3 -n 1 gcc -O2 -c -o /dev/null
"""
PIPELINE = "seq 1 800000 | sed 's/1/2/g' | grep -v 77 | sort -n | uniq -c | wc -l"
COMMANDS = {
    "compile": ["sh", "-c", COMPILE],
    "messaging": ["perf", "bench", "sched", "messaging", "-g", "2", "-l", "300"],
    "pipeline": ["sh", "-c", PIPELINE],
}

#: A guest has so many MiB, and more of them with each further recording: then it boots otherwise, and nothing is quite
#: at the same time.
MEMORY = 2080
MORE_MEMORY = 160

#: An error of a latency is within its bound if it is less than this many us, too.
LATENCY_US = 50.0


@dataclass
class Bar:
    """A measure of the table."""

    title: str
    #: The key among the errors.
    key: str
    #: The largest size of the error.
    most: float
    #: The key of the recorded and the simulated figure that may differ by LATENCY_US instead.
    figure: str = ""

    def bounds(self, error: float) -> bool:
        """Whether an error is within the bound; the rank correlation is not to be smaller than it."""
        return error >= self.most if self.key == "rank" else abs(error) <= self.most


BARS = [
    Bar("total wait", "wait", 0.10),
    Bar("a task's wait, median", "task_wait_median", 0.10),
    Bar("90%", "task_wait_p90", 0.30),
    Bar("switches", "slices", 0.10),
    Bar("wake-up p50", "latency_p50", 0.20, "latency_p50_us"),
    Bar("wake-up p99", "latency_p99", 0.20, "latency_p99_us"),
    Bar("Spearman", "rank", 0.95),
]
#: What the second table is.
SCATTER = "How far a second recording of each load is from the first:"
#: What the second table across kernels is.
ALIKE = "The same, with the waits of tasks that are alike (the instances of one task, all compilers) added up:"
#: The median size of the error of the total wait over the loads.
MEDIAN_WAIT = 0.05


def name(load: str) -> str:
    """Name a load: one of LOADS, or the workload file of another."""
    return LOADS.get(load, Path(load).stem)


def file(load: str) -> str:
    """Name the workload file of a load."""
    return str(HERE / "accuracy" / f"{load}.json") if load in LOADS else load


def record(load: str, where: argparse.Namespace, out: Path, on: str, again: int = 1) -> None:
    """Record a load, for the first time or again."""
    command = [where.schedlab, "exec", "--force", "-o", str(out)]
    if on != "live":
        command += [MESSAGING if load == "messaging" else file(load)]
        command += ["--on", on, "--machine", where.machine, "--deterministic"]
        command += ["--duration", where.duration, "--memory", str(MEMORY + (again - 1) * MORE_MEMORY)]
    elif load in COMMANDS:
        command += ["--", *COMMANDS[load]]
    else:
        command += [file(load), "--duration", where.duration]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "DIR": str(out.parent)})


def validate(recording: Path, where: argparse.Namespace) -> Found:
    """Simulate the model of a recording as recorded."""
    model = str(recording.with_suffix(".json"))
    words = ["model", str(recording), "--validate", "--force", "-o", model]
    found: Found = across.run(where.schedlab, *words)["validation"]
    return found


def met(bar: Bar, found: Found) -> bool:
    """Whether the error is within its bound; so is one of nothing."""
    error = found["errors"][bar.key]
    if error is None or bar.bounds(error):
        return True
    return bool(bar.figure) and abs(found["simulated"][bar.figure] - found["recorded"][bar.figure]) <= LATENCY_US


def cell(bar: Bar, found: Found) -> str:
    """Format an error; one that is beyond its bound is bold."""
    error = found["errors"][bar.key]
    if error is None:
        return "-"
    signed = bar.key in {"wait", "slices", "latency_p50", "latency_p99"}
    text = f"{error:.2f}" if bar.key == "rank" else f"{error * 100:{'+' if signed else ''}.0f}%"
    return text if met(bar, found) else f"**{text}**"


def table(found: dict[str, Found]) -> str:
    """Format the errors as a Markdown table."""
    lines = ["| load | " + " | ".join(bar.title for bar in BARS) + " |", "|---" * (len(BARS) + 1) + "|"]
    for load, one in found.items():
        lines.append(f"| {name(load)} | " + " | ".join(cell(bar, one) for bar in BARS) + " |")
    counts = [sum(met(bar, one) for one in found.values()) for bar in BARS]
    lines.append("| within the bound | " + " | ".join(f"{count} of {len(found)}" for count in counts) + " |")
    waits = [abs(one["errors"]["wait"]) for one in found.values() if one["errors"]["wait"] is not None]
    if waits:
        lines.append("")
        median = statistics.median(waits)
        size = "within" if median <= MEDIAN_WAIT else "beyond"
        lines.append(f"The median error of the total wait is {median:.1%}, {size} its bound of {MEDIAN_WAIT:.0%}.")
    return "\n".join(lines)


def put(page: str, name: str, text: str) -> str:
    """Put a table between its marks in the page."""
    begin, end = f"<!-- {name}: written by make accuracy -->", f"<!-- {name}: end -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("loads", nargs="*", help=f"which of {', '.join(LOADS)}, or files; default: all of these")
    parser.add_argument("--on", default="live", help="live, this kernel, or vm:KERNEL, a deterministic guest of it")
    parser.add_argument("--against", help="another vm:KERNEL: predict each of the two from recordings of the other")
    parser.add_argument(
        "--repeats", type=int, default=2, help="how often each load is recorded; without --against, 1 or 2"
    )
    parser.add_argument("--machine", default="2", help="the guest's machine")
    parser.add_argument("--duration", default="3s", help="how long the workload files are run")
    parser.add_argument("--schedlab", default=str(SCHEDLAB), help="the command")
    parser.add_argument("--keep", type=Path, help="a directory for the recordings and models")
    parser.add_argument("--recorded", action="store_true", help="take the recordings from that directory")
    parser.add_argument("--write", action="store_true", help=f"write the table into {PAGE.name}, or {WHATIF.name}")
    where = parser.parse_args()
    where.loads = where.loads or list(LOADS)
    if unknown := sorted(load for load in {*where.loads} - {*LOADS} if not Path(load).is_file()):
        parser.error(f"no load and no file is called {unknown[0]!r}; there are {', '.join(LOADS)}")
    if where.write and not {*where.loads} <= {*LOADS}:
        parser.error("the tables have no place for other loads: leave out --write")
    if where.against and not (where.on.startswith("vm:") and where.against.startswith("vm:")):
        parser.error("--against compares two guests: --on vm:debian-6.1 --against vm:debian-6.12")
    return where


def as_recorded(where: argparse.Namespace, folder: Path) -> str:
    """Record the loads, simulate their models, and format the errors; then, how far apart two recordings are."""
    found: dict[str, Found] = {}
    scatter: dict[str, Found] = {}
    for load in where.loads:
        begin = time.monotonic()
        recordings = [folder / f"{Path(load).stem}{end}.arrows" for end in ("", "-again")[: where.repeats]]
        for at, recording in enumerate(recordings):
            if not where.recorded:
                record(load, where, recording, where.on, at + 1)
        found[load] = validate(recordings[0], where)
        if where.repeats > 1:
            scatter[load] = apart.between(where.schedlab, *recordings)
        print(f"{name(load)}: {found[load]['trust']} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
    return table(found) + (f"\n\n{SCATTER}\n\n{table(scatter)}" if scatter else "")


def predicted(where: argparse.Namespace, folder: Path) -> str:
    """Record the loads under two kernels, predict each from the other, and format how right that is."""
    kernels = [where.on, where.against]
    scores: dict[tuple[str, str], across.Score] = {}
    alike: dict[tuple[str, str], across.Score] = {}
    for load in where.loads:
        begin = time.monotonic()
        made = {(on, again): recording_of(folder, load, on, again) for on in kernels for again in times(where)}
        for (on, again), recording in made.items():
            if not where.recorded:
                record(load, where, recording, on, again)
        for here, there in (kernels, kernels[::-1]):
            pairs = [
                across.ask(where.schedlab, made[here, again], made[there, again], profile(there))
                for again in times(where)
            ]
            direction = f"{here.removeprefix('vm:')} to {there.removeprefix('vm:')}"
            scores[direction, name(load)] = across.score(across.merged(tasks for tasks, _ in pairs).values())
            alike[direction, name(load)] = across.score(across.merged(roles for _, roles in pairs).values())
        print(f"{load} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)
    return f"{across.table(scores)}\n\n{ALIKE}\n\n{across.table(alike)}"


def recording_of(folder: Path, load: str, on: str, again: int) -> Path:
    """Name the file of one of a load's recordings under two kernels."""
    return folder / f"{Path(load).stem}-{on.rpartition('/')[2].removeprefix('vm:')}-{again}.arrows"


def times(where: argparse.Namespace) -> range:
    """Count a load's recordings from 1."""
    return range(1, where.repeats + 1)


def profile(on: str) -> str:
    """Name the simulated kernel that stands for a guest's: linux-6.12 for vm:debian-6.12."""
    return f"linux-{on.rpartition('-')[2]}"


def main() -> None:
    """Record the loads, simulate their models, and print the table."""
    where = arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = where.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        text = predicted(where, folder) if where.against else as_recorded(where, folder)
    print(text)
    if where.write:
        page = WHATIF if where.against else PAGE
        name = "across kernels" if where.against else where.on.removeprefix("vm:")
        page.write_text(put(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")


if __name__ == "__main__":
    main()
