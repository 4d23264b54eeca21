"""Round numbers to the digits that a page shows."""

from __future__ import annotations

from typing import Any

from foci.audits.records import plain


def rounded(value: Any, digits: int) -> Any:
    """Round all numbers in nested lists and dictionaries; whole numbers become int.

    >>> rounded({"mean": [0.123456, 2.0, float("nan")]}, 3)
    {'mean': [0.123, 2, None]}
    """
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    value = plain(value)
    if isinstance(value, list):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float):
        short = round(value, digits)
        return int(short) if short.is_integer() else short
    return value
