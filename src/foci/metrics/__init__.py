"""Metrics of stored curves and rankings: pure functions of arrays, each with a card.

No model is run here and no file is read. ``curve`` holds the metrics of one curve, ``cohort`` those
of many slides, ``ranking`` those of an order of tiles. Every metric says what the *model* needs to
decide; none of them says what suffices for a diagnosis.
"""

from foci.metrics.cards import CARDS, Card
from foci.metrics.cohort.correctness import ReachSplit, reach_split
from foci.metrics.cohort.deletion import drops_on_grid, mean_drops, slide_faithfulness
from foci.metrics.cohort.headroom import (
    PairedMSK,
    SeedSpread,
    captured_headroom,
    paired_msk,
    shi,
    shi_against_random,
    shi_per_seed,
)
from foci.metrics.cohort.random_control import random_corrected_aukc
from foci.metrics.cohort.selected_only import (
    adaptive_budget,
    auc,
    probability_at,
    selected_only_auc,
    selected_probabilities,
)
from foci.metrics.cohort.stacked import OperatingPoints, Stack, operating_points, stack
from foci.metrics.curve.areas import aupc, morf_minus_lerf
from foci.metrics.curve.censoring import KaplanMeier, kaplan_meier, restricted, restricted_mean
from foci.metrics.curve.deletion import (
    comprehensiveness,
    deletion_drop,
    faithfulness_auc,
    sufficiency,
    tiles_to_flip,
)
from foci.metrics.curve.specificity import Specificity, specific_share, specificity
from foci.metrics.curve.stability import fallback_share, stable_msk
from foci.metrics.curve.sufficiency import aukc, msk, msk_cond, reach
from foci.metrics.curve.target import predicted_class, runner_up, truncate
from foci.metrics.ranking.agreement import jaccard_at_k, kendall, spearman
from foci.metrics.ranking.disjoint import disjoint_sets
from foci.metrics.ranking.localisation import average_precision, ndcg, precision_at_k, recall_at_k
from foci.metrics.stats import (
    Interval,
    SignedRank,
    case_means,
    paired_bootstrap,
    percentile_interval,
    wilcoxon,
)
from foci.metrics.verdict import Verdict, VerdictName, decide, judge

__all__ = [
    "CARDS",
    "Card",
    "Interval",
    "KaplanMeier",
    "OperatingPoints",
    "PairedMSK",
    "ReachSplit",
    "SeedSpread",
    "SignedRank",
    "Specificity",
    "Stack",
    "Verdict",
    "VerdictName",
    "adaptive_budget",
    "auc",
    "aukc",
    "aupc",
    "average_precision",
    "captured_headroom",
    "case_means",
    "comprehensiveness",
    "decide",
    "deletion_drop",
    "disjoint_sets",
    "drops_on_grid",
    "faithfulness_auc",
    "fallback_share",
    "jaccard_at_k",
    "judge",
    "kaplan_meier",
    "kendall",
    "mean_drops",
    "morf_minus_lerf",
    "msk",
    "msk_cond",
    "ndcg",
    "operating_points",
    "paired_bootstrap",
    "paired_msk",
    "percentile_interval",
    "precision_at_k",
    "predicted_class",
    "probability_at",
    "random_corrected_aukc",
    "reach",
    "reach_split",
    "recall_at_k",
    "restricted",
    "restricted_mean",
    "runner_up",
    "selected_only_auc",
    "selected_probabilities",
    "shi",
    "shi_against_random",
    "shi_per_seed",
    "slide_faithfulness",
    "spearman",
    "specific_share",
    "specificity",
    "stable_msk",
    "stack",
    "sufficiency",
    "tiles_to_flip",
    "truncate",
    "wilcoxon",
]
