"""Numbers of things in messages."""


def counted(number: int, thing: str) -> str:
    """Return a number of things: `1 row`, `2 rows`."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
