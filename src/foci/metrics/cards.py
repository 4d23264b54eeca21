"""Metric cards: title, equation, direction, range, needs and limits of every metric."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from foci.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])

Direction = Literal["higher", "lower", "none"]


@dataclass(frozen=True)
class Card:
    r"""Description of one metric, for people and for programs.

    Attributes:
        name: The function's name in ``foci.metrics``.
        title: What people call it.
        symbol: Its symbol in tables and figures, LaTeX.
        equation: Its definition, LaTeX.
        direction: Whether higher or lower is better for a ranking; ``"none"`` if neither is.
        range: Smallest and largest possible value; infinite where there is no bound.
        needs: What has to be measured before it can be computed.
        does_not_show: The conclusion it does not support.
        source: Where the definition comes from.
        function: The function itself.
    """

    name: str
    title: str
    symbol: str
    equation: str
    direction: Direction
    range: tuple[float, float]
    needs: str
    does_not_show: str
    source: str
    function: Callable[..., Any]

    def as_dict(self) -> dict[str, Any]:
        """Card as a dictionary for JSON, without the function; infinity becomes None."""
        record = {name: value for name, value in vars(self).items() if name != "function"}
        record["range"] = [end if math.isfinite(end) else None for end in self.range]
        return record


CARDS: Registry[Card] = Registry("metric")
"""Every metric's card by the name of its function."""


def card(
    *,
    title: str,
    symbol: str,
    direction: Direction,
    range: tuple[float, float],
    needs: str,
    does_not_show: str,
    source: str,
) -> Callable[[F], F]:
    r"""Decorator that registers a function's card under its name and returns it unchanged.

    The equation is the first one of the function's docstring.

    >>> from foci.metrics import CARDS
    >>> CARDS["jaccard_at_k"].equation
    '|A_K \\cap B_K| / |A_K \\cup B_K|'
    >>> CARDS["reach"].direction, CARDS["reach"].range
    ('higher', (0.0, 1.0))
    """

    def decorate(function: F) -> F:
        _, _, rest = (inspect.getdoc(function) or "").partition(".. math::")
        equation = " ".join(rest.partition("\n\n")[0].split()).removeprefix(f"{symbol} = ")
        CARDS.add(
            function.__name__,
            Card(
                name=function.__name__,
                title=title,
                symbol=symbol,
                equation=equation,
                direction=direction,
                range=range,
                needs=needs,
                does_not_show=does_not_show,
                source=source,
                function=function,
            ),
        )
        return function

    return decorate
