"""Every count up to the crossing, a grid beyond: against the dense curve."""

import pytest
import torch
from torch import Tensor

from foci.errors import FociError
from foci.reveal import Revealer, curve_until
from tests.backbones.every import D_IN, small
from tests.reveal.test_decisive_search import opened, seen


@pytest.mark.parametrize(("crossing", "walked"), [(1, 1), (2, 3), (8, 15), (30, 31), (33, 47)])
def test_blocks_end_soon_after_the_crossing(crossing: int, walked: int) -> None:
    bag = opened(80)
    ks, probs = curve_until(
        bag, range(80), lambda p: seen(p[-1]) >= crossing, last=64, beyond=[4, 50, 70]
    )
    assert ks.tolist() == sorted({*range(1, walked + 1), 50, 64} | ({4} if walked < 4 else set()))
    assert [seen(row) for row in probs] == ks.tolist()
    assert len(bag.backbone.asked) == len(ks)  # type: ignore[union-attr]


def test_a_crossing_that_never_comes_is_looked_for_at_every_count() -> None:
    ks, _ = curve_until(opened(40), range(40), lambda p: False, last=40)
    assert ks.tolist() == list(range(1, 41))


def test_values_are_those_of_the_dense_curve() -> None:
    torch.manual_seed(0)
    model, features, order = (
        small("transmil", "paper", 2),
        torch.randn(30, D_IN),
        torch.randperm(30),
    )
    dense = Revealer(model).open(features).curve(order)

    def settled(probs: Tensor) -> bool:
        return len(probs) >= 5

    ks, probs = curve_until(Revealer(model).open(features), order, settled, 30, [12, 20])
    assert ks.tolist() == [1, 2, 3, 4, 5, 6, 7, 12, 20, 30]
    torch.testing.assert_close(probs, dense[ks - 1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("last", [0, 11])
def test_a_last_count_outside_the_bag_is_refused(last: int) -> None:
    with pytest.raises(FociError, match=f"last: is {last} for 10 tiles"):
        curve_until(opened(10), range(10), lambda p: True, last)
