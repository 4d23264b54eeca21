"""Regression on contributions to random subsets."""

import pytest
import torch

from foci.backbones import CallableBackbone
from foci.selectors.fitting.batch import GatedBatch
from foci.selectors.fitting.shapley import shapley, subset_sizes
from foci.selectors.gated.choice import gate_backbone


def sums(x: torch.Tensor) -> torch.Tensor:
    """An additive game: zeroed tiles add nothing."""
    return x[:, :2].sum(dim=0)


def game(x: torch.Tensor) -> tuple[GatedBatch, CallableBackbone]:
    model = CallableBackbone(sums, d_in=x.shape[1], n_classes=2)
    return (
        GatedBatch(
            tiles={"tokens": x[None], "features": x[None]},
            mask=torch.ones(1, len(x), dtype=torch.bool),
            coords=torch.zeros(1, len(x), 2),
            targets=torch.tensor([1]),
            full=model(x)[None],
        ),
        model,
    )


def test_sizes_follow_the_shapley_kernel() -> None:
    generator = torch.Generator().manual_seed(0)
    n = torch.full((6000,), 5)
    counts = torch.bincount(subset_sizes(n, generator), minlength=6).double()
    weights = torch.tensor([1 / (s * (5 - s)) for s in range(1, 5)])
    assert counts[0] == counts[5] == 0
    assert (counts[1:5] / 6000 - weights / weights.sum()).abs().max() < 0.02
    assert subset_sizes(torch.tensor([1, 2]), generator).tolist() == [1, 1]


def test_true_contributions_of_an_additive_game_have_no_loss() -> None:
    x = torch.tensor([[0.0, 2.0], [1.0, 0.0], [0.0, -3.0], [0.5, 0.5]])
    batch, model = game(x)
    gated = gate_backbone(model, "feature")
    contributions = x[:, 1] - x[:, 0]
    scores = (4 * contributions)[None].requires_grad_()
    for seed in range(5):
        loss = shapley(batch, scores, gated, torch.Generator().manual_seed(seed))
        assert loss.item() == pytest.approx(0, abs=1e-9)
    wrong = (4 * contributions + 1)[None].requires_grad_()
    loss = shapley(batch, wrong, gated, torch.Generator().manual_seed(0))
    loss.sum().backward()
    dropped = int((wrong.grad != 0).sum())
    assert loss.item() == pytest.approx((dropped / 4) ** 2, rel=1e-5)
    assert torch.equal(shapley(batch, wrong, gated), shapley(batch, wrong, gated))
