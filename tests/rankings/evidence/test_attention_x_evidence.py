"""Attention times evidence: by hand, and additive where the classifier is."""

import numpy as np
import pytest
import torch

from foci import rankings
from foci.backbones.models._pooled import PooledBackbone
from tests.rankings.trials import features, logits_of, make


@pytest.mark.parametrize(
    ("name", "preset"),
    [("abmil", "official"), ("acmil", "paper"), ("clam-mb", "official"), ("attrimil", "paper")],
)
def test_scores_add_up_to_the_log_odds_of_two_classes(name: str, preset: str) -> None:
    model, x = make(name, preset, n_classes=2), features(8)
    logits = logits_of(model, x, range(8))
    got = rankings.score("attention-x-evidence", model, x, target=1).scores
    assert got.sum() == pytest.approx(float(logits[1] - logits[0]), abs=1e-12)
    other = rankings.score("attention-x-evidence", model, x, target=0).scores
    np.testing.assert_allclose(other, -got, rtol=0, atol=1e-12)


def test_by_hand_for_one_row_and_three_classes() -> None:
    """A head with a hidden layer: weight times logit of the tile alone."""
    model, x = make("abmil", "paper"), features(5)
    assert isinstance(model, PooledBackbone)
    weights = torch.softmax(model.attend(model.embed(x)), dim=0)[:, 0]
    alone = torch.stack([logits_of(model, x, [i]) for i in range(5)])
    p = torch.softmax(logits_of(model, x, range(5)), dim=-1)
    rival = (p[0] * alone[:, 0] + p[1] * alone[:, 1]) / (p[0] + p[1])
    got = rankings.score("attention-x-evidence", model, x, target=2).scores
    np.testing.assert_allclose(got, weights * (alone[:, 2] - rival), rtol=0, atol=1e-12)


def test_by_hand_for_a_row_per_class() -> None:
    model, x = make("attrimil", "paper"), features(5)
    assert isinstance(model, PooledBackbone)
    weights = torch.softmax(model.attend(model.embed(x)), dim=0)
    terms = weights * torch.stack([logits_of(model, x, [i]) for i in range(5)])
    p = torch.softmax(logits_of(model, x, range(5)), dim=-1)
    want = terms[:, 0] - (p[1] * terms[:, 1] + p[2] * terms[:, 2]) / (p[1] + p[2])
    got = rankings.score("attention-x-evidence", model, x, target=0).scores
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


def test_a_constant_on_all_logits_changes_nothing_in_one_row() -> None:
    model, x = make("abmil", "official"), features(6)
    before = rankings.score("attention-x-evidence", model, x).scores
    model.head.bias.data += 5.0  # type: ignore[union-attr, operator]
    after = rankings.score("attention-x-evidence", model, x).scores
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-12)
