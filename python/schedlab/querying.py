"""SQL over a trace: `schedlab query`, and `schedlab.query` in Python. DuckDB does the work."""

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from schedlab import command, output, program
from schedlab._native import InputError, NotPermittedError
from schedlab.arguments import PathLike
from schedlab.counting import counted
from schedlab.remarks import SchedlabWarning
from schedlab.trace import Trace
from schedlab.verbs import delays, read

if TYPE_CHECKING:
    import duckdb

# A table is made when a query names it.
TABLES: dict[str, tuple[str, Callable[[Trace], pd.DataFrame]]] = {
    "events": ("every event, with the names of its tasks", lambda trace: trace.events),
    "intervals": ("what each task did, from when until when, and how long it waited before", lambda t: t.intervals),
    "names": ("names, processes and cgroups of tasks", lambda trace: trace.names),
    "affinities": ("where tasks may run", lambda trace: trace.affinities),
    "tasks": ("the statistics of each task", lambda trace: trace.stats().tasks),
    "processes": ("the statistics of each process", lambda trace: trace.stats().processes),
    "cpus": ("the statistics of each CPU", lambda trace: trace.stats().cpus),
    "groups": ("the statistics of each task group", lambda trace: trace.stats().groups),
    "waits": ("the 1,000 longest waits", lambda trace: delays(trace, worst=1000).waits),
}

_LISTED = "\n".join(f"  {name:<12} {about}" for name, (about, _) in TABLES.items())
_EPILOG = f"""tables:
{_LISTED}

examples:
  schedlab query t.arrows "select name, sum(end_ns - start_ns) / 1e6 as ms from intervals
      where state = 'waiting' group by name order by ms desc limit 5"
  schedlab query t.arrows "describe intervals"
  schedlab query t.arrows "select * from tasks" -o tasks.parquet

Times in the statistics are us, those in events and intervals ns. docs/query.md has more.
"""

# All digits that a number has, since times are large.
_DIGITS = "{:.15g}".format

# The types that DuckDB gives sums of integers.
_WIDE = {"HUGEINT", "UHUGEINT"}

# A table of this many rows is printed whole; of a longer one, the first.
_MOST_ROWS = 100


