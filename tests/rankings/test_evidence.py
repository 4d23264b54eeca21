"""Rankings by what the classifier predicts of a tile alone."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from foci import rankings
from foci.backbones import CallableBackbone
from foci.backbones.models._pooled import PooledBackbone
from tests.backbones.every import D_IN
from tests.rankings.trials import OTHERS, POOLED, features, logits_of, make


def margin(logits: np.ndarray[Any, Any], target: int) -> float:
    """Log-odds, the slow way."""
    others = [float(v) for c, v in enumerate(logits) if c != target]
    return float(logits[target]) - math.log(sum(math.exp(v) for v in others))


def weight(attention: np.ndarray[Any, Any], tile: int) -> float:
    """Softmax weight of one tile in one row, the slow way."""
    return math.exp(attention[tile]) / sum(math.exp(a) for a in attention)


@pytest.mark.parametrize(
    ("name", "preset", "shares"),
    [
        ("abmil", "paper", [1.0]),
        ("mhim-mil", "paper", [1.0]),
        ("attrimil", "paper", [0.0, 1.0, 0.0]),
        ("clam-mb", "official", [0.0, 1.0, 0.0]),
        ("acmil", "paper", None),
    ],
)
def test_by_hand_for_one_row_a_row_per_class_and_averaged_branches(
    name: str, preset: str, shares: list[float] | None
) -> None:
    model, x = make(name, preset), features(6)
    assert isinstance(model, PooledBackbone)
    attention = model.attend(model.embed(x)).numpy()
    rows = attention.shape[1]
    of_row = [1 / rows] * rows if shares is None else shares
    got = rankings.score("evidence", model, x, target=1).scores
    for tile in range(6):
        mass = sum(of_row[r] * weight(attention[:, r], tile) for r in range(rows))
        alone = logits_of(model, x, [tile]).numpy()
        assert got[tile] == pytest.approx(math.sqrt(mass) * margin(alone, 1), abs=1e-10)


@pytest.mark.parametrize(("name", "preset"), POOLED)
def test_its_signs_are_those_of_the_tile_alone(name: str, preset: str) -> None:
    """A tile that speaks for another class never comes before one that speaks for the target."""
    model, x = make(name, preset), features(9)
    for target in range(3):
        got = rankings.score("evidence", model, x, target=target).scores
        alone = [margin(logits_of(model, x, [i]).numpy(), target) for i in range(9)]
        assert np.sign(got).tolist() == np.sign(alone).tolist()


@pytest.mark.parametrize(("name", "preset"), OTHERS)
def test_is_the_log_odds_of_the_tile_alone_for_any_other(name: str, preset: str) -> None:
    model, x = make(name, preset), features(7)
    got = rankings.score("evidence", model, x, target=1).scores
    alone = [margin(logits_of(model, x, [i]).numpy(), 1) for i in range(7)]
    np.testing.assert_allclose(got, alone, rtol=0, atol=1e-10)
    by_probability = rankings.score("single-tile", model, x, target=1)
    np.testing.assert_allclose(by_probability.scores, 1 / (1 + np.exp(-got)), rtol=0, atol=1e-10)
    assert np.argsort(-got).tolist() == by_probability.order.tolist()


def certain(scale: float) -> CallableBackbone:
    """A float32 classifier that is certain of class 1 on every tile of positive features."""

    def logits(x: torch.Tensor) -> torch.Tensor:
        strength = scale * x.mean()
        return torch.stack([-strength, strength])

    return CallableBackbone(logits, D_IN, 2, order_free=True)


def test_tiles_of_saturated_probability_keep_their_order() -> None:
    x = features(40).float().abs()
    order = np.argsort(-x.mean(dim=1).numpy(), kind="stable")
    saturated = rankings.score("single-tile", certain(100.0), x, target=1)
    assert len(set(saturated.scores.tolist())) == 1
    got = rankings.score("evidence", certain(100.0), x, target=1)
    assert len(set(got.scores.tolist())) == 40
    assert got.order.tolist() == order.tolist()
