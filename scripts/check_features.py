"""Checks that the command and the Python module compile the same libraries with the same features.

cargo compiles a library anew for each set of features, and then all that depends on it. With one difference the crates
and Arrow were compiled twice on each new machine, which took three minutes. The remedy is to name the library with the
features that are missing in the Cargo.toml of the crate that lacks them.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("schedlab-cli", "schedlab-python")


def features(package: str) -> dict[str, set[str]]:
    """Return the features of each library that is linked into the package."""
    command = ["cargo", "tree", "--locked", "--package", package, "--edges", "normal,no-proc-macro"]
    tree = subprocess.run(
        [*command, "--prefix", "none", "--format", "{p} [{f}]"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return {
        name: set(found.split(",")) - {""}
        for name, found in re.findall(r"^(\S+ v\S+).* \[([^\]]*)\]", tree, flags=re.MULTILINE)
    }


def differences(one: dict[str, set[str]], other: dict[str, set[str]]) -> list[str]:
    """Say which libraries have which features in one of the two alone."""
    return [
        f"{name}: only {package} has {', '.join(sorted(more))}"
        for name in sorted(one.keys() & other.keys())
        for package, more in zip(PACKAGES, (one[name] - other[name], other[name] - one[name]), strict=True)
        if more
    ]


def main() -> None:
    """Check and say how many libraries they share."""
    one, other = (features(package) for package in PACKAGES)
    if found := differences(one, other):
        sys.exit("\n".join(["The command and the Python module would compile these libraries twice:", *found]))
    print(f"{len(one.keys() & other.keys())} libraries, each compiled once for the command and the Python module")


if __name__ == "__main__":
    main()
