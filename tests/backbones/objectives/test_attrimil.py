"""AttriMIL's constraints by hand."""

import math

import pytest
import torch

from foci.backbones.models.attrimil import neighbourhoods, rank_constraint, spatial_constraint
from tests.backbones.golden_attrimil import GOLDEN

GRID = 256 * torch.cartesian_prod(torch.arange(3), torch.arange(3))


def test_spatial_constraint_by_hand_on_three_by_three() -> None:
    """One strong tile in the corner pulls its three neighbours; the others look at the 1."""
    scores = torch.zeros(9, 1, dtype=torch.float64)
    scores[0], scores[4] = -3.0, 1.0
    around = neighbourhoods(GRID, 256)
    pulled_by_corner = 2 * math.tanh(3.0) + math.tanh(4.0)  # tiles 1, 3 and 4
    pulled_by_centre = 5 * math.tanh(1.0)  # tiles 2, 5, 6, 7, 8
    want = (pulled_by_corner + pulled_by_centre) / 9
    assert spatial_constraint(scores, around).item() == pytest.approx(want, abs=1e-12)


def test_spatial_constraint_is_zero_for_constant_scores() -> None:
    around = neighbourhoods(GRID, 256)
    assert spatial_constraint(torch.full((9, 3), -2.5), around).item() == 0.0


def test_spatial_constraint_sums_over_classes() -> None:
    around = neighbourhoods(GRID, 256)
    scores = torch.randn(9, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    each = [spatial_constraint(scores[:, [c]], around) for c in range(3)]
    torch.testing.assert_close(spatial_constraint(scores, around), torch.stack(each).sum())


def test_missing_neighbours_leave_lonely_tiles_alone() -> None:
    coords = torch.tensor([[0, 0], [256, 0], [5000, 0]])
    scores = torch.tensor([[1.0], [3.0], [-9.0]], dtype=torch.float64)
    want = (math.tanh(2.0) + 0 + 0) / 3
    loss = spatial_constraint(scores, neighbourhoods(coords, 256))
    assert loss.item() == pytest.approx(want, abs=1e-12)


def test_published_spatial_constraint_on_given_scores() -> None:
    given = GOLDEN["spatial_by_hand"]
    around = neighbourhoods(torch.tensor(given["coords"]), 256)
    scores = torch.tensor(given["attributes"], dtype=torch.float64)[:, 1:]
    assert spatial_constraint(scores, around).item() == pytest.approx(given["loss"], abs=1e-9)


@pytest.mark.parametrize(
    ("of_class", "negative_class", "v", "u", "want"),
    [
        (True, False, 2.0, 3.0, 1.0 + 0.0 + 3.0),
        (True, False, -2.0, -5.0, 0.0 + 2.0 + 0.0),
        (True, False, -2.0, 1.0, 3.0 + 2.0 + 1.0),
        (True, True, 2.0, 3.0, 0.0 + 3.0),
        (True, True, -2.0, -5.0, 2.0 + 0.0),
        (False, False, 2.0, 3.0, 0.0 + 2.0),
        (False, False, 2.0, -3.0, 5.0 + 2.0),
        (False, False, -2.0, -3.0, 1.0 + 0.0),
        (False, True, 2.0, 3.0, 2.0 + 0.0),
        (False, True, 2.0, -3.0, 2.0 + 3.0),
        (False, True, -2.0, 3.0, 0.0),
    ],
)
def test_rank_constraint_by_hand(
    of_class: bool, negative_class: bool, v: float, u: float, want: float
) -> None:
    loss = rank_constraint(torch.tensor(v), torch.tensor(u), of_class, negative_class)
    assert loss.item() == want
