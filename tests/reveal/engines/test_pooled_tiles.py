"""Sums shared by all orders of a bag, against pooling every subset on its own."""

import pytest
import torch

from foci.backbones.layers.softmax_pooling import pool, softmax_weights
from foci.reveal import EmbeddedBag, engines
from foci.reveal.engines import PooledTiles
from tests.rankings.trials import POOLED, features, make


class Bare(PooledTiles):
    """Attention and values as given."""

    def __init__(self, attention: torch.Tensor, values: torch.Tensor, plus_one: bool) -> None:
        self.attention, self.values, self.plus_one = attention, values, plus_one


@pytest.mark.parametrize("most", [engines._MOST_TERMS, 0])
@pytest.mark.parametrize("plus_one", [False, True])
@pytest.mark.parametrize("spread", [1.0, 200.0, 900.0])
@pytest.mark.parametrize("value_rows", [1, 3])
@pytest.mark.parametrize("sizes", [[1, 3, 9], [63, 50, 40], [64]])
def test_every_prefix_of_every_order_equals_pooling_it_alone(
    sizes: list[int],
    value_rows: int,
    spread: float,
    plus_one: bool,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "_MOST_TERMS", most)
    generator = torch.Generator().manual_seed(0)
    attention = spread * torch.randn(64, 3, generator=generator, dtype=torch.float64)
    values = torch.randn(64, value_rows, 5, generator=generator, dtype=torch.float64)
    tiles = Bare(attention, values, plus_one)
    for _ in range(3):
        sequence = torch.randperm(64, generator=generator)
        found = tiles.pooled(sequence, torch.tensor(sizes))
        subsets = [sequence[:size] for size in sizes]
        want = [
            pool(softmax_weights(attention[own], plus_one=plus_one), values[own]) for own in subsets
        ]
        torch.testing.assert_close(found, torch.stack(want), rtol=0, atol=1e-12)


@pytest.mark.parametrize("direction", ["insert", "delete"])
@pytest.mark.parametrize(("name", "preset"), POOLED)
def test_several_orders_at_once_change_no_bit(name: str, preset: str, direction: str) -> None:
    bag = EmbeddedBag(make(name, preset), features(40))
    orders = [torch.randperm(40) for _ in range(4)]
    together = bag.curves(orders, [1, 2, 30, 39], direction)  # type: ignore[arg-type]
    for order, found in zip(orders, together, strict=True):
        alone = bag.curve(order, [1, 2, 30, 39], direction)  # type: ignore[arg-type]
        assert torch.equal(found, alone)


def test_curves_and_searches_share_what_is_computed_of_a_bag() -> None:
    name, preset = POOLED[0]
    bag = EmbeddedBag(make(name, preset), features(8))
    bag.full()
    assert bag.candidates().tiles is bag._prefix_logits()  # type: ignore[attr-defined]
