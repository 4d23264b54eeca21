"""Every ranking, registered, and the functions that look one up by its name."""

# The imports below register the rankings, in the order in which available() lists them.
# isort: off
from foci.rankings import evidence  # noqa: F401
from foci.rankings import controls  # noqa: F401
from foci.rankings import from_file  # noqa: F401
from foci.rankings import gradient  # noqa: F401
from foci.rankings import search  # noqa: F401
from foci.rankings import native  # noqa: F401
from foci.rankings.controls import random_controls

# isort: on
from foci.rankings.registry import (
    RANKINGS,
    Need,
    RankingMethod,
    RequestedRanking,
    available,
    requested,
    score,
)

__all__ = [
    "RANKINGS",
    "Need",
    "RankingMethod",
    "RequestedRanking",
    "available",
    "random_controls",
    "requested",
    "score",
]
