"""Batches of subsets: as many tokens at once as memory allows, fewer after running out of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, cast

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.base import declared
from foci.backbones.freezing import device_and_dtype, frozen
from foci.backbones.layers.softmax_pooling import RISE, always_in, prefix_pool
from foci.backbones.layers.transformer import EncoderLayer
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.models.transmil import TransMIL
from foci.errors import FociError
from foci.reveal.curves import KAPPA
from foci.reveal.prefixes import Prefixes
from foci.reveal.recheck import Float64Recheck


@dataclass
class Batches:
    """How many tokens, padding included, are forwarded at once.

    A GPU that runs out of memory gets the same subsets again in smaller batches; after every full
    batch that fits, the next may be twice as large, up to what is allowed and below what has
    failed. On a CPU the number stays as it is, so that a curve has the same bytes every time.

    Attributes:
        tokens: Tokens of the next batch.
        most: Tokens that are never exceeded.
        grows: Whether the number follows what fits.
    """

    tokens: int
    most: int
    grows: bool = False

    def run(
        self, sizes: Tensor, forward: Callable[[slice], Tensor]
    ) -> Iterator[tuple[slice, Tensor]]:
        """Consecutive steps with what ``forward`` gives for each batch of them.

        Args:
            sizes: ``[J]`` tiles of every step.
            forward: Called with steps that share a batch.

        Raises:
            torch.OutOfMemoryError: If a single step does not fit, or on a device that does not
                grow.

        >>> sizes = torch.tensor([1, 2, 3, 9])
        >>> [(s.start, s.stop) for s, _ in Batches(9, 9).run(sizes, lambda s: sizes[s])]
        [(0, 3), (3, 4)]
        """
        lengths, start = sizes.tolist(), 0
        while start < len(lengths):
            stop, padded = self._fitting(lengths, start)
            try:
                found = forward(slice(start, stop))
            except torch.OutOfMemoryError:
                if not self.grows or stop - start == 1:
                    raise
                self.most = self.tokens = max(1, padded // 2)
                torch.cuda.empty_cache()
                continue
            yield slice(start, stop), found
            if self.grows and stop < len(lengths):
                self.tokens = min(self.most, 2 * self.tokens)
            start = stop

    def _fitting(self, lengths: list[int], start: int) -> tuple[int, int]:
        """End of the batch that begins at a step, and its padded size; at least one step."""
        longest, stop = lengths[start], start + 1
        while stop < len(lengths):
            wider = max(longest, lengths[stop])
            if wider * (stop - start + 1) > self.tokens:
                break
            longest, stop = wider, stop + 1
        return stop, longest * (stop - start)


# Attention and values of one bag, computed once for its curves, single tiles and searches.


_MOST_TERMS = 2**22
"""Numbers of weighted values that are kept per bag (32 MiB); a larger bag is summed in blocks."""


class PooledTiles:
    r"""One bag of a pooling classifier, tile by tile, in float64.

    Tiles are projected through the affine start of the readout once
    (:meth:`PooledBackbone.split`), and every order sums the same weighted values

    .. math:: e^{a_i - m} v_i, \qquad m = \max_j a_j

    Attributes:
        attention: ``[N, R]`` attention logits.
        values: ``[N, 1 or R, dv]`` what is pooled.
        dtype: Of the classifier, in which its readout computes.
        plus_one: Whether the softmax has 1 added to its denominator.

    Args:
        backbone: The classifier.
        tokens: ``[N, d]`` of one bag.
    """

    def __init__(self, backbone: PooledBackbone, tokens: Tensor) -> None:
        project, self._readout = backbone.split()
        self.dtype, self.plus_one = tokens.dtype, backbone.plus_one
        self.attention = backbone.attend(tokens).double()
        self.values = project(backbone.values(tokens)).double()

    def read(self, pooled: Tensor) -> Tensor:
        """Pooled values ``[..., R, dv]`` to logits ``[..., C]``."""
        return self._readout(pooled.to(self.dtype))

    def pooled(self, sequence: Tensor, sizes: Tensor) -> Tensor:
        """Pooled values ``[J, R, dv]`` of the first ``sizes`` tiles of a sequence, in float64.

        The sums run in the order of the sequence. Tiles before the smallest count (a deletion
        leaves many) are in every sum, and enter it as one product.

        Args:
            sequence: ``[N]`` tile indices.
            sizes: ``[J]`` counts from 1 to N.
        """
        first, last = always_in(sizes), int(sizes.max())
        terms = self._terms
        if terms is None or self._rise(sequence[0]) >= RISE:
            return prefix_pool(self.attention, self.values, sizes, sequence, plus_one=self.plus_one)
        sums = terms.index_select(0, sequence[first:last])
        if first:
            inside = terms.new_ones(len(terms)).index_fill_(0, sequence[first:], 0.0)
            sums[0] += (inside @ terms.flatten(1)).view_as(sums[0])
        sums = sums.cumsum_(0).index_select(0, sizes - 1 - first)
        return sums[..., :-1] / sums[..., -1:]

    @cached_property
    def _terms(self) -> Tensor | None:
        """Weighted values and, in the last column, their weights, ``[N, R, dv + 1]``."""
        size = self.attention.numel() * (self.values.shape[-1] + 1)
        if self.plus_one or size > _MOST_TERMS:
            return None
        weights = torch.exp(self.attention - self._peaks).unsqueeze(-1)
        return torch.cat([weights * self.values, weights], dim=-1)

    @cached_property
    def _peaks(self) -> Tensor:
        """Largest attention logit of every row, ``[R]``."""
        return self.attention.amax(dim=0)

    def _rise(self, tile: Tensor) -> float:
        """How far the largest attention logit of any row lies above that of a tile."""
        return float((self._peaks - self.attention[tile]).amax())


# Curves in closed form, for pooling classifiers: every count from one pass over the tiles.


class PooledReveal:
    """Softmax pooling over the first k tiles, for all k at once, by cumulative sums."""

    def __init__(self, tiles: PooledTiles) -> None:
        self.tiles = tiles

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of all steps at once."""
        pooled = self.tiles.pooled(prefixes.sequence, prefixes.sizes)
        yield slice(0, len(prefixes.sizes)), self.tiles.read(pooled)


