"""One line of the table that ``foci doctor`` prints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["PASS", "WARN", "FAIL"]


@dataclass(frozen=True)
class Check:
    """Outcome of one check: what it found and, unless it passed, what to do."""

    name: str
    status: Status
    detail: str
    fix: str = ""
