"""Split readouts and prefixes of attention pooling; masks of order-dependent classifiers."""

import pytest
import torch
from torch import Tensor, nn

from foci.backbones.attention import (
    pool,
    softmax_weights,
    split_head,
)
from foci.backbones.base import declared, declares
from foci.backbones.models._pooled import OrderedBackbone, PooledBackbone
from foci.backbones.models.abmil import ABMIL
from foci.backbones.models.mhim import MHIMSelfAttention
from foci.backbones.models.transmil import TransMILNystrom
from foci.errors import FociError
from foci.reveal import Revealer
from tests.backbones.every import D_IN, EVERY, small

POOLED = [pair for pair in EVERY if isinstance(small(*pair, n_classes=2), PooledBackbone)]


@pytest.mark.parametrize(("name", "preset"), POOLED)
def test_projecting_before_the_pooling_gives_the_same_logits(name: str, preset: str) -> None:
    model = small(name, preset, n_classes=3).double().eval()
    assert isinstance(model, PooledBackbone)
    tokens = model.embed(torch.randn(2, 6, D_IN, dtype=torch.float64))
    weights, values = softmax_weights(7 * model.attend(tokens)), model.values(tokens)
    want = model.readout(pool(weights, values))
    project, read = model.split()
    got = read(pool(weights, project(values)))
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


class Tempered(ABMIL):
    """Replaces the readout and knows nothing of the split."""

    def readout(self, pooled: Tensor) -> Tensor:
        return super().readout(pooled) / 2


class Renamed(ABMIL):
    """Replaces all three."""

    def readout(self, pooled: Tensor) -> Tensor:
        return self.read(self.project(pooled))

    def read(self, projected: Tensor) -> Tensor:
        return super().read(projected) / 2


class Halved(ABMIL):
    """Replaces half of the split, and neither the readout nor the other half."""

    def read(self, projected: Tensor) -> Tensor:
        return super().read(projected) / 2


class Declared(ABMIL):
    """Replaces the readout and the second half of the split, and says that they agree."""

    @declares("split-readout")
    def readout(self, pooled: Tensor) -> Tensor:
        return super().readout(pooled) / 2

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        return super().read(projected) / 2


@pytest.mark.parametrize("model_class", [Tempered, Renamed, Halved, Declared, ABMIL])
def test_prefixes_and_curves_follow_another_readout(model_class: type[ABMIL]) -> None:
    """Of a subclass, or of one object."""
    torch.manual_seed(0)
    model = model_class(d_in=8, n_classes=2, d=4, hidden=4, head_hidden=4).double()
    plain = model.readout
    if model_class is ABMIL:
        model.readout = lambda pooled: plain(pooled) / 2  # type: ignore[method-assign]
    assert declared(model, "split-readout") == (model_class is Declared)
    tokens = model.embed(torch.randn(5, 8, dtype=torch.float64))
    want = torch.cat([model.aggregate(tokens[None, :k]) for k in range(1, 6)])
    torch.testing.assert_close(model.prefixes(tokens), want, rtol=0, atol=1e-12)
    x, order = 9 * torch.randn(6, 8, dtype=torch.float64), torch.randperm(6)
    got, want = (
        Revealer(model, engine=engine).open(x).curve(order) for engine in ("auto", "reference")
    )
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)


def test_splitting_a_head() -> None:
    linear, relu, norm = nn.Linear(4, 3), nn.ReLU(), nn.LayerNorm(4)
    assert split_head(linear) == (linear, [])
    assert split_head(nn.Sequential(linear, relu)) == (linear, [relu])
    first, rest = split_head(nn.Sequential(norm, linear))
    assert isinstance(first, nn.Identity)
    assert rest == [norm, linear]


class Digits(OrderedBackbone):
    """Reads a bag of digits as one number: order and length both show."""

    architecture = "digits"

    def __init__(self) -> None:
        super().__init__(1, 1, d_token=1)
        self.batches: list[tuple[int, int]] = []

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


def test_an_attention_gate_is_refused() -> None:
    with pytest.raises(FociError, match=r"digits: has no attention weight .* site 'feature'"):
        Digits().aggregate(torch.ones(1, 2, 1), gate=torch.ones(1, 2))


@pytest.mark.parametrize("mask", [None, torch.zeros(1, 0).bool()])
def test_a_bag_without_tiles_is_refused(mask: Tensor | None) -> None:
    with pytest.raises(FociError, match="digits: was given a bag without tiles; keep at least one"):
        Digits().aggregate(torch.ones(1, 0, 1), mask)
    with pytest.raises(FociError, match="without tiles"):
        Digits().aggregate(torch.ones(2, 2, 1), torch.tensor([[True, True], [False, False]]))


@pytest.mark.parametrize("cls", [TransMILNystrom, MHIMSelfAttention])
def test_order_matters(cls: type[OrderedBackbone]) -> None:
    torch.manual_seed(0)
    model = cls(5, 3, d=8, heads=2).double().eval()
    x = torch.randn(12, 5, dtype=torch.float64)
    assert not model.capabilities.order_free
    assert model.capabilities.gate_sites == ("feature",)
    assert (model(x.flip(0)) - model(x)).abs().max() > 1e-3
