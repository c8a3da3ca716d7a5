"""`schedlab tune`: which settings suit a load, found by search and confirmed on runs that the search never saw.

`schedlab.tuning.cli` is the command. A study (`study`) names parameters (`space`) and objectives (`objective`); a
backend (`backends`) runs trials; a method (`search`) proposes settings; `racing` decides how often each is repeated,
`confirm` whether the winner is better than the default, and `importance` which of its changes matter.
"""
