"""Where work is done: on the cores of this machine, on a Dask cluster, or on Slurm.

All of them are `concurrent.futures.Executor`: what hands out the work does not know which it has. Simulations do not
hold Python's lock, so that the cores of this machine are used by threads, without a second process or an open port.
"""

import argparse
import contextlib
import logging
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schedlab._native import InputError, NotPermittedError, __version__

if TYPE_CHECKING:
    from distributed import Client

# The address that stands for a Dask cluster which is started on this machine, and for one that Slurm starts.
LOCAL = "local"
SLURM = "slurm"

# What the names of this machine's workers begin with.
THREADS = "schedlab-worker"

# How long a cluster may take to answer or, on Slurm, a first worker to start.
_ANSWER_S = 30
_QUEUE_S = 3600

# More workers are a typing error.
_MOST_WORKERS = 4096
# The most jobs, and cores of a job.
_MOST = 10_000

# What `--slurm-option` may set.
SLURM_OPTIONS = {
    "jobs": "how many jobs to submit (1)",
    "cores": "CPUs of a job, one worker each (1)",
    "memory": "memory of a job (2GB)",
    "walltime": "how long a job may run (01:00:00)",
    "partition": "the partition to submit to (Slurm's default)",
    "account": "the account to charge (Slurm's default)",
    "interface": "the network interface between the workers and this machine (found by itself)",
    "python": "the Python of the workers, which has schedlab (this one)",
    "logs": "a folder for what the jobs print (nowhere)",
}


@dataclass(frozen=True)
class Pool:
    """Workers, as an executor of `concurrent.futures`."""

    executor: Executor
    """Takes the work. Its futures are those of `concurrent.futures`."""
    workers: int
    """How many there were at the start."""
    where: str
    """The workers in words, for messages."""
    remote: bool
    """Whether they are other processes, to which everything is sent."""
    client: "Client | None" = None
    """The client of the Dask cluster, if there is one."""

    def present(self) -> int:
        """Return how many workers there are now."""
        if self.client is None:
            return self.workers
        try:
            return len(self.client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, KeyError, TypeError):
            return 0

    def submit(self, function: Any, *arguments: object) -> "Future[Any]":  # noqa: ANN401 (any callable)
        """Hand out a call. On a cluster the function and its arguments are pickled."""
        return self.executor.submit(function, *arguments)


@contextlib.contextmanager
def connect(
    address: str | None = None, workers: int | None = None, slurm: Mapping[str, str] | None = None
) -> Iterator[Pool]:
    """Give workers for as long as the context lasts.

    Without an `address` they are threads of this process, one for each core that it may use unless `workers` says how
    many. `"local"` starts a Dask cluster on this machine, `"slurm"` one on Slurm by the options in `slurm`, and any
    other address is that of the scheduler of a Dask cluster (`tcp://HOST:PORT`).

    On a cluster, the work of a worker that dies is done again by another one. A call during which several workers die
    in turn fails (`is_death`).
    """
    if workers is not None and not 1 <= workers <= _MOST_WORKERS:
        raise InputError(_no_number(workers))
    if address is None:
        count = workers or cores()
        executor = ThreadPoolExecutor(count, thread_name_prefix=THREADS)
        try:
            yield Pool(executor, count, "this machine", False)
        finally:
            executor.shutdown(wait=False, cancel_futures=True)
        return
    with _dask(address, workers, slurm or {}) as (client, where):
        count = _same_version(client, where)
        yield Pool(client.get_executor(pure=False), count, where, True, client)


def workers(text: str) -> int:
    """Return the number of workers that an option names."""
    number = int(text) if re.fullmatch("[0-9]{1,9}", text) else 0
    if not 1 <= number <= _MOST_WORKERS:
        raise argparse.ArgumentTypeError(_no_number(text))
    return number


def _no_number(given: object) -> str:
    return f'"{given}" is no number of workers; write one from 1 to {_MOST_WORKERS}'


def cores() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def is_death(error: BaseException) -> bool:
    """Whether work failed because the workers died that did it, again and again."""
    return type(error).__name__ == "KilledWorker"


