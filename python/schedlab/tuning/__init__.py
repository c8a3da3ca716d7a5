"""`schedlab tune`: which settings suit a load, found by search and confirmed on runs that the search never saw.

`schedlab.tuning.cli` is the command. A study (`study`) names parameters (`space`) and objectives (`objective`); a
backend (`backends`) runs trials; a method (`search`) proposes settings; `racing` decides how often each is repeated,
`confirm` whether the winner is better than the default, and `importance` which of its changes matter.
"""

import warnings

with warnings.catch_warnings():
    # In a notebook without ipywidgets, the progress bars that Optuna has, and that are not used here, are missed.
    warnings.filterwarnings("ignore", message="IProgress not found")
    import optuna  # noqa: F401
