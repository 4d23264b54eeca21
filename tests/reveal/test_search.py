"""Crossings and decisive counts from few counts: against every count."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foci.backbones import CallableBackbone
from foci.errors import FociError
from foci.reveal import EmbeddedBag, Revealer, curve_until, decisive_curves
from foci.reveal.search import refined
from tests.backbones.every import D_IN, small

GRID = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Counting(CallableBackbone):
    """Says how many tiles it sees (the margin is that number), and how often it was asked."""

    def __init__(self) -> None:
        self.__dict__["asked"] = []
        super().__init__(self.count, d_in=1, n_classes=2)

    def count(self, x: Tensor) -> Tensor:
        self.asked.append(len(x))
        return torch.stack([torch.log(x.new_tensor(float(len(x)))), x.new_zeros(())])


def opened(n: int) -> EmbeddedBag:
    return Revealer(Counting(), recheck=()).open(torch.ones(n, 1, dtype=torch.float64))


def seen(probabilities: Tensor) -> int:
    """How many tiles a :class:`Counting` model saw: p = n / (n + 1)."""
    return round(float(probabilities[0] / probabilities[1]))


def inserted(n: int, k: int) -> dict[int, Tensor]:
    """What :class:`Counting` says of the first tiles: the margin is their number."""
    return {
        j: torch.tensor([j / (j + 1), 1 / (j + 1)], dtype=torch.float64) for j in range(1, k + 1)
    }


@given(st.integers(2, 300), st.integers(1, 60), st.integers(1, 299))
def test_conditions_that_stay_true_are_found_exactly(n: int, enough: int, flips: int) -> None:
    bag = opened(n)
    known = inserted(n, min(n, 40))
    kept, left = decisive_curves(
        bag, range(n), known, [lambda p: seen(p) >= enough], lambda p: seen(p) <= n - flips,
        grid=GRID,
    )  # fmt: skip
    want = max(enough, flips)
    found = [k for k in left if seen(kept[k]) >= enough and seen(left[k]) <= n - flips]
    assert min(found, default=None) == (want if want <= min(256, n - 1) else None)
    assert all(seen(p) == k for k, p in kept.items())
    assert all(seen(p) == n - k for k, p in left.items())


@given(st.integers(5, 200), st.integers(2, 60))
def test_nothing_is_deleted_where_the_tiles_do_not_suffice(n: int, enough: int) -> None:
    _, left = decisive_curves(
        opened(n), range(n), inserted(n, n), [lambda p: seen(p) >= enough], lambda p: False,
        grid=GRID, reported=(3, 500),
    )  # fmt: skip
    assert set(left) <= {3, *(k for k in range(1, n) if k >= enough)}
    assert 3 in left


@given(st.integers(2, 60), st.sets(st.integers(1, 60)))
def test_flips_that_flip_back_give_an_upper_bound(n: int, flips: set[int]) -> None:
    _, left = decisive_curves(
        opened(n), range(n), inserted(n, n), [lambda p: True], lambda p: n - seen(p) in flips,
        grid=GRID,
    )  # fmt: skip
    found = min(flips & set(left), default=None)
    if found is not None:
        assert found >= min(flips)
        assert found == 1 or found - 1 in left


def test_no_count_is_computed_twice() -> None:
    bag = opened(100)
    _, left = decisive_curves(
        bag, range(100), inserted(100, 100), [lambda p: seen(p) >= 1, lambda p: seen(p) >= 20],
        lambda p: seen(p) <= 70, grid=GRID, reported=(1, 2),
    )  # fmt: skip
    assert sorted(left) == [1, 2, 4, 8, 16, 24, 28, 29, 30, 32]
    assert len(bag.backbone.asked) == len(left)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": []}, "grid: is not increasing"),
        ({"grid": [1, 1]}, "grid: is not increasing"),
        ({"grid": [0, 1]}, "grid: 0 is too few"),
        ({"grid": [1.5]}, "grid: is 1.5"),
        ({"order": [0, 0, 1]}, "order: names a tile twice"),
    ],
)
def test_bad_input_is_one_line(change: dict[str, object], message: str) -> None:
    arguments = {"order": [0, 1, 2], "grid": GRID, **change}
    with pytest.raises(FociError, match=message):
        decisive_curves(
            opened(3),
            inserted={},
            sufficient=[lambda p: True],
            flipped=lambda p: True,
            **arguments,  # type: ignore[arg-type]
        )


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


def test_a_search_ends_with_what_it_has() -> None:
    bag = opened(1000)
    ks, _ = curve_until(bag, range(1000), lambda p: False, 256, beyond=[64, 128], most=100)
    assert ks.tolist() == [*range(1, 8), 64, 128, 256], "1 + 2 + ... + 7 tiles, then the grid"
    kept = dict(zip(ks.tolist(), bag.curve(range(1000), ks), strict=True))
    found = refined(bag, range(1000), kept, [lambda p: seen(p) >= 90])
    assert min(k for k in found if k >= 90) == 90

    asked = opened(1000)
    _, left = decisive_curves(
        asked, range(1000), kept, [lambda p: seen(p) >= 200], lambda p: seen(p) <= 700,
        grid=[*GRID, 400], most=1500,
    )  # fmt: skip
    assert sorted(left) == [256, 400], "no refinement is left after two deletions"
