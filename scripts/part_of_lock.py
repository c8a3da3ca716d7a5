"""Prints the part of a lock file that some packages need: `part_of_lock.py LOCK PACKAGE...`.

uv writes below each package which others need it, as comments that begin with "via".
"""

import re
import sys
from pathlib import Path


def part(lock: str, wanted: set[str]) -> str:
    """Return the lock file's blocks of these packages, and of all that they need."""
    blocks = re.findall(r"^\S+==.*\n(?:[ ].*\n?)*", lock, flags=re.MULTILINE)
    names = [block.partition("==")[0] for block in blocks]
    needed_by = [set(re.findall(r"^ +# +(?:via +)?(\S+)", block, flags=re.MULTILINE)) for block in blocks]
    missing = wanted - set(names)
    if missing:
        raise SystemExit(f"the lock file lacks {', '.join(sorted(missing))}")
    needed = set(wanted)
    while more := {name for name, by in zip(names, needed_by, strict=True) if by & needed} - needed:
        needed |= more
    return "".join(block for name, block in zip(names, blocks, strict=True) if name in needed)


if __name__ == "__main__":
    sys.stdout.write(part(Path(sys.argv[1]).read_text(), set(sys.argv[2:])))
