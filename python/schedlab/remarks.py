"""Warnings about things that a user should know although nothing failed."""


class SchedlabWarning(UserWarning):
    """A remark about a run: something not modelled, an ignored key, the reason for an early end."""


class CutWarning(SchedlabWarning):
    """The file of a trace was cut off. Everything before the cut is available."""
