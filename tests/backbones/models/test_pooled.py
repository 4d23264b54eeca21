"""A readout may be split into what comes before and what comes after the pooling."""

import pytest
import torch
from torch import Tensor, nn

from foci.backbones.base import declared, declares
from foci.backbones.layers.attention import split_head
from foci.backbones.layers.softmax_pooling import pool, softmax_weights
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.models.abmil import ABMIL
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


class Declared(ABMIL):
    """Replaces the readout and the second half of the split, and says that they agree."""

    @declares("split-readout")
    def readout(self, pooled: Tensor) -> Tensor:
        return super().readout(pooled) / 2

    @declares("split-readout")
    def read(self, projected: Tensor) -> Tensor:
        return super().read(projected) / 2


@pytest.mark.parametrize("model_class", [Tempered, Renamed, Declared])
def test_a_subclass_with_another_readout_keeps_its_prefixes_right(model_class: type[ABMIL]) -> None:
    torch.manual_seed(0)
    model = model_class(d_in=8, n_classes=2, d=4, hidden=4, head_hidden=4).double()
    tokens = model.embed(torch.randn(5, 8, dtype=torch.float64))
    want = torch.cat([model.aggregate(tokens[None, :k]) for k in range(1, 6)])
    torch.testing.assert_close(model.prefixes(tokens), want, rtol=0, atol=1e-12)
    assert declared(model, "split-readout") == (model_class is Declared)


class Halved(ABMIL):
    """Replaces half of the split, and neither the readout nor the other half."""

    def read(self, projected: Tensor) -> Tensor:
        return super().read(projected) / 2


def test_half_of_a_split_is_not_used() -> None:
    torch.manual_seed(0)
    model = Halved(d_in=8, n_classes=2, d=4, hidden=4, head_hidden=4).double()
    tokens = model.embed(torch.randn(5, 8, dtype=torch.float64))
    want = model.aggregate(tokens[None])[0]
    torch.testing.assert_close(model.prefixes(tokens)[-1], want, rtol=0, atol=1e-12)


def test_a_readout_replaced_on_one_object_keeps_its_prefixes_right() -> None:
    model = small("abmil", "paper", n_classes=2).double()
    assert isinstance(model, PooledBackbone)
    plain = model.readout
    model.readout = lambda pooled: plain(pooled) / 2  # type: ignore[method-assign]
    tokens = model.embed(torch.randn(5, D_IN, dtype=torch.float64))
    want = torch.cat([model.aggregate(tokens[None, :k]) for k in range(1, 6)])
    torch.testing.assert_close(model.prefixes(tokens), want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("change", ["subclass", "object"])
def test_curves_follow_another_readout(change: str) -> None:
    torch.manual_seed(0)
    model = (Tempered if change == "subclass" else ABMIL)(8, 2, d=4, hidden=4, head_hidden=4)
    plain = model.double().readout
    if change == "object":
        model.readout = lambda pooled: plain(pooled) / 2  # type: ignore[method-assign]
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
