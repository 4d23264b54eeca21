"""Every ranking in every view."""

import numpy as np
import pytest

from foci.audits.measure import measure_slides
from tests.makers.curves import CLASSES, Settings, slides, table

COUNTS = {"native": [[2, 4]], "random": [[1, None], [3, 8]]}


def test_views_and_rankings() -> None:
    curves = table(COUNTS)
    found = measure_slides(curves, slides(["A", "B"], ["tumour", None]), CLASSES, Settings())
    assert list(found.views) == ["prediction", "label"]
    assert [list(by_ranking) for by_ranking in found.metrics.values()] == [["native", "random"]] * 2
    np.testing.assert_array_equal(found.metrics["prediction"]["native"].msk, [[2, 4]])
    np.testing.assert_array_equal(found.metrics["label"]["random"].msk, [[1], [3]])


@pytest.mark.parametrize(("k_max", "reached"), [(256, 4), (3, 2)])
def test_curves_end_at_the_budget(k_max: int, reached: int) -> None:
    found = measure_slides(
        table(COUNTS), slides(["A", "B"], [None] * 2), CLASSES, Settings(k_max=k_max)
    )
    assert found.curves.get("native")[0].ks[-1] == k_max
    msk = found.metrics["prediction"]["native"].msk
    assert np.nanmax(msk) == reached
