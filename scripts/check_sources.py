"""Checks the shape of the Rust sources: no line over 120 columns, no file over 500 lines.

rustfmt leaves comments and strings as they are, and no tool counts the lines of a file. Lines of text that is
compared with what a program prints, in raw strings, count like any others. How long a function may be is a lint
(`too_many_lines`, in clippy.toml).
"""

import subprocess
import sys
from pathlib import Path

MOST_COLUMNS = 120
MOST_LINES = 500


def problems(path: Path) -> list[str]:
    """Return what is too long in a file, a line each."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [
        f"{path}:{number}: {len(line)} columns; {MOST_COLUMNS} is the most"
        for number, line in enumerate(lines, 1)
        if len(line) > MOST_COLUMNS
    ]
    if len(lines) > MOST_LINES:
        found.append(f"{path}: {len(lines)} lines; {MOST_LINES} is the most: look for its second story")
    return found


def main() -> int:
    """Print each problem; the exit status is 1 when there is one."""
    listing = subprocess.run(["git", "ls-files", "*.rs"], check=True, stdout=subprocess.PIPE, text=True)
    paths = [path for path in map(Path, listing.stdout.splitlines()) if path.exists()]
    found = [problem for path in paths for problem in problems(path)]
    print("\n".join(found) or f"{len(paths)} sources, none too wide or too long")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
