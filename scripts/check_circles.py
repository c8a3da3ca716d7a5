"""Checks that the stories of a crate make no circle.

The top-level modules of a crate can be put in an order in which each uses only those before it. A module and its own
parts are one story. Tests may use anything.
"""

import re
import sys
from pathlib import Path

CANARY = Path("tests/canaries/circle/src")
PATH = re.compile(r"\b(crate|super(?:::super)*)::")
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"', re.DOTALL)


def code_of(file: Path) -> str:
    """Return the text of a file without its comments, its strings and its tests."""
    text = NOT_CODE.sub(" ", file.read_text(encoding="utf-8"))
    return re.split(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)[0]


def paths_from(text: str, at: int) -> list[list[str]]:
    """Return what follows `crate::` at `at` as paths: `a::{b, c::d}` is `a::b` and `a::c::d`."""
    name = re.compile(r"\s*(\w+)(\s*::)?").match(text, at)
    if name:
        return [[name[1], *rest] for rest in (paths_from(text, name.end()) if name[2] else [[]])]
    group = re.compile(r"\s*\{").match(text, at)
    if not group:
        return [[]]
    paths, at, depth = [], group.end(), 1
    starts = [at]
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if text[at] == "," and depth == 1:
            starts.append(at + 1)
        at += 1
    for start in starts:
        paths += paths_from(text, start)
    return paths


def uses_of(source: Path) -> dict[str, set[str]]:
    """Return for each top-level module of a crate those that it uses."""
    roots = [source / name for name in ("lib.rs", "main.rs") if (source / name).exists()]
    files = [file for file in source.rglob("*.rs") if file not in roots and file.stem != "tests"]
    modules = {file.relative_to(source).with_suffix("").parts[0] for file in files}
    # What the crate's root gives out of a module, by its name.
    given: dict[str, str] = {}
    root = "".join(map(code_of, roots))
    for match in re.finditer(r"\buse (?=(\w+)::)", root):
        if match[1] in modules:
            given |= {path[-1]: match[1] for path in paths_from(root, match.end())}
    uses: dict[str, set[str]] = {module: set() for module in modules}
    for file in files:
        parts = file.relative_to(source).with_suffix("").parts
        text = code_of(file)
        for match in PATH.finditer(text):
            if match[1] != "crate" and match[1].count("super") < len(parts):
                continue
            for path in paths_from(text, match.end()):
                first = path[0] if path else ""
                target = first if first in modules else given.get(first, parts[0])
                if target != parts[0]:
                    uses[parts[0]].add(target)
    return uses


def circles(uses: dict[str, set[str]]) -> set[str]:
    """Return the modules that use themselves by way of others."""

    def reached(module: str) -> set[str]:
        found: set[str] = set()
        more = set(uses[module])
        while more:
            found |= more
            more = set().union(*(uses[one] for one in more)) - found
        return found

    return {module for module in uses if module in reached(module)}


def main() -> int:
    """Print each circle; the exit status is 1 when there is one."""
    if circles(uses_of(CANARY)) != {"first", "second"}:
        print(f"the circle of {CANARY} was not found: the check does not work")
        return 1
    wrong = []
    sources = sorted(Path("crates").glob("*/src"))
    for source in sources:
        crate = source.parent.name
        uses = uses_of(source)
        found = circles(uses)
        wrong += [
            f"{crate}: {module} is in a circle with {', '.join(sorted(uses[module] & found))}" for module in found
        ]
    print("\n".join(sorted(wrong)) or f"{len(sources)} crates, no circle among the modules of any")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
