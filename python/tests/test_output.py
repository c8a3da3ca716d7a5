"""The files that `query`, `sweep`, `tune` and the functions write."""

import os
from pathlib import Path

import pandas as pd
import pytest

import schedlab
from schedlab import output, querying, sweeping
from schedlab.tuning import cli


@pytest.fixture
def home(hogs: schedlab.Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    hogs.save(tmp_path / "t.arrows")
    sweep = 'kernels = ["linux-6.1"]\nworkloads = ["li:tasks=2"]\nduration = "20ms"\n'
    (tmp_path / "w.toml").write_text(sweep, encoding="utf-8")
    study = """
        kernel = "linux-6.1"
        duration = "20ms"
        load = { workload = "li:tasks=2" }
        parameters = { latency_ns = {} }
        objectives = { wait = { value = "sum(wait_s)" } }
        search = { trials = 2 }
        confirm = { runs = 6 }
    """
    (tmp_path / "s.toml").write_text(study, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(verb: str, name: str, *, force: bool = False) -> int:
    """Let a verb write a file of this name."""
    more = ["--force"] if force else []
    if verb == "query":
        return querying.main(["t.arrows", "select 1 as one", "-o", f"{name}.parquet", *more])
    if verb == "sweep":
        return sweeping.run(["w.toml", "-o", f"{name}.parquet", *more])
    return cli.main(["s.toml", "--quiet", "--settings", f"{name}.parquet", *more])


VERBS = pytest.mark.parametrize("verb", ["query", "sweep", "tune"])


@VERBS
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("kept", "exists already; choose another name or give --force"),
        ("folder", "is a folder; name a file in it"),
        ("none/x", "there is no folder none; make it first"),
        ("/proc/x", "cannot be written: No such file or directory"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_at_once(
    home: Path, verb: str, name: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "kept.parquet").write_text("kept", encoding="utf-8")
    (home / "folder.parquet").mkdir()
    before = sorted(home.iterdir())
    assert run(verb, name) == 2
    option = "--settings" if verb == "tune" else "--output"
    assert capsys.readouterr() == ("", f"schedlab: {option} {name}.parquet: {why}\n")
    assert sorted(home.iterdir()) == before
    assert (home / "kept.parquet").read_text(encoding="utf-8") == "kept"


@VERBS
def test_a_link_leads_to_the_file_that_is_replaced(home: Path, verb: str) -> None:
    (home / "far").mkdir()
    (home / "far" / "real.parquet").write_text("old", encoding="utf-8")
    (home / "link.parquet").symlink_to("far/real.parquet")
    assert run(verb, "link", force=True) == 0
    assert (home / "link.parquet").is_symlink()
    assert (home / "far" / "real.parquet").read_bytes() != b"old"
    assert [own.name for own in (home / "far").iterdir()] == ["real.parquet"]


def test_a_trace_may_replace_the_file_to_which_a_link_leads(home: Path) -> None:
    (home / "real.arrows").write_text("old", encoding="utf-8")
    (home / "link.arrows").symlink_to("real.arrows")

    def simulate(*, force: bool) -> schedlab.Trace:
        return schedlab.sim(
            kernel="linux-6.1", workload="li:tasks=2", duration="20ms", output="link.arrows", force=force
        )

    with pytest.raises(schedlab.InputError, match=r"output: link.arrows: exists already; .* give force=True"):
        simulate(force=False)
    simulate(force=True)
    assert (home / "link.arrows").is_symlink()
    assert schedlab.read("real.arrows").meta["kernel"] == "linux-6.1"


def test_a_file_stays_if_the_new_one_fails(home: Path) -> None:
    kept = home / "kept"
    kept.write_text("kept", encoding="utf-8")

    def fail(_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(schedlab.InputError, match=r"--output .*kept: cannot be written: No space left on device"):
        output.write(kept, "--output", fail)
    assert kept.read_text(encoding="utf-8") == "kept"
    assert not (home / ".kept.new").exists()


def test_a_fifo_is_written_in_place(home: Path) -> None:
    fifo = home / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        output.check(fifo, "--output", force=False)
        output.write(fifo, "--output", lambda file: file.write(b"it came"))
        assert os.read(reader, 100) == b"it came"
    finally:
        os.close(reader)
    assert fifo.is_fifo()


def test_what_was_found_is_printed_where_its_file_cannot_be_written(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise schedlab.InputError("--settings best.toml: cannot be written: No space left on device")

    monkeypatch.setattr(output, "write", full)
    assert cli.main(["s.toml", "--quiet", "--settings", "best.toml"]) == 2
    printed = capsys.readouterr()
    assert "2 trials" in printed.out
    assert printed.err.endswith("No space left on device\n")
    assert not (home / "best.toml").exists()


def test_a_query_writes_what_it_found(home: Path) -> None:
    assert run("query", "one") == 0
    assert pd.read_parquet(home / "one.parquet")["one"].tolist() == [1]
