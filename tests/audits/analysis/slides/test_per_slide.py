"""One ranking on the slides of one view, by hand."""

import numpy as np
import pytest

from foci.audits.measure import measure_rankings, slides_by_view
from tests.makers.curves import CLASSES, Settings, slides, table

COUNTS = {"selector": [[1, 3, None], [2, None, None]]}


def test_one_number_per_seed_and_slide() -> None:
    curves = table(COUNTS)
    views = slides_by_view(curves, slides(["A", "B", "C"], [None] * 3), CLASSES)
    found = measure_rankings(curves, views, Settings())["selector"]["prediction"]
    np.testing.assert_array_equal(found.msk, [[1, 3, np.nan], [2, np.nan, np.nan]])
    np.testing.assert_array_equal(found.restricted, [[1, 3, 256], [2, 256, 256]])
    np.testing.assert_array_equal(found.reached, [[1, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(found.stable, found.msk)  # these curves never fall back
    # 0.6 before the count, 0.95 from there on; 255 steps, divided by the last count 256
    assert found.aukc[0, 0] == pytest.approx(0.95 * 255 / 256)
    assert found.aukc[0, 2] == pytest.approx(0.6 * 255 / 256)
    # between K = 2 and 3 the trapezoid stands half on either level: 1.5 steps are low
    assert found.aukc[0, 1] == pytest.approx((1.5 * 0.6 + 253.5 * 0.95) / 256)
    assert found.curve.ks.tolist() == list(range(1, 257))
    assert found.curve.mean[0] == pytest.approx((0.95 + 5 * 0.6) / 6)
