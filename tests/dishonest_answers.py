"""Classifiers that are right about one bag alone and wrong in a batch, by another way, or later."""

from dataclasses import replace

import torch
from torch import Tensor

from foci.backbones import Backbone, CallableBackbone, Capabilities
from tests.dishonest_backbones import DependsOnOrder, MeanPool, Small


class FirstMaskForAll(MeanPool):
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        return super().aggregate(tokens if mask is None else tokens[:, mask[0]])


class DividesByTheLongest(MeanPool):
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        if mask is None:
            return super().aggregate(tokens)
        total = (tokens * mask.unsqueeze(-1)).sum(dim=1)
        logits: Tensor = self.head(total / mask.sum(dim=1).max())
        return logits


class Truncates(MeanPool):
    """Sees the first 36 places of a bag, whether they are masked or not."""

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        return super().aggregate(tokens[:, :36], None if mask is None else mask[:, :36])


class TruncatesScores(MeanPool):
    def scores(self, tokens: Tensor) -> Tensor:
        return super().scores(tokens)[:256]


class TruncatesPrefixes(Small):
    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        return super().prefixes(tokens, ks)[:256]


class ForwardDiffers(Small):
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(x, mask) * 7.0 if x.dim() == 3 else super().forward(x, mask)


class PredictDiffers(Small):
    """A temperature that only ``predict`` knows."""

    @torch.no_grad()
    def predict(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return torch.softmax(self(x, mask).double() / 9.0, dim=-1)


class Softmaxed(MeanPool):
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        return super().aggregate(tokens, mask).softmax(dim=-1)


class EmbedsInPlace(MeanPool):
    def embed(self, x: Tensor) -> Tensor:
        return x.relu_()


class AggregatesInPlace(MeanPool):
    """Zeroes what is masked out: harmless for this call, wrong for the next."""

    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        if mask is not None:
            tokens.masked_fill_(~mask.unsqueeze(-1), 0.0)
        return super().aggregate(tokens, mask)


class ScoresInPlace(Small):
    def scores(self, tokens: Tensor) -> Tensor:
        return super().scores(tokens.sub_(1.0)) + 0.0 * tokens.add_(2.0)[:, 0]


class PrefixesInPlace(Small):
    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
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

    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        counts = torch.arange(1, len(tokens) + 1) if ks is None else ks
        return torch.cat([self.aggregate(tokens[:k][None]) for k in counts.tolist()])


def one_class() -> Backbone:
    return Small(n_classes=1)


def softmaxed_callable() -> Backbone:
    return CallableBackbone(lambda x: torch.softmax(20 * x[:, :2].mean(0), dim=-1), 6, 2)
