"""Checks that the purity lints of the simulation work: each function of the canary must be refused."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

CANARY = Path("tests/canaries/impure.rs")
LINTS = ("disallowed_types", "disallowed_methods", "disallowed_macros")


def refused_lines() -> set[int]:
    """Return the lines of the canary that the lints refuse."""
    command = ["clippy-driver", "--edition=2024", "--crate-type=lib", "--emit=metadata=-", "--error-format=json"]
    command += [f"-Wclippy::{lint}" for lint in LINTS]
    environment = {**os.environ, "CLIPPY_CONF_DIR": "crates/sim"}
    done = subprocess.run([*command, str(CANARY)], check=True, capture_output=True, env=environment)
    reports = [json.loads(line) for line in done.stderr.splitlines()]
    ours = [r for r in reports if (r.get("code") or {}).get("code", "").removeprefix("clippy::") in LINTS]
    return {span["line_start"] for report in ours for span in report["spans"]}


def main() -> int:
    """Print each function that the lints accepted; the exit status is 1 if there is one."""
    lines = CANARY.read_text(encoding="utf-8").splitlines()
    functions = [number for number, line in enumerate(lines, 1) if line.startswith("pub fn")]
    refused = refused_lines()
    passed = [
        n for n, end in zip(functions, [*functions[1:], len(lines) + 1], strict=True) if not refused & {*range(n, end)}
    ]
    for number in passed:
        name = re.sub(r"pub fn (\w+).*", r"\1", lines[number - 1])
        print(f"{CANARY}:{number}: the lints of crates/sim/clippy.toml let `{name}` through")
    print(f"{len(functions) - len(passed)} of {len(functions)} impurities refused")
    return 1 if passed or not functions else 0


if __name__ == "__main__":
    sys.exit(main())
