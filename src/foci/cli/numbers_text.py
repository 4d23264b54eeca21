"""Numbers of an audit as text for the terminal: estimates, medians, with their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foci.words.rounding import decimals

if TYPE_CHECKING:
    from rich.text import Text

    from foci.audits.analysis.answers.record import CountQuartiles
    from foci.audits.records import Interval


def median_text(quartiles: CountQuartiles | None, k_max: int, ends: bool) -> Text:
    """Format a median, with the quartiles on the line below if ``ends``."""
    from rich.text import Text

    from foci.audits.analysis.answers.sentences import in_words

    if quartiles is None:
        return Text("-")
    text = Text(in_words(quartiles.median, k_max).replace("more than ", ">"))
    if ends:
        low, high = (
            in_words(end, k_max).replace("more than ", ">")
            for end in (quartiles.low, quartiles.high)
        )
        text.append(f"\n{low} to {high}", style="dim")
    return text


def estimate(interval: Interval | None, digits: int, ends: bool = False) -> Text:
    """Format an estimate, with the ends of its interval on the line below if ``ends``."""
    from rich.text import Text

    text = Text(number(None if interval is None else interval.estimate, digits))
    if ends and interval is not None and interval.low is not None:
        low, high = number(interval.low, digits), number(interval.high, digits)
        text.append(f"\n{low} to {high}", style="dim")
    return text


def number(value: float | None, digits: int) -> str:
    """Format a number with this many digits; a dash for None.

    >>> number(-0.001, 2), number(None, 1), number(3.14, 1)
    ('0.00', '-', '3.1')
    """
    return "-" if value is None else decimals(value, digits)
