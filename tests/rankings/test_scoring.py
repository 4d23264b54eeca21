"""What a user may ask for, what is refused, and the order that scores give."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import foci
from foci import rankings
from foci.backbones import CallableBackbone
from foci.backbones.models.abmil import ABMIL
from foci.errors import FociError
from foci.rankings import RANKINGS, EmbeddedBag, Ranking, requested, requested_map, uniform_scores
from foci.rankings.registry import ranking
from foci.selectors.selector import Identity, Selector, SelectorHead
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
    ],
)
def test_refusals(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(FociError, match=message):
        rankings.score(name, make("abmil", "paper"), features(3), **options)


@pytest.mark.parametrize(
    ("name", "preset"), [("transmil", "paper"), ("abmil", "paper"), ("acmil", "paper")]
)
def test_minimal_needs_one_row_and_a_linear_head(name: str, preset: str) -> None:
    message = rf"^ranking 'minimal': {name} is neither one attention row with a linear head"
    with pytest.raises(FociError, match=message):
        rankings.score("minimal", make(name, preset), features(3))


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
        del RANKINGS["half"]


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
    model = Sharpened(**make("abmil", "official").config).double()
    x = features(4)
    assert "minimal" not in rankings.available(model)
    got = rankings.score("single-tile", model, x, target=1).scores
    want = torch.stack([torch.softmax(model(tile[None]), dim=-1)[1] for tile in x])
    np.testing.assert_allclose(got, want.detach(), atol=1e-12)


def test_a_name_is_itself() -> None:
    one = requested("leave-one-out")
    assert (one.name, one.method, one.path, one.options) == (
        "leave-one-out", "leave-one-out", None, {},
    )  # fmt: skip
    assert one.text == "leave-one-out"


def test_a_file_is_named_by_its_stem_and_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = requested("from-file=maps/grad cam, v2.csv")
    path = tmp_path / "maps" / "grad cam, v2.csv"
    assert (one.name, one.method, one.path) == ("from-file-grad-cam-v2", "from-file", path)
    assert one.options == {"path": path}
    assert one.text == f"from-file={path}"
    assert requested(one.text) == one


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "from-file",
            "^ranking 'from-file': needs the file with the scores; write from-file=PATH$",
        ),
        ("from-file=", "^ranking 'from-file': needs the file with the scores"),
        ("native=a.csv", "native takes no file; write native, or from-file=PATH$"),
        ("from_file=a.csv", "from_file: is not a known ranking; did you mean 'from-file'"),
    ],
)
def test_mistakes(text: str, says: str) -> None:
    with pytest.raises(FociError, match=says):
        requested(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [("from-file=maps/grad cam.csv", "grad-cam"), ("Grad-CAM=from-file:maps/a.csv", "Grad-CAM"),
     ("My map 2=from-file:maps/a=b.csv", "My map 2"), ("natives=from-file:a.csv", "natives")],
)  # fmt: skip
def test_a_map_is_called_as_asked_or_as_its_file(
    text: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = requested_map(text)
    assert (one.name, one.method) == (name, "from-file")
    assert one.path == tmp_path / text.partition("from-file")[2][1:]
    assert requested_map(one.map_text) == one


TAKEN = ("native", "Evidence", "selector-0", "random", "random-7", "null-maps", "selector-seed-1")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("native", "^map: cannot be 'native'; give a file: from-file=PATH, or NAME=from-file:PATH"),
        ("heat=maps/a.csv", "^map: cannot be 'heat=maps/a.csv'; give a file"),
        ("from-file=", "^ranking 'from-file': needs the file with the scores"),
        ("heat=from-file:", "^ranking 'from-file': needs the file with the scores"),
        ("=from-file:a.csv", "^map: cannot be called ''; name it: NAME=from-file:PATH, letters an"),
        ("a/b=from-file:a.csv", "^map: cannot be called 'a/b'; name it"),
        (f"{'a' * 65}=from-file:a.csv", "^map: cannot be called 'aaaa"),
        *((f"{name}=from-file:a.csv", f"^map: cannot be called '{name}'") for name in TAKEN),
        *((f"from-file={name}.csv", f"^map: cannot be called '{name}'") for name in TAKEN),
    ],
)
def test_names_that_a_map_cannot_have(text: str, says: str) -> None:
    with pytest.raises(FociError, match=says):
        requested_map(text)


TIED = st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0, np.inf]), min_size=1)


@given(TIED, st.sampled_from(["s", "slide-1"]))
def test_descending_with_ties_by_a_draw_of_the_slide(scores: list[float], slide: str) -> None:
    ranking, drawn = Ranking("r", slide, np.array(scores)), uniform_scores(slide, len(scores), -1)
    want = sorted(range(len(scores)), key=lambda i: (-scores[i], drawn[i]))
    assert ranking.order.tolist() == want
    assert ranking.order.dtype == np.int64
    assert ranking.ranks[ranking.order].tolist() == list(range(len(scores)))


def test_no_place_in_the_file_is_favoured_by_ties() -> None:
    """Of five tied tiles every place of the file comes first equally often, over slides."""
    firsts = [int(Ranking("r", f"s{i}", np.ones(5)).order[0]) for i in range(2000)]
    assert np.abs(np.bincount(firsts) - 400).max() < 4 * np.sqrt(2000 * 0.2 * 0.8)


@pytest.mark.parametrize(
    ("scores", "share"),
    [([1.0], 0), ([1.0, 1.0], 1), ([3.0, 2.0, 1.0, 1.0], 0.5), ([np.inf, np.inf, 0.0, 1.0], 0.5),
     ([*range(40, 8, -1), 1.0, 1.0], 0), ([*range(40, 9, -1), 1.0, 1.0], 1 / 32),
     ([0.0, -0.0, 5.0], 2 / 3)],
)  # fmt: skip
def test_the_share_of_tied_tiles_is_that_of_the_first_32(scores: list[float], share: float) -> None:
    assert Ranking("r", "s", np.array(scores)).tied == pytest.approx(share)


def test_scores_are_a_read_only_copy() -> None:
    scores = np.array([1, 2], dtype=np.float32)
    ranking = Ranking("r", "s", scores)  # type: ignore[arg-type]
    scores[0] = 9
    assert ranking.scores.tolist() == [1.0, 2.0]
    assert ranking.scores.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        ranking.scores[0] = 3


@pytest.mark.parametrize("shape", [(0,), (2, 2)])
def test_anything_but_one_score_per_tile_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(FociError, match=r"^slide-7: the ranking 'mine' has shape \["):
        Ranking("mine", "slide-7", np.zeros(shape))


def test_one_score_per_tile_with_or_without_a_trailing_axis() -> None:
    model, x = make("abmil", "paper"), features(5)
    tokens = model.embed(x)
    for head in (lambda t: t.sum(dim=1), lambda t: t.sum(dim=1, keepdim=True)):
        got = rankings.score("selector", model, x, selector=head).scores
        np.testing.assert_array_equal(got, tokens.sum(dim=1))


def test_a_class_conditional_head_is_read_at_the_target() -> None:
    model, x = make("abmil", "paper"), features(5)
    head = nn.Linear(model.d_token, 3).double()
    want = head(model.embed(x)).detach()
    for target in range(3):
        got = rankings.score("selector", model, x, target=target, selector=head).scores
        np.testing.assert_array_equal(got, want[:, target])
    predicted = int(model.predict(x).argmax())
    got = rankings.score("selector", model, x, selector=head).scores
    np.testing.assert_array_equal(got, want[:, predicted])


def test_a_module_is_used_in_eval_mode_and_gets_its_mode_back() -> None:
    model, x = make("abmil", "paper"), features(5)
    head = nn.Sequential(nn.Linear(model.d_token, 1), nn.Dropout(0.9)).double().train()
    first = rankings.score("selector", model, x, selector=head).scores
    np.testing.assert_array_equal(rankings.score("selector", model, x, selector=head).scores, first)
    np.testing.assert_allclose(first, head[0](model.embed(x)).detach()[:, 0])
    assert head.training
    assert head[1].training


@pytest.mark.parametrize("shape", [(5, 2), (4,), (1, 5), ()])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    def head(tokens: Tensor) -> Tensor:
        return torch.zeros(shape)

    message = r"^selector of slide bag: returned shape .* for 5 tiles and 3 classes; return \[5\], "
    with pytest.raises(FociError, match=message):
        rankings.score("selector", make("abmil", "paper"), features(5), selector=head)


def test_a_fitted_selector_refuses_another_classifier() -> None:
    model, other, x = make("abmil", "paper"), make("abmil", "paper"), features(5)
    head = SelectorHead(model.d_token, 1).double()
    fitted = Selector(head, model, Identity.of(model))
    with torch.no_grad():
        next(iter(other.parameters())).add_(0.5)
    rankings.score("selector", model, x, selector=fitted)
    rankings.score("selector", copy.deepcopy(model), x, selector=fitted)
    with pytest.raises(FociError, match="is not the one that the selector was fitted on"):
        rankings.score("selector", other, x, selector=fitted)
