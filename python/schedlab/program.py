"""How the programs of this package read their options, print, and end: `query`, `sweep` and `tune`."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from schedlab import command
from schedlab._native import InputError, NotPermittedError, SchedlabError
from schedlab.arguments import utf8

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# The status of a program that Ctrl-C ended, as a shell has it.
_INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """A parser whose errors look like those of the other verbs."""

    def __init__(self, verb: str, about: str, epilog: str) -> None:
        super().__init__(
            prog=f"schedlab {verb}",
            description=about,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def given(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Return what the command line says."""
        return self.parse_args([utf8(own) for own in (sys.argv[1:] if arguments is None else arguments)])

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        raise InputError(f"{message}; {self.prog} --help lists the options")

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Print what the program does, and its options."""
        if file is None:
            printed(self.format_help().rstrip("\n"))
        else:
            super().print_help(file)


def ended(body: Callable[[], int], *, extra: str, interrupted: int = _INTERRUPTED) -> int:
    """Run a program, and return its exit status. What goes wrong is one message on standard error.

    `extra` is the part of the package with what the program imports, and `interrupted` its status after Ctrl-C.
    """
    try:
        return body()
    except SchedlabError as error:
        say(str(error))
        return command.NOT_PERMITTED if isinstance(error, NotPermittedError) else command.BAD_INPUT
    except ModuleNotFoundError as error:
        say(f"{error.name} is not installed: pip install 'schedlab[{extra}]'")
        return command.NOT_PERMITTED
    except KeyboardInterrupt:
        say("interrupted")
        return interrupted


def say(text: str) -> None:
    """Print a remark or an error."""
    print(f"schedlab: {text}", file=sys.stderr)


def printed(text: str) -> None:
    """Print a result on standard output. A reader that has gone away does not want the rest."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _drop_output()
    except OSError as error:
        _drop_output()
        raise InputError(f"cannot write to standard output: {error.strerror}") from None


def _drop_output() -> None:
    """Let what is still to be printed, also as Python ends, go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
