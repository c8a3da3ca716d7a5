"""`python -m schedlab.sweeping` is `schedlab sweep`."""

import sys

from schedlab.sweeping import run

if __name__ == "__main__":
    sys.exit(run())
