"""Runs the given command, passes its output on, and puts charts and tables of some lines into docs/benchmarks.md.

Such a line is `CHART KERNEL N COST MORE...`, where CHART is the name of a chart in CHARTS.
"""

import math
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "benchmarks.md"
COLOURS = ["#c0392b", "#e67e22", "#2471a3", "#17a589", "#7d3c98", "#34495e"]
LINE = 14
#: Speeds from this value on are written without decimals.
WHOLE = 10
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 88, 130, 16, 48
#: The figures of each kernel at each N: the cost in ns, which is drawn, and the other figures of the table.
Rows = dict[str, dict[int, list[float]]]


@dataclass
class Chart:
    """A chart and the table below it."""

    #: The first word of its lines, and the name of its picture.
    name: str
    title: str
    #: What N counts, and what the cost refers to.
    axis: str
    #: Formats the figures of a line as a cell of the table.
    cell: Callable[..., str]
    #: The values of N in the table; all of them if empty.
    columns: tuple[int, ...] = ()


def scaled(ns: float, speed: float, mib: float, *_: float) -> str:
    """Format the cost of an event, the seconds simulated in one second, and the memory."""
    return f"{ns:,.0f} ns; {speed:,.{0 if speed >= WHOLE else 2}f}; {mib:,.0f} MiB"


CHARTS = [
    Chart(
        "switch-cost",
        "A switch's cost against the number of runnable tasks",
        "runnable tasks; CPU time each time that one yields and the next is chosen",
        "{:,.0f}".format,
        (2, 16, 128, 1024, 4096),
    ),
    Chart(
        "scale-cpus",
        "An event's cost against the number of CPUs",
        "CPUs, with four tasks each; CPU time an event",
        scaled,
    ),
    Chart(
        "scale-tasks-64",
        "An event's cost on 64 CPUs against the number of tasks",
        "tasks on 64 CPUs; CPU time an event",
        scaled,
    ),
    Chart(
        "scale-tasks-4096",
        "An event's cost on 4,096 CPUs against the number of tasks",
        "tasks on 4,096 CPUs; CPU time an event",
        scaled,
    ),
]


def read(lines: Iterable[str]) -> dict[str, Rows]:
    """Read the figures of every chart, and pass the lines on."""
    found: dict[str, Rows] = {chart.name: {} for chart in CHARTS}
    for line in lines:
        print(line, end="", flush=True)
        match line.split():
            case [name, kernel, n, *figures] if name in found and n.isdigit() and figures:
                found[name].setdefault(kernel, {})[int(n)] = [float(figure) for figure in figures]
    return found


def draw(chart: Chart, rows: Rows) -> str:
    """Draw the chart with both axes logarithmic, so that a cost that grows with n is a straight rising line."""
    costs = {kernel: {n: figures[0] for n, figures in row.items()} for kernel, row in rows.items()}
    counts = sorted({n for row in costs.values() for n in row})
    values = [v for row in costs.values() for v in row.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(n: int) -> float:
        return LEFT + math.log2(n / counts[0]) / math.log2(counts[-1] / counts[0]) * (WIDTH - LEFT - RIGHT)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for power in range(low, high + 1):
        at = y(10**power)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{10**power:,} ns</text>')
    below = HEIGHT - BOTTOM + 18
    out.extend(f'<text x="{x(n):.1f}" y="{below}" text-anchor="middle">{n:,}</text>' for n in counts)
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{chart.axis}</text>')
    taken: list[float] = []
    ends = sorted(zip(COLOURS, costs.items(), strict=False), key=lambda one: -one[1][1][max(one[1][1])])
    for colour, (kernel, row) in ends:
        line = " ".join(f"{x(n):.1f},{y(v):.1f}" for n, v in sorted(row.items()))
        out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        at = y(row[max(row)]) + 4
        while any(abs(at - other) < LINE for other in taken):
            at += 1
        taken.append(at)
        out.append(f'<text x="{WIDTH - RIGHT + 8}" y="{at:.1f}" fill="{colour}">{kernel}</text>')
    return "\n".join([*out, "</svg>", ""])


def table(chart: Chart, rows: Rows) -> str:
    """Format the figures as a Markdown table."""
    counts = sorted(set.intersection(*(set(row) for row in rows.values())))
    counts = [n for n in counts if not chart.columns or n in chart.columns]
    lines = ["| kernel | " + " | ".join(f"n = {n:,}" for n in counts) + " |", "|---" * (len(counts) + 1) + "|"]
    for kernel, row in rows.items():
        lines.append(f"| {kernel} | " + " | ".join(chart.cell(*row[n]) for n in counts) + " |")
    return "\n".join(lines)


def put(page: str, chart: Chart, rows: Rows) -> str:
    """Draw the chart, and put it and its table between its marks in the page."""
    begin, end = f"<!-- {chart.name}: written by make bench -->", f"<!-- {chart.name}: end -->"
    picture = DOCS / "img" / f"{chart.name}.svg"
    picture.write_text(draw(chart, rows))
    before, rest = page.split(begin)
    after = rest.split(end)[1]
    return f"{before}{begin}\n\n![{chart.title}](img/{picture.name})\n\n{table(chart, rows)}\n\n{end}{after}"


def main() -> None:
    """Run the command and, if it succeeds, write the charts and tables for which it printed figures."""
    with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True) as command:
        found = read(command.stdout or [])
    if command.returncode != 0:
        sys.exit(command.returncode)
    page = PAGE.read_text()
    for chart in CHARTS:
        if rows := found[chart.name]:
            page = put(page, chart, rows)
    PAGE.write_text(page)


main()
