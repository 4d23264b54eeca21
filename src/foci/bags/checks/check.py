"""One line of the doctor's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["PASS", "WARN", "FAIL"]


@dataclass(frozen=True)
class Check:
    """Outcome of one check: what was found and, unless it passed, what to do."""

    name: str
    status: Status
    detail: str
    fix: str = ""


def some(slides: Sequence[str]) -> str:
    """How many slides, and the first three.

    >>> some(["a", "b", "c", "d"])
    '4 slides (a, b, c, ...)'
    """
    shown = ", ".join(slides[:3])
    count = "1 slide" if len(slides) == 1 else f"{len(slides)} slides"
    return f"{count} ({shown}{', ...' if len(slides) > 3 else ''})"


def tally(counts: Counter[Any]) -> str:
    """Names with their counts, most frequent first.

    >>> tally(Counter(LUAD=3, LUSC=5))
    '5 LUSC, 3 LUAD'
    """
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())