def query(trace: Trace | PathLike, sql: str) -> pd.DataFrame:
    """Return the result of a query in SQL over a trace.

    The tables are `events`, `intervals`, `names`, `affinities`, `tasks`, `processes`, `cpus`, `groups` and `waits`
    (docs/query.md). DuckDB runs the query: `pip install schedlab[query]`. Raises `InputError` with DuckDB's message if
    the query is wrong.
    """
    try:
        import duckdb  # noqa: PLC0415 (only queries need it)
    except ModuleNotFoundError as error:
        raise NotPermittedError("queries need DuckDB: pip install 'schedlab[query]'") from error
    opened = trace if isinstance(trace, Trace) else read(trace)
    with duckdb.connect() as connection:
        # The variables of this module are no tables.
        connection.execute("set python_enable_replacements = false")
        try:
            named = {name.lower() for name in connection.get_table_names(sql)}
        except duckdb.Error:
            # `describe` and the like: the words of the query.
            named = set(sql.lower().replace(",", " ").replace("(", " ").replace(";", " ").split())
        for name in TABLES:
            if name in named:
                connection.register(name, _plain(TABLES[name][1](opened)))
        return _result(connection, sql)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame that DuckDB takes: text instead of categories, and columns also where there are no rows."""
    categories = frame.select_dtypes("category").columns
    return frame.astype(dict.fromkeys(categories, "str")) if len(frame.columns) else pd.DataFrame({"name": []})


def _result(connection: "duckdb.DuckDBPyConnection", sql: str) -> pd.DataFrame:
    import duckdb  # noqa: PLC0415

    try:
        if not connection.extract_statements(sql):
            raise InputError('the query is empty; write one, such as "select * from tasks"')
        return _frame(connection, sql)
    except duckdb.CatalogException as error:
        raise InputError(f"the query: {error}\n\nThe tables of a trace are {', '.join(TABLES)}.") from error
    except duckdb.Error as error:
        raise InputError(f"the query: {error}") from error
    except RuntimeError as error:
        # What DuckDB makes of Ctrl-C.
        raise KeyboardInterrupt from error


def _frame(connection: "duckdb.DuckDBPyConnection", sql: str) -> pd.DataFrame:
    """Return what a query finds. Sums of integers, of which DuckDB makes floats for pandas, are integers."""
    answer = connection.sql(sql)
    wide = [at for at, kind in enumerate(answer.types) if str(kind) in _WIDE]
    if not wide:
        plain: pd.DataFrame = answer.df()
        return plain
    table = answer.to_arrow_table()
    frame: pd.DataFrame = connection.from_arrow(table).df()
    for at in wide:
        frame.isetitem(at, _integers([own if own is None else int(own) for own in table[at].to_pylist()]).array)
    return frame


def _integers(values: list[int | None]) -> "pd.Series[Any]":
    """Return integers as pandas has them: nullable where one is missing, and of any length where one is too large."""
    if any(own is not None and abs(own) >= 1 << 63 for own in values):
        return pd.Series(values, dtype="object")
    return pd.Series(values, dtype="Int64" if None in values else "int64")


def _parser() -> program.Parser:
    parser = program.Parser("query", "Ask a trace in SQL.", _EPILOG)
    parser.add_argument("trace", metavar="TRACE", help="a trace, or another recording that schedlab reads")
    parser.add_argument("sql", metavar="SQL", help="the query; - reads it from standard input")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write .csv, .json or .parquet instead")
    parser.add_argument("--force", action="store_true", help="replace that file if it exists")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document: columns and rows")
    form.add_argument("--csv", action="store_true", help="print CSV")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    return program.ended(lambda: _run(_parser().given(arguments)), extra="query")


def _run(given: argparse.Namespace) -> int:
    if given.output:
        _check_output(given.output, force=given.force)
    with warnings.catch_warnings():
        warnings.simplefilter("always", SchedlabWarning)
        warnings.showwarning = lambda message, *_, **__: program.say(str(message))
        result = query(given.trace, _read() if given.sql == "-" else given.sql)
    if given.output:
        output.write(given.output, "--output", lambda file: _WRITERS[given.output.suffix](result, file))
        program.say(f"wrote {given.output}: {counted(len(result), 'row')}")
    else:
        program.printed(_printed(result, as_json=given.json, as_csv=given.csv))
    return command.DONE


def _read() -> str:
    """Return the query on standard input."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise InputError("the query on standard input is not UTF-8; save it as UTF-8 text") from None


_WRITERS: dict[str, Callable[[pd.DataFrame, IO[bytes]], Any]] = {
    ".csv": lambda frame, file: frame.to_csv(file, index=False),
    ".json": lambda frame, file: file.write(_document(frame).encode()),
    ".parquet": lambda frame, file: frame.to_parquet(file, index=False),
}


def _check_output(path: Path, *, force: bool) -> None:
    if path.suffix not in _WRITERS:
        raise InputError(f"--output {path}: has no known ending; write NAME{' or NAME'.join(_WRITERS)}")
    output.check(path, "--output", force=force)


def _printed(frame: pd.DataFrame, *, as_json: bool, as_csv: bool) -> str:
    if as_json:
        return _document(frame)
    if as_csv:
        return frame.to_csv(index=False).rstrip("\n")
    if frame.empty:
        return f"no rows ({', '.join(map(str, frame.columns))})"
    text = frame.head(_MOST_ROWS).to_string(index=False, float_format=_DIGITS)
    more = len(frame) - _MOST_ROWS
    return f"{text}\n... and {more:,} more (-o FILE or --csv has them all)" if more > 0 else text


def _document(frame: pd.DataFrame) -> str:
    """Return columns and rows as JSON; what is missing, or a number that is not finite, is null."""
    text = json.dumps(_keyed(frame.to_dict("split")["data"]), default=_in_json)
    rows = json.loads(text, parse_constant=lambda _: None)
    return json.dumps({"columns": list(map(str, frame.columns)), "rows": rows})


def _keyed(value: Any) -> Any:  # noqa: ANN401
    """Return a value whose maps have text as keys, as all have in JSON."""
    if isinstance(value, dict):
        return {own if isinstance(own, str) else str(own): _keyed(held) for own, held in value.items()}
    return [_keyed(held) for held in value] if isinstance(value, (list, tuple)) else value


def _in_json(value: Any) -> Any:  # noqa: ANN401 (whatever DuckDB has)
    """Return a value for which JSON has no kind as it is there."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _keyed(value.tolist())
    if isinstance(value, (bytes, bytearray)):
        return value.decode(errors="backslashreplace")
    if pd.isna(value):
        return None
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
