"""What a sweep's file may say, and how a wrong one is refused."""

from pathlib import Path

import pytest

import schedlab
from schedlab import tomlfile
from schedlab.sweeping import check, kinds, sweep
from schedlab.sweeping.grid import Grid

GOOD = 'kernels = ["linux-6.12"]\nworkloads = ["li:tasks=3"]\nduration = "10ms"\n'


def read(tmp_path: Path, text: str) -> sweep.Sweep:
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    found = sweep.read(path)
    check.check(found)
    return found


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(schedlab.InputError) as caught:
        read(tmp_path, text)
    return str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kernel = "linux-6.12"\n', 's.toml:1: kernel: "kernel" is no key; did you mean "kernels"?'),
        ('workloads = ["messaging"]\n', 's.toml: there is no key "kernels"; write kernels = ["linux-6.12"]'),
        ('kernels = ["linux-6.12"]\n', 's.toml: there is no key "workloads"; write workloads = ["messaging"]'),
        ('kernels = "linux-6.12"\n', "s.toml:1: kernels: 'linux-6.12' is no list; write kernels = [\"linux-6.12\"]"),
        ("kernels = []\n", 's.toml:1: kernels: is empty; write kernels = ["linux-6.12"]'),
        ("kernels = [\n6]\n", 's.toml:2: kernels[0]: 6 is no kernel; "linux-6.12", or a table with kernel = "..."'),
        (
            'kernels = ["linux-6.1",\n"linux-6.1"]\n',
            's.toml:2: kernels[1]: "linux-6.1" is there twice; give each once, or give it a name',
        ),
        (
            '[[kernels]]\nname = "x"\n',
            's.toml:1: kernels[0]: there is no key "kernel"; write kernel = "linux-6.12"',
        ),
        (
            '[[kernels]]\nkernel = "linux-6.1"\nsetings = 1\n',
            's.toml:3: kernels[0].setings: "setings" is no key; did you mean "settings"?',
        ),
        (
            GOOD + 'machines = ["z80"]\n',
            's.toml:4: machines[0]: "z80" is no machine; did you mean "z800"?',
        ),
        (
            GOOD + 'machines = ["gone.toml"]\n',
            "s.toml:4: machines[0]: there is no file gone.toml; paths count from the folder of this file",
        ),
        (
            GOOD.replace("linux-6.12", "linux-6.21"),
            's.toml:1: kernels[0]: there is no kernel "linux-6.21"; the nearest is linux-6.18',
        ),
        (
            GOOD.replace("li:tasks", "li:task"),
            's.toml:2: workloads[0]: li: has no parameter "task"; did you mean "tasks"?',
        ),
        (
            GOOD.replace('"li:tasks=3"', '{ preset = "li", file = "l.json" }'),
            "s.toml:2: workloads[0]: is not one workload; give exactly one of preset, file, inline",
        ),
        (
            GOOD.replace('duration = "10ms"\n', ""),
            "s.toml: the workload never ends; give a duration",
        ),
        (
            GOOD.replace("10ms", "10"),
            's.toml:3: duration: the duration "10" has no unit; write a number and a unit: '
            "10s, 250ms, 40us, 100ns, 2m, 1h",
        ),
        (GOOD + 'costs = "some"\n', 's.toml:4: costs: there is no \'some\'; write "machine" or "none"'),
        (GOOD + "seeds = 0\n", "s.toml:4: seeds: 0 is no number of seeds; write one from 1 to 10000000"),
        (GOOD + "seeds = [1, 2, 1]\n", "s.toml:4: seeds[2]: 1 is there twice; give each seed once"),
        (GOOD + "seeds = [1.5]\n", "s.toml:4: seeds[0]: 1.5 is no seed; write whole numbers from 0 on"),
        (
            GOOD + "seeds = { from = 5, to = 1 }\n",
            "s.toml:4: seeds: is no range of seeds; write { from = 1, to = 100 }",
        ),
        (GOOD + "seeds = { form = 5 }\n", 's.toml:4: seeds.form: "form" is no key; did you mean "from"?'),
        (GOOD + "settings = 3\n", "s.toml:4: settings: 3 is no table; write [settings] and a line for each"),
        (
            GOOD + "[settings]\nbase_slice_n = [1]\n",
            's.toml:5: settings.base_slice_n: no such tunable; did you mean "base_slice_ns"?',
        ),
        (GOOD + "[settings]\nbase_slice_ns = []\n", f"s.toml:5: settings.base_slice_ns: has no value; {kinds.RANGE}"),
        (
            GOOD + "[settings]\nbase_slice_ns = [700000, 700000]\n",
            "s.toml:5: settings.base_slice_ns[1]: 700000 is there twice; give each value once",
        ),
        (
            GOOD + "[settings]\nbase_slice_ns = { from = 1 }\n",
            f's.toml:5: settings.base_slice_ns: "to" is no number; {kinds.RANGE}',
        ),
        (
            f"{GOOD}[settings]\nbase_slice_ns = 1{'0' * 400}\n",
            f"s.toml:5: settings.base_slice_ns: 1{'0' * 56}... is no value of a setting; {kinds.RANGE}",
        ),
        (
            f"{GOOD}[settings]\nbase_slice_ns = {{ from = 1, to = 1{'0' * 400}, steps = 2 }}\n",
            f's.toml:5: settings.base_slice_ns.to: "to" is no number; {kinds.RANGE}',
        ),
        (
            GOOD + "[settings]\nbase_slice_ns = { from = 1.0, to = 1e300, step = 1e-300 }\n",
            "s.toml:5: settings.base_slice_ns.step: gives inf values; at most 10000000",
        ),
        (
            GOOD + "[settings]\nbase_slice_ns = { from = 5, to = 1, steps = 2 }\n",
            "s.toml:5: settings.base_slice_ns: 5 is not less than 1; from is the least value, to the greatest",
        ),
        (
            GOOD + '[settings]\nbase_slice_ns = { from = 0, to = 9, steps = 2, scale = "log" }\n',
            "s.toml:5: settings.base_slice_ns.from: 0 has no logarithm; begin above 0, or take the linear scale",
        ),
        (
            GOOD + "[settings]\nbase_slice_ns = { from = 1, to = 3, steps = 5 }\n",
            "s.toml:5: settings.base_slice_ns.steps: 5 whole numbers do not fit between 1 and 3; take fewer",
        ),
        (
            GOOD + '[measures]\nwait = "sum(wait_ss)"\n',
            's.toml:5: measures.wait: "sum(wait_ss)": "wait_ss" is no measure, parameter or table; '
            'did you mean "wait_s"?',
        ),
        (
            GOOD + "[measures]\nrun = \"sum(run_s['cat'])\"\n",
            "s.toml:5: measures.run: \"sum(run_s['cat'])\": no task is named 'cat'; "
            "the tasks are 'li-0', 'li-1', 'li-2'",
        ),
        (
            GOOD + '[measures]\nwait = "wait_s"\n',
            's.toml:5: measures.wait: "wait_s": a list of 3 numbers where one belongs; take mean(...) or the like',
        ),
        (
            GOOD + '[measures]\nerror = "idle_s"\n',
            's.toml:5: measures.error: "error" is a column of every sweep; give the measure another name',
        ),
    ],
)
def test_a_wrong_file_is_refused_with_file_line_and_key(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text) == message


