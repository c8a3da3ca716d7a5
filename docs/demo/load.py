#!/usr/bin/env python3
"""The mixed load of recording.arrows, four seconds long.

Throughout, two sleepers (every 2 ms and every 20 ms) and a pair that wake each other through pipes in
bursts. From 1.2 s to 2.8 s three CPU hogs, one of them at nice 5. From 2.4 s on, rounds of short-lived
processes, three at a time, as a build makes them.
"""

import os
import time

START = time.monotonic()


def left(until):
    """Whether the time `until`, in seconds since the start, is still to come."""
    return time.monotonic() - START < until


def task(name, body, *arguments):
    """Runs `body` in a process of this name."""
    child = os.fork()
    if child == 0:
        with open("/proc/self/comm", "w") as comm:
            comm.write(name)
        body(*arguments)
        os._exit(0)
    return child


def burn(seconds):
    """Uses this much CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def sleeper(period, work):
    while left(4.0):
        time.sleep(period)
        burn(work)


def hog(nice):
    os.nice(nice)
    time.sleep(max(0.0, 1.2 - (time.monotonic() - START)))
    while left(2.8):
        pass


def ping(to, back):
    while left(4.0):
        for _ in range(40):
            os.write(to, b".")
            os.read(back, 1)
        time.sleep(0.01)
    os.write(to, b"!")


def pong(there, to):
    while os.read(there, 1) == b".":
        os.write(to, b".")


def build():
    time.sleep(2.4)
    job = 0
    while left(4.0):
        jobs = [task(f"job-{job + n}", burn, 0.004 * (1 + (job + n) % 5)) for n in range(3)]
        job += len(jobs)
        for child in jobs:
            os.waitpid(child, 0)
        time.sleep(0.01)


def main():
    there, to_pong = os.pipe()
    back, to_ping = os.pipe()
    children = [
        task("sleeper-2ms", sleeper, 0.002, 0.0002),
        task("sleeper-20ms", sleeper, 0.02, 0.003),
        task("ping", ping, to_pong, back),
        task("pong", pong, there, to_ping),
        task("build", build),
    ]
    children += [task(f"hog-{n}", hog, nice) for n, nice in enumerate([0, 0, 5])]
    for child in children:
        os.waitpid(child, 0)


main()
