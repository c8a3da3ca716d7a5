"""The Python page and the notebooks: their code is run again and must print what they show.

With `SCHEDLAB_WRITE_DOCS=1` in the environment they are rewritten instead, to be read before they are committed.
"""

import code
import contextlib
import io
import os
import re
import subprocess
import sys
from doctest import DocTestParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

DOCS = Path(__file__).parents[2] / "docs"
WRITE = bool(os.environ.get("SCHEDLAB_WRITE_DOCS"))


def printed(console: code.InteractiveConsole, source: str) -> str:
    """Return what an interactive Python prints for a statement: of a traceback, the last line."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        for line in source.splitlines():
            more = console.push(line)
        if more:
            console.push("")
    text = output.getvalue()
    return text if not text.startswith("Traceback") else text.splitlines()[0] + "\n    ...\n" + text.splitlines()[-1]


def run_again(page: str) -> str:
    """Return the page with the output that its code prints now."""
    console = code.InteractiveConsole()

    def block(match: re.Match[str]) -> str:
        lines = []
        for example in DocTestParser().get_examples(match[1]):
            first, *rest = example.source.splitlines()
            lines += [f">>> {first}", *(f"... {line}" for line in rest)]
            lines += [line.rstrip() for line in printed(console, example.source).splitlines()]
        return "```pycon\n" + "\n".join(lines) + "\n```"

    return re.sub(r"```pycon\n(.*?)```", block, page, flags=re.DOTALL)


def test_the_page_shows_what_its_code_prints() -> None:
    path = DOCS / "python.md"
    before = path.read_text(encoding="utf-8")
    now = run_again(before)
    if WRITE:
        path.write_text(now, encoding="utf-8")
    else:
        assert now == before


def test_the_script_on_the_page_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    scripts = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert scripts
    for text in scripts:
        file = tmp_path / "script.py"
        file.write_text(text, encoding="utf-8")
        subprocess.run([sys.executable, file], check=True)
    assert "linux-6.12" in capfd.readouterr().out


def texts(cell: dict[str, Any]) -> list[str]:
    """Return the texts that a cell printed or showed, without pictures."""
    outputs = cell.get("outputs", [])
    return [out["text"] if out["output_type"] == "stream" else out["data"].get("text/plain", "") for out in outputs]


@pytest.mark.filterwarnings("ignore")  # those of the kernel's own libraries
@pytest.mark.parametrize("name", ["notebook.ipynb", "tuning.ipynb"])
def test_a_notebook_shows_what_its_code_prints(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(folder, str(tmp_path / folder))
    path = DOCS / name
    before = nbformat.read(path, as_version=4)
    now = nbformat.read(path, as_version=4)
    NotebookClient(now, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(DOCS)}}).execute()
    if WRITE:
        for cell in now.cells:
            cell.metadata = {}
        now.metadata = before.metadata
        nbformat.write(now, path)
        return
    pairs = list(zip(before.cells, now.cells, strict=True))
    assert sum(bool(texts(cell)) for cell, _ in pairs) > 5
    for shown, cell in pairs:
        assert texts(cell) == texts(shown), cell.source
