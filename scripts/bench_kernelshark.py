#!/usr/bin/env python3
"""Writes a trace as a trace.dat, so that KernelShark can be measured on the same events: TRACE OUT.dat.

Needs `schedlab` in the path, trace-cmd, and the kernel's formats of sched_switch and sched_waking (root): their numbers
stand in the file. Only these two events are written.
"""

import csv
import re
import struct
import subprocess
import sys
from pathlib import Path

FORMATS = Path("/sys/kernel/tracing/events/sched")
# The fields of both events on a 64-bit kernel without preemption counters beside them (6.x).
SWITCH = struct.Struct("<HBBi16siiq16sii")
WAKING = struct.Struct("<HBBi16siii")
STATES = {"R": 0, "S": 1, "D": 2, "T": 4, "t": 8, "X": 16, "Z": 32, "P": 64, "I": 128}
# What a page of the ring buffer has room for, and the first time, since 0 stands for none.
ROOM = 4080
BEGIN_NS = 1_000_000_000


class Buffer:
    """The pages of a CPU's ring buffer."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("wb")
        self.page = bytearray()
        self.first = self.last = 0

    def put(self, time: int, record: bytes) -> None:
        """Append an event."""
        if len(self.page) + 12 + len(record) > ROOM:
            self.flush()
        if not self.page:
            self.first = self.last = time
        delta, self.last = time - self.last, time
        if delta >= 1 << 27:  # a record of its own extends the time
            self.page += struct.pack("<II", 30 | (delta & 0x7FFFFFF) << 5, delta >> 27)
            delta = 0
        self.page += struct.pack("<I", len(record) // 4 | delta << 5) + record

    def flush(self) -> None:
        """Write the page that is being filled."""
        if self.page:
            self.file.write(struct.pack("<QQ", self.first, len(self.page)) + self.page.ljust(ROOM, b"\0"))
            self.page.clear()


def number(event: str) -> int:
    """Return the kernel's number of an event."""
    found = re.search(r"^ID: (\d+)", (FORMATS / event / "format").read_text(), re.MULTILINE)
    if not found:
        raise SystemExit(f"{FORMATS / event}/format has no ID")
    return int(found[1])


def write(trace: str, out: Path) -> tuple[int, list[Path]]:
    """Write the buffer of each CPU; return the number of events and the files."""
    switch, waking = number("sched_switch"), number("sched_waking")
    buffers: dict[int, Buffer] = {}
    names, current, events = {0: b"swapper"}, dict[int, int](), 0
    with subprocess.Popen(["schedlab", "export", trace], stdout=subprocess.PIPE, text=True) as export:
        assert export.stdout
        for row in csv.DictReader(export.stdout):
            kind = row["event"]
            if kind == "name":
                names[int(row["tid"])] = row["comm"].encode()[:15]
            if kind not in ("switch", "waking"):
                continue
            cpu, tid, prio = int(row["cpu"]), int(row["tid"]), int(row["prio"])
            name = names.setdefault(tid, b"task-%d" % tid)
            if kind == "switch":
                following = int(row["next_tid"])
                state = STATES.get(row["state"][:1], 0)
                other = names.setdefault(following, b"task-%d" % following)
                fields = (tid, name, tid, prio, state, other, following, int(row["next_prio"]))
                record, current[cpu] = SWITCH.pack(switch, 0, 0, *fields), following
            else:
                fields_of_waking = (current.get(cpu, 0), name, tid, prio, int(row["target_cpu"] or 0))
                record = WAKING.pack(waking, 0, 0, *fields_of_waking)
            if cpu not in buffers:
                buffers[cpu] = Buffer(out.with_name(f"{out.name}.cpu{cpu}"))
            buffers[cpu].put(int(row["time_ns"]) + BEGIN_NS, record)
            events += 1
    for buffer in buffers.values():
        buffer.flush()
        buffer.file.close()
    return events, [Path(buffers[cpu].file.name) for cpu in sorted(buffers)]


def restore(*arguments: str | Path) -> None:
    """Run `trace-cmd restore`."""
    subprocess.run(["trace-cmd", "restore", *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Write what the arguments say."""
    try:
        trace, out = sys.argv[1], Path(sys.argv[2])
    except IndexError:
        raise SystemExit(__doc__) from None
    events, buffers = write(trace, out)
    head = out.with_name(f"{out.name}.head")
    restore("-c", "-o", head)
    restore("-i", head, "-o", out, *buffers)
    for path in [head, *buffers]:
        path.unlink()
    print(f"{events} events")


if __name__ == "__main__":
    main()
