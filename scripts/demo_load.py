"""The load that the demonstration records: a developer's machine during a build, for some seconds.

It consists of parallel compilers (short, many, forking), a player that decodes a frame each 16 ms and must not be
late, a server and its clients that wake each other through pipes, and a batch job at nice 10 that takes what is left.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

SECONDS = 5.0
COMPILERS = 16
CLIENTS = 3
FRAME_S = 0.016


def spin(seconds: float) -> None:
    """Use the CPU for this long, by this process's own CPU clock."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


def player(until: float) -> None:
    """Decode a frame each 16 ms."""
    due = time.monotonic()
    while due < until:
        spin(0.001)
        due += FRAME_S
        time.sleep(max(0.0, due - time.monotonic()))


def batch(until: float) -> None:
    """Compute until the end, at a low priority."""
    os.nice(10)
    while time.monotonic() < until:
        spin(0.05)


def serve(requests: int, replies: list[int]) -> None:
    """Answer each request, a byte that identifies its client, until the last client has gone."""
    while client := os.read(requests, 1):
        spin(0.0003)
        os.write(replies[client[0]], b".")


def ask(number: int, requests: int, reply: int, until: float) -> None:
    """Send a request, wait for its answer, think."""
    while time.monotonic() < until:
        os.write(requests, bytes([number]))
        os.read(reply, 1)
        time.sleep(0.008)


def source(functions: int) -> str:
    """Return a C file that keeps an optimising compiler busy for some hundred milliseconds."""
    loop = (
        "  for (int i = 0; i < n; i++) { a[i] = a[i] * %d + b[(i * %d) %% n]; if (a[i] > b[i]) b[i] ^= a[n - 1 - i]; }"
    )
    return "".join(
        f"int f{k}(int *a, int *b, int n) {{\n{(loop % (k + 3, 2 * k + 1) + chr(10)) * 6}  return a[{k} % n];\n}}\n"
        for k in range(functions)
    )


def compile_on(number: int, folder: str, until: float) -> None:
    """Compile one file after the other, as a build does."""
    file = Path(folder, f"part{number}.c")
    file.write_text(source(6 + number), encoding="utf-8")
    while time.monotonic() < until:
        subprocess.run(["cc", "-O2", "-c", str(file), "-o", str(file.with_suffix(".o"))], check=True)


def start(name: str, work: Callable[[], None]) -> int:
    """Fork a process that has this name, does its work and ends; return its id."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        Path("/proc/self/comm").write_text(name, encoding="utf-8")
        work()
        status = 0
    finally:
        os._exit(status)


def main() -> int:
    """Run the load; the exit status is 1 when one of its processes failed."""
    until = time.monotonic() + SECONDS
    requests_out, requests_in = os.pipe()
    replies = [os.pipe() for _ in range(CLIENTS)]
    with tempfile.TemporaryDirectory(prefix="schedlab-demo-") as folder:
        work = {"player": partial(player, until), "batch": partial(batch, until)}
        work |= {f"build-{n}": partial(compile_on, n, folder, until) for n in range(COMPILERS)}
        work |= {f"client-{n}": partial(ask, n, requests_in, reply, until) for n, (reply, _) in enumerate(replies)}
        pids = [start(name, what) for name, what in work.items()]
        # When only the clients hold the writing ends, the server notices that they have gone.
        os.close(requests_in)
        pids.append(start("server", partial(serve, requests_out, [end for _, end in replies])))
        statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main())
