"""Means over what is defined."""

import math

import numpy as np
import pytest

from foci.metrics.inputs import defined_mean


def test_means_over_what_is_defined() -> None:
    table = np.array([[1.0, math.nan, math.nan], [2.0, 5.0, math.nan]])
    np.testing.assert_array_equal(defined_mean(table, axis=0), [1.5, 5.0, math.nan])
    np.testing.assert_array_equal(defined_mean(table, axis=1), [1.0, 3.5])
    assert float(defined_mean(table)) == pytest.approx(8 / 3)
    assert math.isnan(float(defined_mean(np.array([math.nan]))))
