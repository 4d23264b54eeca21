"""Rankings: one score per tile of a bag; the higher, the earlier it is revealed."""

from foci.rankings import from_file, native, selector  # noqa: F401 - registers them
from foci.rankings.controls import feature_norm, random_order  # noqa: F401 - registers them
from foci.rankings.controls.random_order import random_controls
from foci.rankings.evidence import attention_x_evidence, single_tile  # noqa: F401 - registers them
from foci.rankings.gradient import gradient_x_input, integrated_gradients  # noqa: F401 - registers them
from foci.rankings.ranking import Ranking
from foci.rankings.registry import RANKINGS, Need, RankingMethod, available
from foci.rankings.scoring import score
from foci.rankings.search import greedy, leave_one_out  # noqa: F401 - registers them
from foci.reveal import EmbeddedBag

__all__ = [
    "RANKINGS",
    "EmbeddedBag",
    "Need",
    "Ranking",
    "RankingMethod",
    "available",
    "random_controls",
    "score",
]
