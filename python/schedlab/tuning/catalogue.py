"""What is known of tunables: ranges, defaults and groups, from `schedlab tunables`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schedlab import command
from schedlab._native import NotPermittedError

Value = int | float | str


@dataclass(frozen=True)
class Known:
    """What the catalogue says of a tunable."""

    name: str
    default: Value
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    switch: bool = False
    unit: str = ""
    group: str = ""
    reason: str = ""
    instead: str = ""

    def allows(self, value: object) -> bool:
        """Return whether the tunable can have this value, as far as is known."""
        if self.choices:
            return str(value) in self.choices
        if isinstance(value, str):
            return self.switch and value in {"0", "1"}
        number = isinstance(value, (int, float))
        return number and (self.low is None or value >= self.low) and (self.high is None or value <= self.high)  # type: ignore[operator]

    def range_text(self) -> str:
        """Return the advice for a value that is out of range."""
        if self.choices:
            return f"take one of {', '.join(self.choices)}"
        return f"{self.name} takes {self.low:g} to {self.high:g}" if self.low is not None else ""


def of_kernel(kernel: str, machine: str) -> dict[str, Known]:
    """Return the tunables of a simulated kernel on a machine."""
    given = ["--kernel", kernel, *(["--machine", machine] if machine else [])]
    return {own["name"]: _simulated(own) for own in command.call(["tunables", *given])["tunables"]}


def of_machine() -> dict[str, Known]:
    """Return the tunables of this machine."""
    return {own["name"]: _live(own) for own in command.call(["tunables", "--live"])["tunables"]}


def refuse_unsettable(known: Mapping[str, Known], names: tuple[str, ...]) -> None:
    """Refuse a tunable that this machine does not let us set, before anything is tried."""
    refused = [known[name] for name in names if name in known and known[name].reason]
    if refused:
        each = [f"{own.name}: {own.reason}{f'; {own.instead}' if own.instead else ''}" for own in refused]
        raise NotPermittedError("this machine refuses " + "; ".join(each))


def _simulated(own: dict[str, Any]) -> Known:
    switch = own["unit"] == "on/off"
    default = own["default"]
    if own["unit"] == "enum":
        # The simulator takes a value by its name or its number.
        return Known(own["name"], str(own["base"]), choices=tuple(map(str, range(own["min"], own["max"] + 1))))
    return Known(
        own["name"],
        str(default) if switch else default,
        own["min"],
        own["max"],
        switch=switch,
        unit="" if switch else own["unit"],
        group="sched",
    )


def _live(own: dict[str, Any]) -> Known:
    low, high = own.get("range") or (None, None)
    choices = tuple(map(str, own.get("choices") or ()))
    value = own.get("value")
    # What cannot be read has no value, and some files have several.
    found = None if choices or low is None else _number(value)
    return Known(
        own["name"],
        str(value) if found is None else found,
        low,
        high,
        choices,
        unit=own.get("unit") or "",
        group=own.get("group") or "",
        reason="" if own.get("settable") else own.get("reason") or "it cannot be set here",
        instead=own.get("instead") or "",
    )


def _number(value: object) -> int | float | None:
    text = str(value)
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return None
