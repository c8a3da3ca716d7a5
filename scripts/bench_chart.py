"""Runs the command given, passes its output on, and puts what `switch-cost` lines in it say into docs/benchmarks.md."""

import math
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
CHART = DOCS / "img" / "switch-cost.svg"
PAGE = DOCS / "benchmarks.md"
BEGIN, END = "<!-- switch-cost: written by make bench -->", "<!-- switch-cost: end -->"
COLOURS = ["#c0392b", "#e67e22", "#2471a3", "#17a589", "#7d3c98", "#34495e"]
#: The cost in ns by kernel and number of tasks.
Costs = dict[str, dict[int, float]]
LINE = 14
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 64, 130, 16, 48


def read(lines: Iterable[str]) -> Costs:
    """Read the costs, and pass the lines on."""
    costs: Costs = {}
    for line in lines:
        print(line, end="", flush=True)
        if found := re.fullmatch(r"switch-cost (\S+) (\d+) (-?[\d.]+)\s*", line):
            costs.setdefault(found[1], {})[int(found[2])] = float(found[3])
    return costs


def chart(costs: Costs) -> str:
    """Draw both axes logarithmic: what grows with n rises as steeply as the axis, what is flat is flat."""
    tasks = sorted({n for row in costs.values() for n in row})
    values = [v for row in costs.values() for v in row.values()]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def x(n: int) -> float:
        return LEFT + math.log2(n / tasks[0]) / math.log2(tasks[-1] / tasks[0]) * (WIDTH - LEFT - RIGHT)

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
    out.extend(f'<text x="{x(n):.1f}" y="{below}" text-anchor="middle">{n}</text>' for n in tasks)
    middle = (LEFT + WIDTH - RIGHT) / 2
    what = "runnable tasks; CPU time each time that one yields and the next is chosen"
    out.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{what}</text>')
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


def table(costs: Costs) -> str:
    """Write the costs at some numbers of tasks as Markdown."""
    tasks = [n for n in (2, 16, 128, 1024, 4096) if all(n in row for row in costs.values())]
    lines = ["| kernel | " + " | ".join(f"n = {n}" for n in tasks) + " |", "|---" * (len(tasks) + 1) + "|"]
    for kernel, row in costs.items():
        lines.append(f"| {kernel} | " + " | ".join(f"{row[n]:,.0f}" for n in tasks) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run the command, and write chart and table when it succeeds."""
    with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True) as command:
        costs = read(command.stdout or [])
    if command.returncode != 0 or not costs:
        sys.exit(command.returncode)
    CHART.write_text(chart(costs))
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    picture = f"![A switch's cost against the number of runnable tasks](img/{CHART.name})"
    PAGE.write_text(f"{before}{BEGIN}\n\n{picture}\n\n{table(costs)}\n\n{END}{after}")


main()
