"""Classifiers that each break one promise, beside two honest ones to build them from."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foci.backbones import Backbone, CallableBackbone, Capabilities, declares
from foci.backbones.models.abmil import ABMIL

Given = Tensor | None


class Small(ABMIL):
    """An honest ABMIL with the widths filled in."""

    def __init__(self, d_in: int = 6, n_classes: int = 2, **widths: Any) -> None:
        super().__init__(d_in, n_classes, **{"d": 5, "hidden": 4, **widths})


class MeanPool(Backbone):
    """An honest model without attention: the mean of the present tiles."""

    def __init__(self, d_in: int = 6, n_classes: int = 2) -> None:
        super().__init__(d_in, n_classes, d_token=d_in)
        self.head = nn.Linear(d_in, n_classes)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(True, False, "proxy", ("feature",), homogeneous=True)

    def embed(self, x: Tensor) -> Tensor:
        return x

    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        present = torch.ones_like(tokens[..., :1]) if mask is None else mask.unsqueeze(-1)
        mean = (tokens * present).sum(dim=1) / present.sum(dim=1)
        logits: Tensor = self.head(mean)
        return logits

    def scores(self, tokens: Tensor) -> Tensor:
        return tokens.norm(dim=-1)


class IgnoresMask(Small):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        return super().aggregate(tokens, None, gate)


class LeaksPadding(MeanPool):
    """Attention is pushed down by 50 where masked: enough for ordinary tiles only."""

    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        logits = tokens.sum(dim=-1)
        if mask is not None:
            logits = logits - 50.0 * ~mask
        pooled: Tensor = self.head((logits.softmax(dim=1).unsqueeze(-1) * tokens).sum(dim=1))
        return pooled


class MixesTiles(Small):
    def embed(self, x: Tensor) -> Tensor:
        tokens = super().embed(x)
        return tokens - tokens.mean(dim=-2, keepdim=True)


class BatchNormOverTiles(MeanPool):
    """Batch statistics in eval mode too."""

    def __init__(self, d_in: int = 6, n_classes: int = 2) -> None:
        super().__init__(d_in, n_classes)
        self.norm = nn.BatchNorm1d(d_in, track_running_stats=False)

    def embed(self, x: Tensor) -> Tensor:
        rows = x.reshape(-1, self.d_in)
        return x if len(rows) == 1 else self.norm(rows).reshape(x.shape)


class DependsOnOrder(MeanPool):
    """The first present tile counts twice."""

    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        first = torch.zeros(len(tokens), dtype=torch.long) if mask is None else mask.int().argmax(1)
        logits = super().aggregate(tokens, mask)
        return logits + self.head(tokens[torch.arange(len(tokens)), first])


class WrongPrefixes(Small):
    """Right at the end, uniform weights on the way."""

    def prefixes(self, tokens: Tensor, ks: Given = None) -> Tensor:
        counts = torch.arange(1, len(tokens) + 1)
        means = self.readout(tokens.cumsum(0)[:, None] / counts[:, None, None])
        means[-1] = self.aggregate(tokens[None])[0]
        return means if ks is None else means[ks - 1]


class WrongLastPrefix(Small):
    def prefixes(self, tokens: Tensor, ks: Given = None) -> Tensor:
        return super().prefixes(tokens, ks).roll(1, dims=0)


class IgnoresGate(Small):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        return super().aggregate(tokens, mask)


class DetachesGate(Small):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        return super().aggregate(tokens, mask, None if gate is None else gate.detach())


class LogGate(MeanPool):
    """log 0 in the gradient: harmless forward, NaN backward."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, gate_sites=("attention",))

    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        logits = torch.zeros_like(tokens[..., 0])
        if mask is not None:
            logits = logits.masked_fill(~mask, -torch.inf)
        if gate is not None:
            logits = logits + gate.log()
        pooled: Tensor = self.head((logits.softmax(dim=1).unsqueeze(-1) * tokens).sum(dim=1))
        return pooled


class GateAndMaskClash(Small):
    """With a gate the mask is forgotten."""

    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        return super().aggregate(tokens, mask if gate is None else None, gate)


class Random(MeanPool):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        return F.dropout(super().aggregate(tokens, mask), training=True)


class NoisyOnSomeSizes(MeanPool):
    """Another answer each time, but only to bags of 40 to 99 tiles."""

    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        logits = super().aggregate(tokens, mask)
        return logits + torch.rand(()) if 40 <= tokens.shape[1] < 100 else logits


def in_training_mode() -> CallableBackbone:
    """A function that hides dropout, of a probability that shows nothing here."""
    layers = nn.Sequential(nn.Dropout(0.0), nn.Linear(6, 2))
    return CallableBackbone(lambda x: layers.to(x.dtype)(x).mean(0), 6, 2)


class CouplesBatch(Small):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        logits = super().aggregate(tokens, mask, gate)
        return logits + 0.1 * (logits - logits.mean(dim=0))


class ScoresByPosition(Small):
    def scores(self, tokens: Tensor) -> Tensor:
        return torch.arange(len(tokens), dtype=tokens.dtype)


class ScoresPerClass(Small):
    def scores(self, tokens: Tensor) -> Tensor:
        return torch.stack([super().scores(tokens)] * 2, dim=1)


class ScoresInfinite(Small):
    def scores(self, tokens: Tensor) -> Tensor:
        return super().scores(tokens) / 0.0


class ClaimsHomogeneous(Small):
    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, homogeneous=True)


class ClaimsLinearHead(Small):
    """Bends its logits, which no linear head does."""

    @declares("parts")
    def readout(self, pooled: Tensor) -> Tensor:
        return super().readout(pooled).sinh()


