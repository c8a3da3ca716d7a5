"""SQL over a trace."""

import json
from pathlib import Path

import pandas as pd
import pytest

import schedlab
from schedlab import querying

pytest.importorskip("duckdb")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("query") / "t.arrows"
    schedlab.sim(kernel="linux-6.12", machine="dual", workload="li:tasks=3", duration="1s", output=path)
    return path


def test_intervals_add_up_to_the_statistics(trace: Path) -> None:
    sql = "select tid, sum(end_ns - start_ns) / 1000 as us from intervals where state = 'running' group by tid"
    found = schedlab.query(trace, sql).set_index("tid")["us"]
    tasks = schedlab.read(trace).stats().tasks.set_index("tid")["run_us"]
    assert found.to_dict() == pytest.approx(tasks[tasks > 0].to_dict(), abs=0.001)


def test_tables_join(trace: Path) -> None:
    sql = """select t.name, count(*) as n from events e join tasks t on e.next_tid = t.tid
        where e.event = 'switch' group by all order by n desc"""
    found = schedlab.query(schedlab.read(trace), sql)
    slices = schedlab.read(trace).stats().tasks.set_index("name")["slices"]
    assert found.set_index("name")["n"].to_dict() == slices[slices > 0].to_dict()


@pytest.mark.parametrize("table", sorted(querying.TABLES))
def test_every_table_can_be_described(trace: Path, table: str) -> None:
    assert len(schedlab.query(trace, f"describe {table}")) > 0


def test_a_wrong_query_says_what_is_wrong(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for sql, problem in [
        ("select nmae from tasks", "nmae"),
        ("selct 1", "syntax"),
        ("select * from nothing", "nothing"),
    ]:
        assert querying.main([str(trace), sql]) == 2
        assert problem in capsys.readouterr().err
    assert querying.main([str(trace.with_name("none")), "select 1"]) == 2
    assert "none" in capsys.readouterr().err


def test_output_is_text_json_csv_or_a_file(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "select name, cpus from (select name, 1 as cpus from tasks) order by name limit 2"
    assert querying.main([str(trace), sql, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["columns"] == ["name", "cpus"]
    assert [row[1] for row in document["rows"]] == [1, 1]
    assert querying.main([str(trace), sql, "--csv"]) == 0
    assert capsys.readouterr().out.startswith("name,cpus\n")
    assert querying.main([str(trace), sql, "--csv", "--json"]) == 2
    assert "--json: not allowed with argument --csv" in capsys.readouterr().err
    output = tmp_path / "two.parquet"
    assert querying.main([str(trace), sql, "-o", str(output)]) == 0
    assert len(pd.read_parquet(output)) == 2
    assert querying.main([str(trace), sql, "-o", str(output)]) == 2, "it exists"
    assert "--force" in capsys.readouterr().err
    assert querying.main([str(trace), sql, "-o", str(tmp_path / "two.xls")]) == 2


def test_names_of_tables_have_no_case(trace: Path) -> None:
    for sql in ("select count(*) from Tasks", 'select count(*) from "TASKS"', "Select Count(*) From TASKS t"):
        assert schedlab.query(trace, sql).iloc[0, 0] == 3


def test_what_is_no_table_is_refused_with_the_names_of_the_tables(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The last three are names in the module that runs the query.
    for name in ("event", "delays", "sql", "TABLES"):
        assert querying.main([str(trace), f"select * from {name}"]) == 2
        said = capsys.readouterr().err
        assert f"Table with name {name} does not exist" in said
        assert "The tables of a trace are events, intervals" in said
        assert "querying.py" not in said


@pytest.mark.parametrize("sql", ["", " ", ";", "-- all of it"])
def test_a_query_without_a_statement_is_refused(trace: Path, sql: str) -> None:
    with pytest.raises(schedlab.InputError, match="the query is empty"):
        schedlab.query(trace, sql)


def test_no_digit_is_lost(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A time of a recording in us, with its nanoseconds; a part that is small; a number beyond the whole ones of floats.
    sql = "select 123456789012.345::double as us, 1.25e-12 as part, 9007199254740993 as ns"
    assert querying.main([str(trace), sql]) == 0
    assert capsys.readouterr().out.split("\n")[1].split() == ["123456789012.345", "1.25e-12", "9007199254740993"]
    assert querying.main([str(trace), sql, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == [[123456789012.345, 1.25e-12, 9007199254740993]]


def test_every_kind_of_value_is_json(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {
        "null": None,
        "'nan'::double": None,
        "'-inf'::double": None,
        "null::int": None,
        "null::timestamp": None,
        "true": True,
        "0.5::decimal(3, 1)": 0.5,
        "[1, null, 'inf'::double]": [1.0, None, None],
        "{'a': 1, 'b': ['x']}": {"a": 1, "b": ["x"]},
        "map {date '2020-01-02': [1]}": {"2020-01-02": [1]},
        "map {7: 'x'}": {"7": "x"},
        "'\\xFFa'::blob": "\\xffa",
        "interval 3 day": "P3DT0H0M0S",
        "timestamp '2020-01-02 03:04:05'": "2020-01-02T03:04:05",
        "time '03:04:05'": "03:04:05",
        "'00000000-0000-0000-0000-000000000001'::uuid": "00000000-0000-0000-0000-000000000001",
    }
    assert querying.main([str(trace), f"select {', '.join(values)}", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["rows"]
    assert row == list(values.values())


def test_sums_of_integers_are_integers(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = """select state, sum(tid) as tids, sum(wait_ns) as waits, sum(end_ns)::hugeint * 10000000000 as long
        from intervals group by state order by state"""
    found = schedlab.query(trace, sql)
    intervals = schedlab.read(trace).intervals
    assert found["tids"].to_list() == intervals.groupby("state", observed=True)["tid"].sum().sort_index().to_list()
    assert [str(kind) for kind in found.dtypes[1:]] == ["int64", "Int64", "object"]
    assert querying.main([str(trace), "select sum(tid) from tasks", "--csv"]) == 0
    assert "." not in capsys.readouterr().out
