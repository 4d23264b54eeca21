"""Rankings: one real number per tile of a bag; the higher, the earlier it is revealed."""

from foci.rankings import (
    attention_x_evidence,  # noqa: F401
    feature_norm,  # noqa: F401
    from_file,  # noqa: F401
    gradient_x_input,  # noqa: F401
    greedy,  # noqa: F401
    integrated_gradients,  # noqa: F401
    leave_one_out,  # noqa: F401
    native,  # noqa: F401
    random_order,  # noqa: F401
    selector,  # noqa: F401
    single_tile,  # noqa: F401
)
from foci.rankings.embedded import EmbeddedBag
from foci.rankings.families import RANKINGS, Family, Need, available
from foci.rankings.random_order import random_controls
from foci.rankings.ranking import Ranking
from foci.rankings.scoring import score

__all__ = [
    "RANKINGS",
    "EmbeddedBag",
    "Family",
    "Need",
    "Ranking",
    "available",
    "random_controls",
    "score",
]
