import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foci.selectors import losses

LOGITS = torch.tensor([[0.0, math.log(3.0)], [math.log(9.0), 0.0]])  # p_1 = 0.75; p_0 = 0.9
TARGETS = torch.tensor([1, 1])  # p_y = 0.75 and 0.1


def test_keep_and_drop_losses_by_hand() -> None:
    assert losses.target_probability(LOGITS, TARGETS).tolist() == pytest.approx([0.75, 0.1])
    assert losses.sufficiency(LOGITS, TARGETS).tolist() == pytest.approx(
        [-math.log(0.75), -math.log(0.1)]
    )
    assert losses.hinge(LOGITS, TARGETS, tau=0.9).tolist() == pytest.approx([0.15, 0.8])
    assert losses.hinge(LOGITS, TARGETS, tau=0.7).tolist() == pytest.approx([0.0, 0.6])
    both = torch.tensor([True, True])
    assert losses.exclusion(LOGITS, TARGETS, 0.2, both).tolist() == pytest.approx([0.55, 0.0])


def test_a_bag_without_a_rest_has_no_exclusion() -> None:
    logits = LOGITS.clone().requires_grad_()
    loss = losses.exclusion(logits, TARGETS, 0.05, torch.tensor([False, True]))
    assert loss.tolist() == pytest.approx([0.0, 0.05])
    loss.sum().backward()
    assert bool((logits.grad[0] == 0).all())
    assert bool((logits.grad[1] != 0).all())


def test_flip_by_hand() -> None:
    logits = torch.tensor([[3.0, 1.0, 2.5], [0.0, 5.0, 1.0], [4.0, 0.0, 0.0]], requires_grad=True)
    targets, has_drop = torch.tensor([0, 0, 0]), torch.tensor([True, True, False])
    loss = losses.flip(logits, targets, 1.0, has_drop)
    assert loss.tolist() == pytest.approx([1.5, 0.0, 0.0])  # rivals lead by -0.5 and 5
    loss.sum().backward()
    assert logits.grad.tolist() == [[1.0, 0.0, -1.0], [0.0] * 3, [0.0] * 3]


def test_contiguity_of_a_known_mask() -> None:
    """Kept: (0, 0), (1, 0), (0, 1/2); centre (1/3, 1/6)."""
    coords = losses.unit_box(torch.tensor([[0, 0], [512, 0], [0, 256], [256, 256]]))
    gate = torch.tensor([[1.0, 1.0, 1.0, 0.0]])
    want = ((1 / 9 + 1 / 36) + (4 / 9 + 1 / 36) + (1 / 9 + 1 / 9)) / 3
    assert losses.contiguity(gate, coords[None]).item() == pytest.approx(want)


def test_contiguity_weighs_soft_gates_and_ignores_padding() -> None:
    """Weights 3 : 1 on two points at distance 1: variance 3/4 * 1/4."""
    coords = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]])
    gate = torch.tensor([[0.6, 0.2, 0.0]])
    assert losses.contiguity(gate, coords).item() == pytest.approx(3 / 16)


@given(
    scale=st.integers(1, 4096),
    shift=st.tuples(st.integers(0, 200_000), st.integers(0, 200_000)),
)
def test_contiguity_does_not_know_the_unit(scale: int, shift: tuple[int, int]) -> None:
    cells = torch.tensor([[0, 0], [3, 0], [1, 2], [2, 5], [4, 4]])
    gate = torch.tensor([[1.0, 0.0, 1.0, 1.0, 0.0]])
    one = losses.contiguity(gate, losses.unit_box(cells)[None])
    other = losses.contiguity(gate, losses.unit_box(cells * scale + torch.tensor(shift))[None])
    assert other.item() == pytest.approx(one.item(), rel=1e-5)


def test_one_tile_and_tiles_in_one_place_have_no_spread() -> None:
    for coords in (torch.tensor([[7, 9]]), torch.full((4, 2), 1000)):
        unit = losses.unit_box(coords)
        assert bool((unit == 0).all())
        gate = torch.ones(1, len(coords), requires_grad=True)
        spread = losses.contiguity(gate, unit[None])
        spread.sum().backward()
        assert spread.item() == 0
        assert bool(gate.grad.isfinite().all())


def test_budget_is_the_mass() -> None:
    assert losses.budget(torch.tensor([[0.5, 0.25, 0.0], [1.0, 1.0, 0.0]])).tolist() == [0.75, 2.0]


def test_entropy_by_hand() -> None:
    gate = torch.tensor([[0.5, 0.1, 0.0], [1.0, 0.0, 0.5]], requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    h = -(0.1 * math.log(0.1) + 0.9 * math.log(0.9))
    got = losses.entropy(gate, mask)
    assert got.tolist() == pytest.approx([(math.log(2) + h) / 2, math.log(2) / 3], abs=1e-5)
    got.sum().backward()
    assert bool(gate.grad.isfinite().all())
    assert gate.grad[0, 1].item() == pytest.approx(math.log(0.9 / 0.1) / 2, rel=1e-5)
