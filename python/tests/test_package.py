"""The installed package: its native module, its command and its types."""

import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

import schedlab
from schedlab import command


def test_the_installed_package_is_tested() -> None:
    assert Path(schedlab.__file__).is_relative_to(sys.prefix)
    assert schedlab.__version__ == version("schedlab")


def test_every_public_name_exists() -> None:
    assert set(schedlab.__all__) <= set(dir(schedlab))


def test_types_are_shipped() -> None:
    assert {"py.typed", "_native.pyi"} <= {entry.name for entry in files("schedlab").iterdir()}


@pytest.mark.parametrize("how", [[str(command.binary())], [sys.executable, "-m", "schedlab"]])
def test_the_command_is_installed(how: list[str]) -> None:
    done = subprocess.run([*how, "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"schedlab {schedlab.__version__}\n"


def test_the_command_needs_no_environment() -> None:
    done = subprocess.run([command.binary(), "--version"], check=True, capture_output=True, env={})
    assert done.stdout


def test_usage_errors_keep_their_status() -> None:
    done = subprocess.run([sys.executable, "-m", "schedlab", "no-such-verb"], check=False, capture_output=True)
    assert done.returncode == command.BAD_INPUT
