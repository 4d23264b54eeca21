"""Limits on what one file may make FOCI allocate; each can be raised by an environment variable."""

from __future__ import annotations

import math
import os

from foci.errors import FociError

BAG_GB = "FOCI_MAX_BAG_GB"
"""Environment variable: gigabytes that the arrays of one feature file may have in memory."""

DEFAULT_BAG_GB = 2.0
"""325,000 tiles of 1,536 features in float32."""


def largest_bag() -> float:
    """Bytes that one array of a feature file may have in memory.

    Raises:
        FociError: If the environment variable is not a positive number.
    """
    given = os.environ.get(BAG_GB)
    if not given:
        return DEFAULT_BAG_GB * 1e9
    try:
        size = float(given)
    except ValueError:
        size = math.nan
    if not size > 0:
        raise FociError(BAG_GB, f"is {given!r}", "give gigabytes, such as 4")
    return size * 1e9


def excess(shape: tuple[int, ...], itemsize: int) -> str | None:
    """Why an array of this shape is too large to be read; None if it is within the limit.

    Numbers narrower than float32 count as float32, which is what they are converted to.

    >>> excess((12_000, 1536), 2) is None
    True
    >>> excess((10**9, 1024), 4)
    'claims 1000000000 x 1024 numbers, 4096.0 GB in memory where 2 GB are allowed'
    """
    size, limit = math.prod(shape) * max(itemsize, 4), largest_bag()
    if size <= limit:
        return None
    claimed = " x ".join(map(str, shape))
    return (
        f"claims {claimed} numbers, {size / 1e9:.1f} GB in memory where {limit / 1e9:g} GB are "
        "allowed"
    )
