"""The verbs, compared with the command of the same name."""

import json
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import schedlab
from schedlab import command

KERNELS = {"linux-2.6.11", "linux-2.6.32", "linux-6.1", "linux-6.12", "bfs", "mlfq"}


def sim(**options: Any) -> schedlab.Trace:  # noqa: ANN401 (any option)
    """Simulate a small load, with some options changed."""
    return schedlab.sim(
        **{"kernel": "linux-6.12", "machine": "2x2", "workload": "messaging", "duration": "50ms"} | options
    )


def test_the_same_arguments_give_the_same_bytes() -> None:
    assert sim().path.read_bytes() == sim().path.read_bytes()


def test_python_and_the_command_give_the_same_bytes(tmp_path: Path) -> None:
    target = tmp_path / "command.arrows"
    arguments = [
        "--kernel",
        "linux-6.12",
        "--machine",
        "2x2",
        "--workload",
        "messaging",
        "--duration",
        "50ms",
        "--seed",
        "7",
    ]
    subprocess.run([command.binary(), "sim", *arguments, "--output", target], check=True, capture_output=True)
    assert target.read_bytes() == sim(seed=7).path.read_bytes()


def test_durations_may_be_timedeltas() -> None:
    assert sim(duration=timedelta(milliseconds=50)).arrow().equals(sim().arrow())
    exact = sim(duration=pd.Timedelta(20_000_001, unit="ns"))
    assert exact.meta["span"] == [0, 20_000_001]


def test_a_tunable_changes_the_run() -> None:
    load = {"tasks": {"hog": {"instance": 3, "loop": -1, "run": 10_000}}}
    plain = sim(machine="1", workload=load, duration="2s").stats().total["slices"]
    longer = sim(machine="1", workload=load, duration="2s", set={"base_slice_ns": 30_000_000}).stats().total["slices"]
    assert longer < plain / 2


def test_costs_can_be_switched_off() -> None:
    load = {"tasks": {"hog": {"instance": 2, "loop": -1, "run": 10_000}}}
    free = sim(machine="1", workload=load, costs="none").stats().total
    assert free["run_us"] == pytest.approx(50_000)
    assert sim(machine="1", workload=load).arrow() != sim(machine="1", workload=load, costs=False).arrow()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kernel": "linux_6.12"}, r"^kernel: .*did you mean \"linux-6\.12\""),
        ({"machine": "z80"}, "^machine: .*z800"),
        ({"machine": "0"}, "^machine: .*0"),
        ({"workload": "mesaging"}, "^workload: .*messaging"),
        ({"workload": {"tasks": {}}}, "^workload: .*task"),
        ({"workload": {"tasks": {"t": {"rum": 5}}}}, "^workload: .*rum"),
        ({"duration": "10"}, "^duration: .*unit"),
        ({"duration": "-1s"}, "^duration: .*negative"),
        ({"seed": -1}, "^seed: -1"),
        ({"set": {"base_slice_n": 1}}, "^set: .*base_slice_ns"),
    ],
)
def test_mistakes_are_reported(options: dict[str, Any], said: str) -> None:
    with pytest.raises(schedlab.InputError, match=said):
        sim(**options)


@pytest.mark.parametrize(
    ("verb", "options", "said"),
    [
        ("check", {"threshold": "5"}, "^threshold: .*unit"),
        ("check", {"max_wasted": "-1s"}, "^max_wasted: .*negative"),
        ("gantt", {"by": "cpus"}, "^by: .*cpus.*task"),
        ("gantt", {"lanes": 0}, "^lanes: "),
        ("gantt", {"from_": "2s", "to": "1s"}, "^to: "),
        ("heatmap", {"what": "queues"}, "^what: .*queues.*queue"),
        ("heatmap", {"cpu": -1}, "^cpu: "),
        ("heatmap", {"why": "woke"}, "^why: .*wake"),
        ("heatmap", {"from_": "1"}, "^from_: .*unit"),
        ("model", {"tasks": 0}, "^tasks: "),
    ],
)
def test_errors_name_the_argument(verb: str, options: dict[str, Any], said: str, hogs: schedlab.Trace) -> None:
    with pytest.raises(schedlab.InputError, match=said):
        getattr(schedlab, verb)(hogs, **options)


