"""What a user may ask for, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch

import foci
from foci import rankings
from foci.backbones import CallableBackbone
from foci.backbones.models.abmil import ABMIL
from foci.errors import FociError
from foci.rankings import RANKINGS, EmbeddedBag
from foci.rankings.registry import ranking
from tests.backbones.every import D_IN
from tests.rankings.trials import bag_of, features, make


@pytest.fixture
def answers() -> CallableBackbone:
    """A classifier known only by its answers."""
    return CallableBackbone(lambda x: x.mean(dim=0)[:2], D_IN, 2)


def test_rankings_are_reached_from_the_package() -> None:
    assert foci.rankings.score is rankings.score
    assert rankings.available() == tuple(sorted(RANKINGS))


def test_native_without_a_tile_score_says_which_rankings_work(answers: CallableBackbone) -> None:
    with pytest.raises(FociError) as caught:
        rankings.score("native", answers, features(3))
    assert caught.value.where == "ranking 'native'"
    assert caught.value.what == "callable has no tile score of its own"
    others = "evidence, feature-norm, from-file, gradient-x-input, greedy-deletion, "
    others += "greedy-insertion, integrated-gradients, leave-one-out, random, selector, single-tile"
    assert caught.value.fix == f"rankings that work with it: {others}"


def test_native_with_a_tile_score_of_the_users() -> None:
    model = CallableBackbone(
        lambda x: x.mean(dim=0)[:2], D_IN, 2, scores=lambda x: x[:, 0], output="logits"
    )
    got = rankings.score("native", model, features(4)).scores
    np.testing.assert_array_equal(got, features(4)[:, 0])


@pytest.mark.parametrize("name", ["abmil", "acmil", "attrimil", "transmil"])
def test_native_is_what_the_classifier_ranks_by(name: str) -> None:
    model, x = make(name, "paper"), features(5)
    want = model.scores(model.embed(x))
    np.testing.assert_array_equal(rankings.score("native", model, x).scores, want)


def test_feature_norm() -> None:
    x = torch.zeros(3, D_IN)
    x[0, :2] = torch.tensor([3.0, 4.0])
    x[2, 5] = -7.0
    assert rankings.score("feature-norm", make("abmil", "paper"), x).scores.tolist() == [5, 0, 7]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("leave-one-uot", {}, r"^leave-one-uot: is not a known ranking; did you mean 'leave-one-o"),
        ("random", {"sed": 1}, r"^ranking 'random': has no option 'sed'; its options: seed$"),
        ("native", {"seed": 1}, r"^ranking 'native': has no option 'seed'; it has none but target"),
        (
            "selector",
            {},
            r"^ranking 'selector': needs the option 'selector'; pass selector=\.\.\.$",
        ),
        ("native", {"target": 3}, r"^target: is 3; give a class index from 0 to 2, or None"),
        ("native", {"target": -1}, r"^target: is -1; "),
        ("native", {"target": "tumour"}, r"^target: is 'tumour'; "),
        ("native", {"target": 1.0}, r"^target: is 1.0; "),
    ],
)
def test_refusals(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(FociError, match=message):
        rankings.score(name, make("abmil", "paper"), features(3), **options)


def test_attention_x_evidence_needs_pooling() -> None:
    message = r"^ranking 'attention-x-evidence': transmil is not a pooling classifier; .*native"
    with pytest.raises(FociError, match=message):
        rankings.score("attention-x-evidence", make("transmil", "paper"), features(3))


@pytest.mark.parametrize("shape", [(0, D_IN), (D_IN,), (1, 4, D_IN)])
def test_anything_but_one_bag_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(FociError, match=r"^bag: has features of shape .*, not tiles x 32; "):
        rankings.score("native", make("abmil", "paper"), torch.zeros(shape))


def test_numpy_class_indices_are_welcome() -> None:
    model, x = make("abmil", "paper"), features(4)
    got = rankings.score("single-tile", model, x, target=np.int64(2)).scores  # type: ignore[arg-type]
    np.testing.assert_array_equal(got, rankings.score("single-tile", model, x, target=2).scores)


def test_an_embedded_bag_is_embedded_once_for_all_rankings() -> None:
    model = make("abmil", "paper")
    calls: list[int] = []
    handle = model.projection.register_forward_hook(lambda *_: calls.append(1))  # type: ignore[union-attr]
    view = EmbeddedBag(model, bag_of(5))
    for name in ("native", "single-tile", "leave-one-out", "greedy-insertion"):
        for target in (0, 1, None):
            rankings.score(name, model, view, target=target)
    handle.remove()
    assert len(calls) == 1


def test_an_embedded_bag_belongs_to_its_backbone() -> None:
    view = EmbeddedBag(make("abmil", "paper"), bag_of(5))
    with pytest.raises(FociError, match=r"^slide-1: was embedded by another backbone; "):
        rankings.score("native", make("abmil", "paper"), view)


def test_features_follow_the_models_dtype() -> None:
    view = EmbeddedBag(make("abmil", "paper"), bag_of(2))
    assert view.features.dtype == torch.float64
    assert view.logits.shape == (3,)


def test_a_ranking_that_returns_too_few_scores_is_refused() -> None:
    ranking("half")(lambda bag, share=2: torch.zeros(len(bag) // share))
    try:
        message = r"^bag: the ranking 'half' has shape \[2\] for 4 tiles; it must give one"
        with pytest.raises(FociError, match=message):
            rankings.score("half", make("abmil", "paper"), features(4))
        whole = rankings.score("half", make("abmil", "paper"), features(4), share=1)
        assert whole.scores.tolist() == [0.0] * 4
    finally:
        del RANKINGS._entries["half"]


def test_log_odds_sort_as_the_probability_does() -> None:
    view = EmbeddedBag(make("abmil", "paper"), features(2), target=1)
    logits = 3 * torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    p = view.probability(logits)
    torch.testing.assert_close(view.log_odds(logits), torch.logit(p), rtol=0, atol=1e-9)


class Sharpened(ABMIL):
    """Pools as ABMIL does, and says something else of it."""

    def aggregate(
        self,
        tokens: torch.Tensor,
        mask: torch.Tensor | None = None,
        gate: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return 3 * super().aggregate(tokens, mask, gate)


def test_no_closed_form_goes_around_an_overridden_answer() -> None:
    model = Sharpened(**make("abmil", "paper").config).double()
    x = features(4)
    assert "attention-x-evidence" not in rankings.available(model)
    got = rankings.score("single-tile", model, x, target=1).scores
    want = torch.stack([torch.softmax(model(tile[None]), dim=-1)[1] for tile in x])
    np.testing.assert_allclose(got, want.detach(), atol=1e-12)
