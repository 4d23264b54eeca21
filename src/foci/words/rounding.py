"""Round numbers for people by one rule: halves away from zero, as JavaScript's ``toFixed``."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal


def decimals(value: float, digits: int) -> str:
    """Format with a fixed number of decimals; never a negative zero.

    Terminal, page and tables of text use it, and the page's script rounds alike, so that one
    number looks the same everywhere. Python's own formatting rounds halves to even.

    >>> decimals(92.5, 0), f"{92.5:.0f}", decimals(-0.125, 2), decimals(-0.001, 2)
    ('93', '92', '-0.13', '0.00')
    """
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{abs(rounded) if rounded.is_zero() else rounded:f}"


def in_percent(share: float) -> str:
    """Format a share as a whole percentage.

    >>> in_percent(0.925), in_percent(0.075)
    ('93%', '8%')
    """
    return f"{decimals(100 * share, 0)}%"
