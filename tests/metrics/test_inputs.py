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
NAN = float("nan")

REFUSALS: dict[str, tuple[Callable[[], Any], str]] = {
    "flat probs": (lambda: metrics.msk([0.4, 0.6], [1], 1), r"probs: has shape \(2,\); pass"),
    "no rows": (lambda: metrics.msk(np.zeros((0, 2)), [], 1), "probs: is empty"),
    "ragged": (lambda: metrics.msk([[0.5, 0.5], [1.0]], [1, 2], 0), "probs: cannot be read as"),
    "one class": (lambda: metrics.msk([[1.0]], [1], 0), "probs: has a single class"),
    "logits": (lambda: metrics.msk([[-3.0, 4.0]], [1], 1), r"probs: leaves \[0, 1\]"),
    "sum": (lambda: metrics.msk([[0.5, 0.4]], [1], 1), "probs: misses a sum of 1 by 0.1;"),
    "NaN": (lambda: metrics.msk([[NAN, 0.4]], [1], 1), "probs: contains NaN or infinity"),
    "length": (lambda: metrics.msk(GOOD, [1], 1), "ks: has 1 counts for 2 curve points"),
    "order": (lambda: metrics.msk(GOOD, [2, 1], 1), "ks: is not strictly increasing"),
    "twice": (lambda: metrics.msk(GOOD, [2, 2], 1), "ks: is not strictly increasing"),
    "zero": (lambda: metrics.msk(GOOD, [0, 1], 1), "ks: holds values that are not counts >= 1"),
    "half": (lambda: metrics.msk(GOOD, [1, 1.5], 1), "ks: holds values that are not counts"),
    "target": (lambda: metrics.msk(GOOD, [1, 2], 2), "target: is class 2; pass a class up to 1"),
    "negative target": (lambda: metrics.msk(GOOD, [1, 2], -1), "target: is -1; pass 0 or more"),
    "real target": (lambda: metrics.msk(GOOD, [1, 2], 0.5), "target: is 0.5; pass a whole"),  # type: ignore[arg-type]
    "kappa 0": (lambda: metrics.msk(GOOD, [1, 2], 1, kappa=0.0), "kappa: is 0.0; pass a value"),
    "kappa 2": (lambda: metrics.stable_msk(GOOD, [1, 2], 1, kappa=1.2), "kappa: is 1.2"),
    "kappa NaN": (lambda: metrics.msk(GOOD, [1, 2], 1, kappa=NAN), "kappa: is nan"),
    "gradient": (
        lambda: metrics.msk(torch.tensor(GOOD, requires_grad=True), [1, 2], 1),
        "probs: cannot be read as numbers .* detached CPU tensor",
    ),
    "N": (lambda: metrics.aukc(GOOD, [1, 9], 4, 1), "ks: ends at 9, above n_tiles 4"),
    "cohort": (
        lambda: metrics.stack([GOOD, GOOD], [[1, 2], [2, 1]]),
        "curve 1, ks: is not strictly increasing",
    ),
    "cohort lengths": (
        lambda: metrics.stack([GOOD], [[1, 2], [1, 2]]),
        r"probs: lengths differ \(probs 1, ks 2\)",
    ),
    "no cohort": (lambda: metrics.stack([], []), "probs: is empty"),
    "no slides": (lambda: metrics.reach([]), "msks: is empty"),
    "count 0": (lambda: metrics.reach([0, 3]), "msks: holds a count below 1"),
    "infinite": (lambda: metrics.msk_cond([np.inf]), "msks: contains NaN or infinity"),
    "k_max": (lambda: metrics.restricted_mean([1], k_max=0), "k_max: is 0; pass 1 or more"),
    "stable first": (
        lambda: metrics.fallback_share([4], [2]),
        "stable_msks: holds a count before the first crossing",
    ),
    "stable alone": (lambda: metrics.fallback_share([None], [2]), "stable_msks: holds a count"),
    "classes": (lambda: metrics.reach_split([1], [0.5], [1]), "predictions: holds values that"),
    "unreached": (lambda: metrics.shi(NAN, 2.0), "base: has no MSK: no slide reaches kappa"),
    "negative": (lambda: metrics.shi(2.0, [-1.0]), "foci: holds a negative tile count"),
    "full": (
        lambda: metrics.deletion_drop([0.2, 0.3, 0.5], GOOD, [1, 2], 1),
        "full: has 3 classes, the curve 2",
    ),
    "drops": (lambda: metrics.faithfulness_auc([1, 2], [0.0, 1.5]), r"drops: leaves \[-1, 1\]"),
    "one drop": (lambda: metrics.faithfulness_auc([16], [0.1]), "ks: has a single count"),
    "beyond": (lambda: metrics.faithfulness_auc([1, 300], [0, 0]), "ks: ends at 300, above k_max"),
    "mean drops": (lambda: metrics.mean_drops([0.5]), r"drops: has shape \(1,\)"),
    "grid": (
        lambda: metrics.drops_on_grid(metrics.stack([GOOD], [[1, 2]]), [GOOD[0]], [1], [2, 1]),
        "grid: is not strictly increasing",
    ),
    "small budget": (lambda: metrics.truncate(GOOD, [8, 9], 4), "k_max: is 4, below the first"),
    "rival": (lambda: metrics.specificity(GOOD, [1, 2], 1, [1.0]), "full: has a single class"),
    "no class": (lambda: metrics.auc([0.1, 0.9], [1, 1]), "labels: lacks class 0"),
    "label": (lambda: metrics.auc([0.1, 0.9], [0, 2]), "labels: holds an unknown class"),
    "alpha": (lambda: metrics.adaptive_budget(9, alpha=0), "alpha: is 0; pass a value above 0"),
    "bag size": (
        lambda: metrics.selected_probabilities([GOOD], [[1, 2]], [0], [GOOD[0]]),
        "n_tiles: holds values that are not counts >= 1",
    ),
    "k": (lambda: metrics.jaccard_at_k([1, 2], [1, 2], 3), "k: is 3 but the bag has 2 tiles"),
    "bags": (lambda: metrics.spearman([1, 2], [1]), r"first: lengths differ \(first 2, second 1"),
    "NaN score": (lambda: metrics.spearman([1, NAN], [1, 2]), "first: contains NaN"),
    "marks": (lambda: metrics.precision_at_k([1, 2], [1, 2], 1), "truth: is not true or false"),
    "mark": (lambda: metrics.precision_at_k([1, 2], [1], 1), "truth: has 1 of 2 tiles"),
    "unmarked": (lambda: metrics.average_precision([1, 2], [0, 0]), "truth: marks no tile"),
    "cases": (
        lambda: metrics.paired_bootstrap([1, 2], [1, 2], ["a"]),
        r"cases: has shape \(1,\) for 2 slides",
    ),
    "level": (
        lambda: metrics.paired_bootstrap([1], [1], ["a"], level=95),
        "level: is 95; pass a value above 0 and at most 1",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal_names_argument_fault_and_remedy_in_one_line(case: str) -> None:
    call, message = REFUSALS[case]
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
