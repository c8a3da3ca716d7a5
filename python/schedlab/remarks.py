"""Warnings about things that a user should know although nothing failed."""

import re
import sys
import warnings
from pathlib import Path

# What the command says of a success. Everything else that it says is a remark.
_SUMMARY = re.compile(
    r"wrote |.*: [\d,]+ events? \(0 of other kinds |[\d,]+ events? over |the workload demands |left out: "
    r"|[\d,]+ tasks are bound |.*: \d+ bytes$|kept \d+ traces? in |every expectation holds: no trace was kept"
)


def is_summary(line: str) -> bool:
    """Whether a line of the command only sums up what it did."""
    return _SUMMARY.match(line) is not None


class SchedlabWarning(UserWarning):
    """A remark about a run: something not modelled, an ignored key, the reason for an early end."""


class CutWarning(SchedlabWarning):
    """The file of a trace was cut off. Everything before the cut is available."""


def warn(text: str, category: type[SchedlabWarning] = SchedlabWarning) -> None:
    """Warn at the line outside this package that called it."""
    package = str(Path(__file__).parent)
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
