"""Every ranking, registered, and the functions that look one up by its name."""

# The imports below register the rankings, in the order in which available() lists them.
# isort: off
from foci.rankings.evidence import attention_x_evidence  # noqa: F401
from foci.rankings.evidence import training_free  # noqa: F401
from foci.rankings.controls import feature_norm  # noqa: F401
from foci.rankings import from_file  # noqa: F401
from foci.rankings.gradient import gradient_x_input  # noqa: F401
from foci.rankings.search import greedy  # noqa: F401
from foci.rankings.gradient import integrated_gradients  # noqa: F401
from foci.rankings.search import leave_one_out  # noqa: F401
from foci.rankings import native  # noqa: F401
from foci.rankings.controls.random_order import random_controls
from foci.rankings import selector  # noqa: F401
from foci.rankings.evidence import single_tile  # noqa: F401

# isort: on
from foci.rankings.registry import RANKINGS, Need, RankingMethod, available
from foci.rankings.request import RequestedRanking, requested
from foci.rankings.scoring import score

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
