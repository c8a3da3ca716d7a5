"""The options of `schedlab sweep`."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from schedlab import program
from schedlab._native import InputError
from schedlab.sweeping import cluster
from schedlab.sweeping.cluster import SLURM_OPTIONS
from schedlab.tomlfile import suggestion

_ABOUT = "Simulate all combinations of kernels, machines, workloads, settings and seeds, into one table."
_EXAMPLE = """\
examples:
  schedlab sweep granularity.toml -o granularity.parquet
  schedlab sweep granularity.toml --dry-run
  schedlab sweep granularity.toml --cluster tcp://10.0.0.1:8786
  schedlab sweep granularity.toml --slurm --slurm-option jobs=8 --slurm-option cores=16

docs/sweep.md describes the file and the table.
"""

Where = tuple[str | None, int | None, dict[str, str]]


def parser() -> program.Parser:
    """Return the parser of the command line."""
    parser = program.Parser("sweep", _ABOUT, _EXAMPLE)
    parser.add_argument("sweep", metavar="SWEEP.toml", type=Path, help="what to simulate")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="the table: .parquet or .arrows (default: SWEEP.parquet, here)",
    )
    parser.add_argument("--force", action="store_true", help="replace the output, and what was begun of it")
    parser.add_argument("--dry-run", action="store_true", help="print how many simulations it is, and the first")
    parser.add_argument(
        "-j", "--workers", type=cluster.workers, metavar="N", help="how many at a time (default: all cores)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--cluster", metavar="ADDRESS", help='a Dask cluster: tcp://HOST:PORT, or "local" to start one on this machine'
    )
    where.add_argument("--slurm", action="store_true", help="submit jobs to Slurm, whose workers take part")
    listed = "; ".join(f"{name}: {about}" for name, about in SLURM_OPTIONS.items())
    parser.add_argument(
        "--slurm-option", action="append", default=[], metavar="NAME=VALUE", help=f"may be repeated; {listed}"
    )
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")
    return parser


def given(arguments: argparse.Namespace) -> Where:
    """Return where the command line asks for."""
    named: dict[str, object] = {}
    for option in arguments.slurm_option:
        name, equals, value = option.partition("=")
        named[name] = value if equals else ""
    return where(arguments.cluster, arguments.workers, arguments.slurm, named)


def where(address: str | None, workers: int | None, slurm: bool, named: Mapping[str, object]) -> Where:
    """Return where simulations run: a cluster's address, how many workers, and the options of Slurm."""
    found = {}
    for name, value in named.items():
        if name not in SLURM_OPTIONS:
            raise InputError(f'--slurm-option {name}={value}: "{name}" is no option; {suggestion(name, SLURM_OPTIONS)}')
        if value in ("", None):
            raise InputError(f"--slurm-option {name}: has no value; write {name}=VALUE")
        found[name] = str(value)
    if found and not slurm:
        raise InputError("--slurm-option: is for --slurm; add that")
    if workers and (slurm or address not in (None, cluster.LOCAL)):
        raise InputError("--workers: is for this machine; a cluster has the workers that it has")
    return cluster.SLURM if slurm else address, workers, found
