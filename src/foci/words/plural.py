"""Numbers of things in sentences: singular and plural, lists of names, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def counted(n: int, what: str) -> str:
    """A number and its noun, singular or plural.

    >>> counted(1, "slide"), counted(3, "slide")
    ('1 slide', '3 slides')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def some(slides: Sequence[str]) -> str:
    """Number of slides, and the names of the first three.

    >>> some(["a", "b", "c", "d"])
    '4 slides (a, b, c, ...)'
    """
    shown = ", ".join(slides[:3])
    return f"{counted(len(slides), 'slide')} ({shown}{', ...' if len(slides) > 3 else ''})"


def tally(counts: Counter[Any]) -> str:
    """Counts with their names, most frequent first.

    >>> tally(Counter(LUAD=3, LUSC=5))
    '5 LUSC, 3 LUAD'
    """
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())
