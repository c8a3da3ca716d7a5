"""The pages on sweeps and searches: their commands and their code are run again and must print what they show.

With `SCHEDLAB_WRITE_DOCS=1` in the environment it is rewritten instead, to be read before it is committed.
"""

import code
import contextlib
import io
import json
import os
import re
import shlex
from doctest import DocTestParser
from pathlib import Path

import pytest

from schedlab import command as schedlab
from schedlab import sweeping
from schedlab.tuning import cli
from schedlab.tuning.schema import TABLES, schema

DOCS = Path(__file__).parents[2] / "docs"
WRITE = bool(os.environ.get("SCHEDLAB_WRITE_DOCS"))
# How long something took, and on how many cores.
VARIES = re.compile(r"in [\d.]+ (ms|s|min)\b(.* on \d+ cores?)?")


def command(line: str) -> list[str]:
    """Run a command of the page; return what it prints."""
    program, verb, *arguments = shlex.split(line)
    if program == "cat":
        return Path(verb).read_text(encoding="utf-8").splitlines()
    assert program == "schedlab", line
    own = {"sweep": sweeping.run, "tune": cli.main}
    if verb not in own:
        return schedlab.text([verb, *arguments]).splitlines()
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        assert own[verb](arguments) == 0
    return output.getvalue().splitlines()


def console(text: str) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            lines += ["", line, *command(line[2:])] if lines else [line, *command(line[2:])]
    return "```console\n" + "\n".join(lines) + "\n```"


def python(text: str, session: code.InteractiveConsole) -> str:
    lines = []
    for example in DocTestParser().get_examples(text):
        first, *rest = example.source.splitlines()
        lines += [f">>> {first}", *(f"... {line}" for line in rest)]
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            for line in example.source.splitlines():
                session.push(line)
        lines += [line.rstrip() for line in output.getvalue().splitlines()]
    return "```pycon\n" + "\n".join(lines) + "\n```"


@pytest.mark.parametrize("page", ["sweep.md", "tune.md"])
def test_the_page_shows_real_output(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = code.InteractiveConsole()

    def block(match: re.Match[str]) -> str:
        kind, text = match[1], match[2]
        if kind == "toml":
            Path(text.splitlines()[0].removeprefix("# ")).write_text(text, encoding="utf-8")
            return match[0]
        return console(text) if kind == "console" else python(text, session)

    path = DOCS / page
    before = path.read_text(encoding="utf-8")
    now = re.sub(r"```(toml|console|pycon)\n(.*?)```", block, before, flags=re.DOTALL)
    if WRITE:
        path.write_text(now, encoding="utf-8")
    else:
        assert VARIES.sub("", now) == VARIES.sub("", before)


def test_the_page_lists_every_key_of_a_study() -> None:
    path = DOCS / "tune.md"
    before = path.read_text(encoding="utf-8")
    rows = ["| key | meaning |", "|---|---|"]
    for name, keys in TABLES.items():
        table = name.replace(".*", ".NAME")
        rows += [f"| {f'`[{table}]` ' if table else ''}`{key}` | {own.meaning()} |" for key, own in keys.items()]
    listed = "<!-- keys -->\n\n{}\n\n<!-- keys: end -->".format("\n".join(rows))
    now = re.sub(r"<!-- keys -->.*<!-- keys: end -->", lambda _: listed, before, flags=re.DOTALL)
    if WRITE:
        path.write_text(now, encoding="utf-8")
    assert WRITE or now == before


def test_the_schema_that_editors_load_is_that_of_the_command() -> None:
    path = DOCS / "schema" / "study.schema.json"
    text = json.dumps(schema(), indent=2) + "\n"
    if WRITE:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
