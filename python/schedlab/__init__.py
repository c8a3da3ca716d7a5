"""schedlab: a laboratory for Linux task schedulers.

The verbs of the `schedlab` command, for notebooks and scripts::

    import schedlab

    run = schedlab.sim(kernel="linux-6.12", machine="quad-smt", workload="messaging", duration="2s")
    print(run.stats().tasks[["name", "run_us", "latency_us_p99"]])

    trace = schedlab.read("t.arrows")        # or a perf.data
    print(trace.events.event.value_counts())

Every verb that produces a trace returns a `Trace`, which gives Arrow tables, data frames and statistics. A
failure raises a `SchedlabError` whose text is the message of the command.
"""

from schedlab._native import InputError, NotPermittedError, SchedlabError, __version__
from schedlab.heat import Heatmap
from schedlab.inside import again, explain, queues_at, sched_debug
from schedlab.judgement import Battery, Conservation, Judgement
from schedlab.prediction import Difference, WhatIf
from schedlab.querying import query
from schedlab.remarks import CutWarning, SchedlabWarning
from schedlab.searches import Tuned, sweep, tune
from schedlab.timeline import Gantt
from schedlab.trace import Stats, Trace
from schedlab.verbs import (
    check,
    delays,
    diff,
    doctor,
    domains,
    exec_,
    fidelity,
    gantt,
    heatmap,
    import_,
    kernels,
    machines,
    model,
    read,
    record,
    run,
    schema,
    sim,
    test,
    tunables,
    validate,
    whatif,
    workloads,
)
from schedlab.waits import Delays

__all__ = [
    "Battery",
    "Conservation",
    "CutWarning",
    "Delays",
    "Difference",
    "Gantt",
    "Heatmap",
    "InputError",
    "Judgement",
    "NotPermittedError",
    "SchedlabError",
    "SchedlabWarning",
    "Stats",
    "Trace",
    "Tuned",
    "WhatIf",
    "__version__",
    "again",
    "check",
    "delays",
    "diff",
    "doctor",
    "domains",
    "exec_",
    "explain",
    "fidelity",
    "gantt",
    "heatmap",
    "import_",
    "kernels",
    "machines",
    "model",
    "query",
    "queues_at",
    "read",
    "record",
    "run",
    "sched_debug",
    "schema",
    "sim",
    "sweep",
    "test",
    "tunables",
    "tune",
    "validate",
    "whatif",
    "workloads",
]
