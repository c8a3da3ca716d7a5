"""`python -m schedlab` runs the `schedlab` command."""

import os
import sys

from schedlab.command import binary


def main() -> None:
    """Replace this process with the command."""
    path = binary()
    os.execv(path, [str(path), *sys.argv[1:]])


if __name__ == "__main__":
    main()
