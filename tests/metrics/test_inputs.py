"""Refusals in one line: which argument, what is wrong, what to do; and the mean without NaN."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from foci import metrics
from foci.errors import FociError
from foci.metrics.inputs import defined_mean

GOOD = [[0.6, 0.4], [0.2, 0.8]]
HALF, NAN = [[0.5, 0.5]], float("nan")
TWO = metrics.stack([GOOD] * 2, [[1, 2]] * 2)
TWO_CLASSES = {"insert_probs": GOOD, "insert_ks": [1, 2], "delete_probs": GOOD, "target": 1}


def decisive(**changed: Any) -> Any:
    return metrics.decisive_k(**{**TWO_CLASSES, "delete_ks": [1, 2], **changed})


def decisive_points(
    delete_ks: tuple[int, ...], targets: tuple[int, int] = (1, 1), last: int = 5, **kappa: Any
) -> Any:
    """Of two slides with one deletion count each; the second one has ``last`` tiles."""
    delete = metrics.stack([HALF] * len(delete_ks), [[k] for k in delete_ks], lowest=0)
    return metrics.decisive_points(TWO, delete, targets, [5, last], **kappa)


REFUSALS: list[tuple[Callable[[], Any], str]] = [
    (lambda: metrics.msk([0.4, 0.6], [1], 1), r"probs: has shape \(2,\); pass"),
    (lambda: metrics.msk(np.zeros((0, 2)), [], 1), "probs: is empty"),
    (lambda: metrics.msk([[0.5, 0.5], [1.0]], [1, 2], 0), "probs: cannot be read as"),
    (lambda: metrics.msk([[1.0]], [1], 0), "probs: has a single class"),
    (lambda: metrics.msk([[-3.0, 4.0]], [1], 1), r"probs: leaves \[0, 1\]"),
    (lambda: metrics.msk([[0.5, 0.4]], [1], 1), "probs: misses a sum of 1 by 0.1;"),
    (lambda: metrics.msk([[NAN, 0.4]], [1], 1), "probs: contains NaN or infinity"),
    (lambda: metrics.msk(GOOD, [1], 1), "ks: has 1 counts for 2 curve points"),
    (lambda: metrics.msk(GOOD, [2, 1], 1), "ks: is not strictly increasing"),
    (lambda: metrics.msk(GOOD, [2, 2], 1), "ks: is not strictly increasing"),
    (lambda: metrics.msk(GOOD, [0, 1], 1), "ks: holds values that are not counts >= 1"),
    (lambda: metrics.msk(GOOD, [1, 1.5], 1), "ks: holds values that are not counts"),
    (lambda: metrics.msk(GOOD, [1, 2], 2), "target: is class 2; pass a class up to 1"),
    (lambda: metrics.msk(GOOD, [1, 2], -1), "target: is -1; pass 0 or more"),
    (lambda: metrics.msk(GOOD, [1, 2], 0.5), "target: is 0.5; pass a whole"),  # type: ignore[arg-type]
    (lambda: metrics.msk(GOOD, [1, 2], 1, kappa=0.0), "kappa: is 0.0; pass a value"),
    (lambda: metrics.stable_msk(GOOD, [1, 2], 1, kappa=1.2), "kappa: is 1.2"),
    (lambda: metrics.msk(GOOD, [1, 2], 1, kappa=NAN), "kappa: is nan"),
    (
        lambda: metrics.msk(torch.tensor(GOOD, requires_grad=True), [1, 2], 1),
        "probs: cannot be read as numbers .* detached CPU tensor",
    ),
    (lambda: metrics.aukc(GOOD, [1, 9], 4, 1), "ks: ends at 9, above n_tiles 4"),
    (
        lambda: metrics.stack([GOOD, GOOD], [[1, 2], [2, 1]]),
        "curve 1, ks: is not strictly increasing",
    ),
    (lambda: metrics.stack([GOOD], [[1, 2], [1, 2]]), r"probs: lengths differ \(probs 1, ks 2\)"),
    (lambda: metrics.stack([], []), "probs: is empty"),
    (lambda: metrics.stack([HALF], [[1, 2]]), ".*2 counts for 1 curve points"),
    (
        lambda: metrics.stack([HALF] * 2, [[1], [1.5]]),
        "curve 1, ks: holds values that are not counts >= 1",
    ),
    (
        lambda: metrics.stack([HALF, HALF, [[0.5, 0.4]]], [[1]] * 3),
        "curve 2, probs: misses a sum of 1 by 0.1",
    ),
    (
        lambda: metrics.stack([HALF * 2, [[0.5, 0.5], [1.0]]], [[1, 2]] * 2),
        "curve 1, probs: cannot be read as numbers",
    ),
    (
        lambda: metrics.operating_points(TWO, HALF * 2, [1]),
        r"full: lengths differ \(full 2, targets 1\)",
    ),
    (lambda: metrics.operating_points(TWO, HALF * 2, [1, 2]), "targets: holds an unknown class"),
    (lambda: decisive(delete_ks=[16, 32]), "delete_ks: shares no count with insert_ks"),
    (
        lambda: decisive(delete_probs=[[0.2, 0.3, 0.5]] * 2),
        "delete_probs: has 3 classes, insert_probs 2",
    ),
    (lambda: decisive(insert_ks=[0, 1]), "ks: holds values that are not counts >= 1"),
    (lambda: decisive(beta=-0.1), "beta: is"),
    (lambda: decisive(beta=1.0), "beta: is"),
    (lambda: decisive(beta=NAN), "beta: is"),
    (lambda: decisive(kappa=0), "kappa: is 0"),
    (lambda: decisive(target=2), "target: is class 2"),
    (lambda: decisive_points((1,)), "slide 1: has no count up to K_max known in both"),
    (lambda: decisive_points((1, 4)), "slide 1, delete_ks: shares no count"),
    (lambda: decisive_points((1, 4), last=4), "slide 1, ks: holds a count beyond the bag"),
    (lambda: decisive_points((1, 4), targets=(2, 1)), "targets: holds an unknown class"),
    (lambda: decisive_points((1, 4), kappa=[0.9] * 3), r"kappa: has shape \(3,\) for 2 slides"),
    (lambda: decisive_points((1, 4), kappa=[0.9, 1.5]), r"kappa: is 1\.5"),
    (
        lambda: metrics.decisive_points(
            TWO, metrics.stack([[[0.2, 0.3, 0.5]]] * 2, [[1]] * 2, lowest=0), [1, 1], [5, 5]
        ),
        "delete: has other classes than insert",
    ),
    (lambda: metrics.classes_without_decisive_sets([], [0]), "counts: is empty"),
    (lambda: metrics.classes_without_decisive_sets([[1, 2]], [0]), ".*lengths differ"),
    (lambda: metrics.necessity_axis([1, 2], [1]), ".*lengths differ"),
    (lambda: metrics.already_minimal([0.0]), "msks: holds a count below 1"),
    (
        lambda: metrics.compare_orders([1, 2], [1, 2, 3], ["p", "q"]),
        r"a: lengths differ \(a 2, b 3\)",
    ),
    (lambda: metrics.compare_orders([0, 2], [1, 2], ["p", "q"]), "a: holds a count below 1"),
    (lambda: metrics.compare_orders([1], [1], ["p"], tie=-1), "tie: is -1"),
    (lambda: metrics.compare_orders([1, 2], [1, 2], ["p"]), "cases: has shape"),
    (
        lambda: metrics.compare_orders([1, 2], [1, 2], ["p", None]),
        "cases: holds None; name every slide's patient",
    ),
    (
        lambda: metrics.compare_areas([0.1, 0.2], [0.1, 0.2], ["p"]),
        r"a: lengths differ \(a 2, cases 1\)",
    ),
    (lambda: metrics.compare_areas([0.1], [[[0.1]]], ["p"]), "b: has 3 dimensions"),
    (lambda: metrics.compare_areas([0.1], [0.1], [None]), "cases: holds None"),
    (lambda: metrics.net_win_share([1, 2], [1, 2], ["p"]), "cases: has shape"),
    (lambda: metrics.area_differences([0.1], [0.1, 0.2]), ".*lengths differ"),
    (lambda: metrics.area_differences([0.1], [0.1], tie=NAN), "tie: is nan"),
    (lambda: metrics.sign_flip_pvalue([]), "values: is empty"),
    (lambda: metrics.sign_flip_pvalue([1, NAN]), "values: contains NaN"),
    (lambda: metrics.median_interval([1, NAN], ["p", "q"]), "values: contains NaN"),
    (lambda: metrics.median_interval([1, 2], ["p"]), "cases: has shape"),
    (lambda: metrics.null_pvalue(0.5, []), "null_ds: is empty"),
    (lambda: metrics.null_pvalue(NAN, [0.1]), "d: contains NaN"),
    (lambda: metrics.restricted([1, 2], [256]), "k_max: has 1 counts for 2 slides"),
    (
        lambda: metrics.kaplan_meier([1, 2], [256, 0]),
        "k_max: holds values that are not counts >= 1",
    ),
    (lambda: metrics.restricted_mean([1, 2], 2.5), r"k_max: is 2\.5"),
    (
        lambda: metrics.quantiles_with_missing([1, 2], [1, 0]),
        "beyond: marks a slide that has a count",
    ),
    (lambda: metrics.quantiles_with_missing([1, 2], [0]), ".*lengths differ"),
    (lambda: metrics.quantiles_with_missing([1], [0], [50]), r"q: leaves \[0, 1\]"),
    (lambda: metrics.quantiles_with_missing([], []), "counts: is empty"),
    (lambda: metrics.quantiles_with_missing([1, None], [0, 256]), "beyond: is not true or false"),
    (lambda: metrics.seed_spread([]), "values: is empty"),
    (lambda: metrics.seed_spread([1.0, NAN]), "values: contains NaN"),
    (lambda: metrics.paper_faithfulness([[0.1, 0.2]]), "drops: has 2 counts"),
    (lambda: metrics.slide_faithfulness([[0.1, 0.2]], [300]), "drops: has 2 counts"),
    (
        lambda: metrics.slide_faithfulness([[0.1] * 5], [300, 300]),
        r".*lengths differ \(drops 1, n_tiles 2\)",
    ),
    (lambda: metrics.reach([]), "msks: is empty"),
    (lambda: metrics.reach([0, 3]), "msks: holds a count below 1"),
    (lambda: metrics.msk_cond([np.inf]), "msks: contains NaN or infinity"),
    (lambda: metrics.restricted_mean([1], k_max=0), "k_max: is 0; pass 1 or more"),
    (
        lambda: metrics.fallback_share([4], [2]),
        "stable_msks: holds a count before the first crossing",
    ),
    (lambda: metrics.fallback_share([None], [2]), "stable_msks: holds a count"),
    (lambda: metrics.reach_split([1], [0.5], [1]), "predictions: holds values that"),
    (lambda: metrics.shi(NAN, 2.0), "base: has no MSK: no slide reaches kappa"),
    (lambda: metrics.shi(2.0, [-1.0]), "foci: holds a negative tile count"),
    (
        lambda: metrics.deletion_drop([0.2, 0.3, 0.5], GOOD, [1, 2], 1),
        "full: has 3 classes, the curve 2",
    ),
    (lambda: metrics.faithfulness_auc([1, 2], [0.0, 1.5]), r"drops: leaves \[-1, 1\]"),
    (lambda: metrics.faithfulness_auc([16], [0.1]), "ks: has a single count"),
    (lambda: metrics.faithfulness_auc([1, 300], [0, 0]), "ks: ends at 300, above k_max"),
    (lambda: metrics.mean_drops([0.5]), r"drops: has shape \(1,\)"),
    (
        lambda: metrics.drops_on_grid(metrics.stack([GOOD], [[1, 2]]), [GOOD[0]], [1], [2, 1]),
        "grid: is not strictly increasing",
    ),
    (lambda: metrics.truncate(GOOD, [8, 9], 4), "k_max: is 4, below the first"),
    (lambda: metrics.specificity(GOOD, [1, 2], 1, [1.0]), "full: has a single class"),
    (lambda: metrics.auc([0.1, 0.9], [1, 1]), "labels: lacks class 0"),
    (lambda: metrics.auc([0.1, 0.9], [0, 2]), "labels: holds an unknown class"),
    (lambda: metrics.adaptive_budget(9, alpha=0), "alpha: is 0; pass a value above 0"),
    (
        lambda: metrics.selected_probabilities([GOOD], [[1, 2]], [0], [GOOD[0]]),
        "n_tiles: holds values that are not counts >= 1",
    ),
    (lambda: metrics.jaccard_at_k([1, 2], [1, 2], 3), "k: is 3 but the bag has 2 tiles"),
    (lambda: metrics.spearman([1, 2], [1]), r"first: lengths differ \(first 2, second 1"),
    (lambda: metrics.spearman([1, NAN], [1, 2]), "first: contains NaN"),
    (lambda: metrics.precision_at_k([1, 2], [1, 2], 1), "truth: is not true or false"),
    (lambda: metrics.precision_at_k([1, 2], [1], 1), "truth: has 1 of 2 tiles"),
    (lambda: metrics.average_precision([1, 2], [0, 0]), "truth: marks no tile"),
    (
        lambda: metrics.paired_bootstrap([1, 2], [1, 2], ["a"]),
        r"cases: has shape \(1,\) for 2 slides",
    ),
    (
        lambda: metrics.paired_bootstrap([1], [1], ["a"], level=95),
        "level: is 95; pass a value above 0 and at most 1",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_refusal_names_argument_fault_and_remedy_in_one_line(
    call: Callable[[], Any], message: str
) -> None:
    with pytest.raises(FociError, match="^" + message) as refusal:
        call()
    assert "\n" not in str(refusal.value)


def test_half_precision_softmax_is_accepted() -> None:
    probs = torch.softmax(torch.tensor([[2.0, 0.1, -1.0]]), dim=1).half()
    assert metrics.msk(probs, [1], 0, kappa=0.8) == 1


def test_target_may_be_a_numpy_or_torch_integer() -> None:
    assert metrics.msk(GOOD, [1, 2], np.int64(1), 0.8) == 2
    assert metrics.msk(GOOD, [1, 2], torch.tensor(1), 0.8) == 2


def test_means_over_what_is_defined() -> None:
    table = np.array([[1.0, math.nan, math.nan], [2.0, 5.0, math.nan]])
    np.testing.assert_array_equal(defined_mean(table, axis=0), [1.5, 5.0, math.nan])
    np.testing.assert_array_equal(defined_mean(table, axis=1), [1.0, 3.5])
    assert float(defined_mean(table)) == pytest.approx(8 / 3)
    assert math.isnan(float(defined_mean(np.array([math.nan]))))
