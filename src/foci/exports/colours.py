"""Colours of rankings on stained tissue: bright, far from pink and violet, told apart by all."""

from __future__ import annotations

COLOURS = ("#ffd60a", "#00e5ff", "#7cfc00", "#ff9f1c", "#ffffff")


def colour_of(at: int) -> str:
    """Colour of the ranking at a position; they repeat after the fifth."""
    return COLOURS[at % len(COLOURS)]


def rgb_of(at: int) -> tuple[int, int, int]:
    """The same as red, green and blue.

    >>> rgb_of(0)
    (255, 214, 10)
    """
    text = colour_of(at)
    red, green, blue = (int(text[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue
