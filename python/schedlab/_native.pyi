class SchedlabError(Exception):
    """An error for the user: where it happened, what is wrong and how to fix it."""

class InputError(SchedlabError):
    """Bad input or usage, or a failure of the system during the operation: exit status 2."""

class NotPermittedError(SchedlabError):
    """The machine does not support it, or the user lacks the rights: exit status 4."""

__version__: str

class Frame:
    """A table that `pyarrow.table` takes over without a copy."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def duration_ns(text: str) -> int: ...
def is_trace(path: str) -> bool: ...
def cut(path: str) -> str | None: ...
def convert(source: str, target: str) -> None: ...
def stats(
    path: str,
    from_: str | None,
    to: str | None,
    tasks: list[str],
    pids: list[int],
    groups: list[str],
    task_cpus: bool,
) -> str: ...
def intervals(path: str) -> Frame: ...
def simulate(
    kernel: str | None,
    machine: str | None,
    workload: str,
    target: str,
    duration: str | None,
    seed: int,
    settings: list[tuple[str, str]],
    costs: bool,
    every_tick: bool,
    queues: bool,
) -> list[str]: ...
def measure(
    expressions: list[str],
    kernel: str | None,
    machine: str | None,
    workload: str,
    duration: str | None,
    seed: int,
    settings: list[tuple[str, str]],
    costs: bool,
    recorded: tuple[str, list[int], int] | None,
) -> tuple[list[float | str], list[str]]: ...
def check_expressions(expressions: list[str]) -> None: ...
def check_run(
    kernel: str | None,
    machine: str | None,
    workload: str,
    duration: str | None,
    settings: list[tuple[str, str]],
    expressions: list[str],
) -> None: ...
