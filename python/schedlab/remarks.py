"""What a user should know, though nothing failed."""


class SchedlabWarning(UserWarning):
    """A remark on what was done: what is not modelled, a key that was ignored, why a run ended early."""


class CutWarning(SchedlabWarning):
    """The file of a trace ends before the trace does; what came before the cut is there."""
