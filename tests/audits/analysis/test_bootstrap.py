"""One draw of patients for all rankings."""

import numpy as np

from foci.audits.measure import measure_rankings, slides_by_view
from foci.audits.numbers import resample
from foci.metrics import case_means
from foci.metrics.inputs import defined_mean
from tests.makers.curves import CLASSES, Settings, slides, table

CASES = ["A", "A", "B", "C"]


def test_rankings_share_their_draws() -> None:
    counts = {"native": [[4, 8, None, 12]], "selector": [[2, 4, 6, 8], [4, None, 6, 8]]}
    curves = table(counts)
    views = slides_by_view(curves, slides(CASES, [None] * 4), CLASSES)
    measured = measure_rankings(curves, views, Settings())
    found = [measured[name]["prediction"] for name in counts]
    drawn = resample(found, CASES, 50)
    assert drawn["native"].msk_cond.shape == (50,)
    # each ranking by itself, from the same seed, gives the same draws
    for one in found:
        alone = case_means(one.msk.T, CASES, 50)
        got = drawn[one.ranking].msk_cond
        np.testing.assert_allclose(got, defined_mean(alone, axis=1))
        np.testing.assert_allclose(
            drawn[one.ranking].restricted,
            case_means(one.restricted.mean(axis=0)[:, None], CASES, 50)[:, 0],
        )
    # a draw of patient B alone: native reaches nothing there
    missing = np.isnan(drawn["native"].msk_cond)
    np.testing.assert_array_equal(drawn["native"].reach[missing], 0)
    assert (drawn["selector"].faithfulness == 0).all()