def test_a_value_that_a_kernel_cannot_have_is_refused(tmp_path: Path) -> None:
    message = refused(tmp_path, GOOD + "[settings]\nbase_slice_ns = [700000, -1]\n")
    assert message == "s.toml:5: settings.base_slice_ns: -1 is out of range; take 0 to 10000000000"


@pytest.mark.parametrize("named", ['"own.json"', '{ file = "own.json" }'])
def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path, named: str) -> None:
    (tmp_path / "own.json").write_bytes(b'{"tasks": {"\xff": {}}}')
    said = refused(tmp_path, GOOD.replace('"li:tasks=3"', named))
    key = "workloads[0].file" if "file" in named else "workloads[0]"
    assert said == f"s.toml:2: {key}: own.json is not UTF-8; save the file as UTF-8 text"


def test_a_number_with_a_point_is_written_as_the_kernel_takes_it(tmp_path: Path) -> None:
    read(tmp_path, GOOD + "[settings]\nbase_slice_ns = [7e5, 1e6]\n")


def test_a_wrong_line_of_a_workload_is_named_by_its_own_file(tmp_path: Path) -> None:
    (tmp_path / "load.json").write_text('{"tasks": {"a": {\n"ruun": 5}}}', encoding="utf-8")
    message = refused(tmp_path, GOOD.replace("li:tasks=3", "load.json"))
    assert message.startswith("s.toml:2: workloads[0]: load.json:2: "), message


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", (3,)),
        ('["a", "b"]', ("a", "b")),
        ("true", (1,)),
        ("{ from = 1, to = 4 }", (1, 2, 3, 4)),
        ("{ from = 0, to = 10, step = 5 }", (0, 5, 10)),
        ("{ from = 0.0, to = 0.3, step = 0.1 }", (0.0, 0.1, 0.2, pytest.approx(0.3))),
        ("{ from = 0, to = 1000, steps = 3 }", (0, 500, 1000)),
        ('{ from = 1, to = 1000, steps = 4, scale = "log" }', (1, 10, 100, 1000)),
        ("{ from = 0.5, to = 1, steps = 2 }", (0.5, 1.0)),
    ],
)
def test_settings_are_values_lists_or_ranges(tmp_path: Path, text: str, values: tuple[object, ...]) -> None:
    path = tmp_path / "s.toml"
    path.write_text(f"[settings]\nx = {text}\n", encoding="utf-8")
    document = tomlfile.read(path)
    assert kinds.settings(document, "settings", document.values["settings"])["x"] == values


def test_every_combination_has_its_number(tmp_path: Path) -> None:
    text = """
    workloads = ["li:tasks=3", "li:tasks=4"]
    machines = ["1", "2"]
    duration = "10ms"
    seeds = { from = 7, to = 8 }
    [settings]
    hz = [100, 1000]
    [[kernels]]
    kernel = "linux-6.1"
    [[kernels]]
    kernel = "linux-6.12"
    name = "eevdf"
    settings = { base_slice_ns = { from = 1000000, to = 3000000, steps = 3 } }
    """
    grid = Grid(read(tmp_path, text))
    rows = [grid.row(n) for n in range(grid.count)]
    keys = [
        (own.kernel.name, own.machine.name, own.workload.name, *sorted(own.settings.items()), own.seed) for own in rows
    ]
    assert grid.count == 2 * 2 * 2 * 2 + 2 * 2 * 2 * 3 * 2
    assert len(set(keys)) == grid.count
    assert keys[:3] == [
        ("linux-6.1", "1", "li:tasks=3", ("hz", 100), 7),
        ("linux-6.1", "1", "li:tasks=3", ("hz", 100), 8),
        ("linux-6.1", "1", "li:tasks=3", ("hz", 1000), 7),
    ]
    assert keys[-1] == ("eevdf", "2", "li:tasks=4", ("base_slice_ns", 3000000), ("hz", 1000), 8)
    assert [own.point for own in rows] == list(range(grid.count))
