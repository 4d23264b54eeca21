"""Format numbers for a report; an undefined one is an en dash, never NaN."""

from __future__ import annotations

from foci.audits.analysis.answers.record import CountQuartiles
from foci.audits.analysis.answers.sentences import in_words
from foci.audits.records import Interval
from foci.words.rounding import decimals, in_percent

NOTHING, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"

LINE = (
    "A rationale found here is model-sufficient: it suffices for this classifier. "
    "It is neither a diagnosis nor evidence of clinical sufficiency."
)


def fixed(value: float | None, digits: int = 3) -> str:
    """Format with a fixed number of decimals and a true minus sign.

    >>> fixed(-0.25, 2), fixed(-0.0001, 2), fixed(None)
    ('−0.25', '0.00', '–')
    """
    return NOTHING if value is None else decimals(value, digits).replace("-", MINUS)


def signed(value: float, digits: int = 2) -> str:
    """Format with a sign: of a difference, or of a net share.

    >>> signed(0.25), signed(-0.25), signed(-0.001)
    ('+0.25', '−0.25', '0.00')
    """
    text = fixed(value, digits)
    return f"+{text}" if float(text.replace(MINUS, "-")) > 0 else text


def signed_spread(low: float | None, high: float | None, digits: int = 2) -> str:
    """Format the ends of an interval, each with its sign.

    >>> signed_spread(-0.1, 0.25)
    '−0.10 to +0.25'
    """
    if low is None or high is None:
        return ""
    return f"{signed(low, digits)} to {signed(high, digits)}"


def tiles(value: float | None) -> str:
    """Format a tile count: one decimal, none if the count is whole or large.

    >>> tiles(3.25), tiles(4.0), tiles(153.6)
    ('3.3', '4', '154')
    """
    whole = value is not None and (float(value).is_integer() or abs(value) >= 100)
    return fixed(value, 0 if whole else 1)


def percent(value: float | None) -> str:
    """Format a share as a percentage.

    >>> percent(0.125)
    '13%'
    """
    return NOTHING if value is None else in_percent(value)


def spread(interval: Interval | None, digits: int = 1, scale: float = 1.0) -> str:
    """Format the ends of an interval.

    >>> spread(Interval(estimate=2.0, low=-1.0, high=3.5))
    '−1.0 to 3.5'
    """
    if interval is None or interval.low is None or interval.high is None:
        return ""
    return f"{fixed(scale * interval.low, digits)} to {fixed(scale * interval.high, digits)}"


def percent_ends(interval: Interval) -> str:
    """Format the ends of an interval of shares as percentages.

    >>> percent_ends(Interval(estimate=0.5, low=0.125, high=1.0))
    '13 to 100%'
    """
    ends = spread(interval, 0, scale=100)
    return f"{ends}%" if ends else ""


def with_spread(interval: Interval | None, digits: int = 1) -> str:
    """Format an estimate with the ends of its interval.

    >>> with_spread(Interval(estimate=2.0, low=-1.0, high=3.5))
    '2.0 (−1.0 to 3.5)'
    """
    if interval is None or interval.estimate is None:
        return NOTHING
    ends = spread(interval, digits)
    return fixed(interval.estimate, digits) + (f" ({ends})" if ends else "")


def quartiles(counts: CountQuartiles | None, k_max: int) -> str:
    """Format a median of counts, with its quartiles.

    >>> from foci.audits.analysis.answers.record import CountQuantile
    >>> one, more = CountQuantile(value=3.0), CountQuantile(value=None, missing="beyond")
    >>> quartiles(CountQuartiles(low=one, median=one, high=more), 256)
    '3 (3 to more than 256)'
    """
    if counts is None:
        return NOTHING
    low, median, high = ends_in_words(counts, k_max)
    return f"{median} ({low} to {high})"


def ends_in_words(counts: CountQuartiles, k_max: int) -> list[str]:
    """Lower quartile, median and upper quartile of counts."""
    return [in_words(end, k_max) for end in (counts.low, counts.median, counts.high)]
