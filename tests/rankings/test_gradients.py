"""Gradient x input and integrated gradients."""

import sys

import numpy as np
import pytest
import torch

from foci import backbones, rankings
from foci.backbones import CallableBackbone
from foci.backbones.outcomes import two_sides
from foci.errors import FociError
from foci.outputs import Cut, Output
from tests.backbones.every import D_IN
from tests.rankings.trials import features, logits_of, make

MODELS = [("abmil", "paper"), ("attrimil", "paper"), ("transmil", "paper"), ("callable", "")]


@pytest.mark.parametrize(("name", "preset"), [*MODELS, ("transmil", "official")])
def test_gradient_x_input_equals_finite_differences(name: str, preset: str) -> None:
    """Scaling tile i by 1 + h changes the logit by h * s_i."""
    model, x = make(name, preset), features(5)
    got = rankings.score("gradient-x-input", model, x, target=1).scores
    h = 1e-6
    for i in range(5):
        up, down = x.clone(), x.clone()
        up[i] *= 1 + h
        down[i] *= 1 - h
        slope = (logits_of(model, up, range(5)) - logits_of(model, down, range(5)))[1] / (2 * h)
        assert got[i] == pytest.approx(float(slope), rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(
    ("name", "preset", "tolerance"),
    [
        ("asmil", "official", 1e-7),
        ("callable", "", 1e-7),
        ("abmil", "paper", 1e-3),  # a ReLU in the head: the sum meets kinks
        ("attrimil", "paper", 1e-3),
        ("transmil", "paper", 5e-2),  # LayerNorm is steep next to zero features
    ],
)
def test_integrated_gradients_add_up_to_the_logit_difference(
    name: str, preset: str, tolerance: float
) -> None:
    model, x = make(name, preset, spread=1.0), features(5)
    got = rankings.score("integrated-gradients", model, x, target=1, n_steps=300).scores
    difference = (logits_of(model, x, range(5)) - logits_of(model, 0 * x, range(5)))[1]
    assert got.sum() == pytest.approx(float(difference), rel=tolerance)


def test_integrated_gradients_of_a_linear_model_are_its_contributions() -> None:
    weight = torch.randn(D_IN, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    model = CallableBackbone(lambda x: (x @ weight).mean(dim=0), D_IN, 2)
    x = features(4)
    want = (x @ weight)[:, 1].numpy() / 4
    for name in ("integrated-gradients", "gradient-x-input"):
        got = rankings.score(name, model, x, target=1).scores
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=0)


def test_a_small_budget_changes_nothing() -> None:
    model, x = make("transmil", "paper"), features(5)
    scores = [
        rankings.score("integrated-gradients", model, x, n_steps=7, budget=budget).scores
        for budget in (1, 11, 1000)
    ]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0, atol=1e-12)
    np.testing.assert_allclose(scores[0], scores[2], rtol=0, atol=1e-12)


def test_without_captum_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(FociError, match=r"needs captum, .*; pip install foci-mil\[attribution\]$"):
        rankings.score("integrated-gradients", make("abmil", "paper"), features(3))


def test_no_steps_are_refused() -> None:
    with pytest.raises(FociError, match=r"^n_steps: 0 is too few; give at least 1$"):
        rankings.score("integrated-gradients", make("abmil", "paper"), features(3), n_steps=0)


@pytest.mark.parametrize("name", ["gradient-x-input", "integrated-gradients"])
def test_a_model_without_gradients_is_refused(name: str) -> None:
    declared = CallableBackbone(lambda x: x.mean(0)[:2], D_IN, 2, differentiable=False)
    with pytest.raises(
        FociError, match=rf"^ranking '{name}': callable passes no gradient .*random"
    ):
        rankings.score(name, declared, features(3))
    hidden = CallableBackbone(lambda x: x.detach().mean(0)[:2], D_IN, 2)
    with pytest.raises(FociError, match=r"^backbone callable: passes no gradient .*declare"):
        rankings.score(name, hidden, features(3))
    weight = torch.ones(2, requires_grad=True)
    elsewhere = CallableBackbone(lambda x: weight * x.detach().mean(), D_IN, 2)
    with pytest.raises(FociError, match=r"^backbone callable: passes no gradient .*declare"):
        rankings.score(name, elsewhere, features(3).float())


@pytest.mark.parametrize("name", ["gradient-x-input", "integrated-gradients"])
@pytest.mark.parametrize("output", ["cox", "regression", "hazards", "multilabel"])
def test_of_one_number_the_sides_are_opposites(name: str, output: Output) -> None:
    own = backbones.create(
        "abmil", d_in=D_IN, n_classes=2 if output in ("cox", "regression") else 3
    )
    label = 1 if output == "multilabel" else None
    sided = two_sides(own.eval(), output, Cut(0.1, 0.5), 0.9, label)
    low, high = (rankings.score(name, sided, features(6), target=t).scores for t in (0, 1))
    assert np.abs(high).max() > 1e-6
    assert low == pytest.approx(-high, rel=1e-5, abs=1e-9)
