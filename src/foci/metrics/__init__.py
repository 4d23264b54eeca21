"""Metrics of stored curves and rankings: pure functions of arrays, each with a card.

No model is run here and no file is read. ``curve`` holds the metrics of one curve, ``cohort`` those
of many slides, ``ranking`` those of an order of tiles. Every metric says what the *model* needs to
decide; none of them says what suffices for a diagnosis.
"""

from foci.metrics.answers import (
    Axis,
    Belief,
    BetterOrder,
    believable,
    better_order,
    conclusive,
    sensitive,
)
from foci.metrics.cards import CARDS, Card
from foci.metrics.cohort.correctness import ReachSplit, reach_split
from foci.metrics.cohort.decisive import DecisivePoints, decisive_points
from foci.metrics.cohort.deletion import (
    drops_on_grid,
    mean_drops,
    paper_faithfulness,
    slide_faithfulness,
)
from foci.metrics.cohort.headroom import (
    PairedMSK,
    captured_headroom,
    paired_msk,
    shi,
    shi_against_random,
)
from foci.metrics.cohort.necessity import (
    NecessityAxis,
    already_minimal,
    classes_without_decisive_sets,
    necessity_axis,
)
from foci.metrics.cohort.orders import (
    AxisResult,
    OrderComparison,
    compare_areas,
    compare_orders,
    net_win_share,
    order_differences,
)
from foci.metrics.cohort.quantiles import (
    CountQuantile,
    GeometricRatio,
    geometric_mean_ratio,
    quantiles_with_missing,
)
from foci.metrics.cohort.seeds import seed_spread
from foci.metrics.cohort.selected_only import (
    adaptive_budget,
    auc,
    selected_only_auc,
    selected_probabilities,
)
from foci.metrics.cohort.stacked import OperatingPoints, Stack, operating_points, stack
from foci.metrics.curve.censoring import KaplanMeier, kaplan_meier, restricted, restricted_mean
from foci.metrics.curve.decisive import decisive_k, stable_decisive_k
from foci.metrics.curve.deletion import deletion_drop, faithfulness_auc
from foci.metrics.curve.specificity import Specificity, specific_share, specificity
from foci.metrics.curve.stability import fallback_share, stable_msk
from foci.metrics.curve.sufficiency import aukc, msk, msk_cond, reach
from foci.metrics.curve.target import predicted_class, runner_up, truncate
from foci.metrics.ranking.agreement import jaccard_at_k, spearman
from foci.metrics.ranking.localisation import average_precision, precision_at_k
from foci.metrics.signed_rank import SignedRank, wilcoxon
from foci.metrics.stats import Interval, case_means, paired_bootstrap, percentile_interval

__all__ = [
    "CARDS",
    "Axis",
    "AxisResult",
    "Belief",
    "BetterOrder",
    "Card",
    "CountQuantile",
    "DecisivePoints",
    "GeometricRatio",
    "Interval",
    "KaplanMeier",
    "NecessityAxis",
    "OperatingPoints",
    "OrderComparison",
    "PairedMSK",
    "ReachSplit",
    "SignedRank",
    "Specificity",
    "Stack",
    "adaptive_budget",
    "already_minimal",
    "auc",
    "aukc",
    "average_precision",
    "believable",
    "better_order",
    "captured_headroom",
    "case_means",
    "classes_without_decisive_sets",
    "compare_areas",
    "compare_orders",
    "conclusive",
    "decisive_k",
    "decisive_points",
    "deletion_drop",
    "drops_on_grid",
    "faithfulness_auc",
    "fallback_share",
    "geometric_mean_ratio",
    "jaccard_at_k",
    "kaplan_meier",
    "mean_drops",
    "msk",
    "msk_cond",
    "necessity_axis",
    "net_win_share",
    "operating_points",
    "order_differences",
    "paired_bootstrap",
    "paired_msk",
    "paper_faithfulness",
    "percentile_interval",
    "precision_at_k",
    "predicted_class",
    "quantiles_with_missing",
    "reach",
    "reach_split",
    "restricted",
    "restricted_mean",
    "runner_up",
    "seed_spread",
    "selected_only_auc",
    "selected_probabilities",
    "sensitive",
    "shi",
    "shi_against_random",
    "slide_faithfulness",
    "spearman",
    "specific_share",
    "specificity",
    "stable_decisive_k",
    "stable_msk",
    "stack",
    "truncate",
    "wilcoxon",
]
