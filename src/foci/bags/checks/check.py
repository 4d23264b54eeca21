"""One line of the table that ``foci doctor`` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["PASS", "WARN", "FAIL"]


@dataclass(frozen=True)
class Check:
    """Outcome of one check: what it found and, unless it passed, what to do.

    Attributes:
        name: What was checked.
        status: How it went.
        detail: What was found.
        fix: What to do about it.
        items: Everything that the detail counts, one by one, where a list is worth having.
    """

    name: str
    status: Status
    detail: str
    fix: str = ""
    items: tuple[str, ...] = ()
