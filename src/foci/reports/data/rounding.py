"""Numbers with no more digits than a page shows."""

from __future__ import annotations

from typing import Any

from foci.audits.analysis.summary import as_plain


def rounded(value: Any, digits: int) -> Any:
    """The same values with so many decimals, all the way down; whole numbers without any.

    >>> rounded({"mean": [0.123456, 2.0, float("nan")]}, 3)
    {'mean': [0.123, 2, None]}
    """
    return _cut(as_plain(value), digits)


def _cut(value: Any, digits: int) -> Any:
    if isinstance(value, dict):
        return {key: _cut(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [_cut(item, digits) for item in value]
    if isinstance(value, float):
        short = round(value, digits)
        return int(short) if short.is_integer() else short
    return value
