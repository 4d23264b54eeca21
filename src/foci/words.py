"""Words and colours: how counts, lists and rounded numbers read, and how rankings are drawn."""

from __future__ import annotations

import csv
import io
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any


def counted(n: int, what: str) -> str:
    """A number and its noun, singular or plural.

    >>> counted(1, "slide"), counted(3, "slide"), counted(13896, "tile")
    ('1 slide', '3 slides', '13,896 tiles')
    """
    return f"{n} {what}" if n == 1 else f"{n:,} {what}s"


ANY_FLOAT = Context(prec=400)
"""Rounds numbers of any size; the usual context refuses those of more than 28 digits."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_cell(value: Any) -> Any:
    """A value for a CSV file that people open in a spreadsheet, which takes ``=1+1`` for a formula.

    Text that begins like a formula and is no number gets an apostrophe in front, and so does text
    that begins with one: :func:`from_csv_cell` gives back what it was.

    >>> [csv_cell(value) for value in ("=1+1", "@a", "-0.5", "'quoted", "a=b", -0.5, None)]
    ["'=1+1", "'@a", '-0.5', "''quoted", 'a=b', -0.5, None]
    """
    begins = isinstance(value, str) and value.startswith(("'", *_FORMULA))
    return f"'{value}" if begins and not _NUMBER.fullmatch(value) else value


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    r"""Rows as a CSV file that people may open in a spreadsheet, see :func:`csv_cell`.

    >>> csv_text([["slide", "msk"], ["=a,b", None], ["c\rd", 2.0]])
    'slide,msk\n"\'=a,b",\n"c\rd",2.0\n'
    """
    lines, line = [], io.StringIO(newline="")
    writer = csv.writer(line, lineterminator="\r\n")  # so that both are quoted inside a cell
    for row in rows:
        writer.writerow(map(csv_cell, row))
        lines.append(line.getvalue()[:-2])
        line.seek(0)
        line.truncate()
    return "".join(f"{one}\n" for one in lines)


def from_csv_cell(text: str) -> str:
    """The text of a cell that :func:`csv_cell` has written; any other text is as it is.

    >>> [from_csv_cell(text) for text in ("'=1+1", "''quoted", "'tis", "a")]
    ['=1+1', "'quoted", "'tis", 'a']
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(("'", *_FORMULA)) else text


def listed(names: Sequence[str], most: int = 3) -> str:
    """The first of many names.

    >>> listed(["a", "b", "c", "d"]), listed(["a", "b"])
    ('a, b, c, ...', 'a, b')
    """
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def some(slides: Sequence[str]) -> str:
    """Number of slides, and the names of the first three.

    >>> some(["a", "b", "c", "d"])
    '4 slides (a, b, c, ...)'
    """
    return f"{counted(len(slides), 'slide')} ({listed(slides)})"


def tally(counts: Counter[Any]) -> str:
    """Counts with their names, most frequent first.

    >>> tally(Counter(LUAD=3, LUSC=5))
    '5 LUSC, 3 LUAD'
    """
    return ", ".join(f"{n} {name}" for name, n in counts.most_common())


def decimals(value: float, digits: int) -> str:
    """Format with a fixed number of decimals, halves away from zero; never a negative zero.

    Terminal, page and tables of text use it, and the page's script (``toFixed``) rounds alike, so
    that one number looks the same everywhere. Python's own formatting rounds halves to even.

    >>> decimals(92.5, 0), f"{92.5:.0f}", decimals(-0.125, 2), decimals(-0.001, 2)
    ('93', '92', '-0.13', '0.00')
    """
    if not math.isfinite(value):
        return str(value)
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, ANY_FLOAT)
    return f"{abs(rounded) if rounded.is_zero() else rounded:f}"


MINUS = "\N{MINUS SIGN}"


def signed(value: float, digits: int = 2) -> str:
    """Format with a sign, as of a difference or a net share; what rounds to zero has none.

    >>> signed(0.25), signed(-0.25), signed(0.001), signed(-0.001)
    ('+0.25', '−0.25', '0.00', '0.00')
    """
    text = decimals(value, digits)
    return f"+{text}" if float(text) > 0 else text.replace("-", MINUS)


def p_value(value: float) -> str:
    """Format a p-value.

    >>> p_value(0.0004), p_value(0.0315)
    ('p < 0.001', 'p = 0.032')
    """
    return "p < 0.001" if value < 0.001 else f"p = {decimals(value, 3)}"


def in_percent(share: float) -> str:
    """Format a share as a whole percentage.

    >>> in_percent(0.925), in_percent(0.075)
    ('93%', '8%')
    """
    return f"{decimals(100 * share, 0)}%"


PLAIN_NAMES = {
    "native": "the model's map",
    "evidence": "one-tile test",
    "selector": "trained order",
    "random": "random tiles",
    "minimal": "proven smallest sets",
}
"""What rankings are called on a first screen; a map from a file keeps its own name."""

COLOURS: dict[str, tuple[str, str]] = {
    "native": ("#1d5fa8", "#6fb3ff"),
    "evidence": ("#c2410c", "#fb923c"),
    "selector": ("#7e22ce", "#b15cff"),
    "minimal": ("#111827", "#f3f4f6"),
    "random": ("#6b7280", "#9ca3af"),
    "from-file": ("#be185d", "#f9a8d4"),
    "greedy-insertion": ("#3f6212", "#bef264"),
    "greedy-deletion": ("#854d0e", "#fcd34d"),
    "single-tile": ("#9f1239", "#fda4af"),
    "leave-one-out": ("#0f766e", "#2dd4bf"),
    "gradient-x-input": ("#4d5b0c", "#d9e021"),
    "integrated-gradients": ("#5b4a8a", "#b8b0ff"),
    "feature-norm": ("#7c4a3a", "#d6b4a4"),
}
"""Colour of each ranking, on a light and on a dark ground: the same in every figure of FOCI.

Text in them reads on white and on black, and the first five differ for colour-blind readers.
"""


def colour_of(ranking: str, dark: bool = False) -> str:
    """Colour of a ranking; a map with a name of its own gets one that depends on the name alone.

    >>> colour_of("native"), colour_of("native", dark=True), colour_of("Grad-CAM")
    ('#1d5fa8', '#6fb3ff', '#5b4a8a')
    """
    known = COLOURS.get(ranking)
    if known is None:
        others = list(COLOURS)[5:]
        known = COLOURS[others[zlib.crc32(ranking.encode()) % len(others)]]
    return known[dark]
