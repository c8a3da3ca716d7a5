"""Checks that what a sweep's file names exists and goes together, before anything runs."""

import re
from collections.abc import Mapping

from schedlab import _native
from schedlab._native import InputError
from schedlab.sweeping.kinds import written
from schedlab.sweeping.sweep import Kernel, Named, Sweep

# A longer range is checked at both ends.
_MOST_CHECKED = 1000


def check(sweep: Sweep) -> None:
    """Check what is known without a simulation. Raises `InputError` with the file, the line and the key."""
    for k, kernel in enumerate(sweep.kernels):
        for m, machine in enumerate(sweep.machines):
            keys = {"kernel": f"kernels[{k}]", "machine": f"machines[{m}]", "duration": "duration"}
            for w, workload in enumerate(sweep.workloads):
                keys["workload"] = f"workloads[{w}]"
                _check((sweep, kernel, machine, workload), [], keys)
            keys["workload"] = "workloads[0]"
            for name, values in kernel.settings.items():
                own = f"kernels[{k}].settings.{name}" if name in kernel.own else f"settings.{name}"
                for value in values if len(values) <= _MOST_CHECKED else (values[0], values[-1]):
                    setting = [(name, written(value))]
                    _check((sweep, kernel, machine, sweep.workloads[0]), setting, {**keys, "setting": own})


def _check(
    parts: tuple[Sweep, Kernel, Named, Named],
    settings: list[tuple[str, str]],
    keys: Mapping[str, str],
) -> None:
    """Check one combination. `keys` are those of the sweep's file that an error may be about."""
    sweep, kernel, machine, workload = parts
    document = sweep.document
    files = machine.file.path(), workload.file.path()
    try:
        # Which tasks there are does not depend on the settings.
        measured = [] if settings else list(sweep.measures.values())
        _native.check_run(kernel.kernel, *files, sweep.duration, settings, measured)
    except InputError as error:
        text = str(error)
        for own, path in zip((machine, workload), files, strict=True):
            text = text.replace(path, own.name) if own.file.text is not None else text
        for name, measure in sweep.measures.items():
            if text.startswith(f'"{measure}": '):
                raise document.error(f"measures.{name}", text) from None
        # The key of the sweep's file stands for that of the command line.
        text = re.sub(r"^--set \S+: ", "", text)
        found = re.match(r"(kernel|machine|workload|duration): ", text)
        kind = found[1] if found else "setting" if settings else "workload"
        key = keys.get(kind, "")
        raise document.error(
            key if kind != "duration" or document.line(key) else "", text[found.end() if found else 0 :]
        ) from None
