"""Masks carried out by forwarding what is present, in bag order."""

import pytest
import torch
from torch import Tensor

from foci.backbones.base import Capabilities
from foci.backbones.models._pooled import OrderedBackbone
from foci.errors import FociError


class Digits(OrderedBackbone):
    """Reads a bag of digits as one number: order and length both show."""

    architecture = "digits"

    def __init__(self) -> None:
        super().__init__(1, 1, d_token=1)
        self.batches: list[tuple[int, int]] = []

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(False, False, "none", ("feature",))

    def embed(self, x: Tensor) -> Tensor:
        return x

    def classify(self, tokens: Tensor) -> Tensor:
        self.batches.append((tokens.shape[0], tokens.shape[1]))
        n = tokens.shape[1]
        return (tokens.squeeze(-1) * 10.0 ** torch.arange(n - 1, -1, -1)).sum(1, keepdim=True)

    def scores(self, tokens: Tensor) -> Tensor:
        return tokens.squeeze(-1)


def test_items_of_one_length_run_together_and_return_to_their_rows() -> None:
    tokens = torch.tensor([[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 0, 5]]).float().unsqueeze(-1)
    mask = torch.tensor([[1, 0, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]]).bool()
    model = Digits()
    assert model.aggregate(tokens, mask).flatten().tolist() == [13, 456, 89, 5]
    assert model.batches == [(1, 1), (2, 2), (1, 3)]
    assert model.aggregate(tokens).flatten().tolist() == [123, 456, 789, 105]


def test_gradients_reach_present_tiles_only() -> None:
    tokens = torch.ones(2, 3, 1, requires_grad=True)
    mask = torch.tensor([[1, 0, 1], [0, 1, 0]]).bool()
    Digits().aggregate(tokens, mask).sum().backward()
    assert tokens.grad is not None
    assert tokens.grad.squeeze(-1).tolist() == [[10, 0, 1], [0, 1, 0]]


def test_a_gate_is_refused() -> None:
    with pytest.raises(FociError, match=r"digits: has no attention weight .* site 'feature'"):
        Digits().aggregate(torch.ones(1, 2, 1), gate=torch.ones(1, 2))


@pytest.mark.parametrize("mask", [None, torch.zeros(1, 0).bool()])
def test_a_bag_without_tiles_is_refused(mask: Tensor | None) -> None:
    with pytest.raises(FociError, match="digits: was given a bag without tiles; keep at least one"):
        Digits().aggregate(torch.ones(1, 0, 1), mask)
    with pytest.raises(FociError, match="without tiles"):
        Digits().aggregate(torch.ones(2, 2, 1), torch.tensor([[True, True], [False, False]]))
