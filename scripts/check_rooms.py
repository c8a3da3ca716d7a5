"""Checks which room may import which: the rooms of ARCHITECTURE.md, compared with `cargo metadata`.

A room that is listed here may depend on the rooms named. If it is in `PURE`, it may depend on no other crate beyond
those named: the simulation reads nothing, writes nothing and knows no Python.
"""

import json
import subprocess
import sys

# room: the rooms that it may depend on
ROOMS: dict[str, set[str]] = {
    "base": set(),
    "track": {"base"},
    "trace": {"base"},
    "machine": {"base"},
    "workload": {"base", "track"},
    "sim": {"base", "machine"},
    "sched": {"base", "machine", "sim"},
    "measure": {"base", "machine", "track"},
    "chart": {"base"},
    "capture": {"base", "trace", "machine"},
    "knobs": {"base", "capture"},
    "watch": {"base", "measure", "capture"},
    "live": {"base", "sim", "capture"},
    "guest": {"base", "machine"},
    "experiment": {
        *("base", "trace", "machine", "workload", "sim", "sched", "measure", "chart"),
        *("capture", "knobs", "live", "guest"),
    },
    "view": {"base", "track", "trace", "sim", "sched", "measure", "experiment"},
    "cli": {
        *("base", "trace", "machine", "workload", "sim", "sched", "measure", "chart"),
        *("capture", "knobs", "watch", "live", "guest", "experiment", "view"),
    },
    "python": {"base", "trace", "machine", "workload", "sim", "sched", "measure", "chart", "experiment"},
}
# pure room: the crates from outside that it may use
PURE: dict[str, set[str]] = {"sim": set(), "sched": set()}
PREFIX = "schedlab-"


def main() -> int:
    """Print each breach of the rule; the exit status is 1 when there is one."""
    command = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    breaches = []
    for package in metadata["packages"]:
        room = package["name"].removeprefix(PREFIX)
        if room not in ROOMS:
            breaches.append(f"{package['name']} is no room of ARCHITECTURE.md: add it there and to {__file__}")
            continue
        # Dependencies that only tests use are not checked.
        used = {d["name"] for d in package["dependencies"] if d["kind"] != "dev"}
        rooms = {name.removeprefix(PREFIX) for name in used if name.startswith(PREFIX)}
        breaches += [f"{room} must not depend on {other}" for other in sorted(rooms - ROOMS[room])]
        if room in PURE:
            outside = {name for name in used if not name.startswith(PREFIX)}
            breaches += [f"{room} is pure and must not use {crate}" for crate in sorted(outside - PURE[room])]
    print("\n".join(breaches) or f"{len(metadata['packages'])} rooms, each depends only on what it may")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