class PrefixReveal:
    """A backbone whose ``prefixes`` method gives every count itself."""

    def __init__(self, backbone: Backbone, tokens: Tensor) -> None:
        self.backbone, self.tokens = backbone, tokens

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of all steps at once."""
        order = prefixes.sequence[: int(prefixes.sizes.max())]
        logits = self.backbone.prefixes(self.tokens[order], prefixes.sizes)
        yield slice(0, len(prefixes.sizes)), logits


# Curves of any backbone: every subset is forwarded from the tokens, several per batch.


class GenericReveal:
    """Aggregates the tokens of every subset, in bag order.

    Args:
        backbone: Any backbone.
        tokens: ``[N, d]`` of one bag.
        batches: How many subsets are forwarded at once.
    """

    def __init__(self, backbone: Backbone, tokens: Tensor, batches: Batches) -> None:
        self.backbone, self.tokens, self.batches = backbone, tokens, batches

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of consecutive steps, batch by batch."""
        return self.batches.run(prefixes.sizes, lambda steps: self._logits(prefixes, steps))

    def _logits(self, prefixes: Prefixes, steps: slice) -> Tensor:
        """Logits ``[b, C]`` of consecutive steps, in one padded batch."""
        subsets = [prefixes.subset(step) for step in range(steps.start, steps.stop)]
        padded = torch.nn.utils.rnn.pad_sequence(
            [self.tokens[subset] for subset in subsets], batch_first=True
        )
        places = torch.arange(padded.shape[1], device=padded.device)
        present = places[None, :] < prefixes.sizes[steps][:, None]
        return self.backbone.aggregate(padded, present)


# Curves of a plain transformer (TransMIL): prefixes of similar length share a batch.
#
# Exact, but cheaper than forwarding every prefix:
#
# * prefixes of neighbouring lengths share a batch, padded to the longest of them, so that hardly
# any
#   padding is multiplied and one batch stays in the processor's cache;
# * the first layer's queries, keys and values do not depend on the prefix and are computed once;
# * in the last layer only the CLS token is needed (:meth:`EncoderLayer.first`).


class PackedReveal:
    """Forwards prefixes of neighbouring lengths in one padded batch.

    Args:
        backbone: The paper's TransMIL, or any width of it.
        tokens: ``[N, d]`` of one bag.
        batches: How many prefixes are forwarded at once.
    """

    def __init__(self, backbone: TransMIL, tokens: Tensor, batches: Batches) -> None:
        self.backbone, self.batches = backbone, batches
        self.hidden = torch.cat([backbone.cls[None].to(tokens.dtype), tokens])  # [1 + N, d]
        self.layers = cast("list[EncoderLayer]", list(backbone.layers))
        self.first = self.layers[0].qkv(self.hidden)

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits of consecutive steps, batch by batch."""
        zero = torch.zeros(1, dtype=torch.long, device=prefixes.sequence.device)
        sequence = torch.cat([zero, prefixes.sequence + 1])
        sizes = prefixes.sizes
        return self.batches.run(sizes, lambda steps: self._logits(sequence, sizes[steps] + 1))

    def _logits(self, sequence: Tensor, sizes: Tensor) -> Tensor:
        """Logits ``[b, C]`` of the first n entries of the sequence (CLS first), n in ``sizes``."""
        longest = int(sizes.max())
        sequence = sequence[:longest]
        present = torch.arange(longest, device=sizes.device)[None, :] < sizes[:, None]  # [b, L]
        keys = None if bool(present.all()) else present
        hidden = self.hidden[sequence].expand(len(sizes), -1, -1)  # [b, L, d]
        for number, layer in enumerate(self.layers[:-1]):
            if number == 0:
                q, k, v = (part[:, sequence].expand(len(sizes), -1, -1, -1) for part in self.first)
            else:
                q, k, v = layer.qkv(hidden)
            hidden = hidden + layer.attend(q, k, v, keys)
            hidden = hidden + layer.feed_forward(hidden)
        return self.backbone.readout(self.layers[-1].first(hidden, present))


# Curves by one forward pass per count: slow, and what every other engine is tested against.


class ReferenceReveal:
    """Forwards the features of every subset on their own, in bag order."""

    def __init__(self, backbone: Backbone, features: Tensor) -> None:
        self.backbone, self.features = backbone, features

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Logits ``[1, C]`` of each step in turn."""
        for step in range(len(prefixes.sizes)):
            logits = self.backbone(self.features[prefixes.subset(step)])
            yield slice(step, step + 1), logits.unsqueeze(0)


