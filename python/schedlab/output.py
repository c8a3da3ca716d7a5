"""Where a verb writes the trace that it makes."""

from collections.abc import Callable
from pathlib import Path

from schedlab import _native
from schedlab.arguments import PathLike
from schedlab.trace import Trace, made


def written(output: PathLike | None, force: bool, make: Callable[[str], object]) -> Trace:
    """Let `make` write a trace to `output`, or to a file that is removed with the trace."""
    if output is None:
        return made(make)
    path = Path(output)
    if path.exists() and not force:
        raise _native.InputError(f"output: {path} exists already; choose another name or give force=True")
    # The draft is beside the target, so that an existing file stays until the new one is complete.
    draft = path.with_name(f".{path.name}.new")
    try:
        make(str(draft))
        draft.replace(path)
    except _native.InputError as error:
        if str(draft) not in str(error):
            raise
        raise _native.InputError(f"output: {str(error).replace(str(draft), str(path))}") from None
    finally:
        draft.unlink(missing_ok=True)
    return Trace(path)
