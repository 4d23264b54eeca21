"""One ranking against another, and the draws that all of them share."""

import math

import numpy as np

from foci.audits import CurveTable
from foci.audits.measure import measure_slides
from foci.audits.numbers import resample
from foci.audits.records import Saving
from foci.metrics import case_means
from foci.metrics.inputs import defined_mean
from tests.makers.curves import (
    CLASSES,
    Counts,
    Settings,
    curve,
    flipping,
    slides,
    summarised,
    summary_of,
    table,
)


def saved(counts: Counts, cases: list[str], n_boot: int) -> Saving:
    """SHI of the selector against the native ranking."""
    labels = [None] * len(cases)
    found = summary_of(counts, cases, labels, Settings(n_boot=n_boot))
    saving = found.views["prediction"]["selector"].shi_native
    assert saving is not None
    return saving


def test_a_slide_is_reached_by_a_ranking_if_every_seed_reaches_it() -> None:
    counts = {"native": [[4, 6, None]], "selector": [[1, 2, 3], [3, None, 3]]}
    view = summary_of(counts, ["A", "B", "C"], [None] * 3).views["prediction"]
    paired = view["selector"].paired
    assert paired.model_dump() == {
        "base": 4.0, "foci": 2.0, "n_both": 1, "n_base_only": 1, "n_foci_only": 1, "n_neither": 0,
    }  # fmt: skip


def test_draws_without_a_reached_slide_are_left_out() -> None:
    # draws of (a, a) hold no native count: about a quarter of them
    result = saved({"native": [[None, 4]], "selector": [[1, 2]]}, ["a", "b"], n_boot=400)
    assert math.isfinite(result.low)
    assert math.isfinite(result.high)


def test_deletion_of_some_orders_is_dense_although_a_slide_has_one_tile() -> None:
    how = [{"n_tiles": 1}, {"n_tiles": 20}]
    curves = [curve(f"s{i}", "random", seed, 1, **how[i]) for seed in (0, 1) for i in (0, 1)]
    curves += [flipping(f"s{i}", "random", 0, None, **how[i]) for i in (0, 1)]
    known = slides(["A", "B"], [None] * 2, [1, 20])
    found = summarised(CurveTable.of(curves), known, CLASSES, Settings(), [])
    counts = found.views["prediction"]["random"].counts
    assert (counts.deletion, counts.n_deleted) == ("dense", 1)


# Draws


def test_rankings_share_their_draws() -> None:
    counts = {"native": [[4, 8, None, 12]], "selector": [[2, 4, 6, 8], [4, None, 6, 8]]}
    cases = ["A", "A", "B", "C"]
    measured = measure_slides(table(counts), slides(cases, [None] * 4), CLASSES, Settings())
    drawn = resample(measured, "prediction", 50)
    assert drawn["native"]["msk_cond"].shape == (50,)
    # each ranking by itself, from the same seed, gives the same draws
    for name in counts:
        own = measured.of(name)
        alone = case_means(own.msk.T, cases, 50)
        np.testing.assert_allclose(drawn[name]["msk_cond"], defined_mean(alone, axis=1))
        np.testing.assert_allclose(
            drawn[name]["restricted"],
            case_means(own.restricted.mean(axis=0)[:, None], cases, 50)[:, 0],
        )
    # a draw of patient B alone: native reaches nothing there
    missing = np.isnan(drawn["native"]["msk_cond"])
    np.testing.assert_array_equal(drawn["native"]["reach"][missing], 0)
    assert (drawn["selector"]["faithfulness"] == 0).all()
