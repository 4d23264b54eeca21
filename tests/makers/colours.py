"""Contrast of colours as WCAG 2 defines it."""

from collections.abc import Sequence


def linear_rgb(shares: Sequence[float]) -> list[float]:
    """Linear light of red, green and blue from 0 to 1."""
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]


def luminance(shares: Sequence[float]) -> float:
    """Relative luminance of red, green and blue."""
    r, g, b = linear_rgb(shares)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one: float, other: float) -> float:
    """Of two luminances."""
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)
