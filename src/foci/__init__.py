"""FOCI: which tiles suffice for a frozen whole-slide classifier, and can its heat map be believed.

Names are loaded on first use, so that ``import foci`` and ``foci --help`` stay fast.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from foci._version import __version__ as __version__
from foci.registry import lazy_names

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

_LOG = logging.getLogger("foci")  # messages of a run are INFO
_LOG.addHandler(logging.NullHandler())  # silent unless somebody asks for them
_LOG.setLevel(logging.INFO)

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

__getattr__, __dir__ = lazy_names("foci", {name: _HOMES.get(name, "foci") for name in __all__})
