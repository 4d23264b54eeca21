"""The ranking with the smallest flipping set of all, and the smallest decisive set of a bag."""

import numpy as np
import pytest
import torch

from foci import rankings
from foci.backbones.models._pooled import PooledBackbone
from foci.rankings import EmbeddedBag
from tests.rankings.trials import features, logits_of, make

LINEAR = [("abmil", "official"), ("clam-sb", "official"), ("mean-mil", "official")]


@pytest.mark.parametrize(("name", "preset"), LINEAR)
def test_scores_add_up_to_the_log_odds_of_two_classes(name: str, preset: str) -> None:
    model, x = make(name, preset, n_classes=2), features(8)
    logits = logits_of(model, x, range(8))
    got = rankings.score("minimal", model, x, target=1).scores
    assert got.sum() == pytest.approx(float(logits[1] - logits[0]), abs=1e-12)
    other = rankings.score("minimal", model, x, target=0).scores
    np.testing.assert_allclose(other, -got, rtol=0, atol=1e-12)


@pytest.mark.parametrize("target", [0, 1, 2])
def test_by_hand_for_three_classes(target: int) -> None:
    """Weight times margin, for the rival to which the fewest tiles flip."""
    model, x = make("abmil", "official"), features(7)
    assert isinstance(model, PooledBackbone)
    weights = torch.softmax(model.attend(model.embed(x)), dim=0)[:, 0].numpy()
    alone = torch.stack([logits_of(model, x, [i]) for i in range(7)]).numpy()
    found = []
    for rival in {0, 1, 2} - {target}:
        terms = weights * (alone[:, target] - alone[:, rival])
        left = [np.sort(terms)[: 7 - k].sum() for k in range(1, 7)]
        flips = [k for k, margin in enumerate(left, start=1) if margin < 0]
        found.append((min(flips, default=99), terms.sum(), terms.tolist()))
    got = rankings.score("minimal", model, x, target=target).scores
    np.testing.assert_allclose(got, min(found)[2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_its_first_tiles_are_the_proven_set_and_the_order_of_no_other_needs_fewer(
    seed: int,
) -> None:
    model = make("abmil", "official", n_classes=2)
    bag = EmbeddedBag(model, features(40, seed))
    order = rankings.score("minimal", model, bag).order
    found = rankings.minimal_set(bag, kappa=0.5)
    assert found.theorem == "T2"
    assert found.tiles.tolist() == order[: found.k or 0].tolist()
    if found.k is not None:
        left = bag.curve(order.tolist(), direction="delete")
        assert int(left[found.k].argmax()) != bag.target
        assert all(int(p.argmax()) == bag.target for p in left[: found.k])


@pytest.mark.parametrize("name", ["transmil", "dsmil", "asmil"])
def test_of_other_classifiers_no_bound_is_known(name: str) -> None:
    preset = "paper" if name == "transmil" else "official"
    found = rankings.minimal_set(EmbeddedBag(make(name, preset), features(5)))
    assert (found.k, found.tiles.tolist(), found.kind) == (None, [], "no bound")
