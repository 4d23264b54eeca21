"""Greedy searches and leave-one-out, against forwarding every subset."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from foci import backbones, rankings
from foci.backbones import Backbone, CallableBackbone
from foci.errors import FociError
from tests.backbones.every import D_IN
from tests.rankings.trials import OTHERS, POOLED, features, logits_of, make, probability

MODELS = [("abmil", "paper"), ("acmil", "paper"), ("attrimil", "paper"), ("clam-mb", "official")]
MODELS += [("asmil", "official"), ("transmil", "paper"), ("transmil", "official")]


def odds(model: Backbone, x: Tensor, tiles: Sequence[int], target: int) -> float:
    p = torch.softmax(logits_of(model, x, tiles), dim=-1)[target]
    return float(torch.logit(p))


def greedy(model: Backbone, x: Tensor, target: int, rounds: int, *, delete: bool) -> list[int]:
    """One forward pass per candidate and round; the rest by the last round."""
    chosen: list[int] = []
    rest = list(range(len(x)))
    values: dict[int, float] = {}
    for _ in range(min(rounds, len(x) - delete)):
        if delete:
            values = {i: -odds(model, x, [j for j in rest if j != i], target) for i in rest}
        else:
            values = {i: odds(model, x, [*chosen, i], target) for i in rest}
        chosen.append(max(rest, key=values.__getitem__))
        rest.remove(chosen[-1])
    return chosen + sorted(rest, key=lambda i: -values[i])


@pytest.mark.parametrize("rounds", [1, 3, 99])
@pytest.mark.parametrize(("name", "preset"), MODELS)
def test_equals_the_search_that_forwards_every_subset(name: str, preset: str, rounds: int) -> None:
    model, x = make(name, preset), features(6)
    for search, delete in (("greedy-insertion", False), ("greedy-deletion", True)):
        got = rankings.score(search, model, x, target=1, rounds=rounds)
        assert got.order.tolist() == greedy(model, x, 1, rounds, delete=delete)
        assert sorted(got.scores) == [1, 2, 3, 4, 5, 6]


def test_a_saturated_probability_still_tells_tiles_apart() -> None:
    """p is 1.0 in float64 for every tile; the log-odds are not."""
    model = CallableBackbone(lambda x: torch.stack([x.sum() * 0, x.mean()]), D_IN, 2)
    x = torch.full((3, D_IN), 50.0, dtype=torch.float64) * torch.tensor([[1.0], [3.0], [2.0]])
    assert rankings.score("single-tile", model, x, target=1).scores.tolist() == [1.0] * 3
    assert rankings.score("greedy-insertion", model, x, target=1).order.tolist() == [1, 2, 0]


@pytest.mark.parametrize("search", ["greedy-insertion", "greedy-deletion"])
def test_a_shortlist_keeps_the_first_round_and_searches_among_its_best(search: str) -> None:
    model, x = make("abmil", "paper"), features(9)
    first = rankings.score(search, model, x, target=1, rounds=1).order
    listed = rankings.score(search, model, x, target=1, rounds=5, shortlist=4).order
    among = sorted(first[:4])
    assert listed[0] == first[0]
    assert sorted(listed[:4]) == among
    np.testing.assert_array_equal(listed[4:], first[4:])
    whole = rankings.score(search, model, x, target=1, rounds=5, shortlist=9).order
    np.testing.assert_array_equal(whole, rankings.score(search, model, x, target=1, rounds=5).order)
    if search == "greedy-insertion":
        alone = rankings.score(search, model, x[among], target=1, rounds=5).order
        assert [among[i] for i in alone] == listed[:4].tolist()


def test_ties_go_to_the_lower_tile() -> None:
    model = make("abmil", "paper")
    x = features(1).expand(5, -1)
    for search in ("greedy-insertion", "greedy-deletion"):
        assert rankings.score(search, model, x).order[0] == 0


@pytest.mark.parametrize("option", ["rounds", "shortlist"])
def test_no_rounds_and_no_shortlist_are_refused(option: str) -> None:
    for value, what in ((0, "0 is too few; give at least 1"), (2.5, "is 2.5; give a whole number")):
        with pytest.raises(FociError, match=rf"^{option}: {what}"):
            rankings.score(
                "greedy-insertion", make("abmil", "paper"), features(3), **{option: value}
            )


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
