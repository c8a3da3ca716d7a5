"""`python -m schedlab.tuning` is `schedlab tune`."""

import sys

from schedlab.tuning.cli import main

if __name__ == "__main__":
    sys.exit(main())
