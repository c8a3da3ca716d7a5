"""A folder for files that this process needs, which is gone with it, however it ends."""

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from functools import lru_cache
from pathlib import Path

_PREFIX = "schedlab-tune-"
# A folder that was made just now may not be locked yet.
_YOUNG_S = 60


@lru_cache(maxsize=1)
def home() -> str:
    """Return a folder that exists as long as this process. Those of processes that were killed are removed."""
    _clear()
    path = tempfile.mkdtemp(prefix=_PREFIX)
    # The lock is on the folder itself, and the kernel gives it back with the process.
    fcntl.flock(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), fcntl.LOCK_EX)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _clear() -> None:
    """Remove the folders that no process holds."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # One of another user, or one that another process removes at the same time, is left to them.
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink() and time.time() - path.stat().st_mtime > _YOUNG_S:
                _remove_if_free(path)


def _remove_if_free(path: Path) -> None:
    own = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(own)
