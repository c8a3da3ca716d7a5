"""The last part of the demonstration: a recording and a simulation as data frames."""

import json
import sys
import warnings
from pathlib import Path

import schedlab


def main(recording: str, model: str) -> None:
    """Print the tasks that waited longest in the recording, and in simulations of its model on two machines."""
    trace = schedlab.read(recording)
    print(trace)
    print(f"\n{len(trace.events)} events, of these:")
    print(trace.events["event"].value_counts().head(4).to_string())

    # `schedlab run` has already reported what the simulation does not model.
    warnings.simplefilter("ignore", schedlab.SchedlabWarning)
    workload = json.loads(Path(model).read_text(encoding="utf-8"))
    columns = ["name", "run_us", "wait_us", "latency_us_p99"]
    for machine in ("dual", "z800"):
        run = schedlab.sim(kernel="linux-6.12", machine=machine, workload=workload)
        print(f"\nThe model on {machine} under linux-6.12; the tasks that waited longest:")
        print(run.stats().tasks.nlargest(4, "wait_us")[columns].to_string(index=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
