"""Metric cards: title, equation, direction, range, needs and limits of every metric."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from foci.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])

Direction = Literal["higher", "lower", "none"]


@dataclass(frozen=True, kw_only=True)
class Card:
    r"""Description of one metric.

    Attributes:
        name: The function's name in ``foci.metrics``.
        title: What people call it.
        symbol: Its symbol in tables and figures, LaTeX.
        equation: The first equation of the function's docstring, LaTeX.
        direction: Whether higher or lower is better for a ranking; ``"none"`` if neither is.
        range: Smallest and largest possible value; infinite where there is no bound.
        needs: What has to be measured before it can be computed.
        does_not_show: The conclusion it does not support.
        source: Where the definition comes from.
    """

    name: str
    title: str
    symbol: str
    equation: str
    direction: Direction
    range: tuple[float, float]
    needs: str
    does_not_show: str
    source: str = "FOCI"
    function: Callable[..., Any]


CARDS: Registry[Card] = Registry("metric")
"""Every metric's card by the name of its function."""


def card(*, symbol: str, **fields: Any) -> Callable[[F], F]:
    r"""Decorator that registers a function's card under its name and returns it unchanged.

    It takes the fields of :class:`Card` but for those that the function itself gives: its name and
    its equation.

    >>> from foci.metrics import CARDS
    >>> CARDS["jaccard_at_k"].equation
    '|A_K \\cap B_K| / |A_K \\cup B_K|'
    >>> CARDS["reach"].direction, CARDS["reach"].range
    ('higher', (0.0, 1.0))
    """

    def decorate(function: F) -> F:
        _, _, rest = (inspect.getdoc(function) or "").partition(".. math::")
        equation = " ".join(rest.partition("\n\n")[0].split()).removeprefix(f"{symbol} = ")
        name = function.__name__
        CARDS.add(
            name, Card(name=name, symbol=symbol, equation=equation, function=function, **fields)
        )
        return function

    return decorate
