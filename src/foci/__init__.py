"""FOCI: which tiles suffice for a frozen whole-slide classifier, and can its heat map be believed.

Names are loaded on first use, so that ``import foci`` and ``foci --help`` stay fast.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from foci._version import __version__ as __version__

if TYPE_CHECKING:
    from foci import (
        audits,
        backbones,
        bags,
        demo,
        metrics,
        rankings,
        reports,
        reveal,
        selectors,
        testing,
    )
    from foci.api import Audit, audit
    from foci.bags import Bag, Cohort
    from foci.errors import FociError

logging.getLogger("foci").addHandler(logging.NullHandler())  # silent unless somebody asks for it

__all__ = [
    "Audit",
    "Bag",
    "Cohort",
    "FociError",
    "audit",
    "audits",
    "backbones",
    "bags",
    "demo",
    "metrics",
    "rankings",
    "reports",
    "reveal",
    "selectors",
    "testing",
]

_HOMES = {
    "Audit": "foci.api",
    "Bag": "foci.bags",
    "Cohort": "foci.bags",
    "FociError": "foci.errors",
    "audit": "foci.api",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in __all__:
        return importlib.import_module(f"foci.{name}")
    raise AttributeError(f"module 'foci' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
