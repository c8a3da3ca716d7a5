"""schedlab: a laboratory for Linux task schedulers."""

from schedlab._native import __version__

__all__ = ["__version__"]