# Values that no type checker lets through.
NOTHING: Any = None
ANYTHING: Any = object()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sim(duration=10), "^duration: 10"),
        (lambda: sim(seed="x"), "^seed: 'x'"),
        (lambda: sim(machine=4), "^machine: 4"),
        (lambda: sim(workload=None), "^workload: None"),
        (lambda: sim(set=5), "^set: 5"),
        (lambda: schedlab.check(NOTHING), "^trace: None"),
        (lambda: schedlab.read(NOTHING), "^path: None"),
        (lambda: schedlab.record("ls -l"), r"^run: .*\['ls', '-l'\]"),
        (lambda: schedlab.heatmap("t.arrows", cpu=ANYTHING), "^cpu: "),
    ],
)
def test_wrong_types_name_the_argument(call: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sim(costs="no"), "^costs: .*none"),
        (lambda: sim(output="/nowhere/t.arrows"), r"^output: /nowhere/t\.arrows: "),
        (lambda: schedlab.tunables("linux-9"), "^kernel: "),
        (lambda: schedlab.domains("dual", kernel="x"), "^kernel: "),
        (lambda: schedlab.domains("z80", kernel="linux-6.12"), "z800"),
        (lambda: schedlab.domains("dual", kernel="linux-6.12", offline=9), "^offline: there is no CPU 9"),
        (lambda: schedlab.domains("dual", kernel="linux-6.12", set={"a": 1}), "^set: a: no such tunable"),
        (lambda: schedlab.run([]), "^experiment: "),
        (lambda: schedlab.run("x.toml", on="smi"), "^on: smi"),
        (lambda: schedlab.run("x.toml", jobs=0), "^jobs: 0"),
        (lambda: schedlab.delays("x.arrows", worst="a"), '^worst: "a": it is not a whole number$'),  # type: ignore[arg-type]
    ],
)
def test_errors_of_other_verbs_name_the_argument(call: Callable[[], object], said: str) -> None:
    with pytest.raises(schedlab.InputError, match=said):
        call()


def test_ticks_that_change_nothing_can_be_simulated() -> None:
    assert len(sim(every_tick=True).events) == len(sim().events)


def test_remarks_of_the_command_are_warnings(hogs: schedlab.Trace, tmp_path: Path) -> None:
    cut = tmp_path / "cut.arrows"
    cut.write_bytes(hogs.path.read_bytes()[:-20])
    with pytest.raises(schedlab.InputError, match="nothing is left of the trace: the file ends in the middle"):
        schedlab.heatmap(cut)
    # More events than a batch has.
    long = schedlab.sim(kernel="linux-6.12", machine="4", workload="messaging:groups=8", duration="5s")
    cut.write_bytes(long.path.read_bytes()[:-20])
    with pytest.warns(schedlab.SchedlabWarning, match="cut off") as remarks:
        schedlab.heatmap(cut)
    assert remarks[0].filename == __file__


def test_representations_are_short(hogs: schedlab.Trace) -> None:
    results = [hogs, hogs.stats(), schedlab.check(hogs), schedlab.gantt(hogs), schedlab.heatmap(hogs)]
    for result in results:
        assert repr(result).startswith("<schedlab.")
        assert len(repr(result)) < 150
    assert repr(schedlab.Trace("nowhere.arrows")) == "<schedlab.Trace nowhere.arrows, which cannot be read>"


def test_a_deadlock_is_reported_and_not_simulated_for_ever() -> None:
    halves = {"a": ["x", "y"], "b": ["y", "x"]}
    tasks = {
        name: {"loop": 1, "lock1": first, "run1": 1000, "sleep": 1000, "lock2": second, "run2": 1000}
        for name, (first, second) in halves.items()
    }
    with pytest.raises(schedlab.InputError, match=r"(?s)deadlock.*a.*b"):
        schedlab.sim(kernel="linux-6.1", machine="2", workload={"tasks": tasks})