# The fastest exact engine that a backbone allows, and the settings it runs with.


Engine = Literal["auto", "closed-form", "packed", "generic", "reference"]

MEMORY = 512 * 2**20
"""Bytes for the subsets that are forwarded at once, beside the model and the bag."""


class PrefixLogits(Protocol):
    """One bag, ready to give the logits of prefixes of any sequence of its tiles."""

    def steps(self, prefixes: Prefixes) -> Iterator[tuple[slice, Tensor]]:
        """Blocks of consecutive steps with their logits ``[b, C]``."""


class CurveEngine:
    """How curves are computed for one backbone; the arguments are those of ``Revealer``.

    Attributes:
        name: The engine in use; never ``"auto"``.
        recheck: Replaces probabilities near a threshold or a tie by their float64 values.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        engine: Engine = "auto",
        recheck: Sequence[float] = (KAPPA,),
    ) -> None:
        self.backbone = backbone
        self.name = choose_engine(backbone, engine)
        self._batches: Batches | None = None
        self.recheck = Float64Recheck(
            backbone, tuple(recheck), closed_form=self.name == "closed-form"
        )

    @contextlib.contextmanager
    def precision(self) -> Iterator[None]:
        """Eval mode, without gradients, in the model's own precision whatever the caller's is."""
        with frozen(self.backbone):
            if not torch.is_autocast_enabled("cpu") | torch.is_autocast_enabled("cuda"):
                yield
                return
            with torch.autocast(device_and_dtype(self.backbone)[0].type, enabled=False):
                yield

    def reference(self, features: Tensor) -> PrefixLogits:
        """The engine ``"reference"``, which starts from the features and not from the tokens."""
        return ReferenceReveal(self.backbone, features)

    def prefix_logits(self, tokens: Tensor) -> PrefixLogits:
        """Any other engine, for the tokens ``[N, d]`` of one bag."""
        backbone = self.backbone
        if self.name == "closed-form":
            if isinstance(backbone, PooledBackbone) and declared(backbone, "pooled-prefixes"):
                return PooledReveal(PooledTiles(backbone, tokens))
            return PrefixReveal(backbone, tokens)
        if self._batches is None:  # kept: what a GPU has learned of one bag serves the next
            self._batches = _batches(backbone, tokens)
        if self.name == "packed":
            return PackedReveal(backbone, tokens, self._batches)  # type: ignore[arg-type]
        return GenericReveal(backbone, tokens, self._batches)


def choose_engine(backbone: Backbone, engine: Engine = "auto") -> Engine:
    """The engine that ``"auto"`` takes for a backbone, or a check that it has the given one."""
    possible: list[Engine] = []
    if backbone.capabilities.closed_form and not _left_behind(backbone):
        possible.append("closed-form")
    if isinstance(backbone, TransMIL) and declared(backbone, "encoder"):
        possible.append("packed")
    possible += ["generic", "reference"]
    if engine == "auto":
        return possible[0]
    if engine not in possible:
        known = ", ".join(possible)
        what = f"cannot be {engine!r} for {backbone.architecture}"
        raise FociError("engine", what, f"choose auto, {known}")
    return engine


def _left_behind(backbone: Backbone) -> bool:
    """Whether a subclass has replaced ``aggregate`` and inherited ``prefixes``, which sums."""
    return declared(backbone, "prefix-sums") and not declared(backbone, "pooling")


def _batches(backbone: Backbone, tokens: Tensor) -> Batches:
    """Tokens forwarded at once: what stays in the cache of a CPU; as many as fit on a GPU."""
    d = tokens.shape[1]
    widest = max(int(backbone.config.get("hidden") or d), d)
    per_token = (2 * widest + 8 * d) * tokens.element_size()
    fitting = max(1, int(MEMORY / per_token))
    cached = min(fitting, 768)
    if tokens.is_cuda:
        return Batches(cached, fitting, grows=True)
    return Batches(cached, cached)
