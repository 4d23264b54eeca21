"""Every tile alone, against forwarding it alone."""

import numpy as np
import pytest

from foci import rankings
from tests.rankings.trials import OTHERS, POOLED, features, make, probability


@pytest.mark.parametrize(("name", "preset"), [*POOLED, *OTHERS])
def test_equals_forwarding_every_tile_alone(name: str, preset: str) -> None:
    model, x = make(name, preset), features(7)
    got = rankings.score("single-tile", model, x, target=1).scores
    want = [probability(model, x, [i], 1) for i in range(7)]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
