"""Options of rankings that count something."""

from __future__ import annotations

import operator

from foci.errors import FociError


def at_least_one(value: int, name: str) -> int:
    """A whole number from 1 on.

    >>> at_least_one(3, "rounds")
    3
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise FociError(name, f"is {value!r}", "give a whole number from 1 on") from None
    if number < 1:
        raise FociError(name, f"{number} is too few", "give at least 1")
    return number
