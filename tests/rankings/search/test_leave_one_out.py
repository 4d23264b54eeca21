"""Removal, against forwarding the bag without the tile."""

import numpy as np
import pytest
import torch

from foci import backbones, rankings
from tests.rankings.trials import OTHERS, POOLED, features, make, probability


@pytest.mark.parametrize(("name", "preset"), [*POOLED, *OTHERS])
def test_equals_forwarding_the_bag_without_the_tile(name: str, preset: str) -> None:
    model, x = make(name, preset), features(7)
    got = rankings.score("leave-one-out", model, x, target=2).scores
    full = probability(model, x, range(7), 2)
    rest = [[j for j in range(7) if j != i] for i in range(7)]
    want = [full - probability(model, x, tiles, 2) for tiles in rest]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)
    assert np.ptp(got) > 1e-6


@pytest.mark.parametrize("name", ["abmil", "transmil"])
def test_the_only_tile_is_compared_with_no_prediction(name: str) -> None:
    model, x = make(name, "paper"), features(1)
    got = rankings.score("leave-one-out", model, x, target=1).scores
    assert got.tolist() == pytest.approx([probability(model, x, [0], 1) - 1 / 3], abs=1e-12)


def test_single_precision_is_close_to_double() -> None:
    torch.manual_seed(0)
    model = backbones.create("abmil", d_in=16, n_classes=2)
    x = torch.randn(50, 16)
    single = rankings.score("leave-one-out", model, x).scores
    double = rankings.score("leave-one-out", model.double(), x).scores
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-7)