class ClaimsRows(Small):
    """Parts of the honest kind, under another name."""

    structure = "rows"


class HidesASetting(Small):
    """A temperature that is set after construction and not part of the config."""

    temperature = 1.0

    def readout(self, pooled: Tensor) -> Tensor:
        return super().readout(pooled) / self.temperature


class NotJson(MeanPool):
    """A constructor argument that cannot be written down."""

    def __init__(self, d_in: int = 6, n_classes: int = 2, like: object = torch.sum) -> None:
        super().__init__(d_in, n_classes)


class Counts(MeanPool):
    calls: Tensor

    def __init__(self, d_in: int = 6, n_classes: int = 2) -> None:
        super().__init__(d_in, n_classes)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long), persistent=False)

    def embed(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x


class TooManyLogits(MeanPool):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        logits = super().aggregate(tokens, mask)
        return torch.cat([logits, logits], dim=-1)


class NotFinite(MeanPool):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        return super().aggregate(tokens, mask) * torch.inf


class Raises(MeanPool):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        if mask is not None:
            raise RuntimeError("no\nmask")
        return super().aggregate(tokens)


# Right about one bag alone, and wrong in a batch, by another way, or later


class FirstMaskForAll(MeanPool):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        return super().aggregate(tokens if mask is None else tokens[:, mask[0]])


class DividesByTheLongest(MeanPool):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        if mask is None:
            return super().aggregate(tokens)
        total = (tokens * mask.unsqueeze(-1)).sum(dim=1)
        logits: Tensor = self.head(total / mask.sum(dim=1).max())
        return logits


class Truncates(MeanPool):
    """Sees the first 36 places of a bag, whether they are masked or not."""

    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        return super().aggregate(tokens[:, :36], None if mask is None else mask[:, :36])


class TruncatesScores(MeanPool):
    def scores(self, tokens: Tensor) -> Tensor:
        return super().scores(tokens)[:256]


class TruncatesPrefixes(Small):
    def prefixes(self, tokens: Tensor, ks: Given = None) -> Tensor:
        return super().prefixes(tokens, ks)[:256]


class ForwardDiffers(Small):
    def forward(self, x: Tensor, mask: Given = None) -> Tensor:
        return super().forward(x, mask) * 7.0 if x.dim() == 3 else super().forward(x, mask)


class PredictDiffers(Small):
    """A temperature that only ``predict`` knows."""

    @torch.no_grad()
    def predict(self, x: Tensor, mask: Given = None) -> Tensor:
        return torch.softmax(self(x, mask).double() / 9.0, dim=-1)


class Softmaxed(MeanPool):
    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        return super().aggregate(tokens, mask).softmax(dim=-1)


class EmbedsInPlace(MeanPool):
    def embed(self, x: Tensor) -> Tensor:
        return x.relu_()


class AggregatesInPlace(MeanPool):
    """Zeroes what is masked out: harmless for this call, wrong for the next."""

    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        if mask is not None:
            tokens.masked_fill_(~mask.unsqueeze(-1), 0.0)
        return super().aggregate(tokens, mask)


class ScoresInPlace(Small):
    def scores(self, tokens: Tensor) -> Tensor:
        return super().scores(tokens.sub_(1.0)) + 0.0 * tokens.add_(2.0)[:, 0]


class PrefixesInPlace(Small):
    def prefixes(self, tokens: Tensor, ks: Given = None) -> Tensor:
        logits = super().prefixes(tokens, ks)
        tokens.zero_()
        return logits


class RandomScores(DependsOnOrder):
    """Order matters, so no permutation shows that the scores are drawn."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, order_free=False)

    def scores(self, tokens: Tensor) -> Tensor:
        return torch.rand(len(tokens))


class ClosedFormOfAnOrder(DependsOnOrder):
    """Prefixes of the reveal order; but an order-dependent model sees subsets in bag order."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, order_free=False, closed_form=True)

    def prefixes(self, tokens: Tensor, ks: Given = None) -> Tensor:
        counts = torch.arange(1, len(tokens) + 1) if ks is None else ks
        return torch.cat([self.aggregate(tokens[:k][None]) for k in counts.tolist()])


def one_class() -> Backbone:
    return Small(n_classes=1)


def softmaxed_callable() -> Backbone:
    return CallableBackbone(lambda x: torch.softmax(20 * x[:, :2].mean(0), dim=-1), 6, 2)


def hides_a_setting() -> Backbone:
    model = HidesASetting()
    model.temperature = 2.0
    return model


def numpy_mean(x: Tensor) -> Any:
    return np.asarray(x.detach()).mean(axis=0)[:2]


class KeepsAllCoordinates(CallableBackbone):
    """Centres coordinates on all tiles of the slide, those that are masked out included."""

    def __init__(self) -> None:
        super().__init__(reads_places, 6, 2, coords=True)

    def aggregate(self, tokens: Tensor, mask: Given = None, gate: Given = None) -> Tensor:
        centre = torch.zeros_like(tokens)
        centre[..., 6:8] = tokens[..., 6:8].mean(dim=1, keepdim=True)
        return super().aggregate(tokens - centre, mask, gate)


def reads_places(x: Tensor, coords: Tensor, tile_size: int | None = None) -> Tensor:
    """An honest function: what lies to the right of the leftmost tile, in tiles."""
    right = (coords[:, 0] - coords[:, 0].min()) / (tile_size or 1)
    return torch.stack([(x[:, 0] * right.tanh()).sum(), x[:, 1].max() + coords[:, 1].mean() / 1e3])
