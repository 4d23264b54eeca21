"""What every registered ranking passes: scores, classifiers and documentation."""

import doctest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from foci import rankings
from foci.backbones import Backbone, fingerprint
from foci.backbones.models.pooling import BestTile
from foci.bags import Bag
from foci.errors import FociError
from foci.rankings import RANKINGS, EmbeddedBag
from tests.rankings.trials import OTHERS, POOLED, bag_of, features, make, permuted

MODELS = [("abmil", "official"), ("attrimil", "paper"), ("asmil", "official"), *OTHERS]
PAIRS = [
    pytest.param(name, model, id=f"{name}-{'-'.join(model)}")
    for name in RANKINGS
    for model in MODELS
    if RANKINGS[name].works_with(make(*model))
]
OF_NO_FEATURES = {"random", "from-file"}


@pytest.fixture
def options(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """Options without which a ranking cannot run; scores for the file indices 0, 2, ... 38."""
    torch.manual_seed(3)
    path = tmp_path / "scores.csv"
    lines = [f"{slide},{2 * i},{(i * 7) % 20}.25" for slide in ("slide-1",) for i in range(20)]
    path.write_text("\n".join(["slide_id,tile,score", *lines]) + "\n")
    return {
        "selector": {"selector": SelectorOfAnyWidth()},
        "from-file": {"path": path},
        "integrated-gradients": {"n_steps": 5},
        "greedy-insertion": {"rounds": 3},
        "greedy-deletion": {"rounds": 3},
    }


class SelectorOfAnyWidth(nn.Module):
    """Class-conditional, with a dropout that must not be active."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.dropout(tokens)
        return hidden[:, :3].cos() + hidden.mean(dim=1, keepdim=True)


def state(model: Backbone) -> list[Any]:
    modes = [module.training for module in model.modules()]
    grads = [p.grad is None or p.grad.clone() for p in model.parameters()]
    return [fingerprint(model), modes, [p.requires_grad for p in model.parameters()], grads]


def test_there_are_trials_for_every_pooling_preset_and_every_ranking_is_tried() -> None:
    assert {pair.values[0] for pair in PAIRS} == set(RANKINGS)
    assert {name for name, _ in POOLED} == {
        "abmil", "acmil", "asmil", "attrimil", "clam-mb", "clam-sb", "mean-mil", "mhim-mil"
    }  # fmt: skip


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_one_finite_score_per_tile_that_moves_with_its_tile(
    name: str, model: tuple[str, str], options: dict[str, Any]
) -> None:
    backbone = make(*model)
    given = options.get(name, {})
    for n in (1, 2, 9):
        bag = bag_of(n)
        ranking = rankings.score(name, backbone, bag, **given)
        assert ranking.name == name
        assert ranking.slide_id == "slide-1"
        assert ranking.scores.dtype == np.float64
        assert ranking.scores.shape == (n,)
        assert np.isfinite(ranking.scores).all()
        assert sorted(ranking.order) == list(range(n))
        again = rankings.score(name, backbone, bag, **given)
        np.testing.assert_array_equal(again.scores, ranking.scores)
        tied = name.startswith("greedy") and isinstance(backbone, BestTile)
        if backbone.capabilities.order_free and not tied:  # ties go by tile index
            order = np.random.default_rng(n).permutation(n)
            moved = rankings.score(name, backbone, permuted(bag, order), **given)
            np.testing.assert_allclose(moved.scores, ranking.scores[order], rtol=0, atol=1e-9)


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_the_model_comes_back_as_it_was(
    name: str, model: tuple[str, str], options: dict[str, Any]
) -> None:
    backbone = make(*model)
    for number, parameter in enumerate(backbone.parameters()):
        parameter.requires_grad_(number % 2 == 0)
    given = options.get(name, {})
    want = rankings.score(name, backbone, bag_of(5), **given).scores
    backbone.train()
    next(backbone.children()).eval()
    for parameter in backbone.parameters():
        parameter.grad = torch.ones_like(parameter) if parameter.requires_grad else None
    before, chance = state(backbone), torch.get_rng_state()

    got = rankings.score(name, backbone, bag_of(5), **given).scores

    after = state(backbone)
    assert after[:3] == before[:3]
    for old, new in zip(before[3], after[3], strict=True):
        assert new is True if old is True else torch.equal(old, new)
    assert torch.equal(torch.get_rng_state(), chance)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_the_same_within_inference_mode_and_from_an_embedded_bag(
    name: str, model: tuple[str, str], options: dict[str, Any]
) -> None:
    backbone = make(*model)
    given = options.get(name, {})
    want = rankings.score(name, backbone, bag_of(5), target=2, **given).scores
    with torch.inference_mode():
        inside = rankings.score(name, backbone, bag_of(5), target=2, **given).scores
    view = EmbeddedBag(backbone, bag_of(5), target=0)
    shared = rankings.score(name, backbone, view, target=2, **given).scores
    np.testing.assert_array_equal(inside, want)
    np.testing.assert_array_equal(shared, want)


@pytest.mark.parametrize("name", [n for n in RANKINGS if "target" in RANKINGS[n].needs])
def test_the_target_is_the_predicted_class_unless_given(name: str) -> None:
    backbone = make("abmil", "official")
    x = features(6)
    predicted = int(backbone.predict(x).argmax())
    default = rankings.score(name, backbone, x).scores
    chosen = [rankings.score(name, backbone, x, target=c).scores for c in range(3)]
    np.testing.assert_array_equal(default, chosen[predicted])
    assert not np.array_equal(default, chosen[(predicted + 1) % 3])


@pytest.mark.parametrize("name", [n for n in RANKINGS if n not in OF_NO_FEATURES])
def test_nan_is_refused_with_the_name_of_the_slide(name: str, options: dict[str, Any]) -> None:
    x = features(4).float().numpy()
    x[2, 1] = np.nan
    with pytest.raises(FociError, match=rf"^sick: the ranking '{name}' is NaN at tile \d"):
        rankings.score(name, make("abmil", "official"), Bag("sick", x), **options.get(name, {}))


PAGE = Path(__file__).parents[2] / "docs" / "rankings.md"
FLAGS = doctest.ELLIPSIS


@pytest.mark.parametrize("name", list(RANKINGS))
def test_every_ranking_has_a_row_and_a_section_with_an_example(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"| [`{name}`](#{name}) |" in page
    section = page.split(f"\n### {name}\n")[1].split("\n#")[0]
    assert f'rankings.score("{name}", model, ' in section


def test_examples_run() -> None:
    try:
        failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=FLAGS)
    finally:
        RANKINGS.pop("darkest-first", None)
    assert (failed, tried > 20) == (0, True)
