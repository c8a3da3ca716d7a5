"""The part of a lock file that some packages need (scripts/part_of_lock.py)."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "part_of_lock.py"

LOCK = """\
# Written by a tool.
apple==1.0 ; python_version < '3.12' \\
    --hash=sha256:aa \\
    --hash=sha256:ab
    # via
    #   pear
    #   schedlab (pyproject.toml)
fig==2.0 \\
    --hash=sha256:bb
    # via apple
pear==3.0 \\
    --hash=sha256:cc
    # via schedlab (pyproject.toml)
plum==4.0 \\
    --hash=sha256:dd
    # via schedlab (pyproject.toml)
"""


def names_of(folder: Path, *packages: str) -> list[str]:
    file = folder / "some.lock"
    file.write_text(LOCK)
    done = subprocess.run([sys.executable, SCRIPT, file, *packages], capture_output=True, text=True, check=True)
    return [line.partition("==")[0] for line in done.stdout.splitlines() if "==" in line and "hash" not in line]


def test_packages_bring_what_they_need(tmp_path: Path) -> None:
    assert names_of(tmp_path, "pear") == ["apple", "fig", "pear"]
    assert names_of(tmp_path, "fig", "plum") == ["fig", "plum"]


def test_a_package_that_is_not_locked_is_named(tmp_path: Path) -> None:
    (tmp_path / "some.lock").write_text(LOCK)
    command = [sys.executable, str(SCRIPT), str(tmp_path / "some.lock"), "kiwi"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "kiwi" in done.stderr
