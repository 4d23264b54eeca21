"""DSMIL: every count in both directions, classes, its loss as published; see also test_golden."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from foci.backbones import pad
from foci.backbones.models.dsmil import DSMIL
from foci.reveal import curve
from tests.backbones.golden_weights import features, golden, published

WIDTH = 5


def small(n_classes: int = 3, **settings: Any) -> DSMIL:
    torch.manual_seed(0)
    model = DSMIL(WIDTH, n_classes, **{"query": 4, "query_hidden": 6, **settings}).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    return model.eval().requires_grad_(False)


def bag(n: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, WIDTH, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("negative", [False, True])
def test_several_outputs_are_sigmoids_given_that_one_class_is_present(negative: bool) -> None:
    model, x = small(4, negative=negative), bag(7)
    sigmoids = torch.sigmoid(model.outputs(model.embed(x))).tolist()
    alone = [
        math.prod(p if j == k else 1 - p for j, p in enumerate(sigmoids))
        for k in range(len(sigmoids))
    ]
    alone += [math.prod(1 - p for p in sigmoids)] if negative else []  # the negative class is last
    want = [p / sum(alone) for p in alone]
    assert model.predict(x).tolist() == pytest.approx(want, abs=1e-12)


def orders(model: DSMIL, x: Tensor) -> dict[str, Tensor]:
    """Every tile a new critical one, never a new one, and in between."""
    score = model.tile_classifier(model.embed(x))[:, 0]
    return {
        "ascending": score.argsort(),
        "descending": score.argsort(descending=True),
        "random": torch.randperm(len(x), generator=torch.Generator().manual_seed(3)),
    }


@pytest.mark.parametrize("direction", ["insert", "delete"])
@pytest.mark.parametrize("order", ["ascending", "descending", "random"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"negative": True}, {"d": 6, "value": "relu"}, {"query_hidden": None, "value": "linear"}],
    ids=["tokens", "negative", "projected", "linear"],
)
def test_every_count_in_both_directions(
    settings: dict[str, Any], order: str, direction: str
) -> None:
    model, x = small(**settings), bag(80)
    sequence = orders(model, x)[order]
    got = curve(model, x, sequence, direction=direction)
    want = curve(model, x, sequence, direction=direction, engine="reference")
    assert got.shape == (80, 3)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-9)


def test_extreme_attention_and_repeated_tiles() -> None:
    """Attention logits of several hundred, and a critical tile that is there twice."""
    model = small(query_hidden=None)
    model.query.weight.mul_(40.0)
    x = bag(40)
    x[30:] = x[:10]
    assert model.attend(x).abs().max() > 600
    for sequence in orders(model, x).values():
        got = curve(model, x, sequence)
        want = curve(model, x, sequence, engine="reference")
        torch.testing.assert_close(got, want, rtol=0, atol=1e-9)


def test_counts_may_come_in_any_order_and_twice() -> None:
    model, x = small(), bag(90)
    ks = torch.tensor([70, 3, 90, 3, 1])
    torch.testing.assert_close(model.prefixes(x, ks), model.prefixes(x)[ks - 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("winner", [0, 1, 2])
def test_native_score_is_attention_to_the_critical_tile_of_the_largest_output(winner: int) -> None:
    model, x = small(), bag(8)
    model.head.bias[winner] += 100.0
    critical = model.tile_classifier(x)[:, winner].argmax()
    queries = model.query(x)
    want = queries @ queries[critical] / 2  # sqrt of the width 4
    torch.testing.assert_close(model.scores(x), want)


def test_a_closed_tile_is_not_critical() -> None:
    model, x = small(), bag(8)
    best = int(model.tile_classifier(x)[:, 0].argmax())
    gate = torch.ones(1, 8, dtype=torch.float64)
    gate[0, best] = 0
    rest = torch.cat([x[:best], x[best + 1 :]])
    torch.testing.assert_close(model.aggregate(x[None], gate=gate)[0], model(rest))


GOLDEN = golden("dsmil")


@pytest.mark.parametrize(("variant", "n_classes"), [("k1", 2), ("k2", 2), ("k2", 3)])
@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_published_losses(variant: str, n_classes: int, n: int) -> None:
    """With a class more than outputs one label has none: all outputs should be off."""
    (case,) = (c for c in GOLDEN["cases"] if (c["variant"], c["n_tiles"]) == (variant, n))
    more = n_classes > len(case["outputs"])
    model = published(GOLDEN["variants"][variant]["keys"], negative=more)
    for label, want in enumerate(case["losses"][:n_classes]):
        objective = model.make_objective()
        loss = objective(pad([features(n, 24)], [label]))
        assert loss.item() == pytest.approx(want, abs=1e-7)
        assert sum(objective.terms.values()) == pytest.approx(want, abs=1e-7)


def test_the_weight_moves_between_bag_and_tiles() -> None:
    model, batch = published(GOLDEN["variants"]["k2"]["keys"]), pad([features(7, 24)], [1])
    halves = model.make_objective()
    halves(batch)
    bag, tiles = (model.make_objective(bag_weight=w)(batch).item() for w in (1.0, 0.0))
    assert halves.terms == pytest.approx({"bag": bag / 2, "tiles": tiles / 2})
