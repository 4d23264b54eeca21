"""Separate sufficient sets of a toy model whose sets are known."""

import torch

from foci import metrics
from foci.backbones import CallableBackbone
from foci.reveal import Revealer, disjoint_sufficient_sets


class Threshold(torch.nn.Module):
    """Class 1 as soon as the tiles present sum to 2 or more."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        margin = 20.0 * (x[:, 0].sum() - 1.5)
        return torch.stack([-margin, margin])


def search(values: list[float], most: int = 8) -> list[list[int]]:
    x = torch.tensor(values)[:, None]
    sets = disjoint_sufficient_sets(
        Revealer(CallableBackbone(Threshold(), d_in=1, n_classes=2)),
        x,
        rank=lambda left: left[:, 0].argsort(descending=True, stable=True),
        crossing=lambda p: metrics.msk(p, range(1, len(p) + 1), target=1),
        most=most,
    )
    return [found.tolist() for found in sets]


def test_finds_every_set_in_turn() -> None:
    found = search([0.0, 2.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    assert found == [[1], [2, 4], [5, 6]]
    assert metrics.disjoint_sets(found) == 3


def test_stops_at_the_limit_and_where_nothing_suffices() -> None:
    assert search([2.0, 2.0, 2.0], most=2) == [[0], [1]]
    assert search([2.0, 2.0]) == [[0], [1]]
    assert search([0.0, 1.0]) == []