def is_loss(error: BaseException) -> bool:
    """Whether work failed because the cluster is no longer there."""
    names = {own.__name__ for own in type(error).__mro__}
    return bool(names & {"CancelledError", "FutureCancelledError", "CommClosedError", "ClosedClientError"})


@contextlib.contextmanager
def _dask(address: str, workers: int | None, slurm: Mapping[str, str]) -> "Iterator[tuple[Client, str]]":
    """Give a client of a Dask cluster, and the cluster in words."""
    try:
        import distributed  # noqa: PLC0415 (an extra; it takes a second to import)
    except ModuleNotFoundError as error:
        raise NotPermittedError(
            f"{error.name} is not installed, which a cluster needs; pip install 'schedlab[tune]'"
        ) from None
    # What goes wrong is reported by whoever waits for the work, in one message.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with contextlib.ExitStack() as stack:
        if address == LOCAL:
            where = "a Dask cluster on this machine"
            started = distributed.LocalCluster(
                n_workers=workers or cores(),
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                memory_limit=None,
                silence_logs=logging.CRITICAL,
            )
            target: object = stack.enter_context(started)
            patience = _ANSWER_S
        elif address == SLURM:
            where = "a Dask cluster on Slurm"
            target = stack.enter_context(_slurm(slurm))
            patience = _QUEUE_S
        else:
            where = f"the Dask cluster at {address}"
            target, patience = address, _ANSWER_S
        try:
            client = stack.enter_context(distributed.Client(target, timeout=_ANSWER_S))
        except (OSError, ValueError) as error:
            raise InputError(
                f"--cluster {address}: no Dask scheduler answers there: {_first(error)}; write tcp://HOST:PORT, as "
                "`dask scheduler` prints it, or local"
            ) from None
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError:
            fix = f"start one with `dask worker {address}`" if address not in (LOCAL, SLURM) else "look at its logs"
            raise InputError(f"{where} has no worker after {patience} s; {fix}") from None
        yield client, where


def _slurm(options: Mapping[str, str]) -> Any:  # noqa: ANN401 (dask-jobqueue has no types)
    """Submit jobs to Slurm whose workers make a cluster."""
    try:
        from dask_jobqueue.slurm import SLURMCluster  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise NotPermittedError(f"{error.name} is not installed; pip install 'schedlab[slurm]'") from None
    if shutil.which("sbatch") is None:
        raise NotPermittedError("sbatch is not here; run this where Slurm's jobs are submitted, or use --cluster")
    cores, jobs = (_count(options, name) for name in ("cores", "jobs"))
    logs = options.get("logs")
    cluster = SLURMCluster(
        cores=cores,
        processes=cores,
        memory=options.get("memory", "2GB"),
        walltime=options.get("walltime", "01:00:00"),
        queue=options.get("partition"),
        account=options.get("account"),
        interface=options.get("interface"),
        python=options.get("python", sys.executable),
        log_directory=logs,
        job_extra_directives=[] if logs else ["--output=/dev/null"],
        scheduler_options={"dashboard_address": ":0"},
    )
    cluster.scale(jobs=jobs)
    return cluster


def _count(options: Mapping[str, str], name: str) -> int:
    """Return an option that is a number of things."""
    text = options.get(name, "1")
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST:
        raise InputError(f'--slurm-option {name}: "{text}" is no number of {name}; write one from 1 to {_MOST}')
    return int(text)


def _version() -> str:
    """Return the version of schedlab that a worker has."""
    return __version__


def _same_version(client: "Client", where: str) -> int:
    """Return how many workers there are. Results of another version would be mixed with ours without a sign."""
    try:
        versions: dict[str, str] = client.run(_version)
    except (ModuleNotFoundError, AttributeError) as error:
        raise InputError(
            f"the workers of {where} cannot load schedlab: {_first(error)}; install schedlab {__version__} there"
        ) from None
    for worker, version in versions.items():
        if version != __version__:
            raise InputError(
                f"the worker {worker} has schedlab {version}, and this is {__version__}; install the same there"
            )
    return len(versions)


def _first(error: BaseException) -> str:
    """Return the first line of an error's text."""
    return str(error).strip().split("\n", maxsplit=1)[0] or type(error).__name__
