class SchedlabError(Exception):
    """What the user has to be told: where, what is wrong, and what would be right."""

class InputError(SchedlabError):
    """Bad input or usage, or the system failed in the middle: exit status 2."""

class NotPermittedError(SchedlabError):
    """The machine or the user's rights do not allow it: exit status 4."""

__version__: str

def is_trace(path: str) -> bool: ...
def cut(path: str) -> str | None: ...
def convert(source: str, target: str) -> None: ...
def stats(path: str) -> str: ...
def simulate(
    kernel: str,
    machine: str,
    workload: str,
    target: str,
    duration: str | None,
    seed: int,
    settings: list[tuple[str, str]],
    costs: bool,
    queues: bool,
) -> list[str]: ...
