"""Lines of keys in TOML files."""

from pathlib import Path

import pytest

import schedlab
from schedlab import tomlfile

TEXT = '''# a comment with [brackets] = and "quotes
title = "a # b"            # 2
text = """
[not.a.table]
key = 1 "" '
"""
raw = \'\'\'
x = "\'\'\'
list = [
  1,
  { a = 1, b = [2,
    3] },                  # 12
  "]",
]

[settings]                 # 16
"quoted.key" = { from = 1, to = 2 }
a.b = 3
[[kernels]]                # 19
name = "x"
[kernels.set]
hz = 100
[[kernels]]                # 23
name = "y"
set = { hz = 1 }
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("title", 2),
        ("text", 3),
        ("raw", 7),
        ("list", 9),
        ("list[0]", 10),
        ("list[1].b", 11),
        ("list[1].b[1]", 12),
        ("list[2]", 13),
        ("settings", 16),
        ("settings.quoted.key", 17),
        ("settings.quoted.key.to", 17),
        ("settings.a.b", 18),
        ("kernels", 19),
        ("kernels[0]", 19),
        ("kernels[0].set.hz", 22),
        ("kernels[1].name", 24),
        ("kernels[1].set.hz", 25),
        # A key that is missing is missed where it should have been.
        ("kernels[1].kernel", 23),
        ("settings.absent.deep", 16),
        ("absent", None),
    ],
)
def test_every_key_has_its_line(key: str, line: int | None) -> None:
    assert tomlfile.Document(Path("f.toml"), TEXT).line(key) == line


def test_an_error_names_file_line_key_and_what_would_be_right(tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    path.write_text('kernels = ["a"]\nsedes = 3\n', encoding="utf-8")
    document = tomlfile.read(path)
    with pytest.raises(schedlab.InputError) as caught:
        document.refuse_unknown(document.values, ["kernels", "seeds"])
    assert str(caught.value) == f'{path}:2: sedes: "sedes" is no key; did you mean "seeds"?'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = \n", ":1: invalid value; write TOML: key = value"),
        (b"a = 1\na = 2\n", ":2: cannot overwrite a value; write TOML: key = value"),
        (b"a = 1" + b"0" * 5000, ": has a number with more digits than any key takes"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, ": has lists or tables within each other too deeply"),
        (b"a = 1\nb = '\xff'\n", ":2: is not UTF-8; save the file as UTF-8 text"),
    ],
)
def test_what_is_no_toml_is_refused_with_its_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "f.toml"
    path.write_bytes(content)
    with pytest.raises(schedlab.InputError) as caught:
        tomlfile.read(path)
    assert str(caught.value) == f"{path}{message}"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(schedlab.InputError, match="cannot read it: No such file"):
        tomlfile.read(tmp_path / "gone.toml")
