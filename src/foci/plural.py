"""Numbers of things in sentences."""

from __future__ import annotations


def counted(n: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "slide"), counted(3, "slide")
    ('1 slide', '3 slides')
    """
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
