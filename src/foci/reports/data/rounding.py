"""Shorten numbers for a page, so that it shows the same digits as for the full number."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal
from typing import Any

from foci.audits.records import plain


def rounded(value: Any, digits: int) -> Any:
    """Shorten all numbers in nested lists and dictionaries; whole numbers become int.

    >>> rounded({"mean": [0.123456, 2.0, float("nan")]}, 3)
    {'mean': [0.123, 2, None]}
    """
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    value = plain(value)
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float):
        short = cut_to(value, digits)
        return int(short) if short.is_integer() else short
    return value


def cut_to(value: float, digits: int) -> float:
    """Cut a number to some decimals; rounding it to fewer gives what the full number gives.

    Rounding twice would not: 0.10046 becomes 0.1005, then 0.101. So the rest is cut off, and a last
    digit of 0 or 5 is raised by one to show that there was a rest.

    >>> cut_to(0.10046, 4), cut_to(0.92503, 3), cut_to(-0.1, 4)
    (0.1004, 0.926, -0.1)
    """
    full = Decimal(repr(value))
    step = Decimal(1).scaleb(-digits)
    cut = full.quantize(step, ROUND_DOWN)
    if cut != full and cut.as_tuple().digits[-1] in (0, 5):
        cut += step.copy_sign(full)
    return float(cut)
