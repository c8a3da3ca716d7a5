"""Build backend of the wheel: builds the static command, then lets maturin do the rest.

A wheel contains the `schedlab` executable beside the native module. maturin takes it from the folder that
`tool.maturin.data` names in pyproject.toml. This module fills the folder first, so that `pip install .` needs nothing
but Rust and a C compiler.
"""

import subprocess
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def _make_folder() -> None:
    """Make the folder that maturin packs: it must exist for maturin to look at the project at all."""
    Path("build/wheel/scripts").mkdir(parents=True, exist_ok=True)


def prepare_metadata_for_build_wheel(metadata_directory: str, *args: Any, **options: Any) -> str:  # noqa: ANN401 (as below)
    """Write the wheel's metadata; returns the name of its folder."""
    _make_folder()
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, *args, **options))


# An editable wheel has the same metadata.
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def _build_binary() -> None:
    """Build the static command into the folder that maturin packs."""
    subprocess.run([Path(__file__).parent / "build-binary"], check=True)


def build_wheel(wheel_directory: str, *args: Any, **options: Any) -> str:  # noqa: ANN401 (pip's options pass through)
    """Build the command and the wheel around it; returns the wheel's file name."""
    _build_binary()
    return str(maturin.build_wheel(wheel_directory, *args, **options))


def build_editable(wheel_directory: str, *args: Any, **options: Any) -> str:  # noqa: ANN401 (as above)
    """Build the command and an editable wheel; returns its file name."""
    _build_binary()
    return str(maturin.build_editable(wheel_directory, *args, **options))


def build_sdist(sdist_directory: str, *args: Any, **options: Any) -> str:  # noqa: ANN401 (as above)
    """Build the source package; returns its file name."""
    _make_folder()
    return str(maturin.build_sdist(sdist_directory, *args, **options))