def test_output_is_kept_and_not_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "run.arrows"
    assert sim(output=target).path == target
    with pytest.raises(schedlab.InputError, match="force"):
        sim(output=target)
    sim(output=target, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run.arrows"]


def test_a_failure_leaves_the_earlier_file(tmp_path: Path) -> None:
    target = tmp_path / "run.arrows"
    before = sim(output=target).path.read_bytes()
    with pytest.raises(schedlab.InputError):
        sim(output=target, force=True, duration="1")
    assert target.read_bytes() == before


def test_the_model_of_a_run_demands_the_same_cpu_time(tmp_path: Path) -> None:
    load = {
        "tasks": {"beat": {"loop": 20, "run": 3000, "sleep": 7000}, "work": {"loop": 10, "run": 20_000, "sleep": 1000}}
    }
    recorded = schedlab.sim(kernel="linux-6.1", machine="2", workload=load)
    target = tmp_path / "model.json"
    model = schedlab.model(recorded, target)
    assert json.loads(target.read_text(encoding="utf-8")) == model
    again = schedlab.sim(kernel="linux-6.12", machine="1", workload=model)
    assert again.stats().total["run_us"] == pytest.approx(recorded.stats().total["run_us"], rel=0.01)


def test_idle_cpus_beside_waiting_tasks_are_found() -> None:
    load = {"tasks": {"hog": {"instance": 3, "cpus": [0, 1], "loop": -1, "run": 10_000}}}
    run = sim(machine="4", workload=load, duration="1s")
    judged = schedlab.check(run, threshold=timedelta(milliseconds=20))
    assert (judged.status, judged.held, judged.wasted_cpu_us) == (command.DONE, True, 0.0)
    assert judged.violations.empty
    assert judged.document["affinity_unknown"] == 0
    assert set(run.affinities["cpus"]) == {"0-1"}
    assert "affinity" not in set(run.events["event"])


EXPERIMENT = """
id = "hogs"
title = "Three hogs on two CPUs"
machine = "2"
duration = "1s"
seeds = [1]

[workload]
preset = "li:tasks=3"

[[kernels]]
name = "cfs"
kernel = "linux-6.1"

[metrics.time]
value = "sum(run_s)"

[[expectations]]
figure = "time given"
kind = "number"
metric = "time"
relation = "=="
bound = {bound}
margin = "1%"
"""


def test_a_real_kernel_has_its_simulation_in_columns_beside_it() -> None:
    simulated = {"measured": 0.25, "range": None, "verdict": "fail", "off": -0.5, "within_scatter": False}
    case = {"kernel": "real 6.1", "at": "n=1", "measured": 0.5, "verdict": "pass", "simulated": simulated}
    rows = [
        {"figure": "a", "measured": 0.5, "verdict": "pass", "simulated": simulated, "cases": [case]},
        {"figure": "b", "measured": None, "verdict": "skipped", "cases": []},
    ]
    judgement = schedlab.Judgement(command.DONE, {"experiments": [{"id": "x", "expectations": rows, "results": []}]})
    row = judgement.expectations.iloc[0]
    assert (row["measured"], row["simulated"], row["off_by"], row["simulated_verdict"]) == (0.5, 0.25, -0.5, "fail")
    assert judgement.expectations["off_by"].isna().tolist() == [False, True]
    assert judgement.cases.iloc[0]["simulated"] == row["simulated"]


@pytest.mark.parametrize(("bound", "status"), [(2.0, command.DONE), (3.0, command.FAILED)])
def test_an_experiment_is_judged(bound: float, status: int, tmp_path: Path) -> None:
    file = tmp_path / "hogs.toml"
    file.write_text(EXPERIMENT.format(bound=bound), encoding="utf-8")
    judgement = schedlab.run(file, report=tmp_path / "report.html")
    assert (judgement.status, judgement.held) == (status, status == command.DONE)
    row = judgement.expectations.iloc[0]
    assert (row["experiment"], row["figure"]) == ("hogs", "time given")
    assert row["measured"] == pytest.approx(2.0, rel=0.01)
    assert row["verdict"] == ("pass" if judgement.held else "fail")
    assert row["required"]["low"] == pytest.approx(0.99 * bound)
    case = judgement.cases.iloc[0]
    assert (case["figure"], case["kernel"], case["measured"]) == ("time given", "linux-6.1", row["measured"])
    metric = judgement.metrics.iloc[0]
    assert (metric["kernel"], metric["metric"], metric["seed"]) == ("cfs", "time", 1)
    assert metric["value"] == row["measured"]
    assert judgement.remarks == []
    assert "Three hogs" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_part_of_an_experiment_is_compared_with_a_baseline(tmp_path: Path) -> None:
    file = tmp_path / "hogs.toml"
    file.write_text(EXPERIMENT.format(bound=2.0), encoding="utf-8")
    old = tmp_path / "old.json"
    old.write_text(json.dumps(schedlab.run(file).document), encoding="utf-8")
    again = schedlab.run(file, kernel="cfs", only=["hogs"], baseline=old, junit=tmp_path / "results.xml")
    assert again.held
    assert again.document["baseline"]["changes"] == []
    assert "<testcase" in (tmp_path / "results.xml").read_text(encoding="utf-8")


def test_the_trace_behind_a_failed_expectation_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "hogs.toml"
    file.write_text(EXPERIMENT.format(bound=3.0), encoding="utf-8")
    look = schedlab.run(file, keep=tmp_path / "kept").expectations.iloc[0]["look"]
    assert Path(look["trace"]).parent == tmp_path / "kept"
    assert schedlab.read(look["trace"]).meta["machine"] == "2"
    assert f"schedlab view {look['trace']}" in look["command"]


def test_an_experiment_with_a_mistake_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "slip.toml"
    file.write_text(EXPERIMENT.format(bound=1).replace("machine", "machin"), encoding="utf-8")
    with pytest.raises(schedlab.InputError, match=r"slip\.toml.*machine"):
        schedlab.run(file)


def test_the_battery_is_judged(tmp_path: Path) -> None:
    fixed = {"fix.group_imbalance": True}
    battery = schedlab.test(on="sim:linux-4.1", set=fixed, only=["balance-groups", "fair-equal"], repeats=1)
    assert battery.held
    assert battery.tests.set_index("id")["verdict"].to_dict() == {"fair-equal": "pass", "balance-groups": "pass"}
    failed = schedlab.test(on="sim:linux-4.1", only="balance-groups", report=tmp_path / "page.html")
    assert failed.status == command.FAILED
    assert failed.expectations["verdict"].tolist() == ["fail"]
    assert "balance-groups" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(schedlab.InputError, match=r"^only: .*fair-equal"):
        schedlab.test(only="fair-equl")


def test_recording_works_or_says_what_is_missing() -> None:
    try:
        trace = schedlab.record(["sleep", "0.1"])
    except schedlab.NotPermittedError as error:
        pytest.skip(str(error))
    assert "sleep" in set(trace.names["comm"])
    # The kernel may leave out the switches from one CPU's idle task, so the sleeper need not be a `next_name`.
    switches = trace.events.query("event == 'switch'")
    assert "sleep" in set(switches["name"])
    sleeper = switches.loc[switches["name"] == "sleep", "tid"].iloc[0]
    assert set(switches.loc[switches["next_tid"] == sleeper, "next_name"]) <= {"sleep", "schedlab"}
    assert "sleep" in set(trace.intervals["name"])
    assert (trace.events["event"] == "switch").any()


def test_a_workload_runs_on_this_kernel_or_the_message_says_what_is_missing() -> None:
    load = {"tasks": {"t": {"instance": 2, "loop": 10, "run": 500, "sleep": 1000}}}
    try:
        trace = schedlab.exec_(load, placement="cpu")
    except schedlab.NotPermittedError as error:
        pytest.skip(str(error))
    tasks = trace.stats().tasks
    own = tasks[tasks["name"].isin(["t-0", "t-1"])]
    assert len(own) == 2
    assert (own["run_us"] >= 4900).all()
    assert (own["voluntary"] >= 10).all()


def test_the_end_of_a_recorded_command_is_a_remark() -> None:
    try:
        with pytest.warns(schedlab.SchedlabWarning, match="exit status was 3"):
            schedlab.record(["sh", "-c", "exit 3"])
    except schedlab.NotPermittedError as error:
        pytest.skip(str(error))


PERF_DATA = Path(__file__).parents[2] / "crates/trace/tests/data/pipes.perf.data"


def test_a_perf_data_is_read_and_imported(tmp_path: Path) -> None:
    read, imported = schedlab.read(PERF_DATA), schedlab.import_(PERF_DATA, tmp_path / "t.arrows")
    assert read.arrow().equals(imported.arrow())
    assert read.meta["source"] == "import:perf.data"
    tasks = read.stats().tasks.set_index("tid")
    frame = read.intervals.assign(length=lambda f: f["end_ns"] - f["start_ns"])
    for state, figure in (("running", "run_us"), ("waiting", "wait_us")):
        sums = frame[frame["state"] == state].groupby("tid")["length"].sum() / 1e3
        expected = tasks.loc[tasks[figure] > 0, figure]
        assert sums[sums > 0].to_dict() == pytest.approx(expected.groupby("tid").sum().to_dict())


def test_a_cut_recording_is_read_with_a_remark(tmp_path: Path) -> None:
    cut = tmp_path / "cut.data"
    cut.write_bytes(PERF_DATA.read_bytes()[:-20_000])

    def events() -> int:
        try:
            return len(schedlab.read(cut).events)
        except schedlab.InputError as error:
            # Without its own formats it needs those of this machine.
            pytest.skip(str(error))

    with pytest.warns(schedlab.SchedlabWarning, match="lost the formats"):
        assert events() > 0


def test_listings_contain_the_expected_names() -> None:
    assert set(schedlab.kernels()["name"]) >= KERNELS
    assert set(schedlab.machines()["name"]) >= {"up", "dual", "quad-smt", "z800"}
    assert {"sched_latency_ns", "vm.swappiness"} <= set(schedlab.tunables()["name"])
    values = schedlab.tunables("linux-6.12", "4").set_index("name")["default"]
    assert values["base_slice_ns"] == 2_100_000
    assert set(schedlab.workloads()["name"]) >= {"li", "cf", "messaging", "periodic"}


def test_this_machine_s_tunables_have_values_and_say_whether_they_can_be_set() -> None:
    rows = schedlab.tunables(live=True, only_groups=["vm"]).set_index("name")
    swappiness = rows.loc["vm.swappiness"]
    assert swappiness["location"] == "/proc/sys/vm/swappiness"
    assert swappiness["range"][0] <= int(str(swappiness["value"])) <= swappiness["range"][1]
    assert set(rows["group"]) == {"vm"}
    assert all(rows["settable"] | rows["reason"].notna()), "what cannot be set says why"


def test_doctor_answers() -> None:
    assert schedlab.doctor()


def test_a_heat_map_shows_which_cpus_were_busy() -> None:
    load = {"tasks": {"hog": {"instance": 5, "cpus": [0, 1], "loop": -1, "run": 1000}}}
    trace = sim(workload=load, duration="200ms", trace_queues=True)
    heat = schedlab.heatmap(trace)
    means = heat.cells.mean(axis="columns").to_dict()
    assert list(means) == ["0", "1", "2", "3"]
    assert means["0"] + means["1"] == pytest.approx(5, rel=0.05)
    assert means["2"] == means["3"] == 0
    assert heat.png.startswith(b"\x89PNG")
    looks = schedlab.heatmap(trace, what="considered", why=["newidle", "periodic", "nohz"], to="100ms")
    assert looks.document["end_us"] == 100_000
    assert looks.cells.to_numpy().sum() == sum(looks.document["looks"].values())


def test_domains_have_one_row_per_cpu_and_level() -> None:
    built = schedlab.domains("2x2x2", kernel="linux-6.12")
    assert sorted(set(built.cpu)) == list(range(8))
    assert built.level.iloc[0] == "SMT"
    assert 3 not in set(schedlab.domains("2x2x2", kernel="linux-6.12", offline=[3]).explode("span").span)


def test_delays_name_the_culprits(hogs: schedlab.Trace) -> None:
    found = schedlab.delays(hogs, worst=5, from_="100ms")
    assert len(found.waits) == 5
    assert found.waits["duration_us"].is_monotonic_decreasing
    assert set(found.blame["culprit"]) <= {"hog-0", "hog-1", "hog-2"}
    caused = found.culprits["caused_us"].sum() + found.total["idle_us"] + found.total["unknown_us"]
    assert caused == pytest.approx(found.total["wait_us"])
    assert found.total["wait_us"] == pytest.approx(hogs.stats(from_="100ms").total["wait_us"])
    only = schedlab.delays(hogs, task="hog-0")
    assert set(only.victims["task"]) == {"hog-0"}


def test_every_verb_takes_a_window(hogs: schedlab.Trace) -> None:
    assert schedlab.heatmap(hogs, from_="10ms", to="20ms", task="hog-*").document["end_us"] == 20_000
    assert schedlab.check(hogs, from_="10ms", to="20ms").document["span_us"] == 10_000
    with pytest.warns(schedlab.SchedlabWarning, match="1 task was in the middle of long work when the trace ended"):
        workload = schedlab.model(hogs, from_="100ms", to="200ms", task="hog-0")
    assert len(workload["tasks"]) == 1
    assert workload["global"]["duration"] == 0.1


def test_a_prediction_compares_recorded_simulated_and_asked(hogs: schedlab.Trace, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    variant = "more:machine=4"
    found = schedlab.whatif(hogs, kernel="linux-2.6.11", variant=variant, seeds=2, report=report)
    assert list(found.sentences) == ["linux-2.6.11", "more"]
    assert "all tasks: wait falls by " in str(found)
    rows = found.rows
    wait = rows[(rows.variant == "more") & (rows.kind == "all") & (rows.figure == "wait_us")].iloc[0]
    assert wait.verdict == "falls"
    assert wait.asked < wait.baseline
    assert found.validation is not None
    assert found.validation["seeds"] == 2
    assert "What if" in report.read_text(encoding="utf-8")
    with pytest.raises(schedlab.InputError, match="nothing is asked"):
        schedlab.whatif(hogs)


def test_a_prediction_keeps_the_traces_behind_it(hogs: schedlab.Trace, tmp_path: Path) -> None:
    schedlab.whatif(hogs, variant="more:machine=4", seeds=1, keep=tmp_path / "kept")
    names = ("0-as-recorded.arrows", "1-more.arrows")
    machines = [schedlab.read(tmp_path / "kept" / name).meta["machine"] for name in names]
    assert machines == ["2", "4"]
    with pytest.raises(schedlab.InputError, match="keep"):
        schedlab.whatif(hogs, variant="more:machine=4", seeds=1, keep=tmp_path / "kept")


def test_a_difference_has_intervals_and_bounds(hogs: schedlab.Trace) -> None:
    load = {"tasks": {"hog": {"instance": 4, "loop": -1, "run": 10_000}}}
    more = schedlab.sim(kernel="linux-6.1", machine="2", workload=load, duration="1s")
    found = schedlab.diff(hogs, more, by="role", fail_if=["wait > +10%", "wait > +1000%"])
    assert (found.status, found.held, list(found.bounds.ruling)) == (1, False, ["exceeded", "held"])
    wait = found.rows[(found.rows.row == "hog") & (found.rows.figure == "wait_us")].iloc[0]
    assert wait.low < wait.change < wait.high
    assert wait.direction == "worse"
    assert "wait_us" in set(found.changes.figure)
    same = schedlab.diff([hogs, hogs], [hogs, hogs])
    assert same.held
    assert len(same.changes) == 0
    with pytest.raises(schedlab.InputError, match="neither"):
        schedlab.diff(hogs, more, fail_if="wait")


def test_a_model_is_validated(hogs: schedlab.Trace) -> None:
    with pytest.warns(schedlab.SchedlabWarning, match="3 tasks were in the middle of long work"):
        found = schedlab.validate(hogs, seeds=1)
    assert found["recorded"]["run_us"] == pytest.approx(found["simulated"]["run_us"], rel=0.01)
    assert abs(found["errors"]["wait"]) < 0.2
    assert len(found["tasks"]) == 3
    with pytest.raises(schedlab.InputError, match="no kernel"):
        schedlab.validate(hogs, kernel="minix")
