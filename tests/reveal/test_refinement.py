"""The smallest count on a grid with refinement, against every count."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from foci.backbones import CallableBackbone
from foci.errors import FociError
from foci.reveal import GRID, EmbeddedBag, RefinedCount, Revealer, refined_curves
from foci.reveal.refinement import Condition
from tests.backbones.every import D_IN, EVERY, small


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


def at(counts: set[int]) -> Condition:
    return lambda kept, left: seen(kept) in counts


def from_(count: int) -> Condition:
    return lambda kept, left: seen(kept) >= count


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 70))
def test_a_condition_that_stays_true_is_found_exactly(n: int, count: int, dense: int) -> None:
    curves = refined_curves(opened(n), range(n), [from_(count)], dense=dense)
    want = count if count <= min(256, n - 1) else None
    assert curves.found[0].count == want
    evaluated = set(curves.ks.tolist())
    last = min(256, n - 1) if want is None else want
    assert curves.found[0].exact == (set(range(1, last + 1)) <= evaluated)
    if want is None:
        assert evaluated == {k for k in GRID if k < n} | ({min(256, n - 1)} - {0})


@given(st.integers(1, 60), st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60)))
def test_flips_that_flip_back_give_an_upper_bound_and_say_so(
    n: int, first: set[int], second: set[int]
) -> None:
    curves = refined_curves(opened(n), range(n), [at(first), at(second)])
    evaluated = set(curves.ks.tolist())
    for holding, found in zip((first, second), curves.found, strict=True):
        true = min((k for k in holding if k < n), default=None)
        # read again from the stored curves, the answer is the same
        assert found.count == min(holding & evaluated, default=None)
        if found.exact:
            assert found.count == true
        if found.count is not None:
            assert true is not None
            assert found.count >= true
            assert found.count == 1 or found.count - 1 in evaluated


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 300))
def test_no_count_is_evaluated_twice(n: int, one: int, other: int) -> None:
    bag = opened(n)
    curves = refined_curves(bag, range(n), [from_(one), from_(other)])
    ks = curves.ks.tolist()
    assert isinstance(bag.backbone, Counting)
    assert sorted(bag.backbone.asked) == sorted([*ks, *(n - k for k in ks)])
    assert [seen(row) for row in curves.insert] == ks
    assert [seen(row) for row in curves.delete] == [n - k for k in ks]


def test_the_grid_is_left_at_the_first_count_that_holds() -> None:
    curves = refined_curves(opened(200), range(200), [from_(44)])
    # up to 48, then 40 halves the gap, and 41 to 44 are evaluated in turn
    assert curves.ks.tolist() == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40, 41, 42, 43, 44, 48]
    assert curves.found == (RefinedCount(44, exact=False),)


def test_a_small_count_is_exact() -> None:
    curves = refined_curves(opened(200), range(200), [from_(5), from_(1)])
    assert curves.found == (RefinedCount(5, exact=True), RefinedCount(1, exact=True))


def test_never_is_certain_only_where_every_count_was_evaluated() -> None:
    never: Condition = lambda kept, left: False  # noqa: E731
    assert refined_curves(opened(5), range(5), [never]).found == (RefinedCount(None, exact=True),)
    assert refined_curves(opened(9), range(9), [never]).found == (RefinedCount(None, exact=False),)


def test_one_tile_has_no_counts() -> None:
    curves = refined_curves(opened(1), [0], [from_(1)])
    assert curves.found == (RefinedCount(None, exact=True),)
    assert curves.ks.tolist() == []
    assert curves.insert.shape == curves.delete.shape == (0, 2)


@pytest.mark.parametrize("n", [2, 40])
@pytest.mark.parametrize(("name", "preset"), EVERY)
def test_curves_are_those_of_the_reference_for_every_backbone(
    name: str, preset: str, n: int
) -> None:
    model = small(name, preset, 3).double().eval()
    generator = torch.Generator().manual_seed(n)
    x = torch.randn(n, D_IN, generator=generator, dtype=torch.float64)
    order = torch.randperm(n, generator=generator)
    slow = Revealer(model, engine="reference").open(x)
    every = slow.both_curves(order, range(1, n), range(1, n))
    middle = float(every[1][:, 0].median())
    holds: Condition = lambda kept, left: bool(left[0] <= middle + 1e-6)  # noqa: E731
    curves = refined_curves(Revealer(model).open(x), order, [holds])
    for got, want in zip((curves.insert, curves.delete), every, strict=True):
        torch.testing.assert_close(got, want[curves.ks - 1], rtol=0, atol=1e-9)
    assert curves.found == refined_curves(slow, order, [holds]).found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"conditions": []}, "conditions: are empty; give at least one"),
        ({"grid": []}, "grid: is not increasing"),
        ({"grid": [1, 1]}, "grid: is not increasing"),
        ({"grid": [0, 1]}, "grid: 0 is too few"),
        ({"grid": [1.5]}, "grid: is 1.5"),
        ({"dense": 0}, "dense: 0 is too few"),
        ({"order": [0, 0, 1]}, "order: names a tile twice"),
    ],
)
def test_bad_input_is_one_line(change: dict[str, object], message: str) -> None:
    arguments = {"order": [0, 1, 2], "conditions": [from_(1)], **change}
    with pytest.raises(FociError, match=message):
        refined_curves(opened(3), **arguments)  # type: ignore[arg-type]
