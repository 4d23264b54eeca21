"""The exact ways to compute a curve, from one forward pass per count to all counts in one pass.

Each engine is made for one bag, and gives the logits of :class:`Prefixes`:

=============== ================================================================================
``reference``   One forward pass per count: the definition, which all others are tested against.
``closed-form`` All counts in one pass over the tiles: running sums of a pooling classifier, shared
                by many orders (:class:`~foci.reveal.pooled.PooledTiles`), or the ``prefixes`` of
                DSMIL and max pooling (:class:`PrefixReveal`).
``packed``      A plain transformer (TransMIL): prefixes of similar length share a batch.
``generic``     Anything else: subsets are forwarded from the tokens, several per batch.
=============== ================================================================================
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from foci.backbones import Backbone
from foci.backbones.base import declared
from foci.backbones.models.transmil import TransMIL
from foci.backbones.transformer import EncoderLayer
from foci.errors import FociError
from foci.reveal import K_MAX, Direction

Engine = Literal["auto", "closed-form", "packed", "generic", "reference"]
Indices: TypeAlias = Tensor | Sequence[int] | NDArray[np.integer[Any]]

MEMORY = 512 * 2**20
"""Bytes for the subsets that are forwarded at once, beside the model and the bag."""


@dataclass(frozen=True)
class Prefixes:
    """Which tiles are present at every step of a curve.

    Attributes:
        sequence: ``[N]`` tile indices; step j sees the first ``sizes[j]`` of them.
        sizes: ``[J]`` number of tiles present, each between 1 and N.
    """

    sequence: Tensor
    sizes: Tensor

    @classmethod
    def of(cls, order: Tensor, ks: Tensor, direction: Direction) -> Prefixes:
        """Insertion reveals the first k tiles of the order; deletion leaves the last N - k.

        >>> order, ks = torch.tensor([2, 0, 1]), torch.tensor([1, 2])
        >>> Prefixes.of(order, ks, "delete").subset(0).tolist()
        [0, 1]
        """
        if direction == "insert":
            return cls(order, ks)
        return cls(order.flip(0), len(order) - ks)

    def subset(self, step: int) -> Tensor:
        """Indices of the tiles present at a step, in bag order."""
        return self.sequence[: int(self.sizes[step])].sort().values


def default_counts(n_tiles: int, direction: Direction) -> Tensor:
    """Every count: 1..min(256, N) revealed, or 0..min(256, N - 1) deleted.

    >>> default_counts(3, "insert").tolist(), default_counts(3, "delete").tolist()
    ([1, 2, 3], [0, 1, 2])
    """
    if direction == "insert":
        return torch.arange(1, min(K_MAX, n_tiles) + 1)
    return torch.arange(0, min(K_MAX, n_tiles - 1) + 1)


def check_order(order: Indices, n_tiles: int) -> Tensor:
    """Tile indices as a tensor ``[N]``; refused unless every tile occurs exactly once."""
    order = _as_tensor(order)
    if order.dtype.is_floating_point or order.shape != (n_tiles,):
        raise FociError(
            "order",
            f"has shape {tuple(order.shape)} and type {order.dtype} for {n_tiles} tiles",
            "give the tile indices in reveal order, one per tile",
        )
    order = order.long()
    named = order.cpu().numpy()
    inside = n_tiles and 0 <= named.min() <= named.max() < n_tiles
    if not inside or (np.bincount(named, minlength=n_tiles) != 1).any():
        raise FociError("order", "names a tile twice or not at all", "give a permutation")
    return order


def check_counts(ks: Indices, n_tiles: int, direction: Direction) -> Tensor:
    """Counts as a tensor; refused unless they increase and leave at least one tile present."""
    if direction not in ("insert", "delete"):
        raise FociError("direction", f"cannot be {direction!r}", "use 'insert' or 'delete'")
    ks = _as_tensor(ks)
    low, high = (1, n_tiles) if direction == "insert" else (0, n_tiles - 1)
    if ks.dim() != 1 or not len(ks) or ks.dtype.is_floating_point:
        raise FociError("ks", "is not a list of counts", "give increasing whole numbers")
    ks = ks.long()
    counts = ks.cpu().numpy()
    if (counts[1:] <= counts[:-1]).any():
        raise FociError("ks", "is not increasing", "sort the counts and drop repetitions")
    if counts[0] < low or counts[-1] > high:
        raise FociError(
            "ks",
            f"runs from {counts[0]} to {counts[-1]} where {n_tiles} tiles allow {low} to {high}",
            "leave out the counts beyond",
        )
    return ks


def at_least_one(value: int, name: str) -> int:
    """An integer of 1 or more, as a plain int."""
    try:
        number = operator.index(value)
    except TypeError:
        raise FociError(name, f"is {value!r}", "give a whole number from 1 on") from None
    if number < 1:
        raise FociError(name, f"{number} is too few", "give at least 1")
    return number


def _as_tensor(numbers: Indices) -> Tensor:
    """A tensor, also of the NumPy arrays that torch refuses: reversed views, unsigned integers."""
    if isinstance(numbers, np.ndarray) and numbers.dtype.kind in "iu":
        numbers = numbers.astype(np.int64)
    return torch.as_tensor(numbers)


def choose_engine(backbone: Backbone, engine: Engine = "auto") -> Engine:
    """The engine that ``"auto"`` takes for a backbone, or a check that it has the given one."""
    # a subclass that replaced ``aggregate`` but inherited ``prefixes`` would sum past its answer
    inherited = declared(backbone, "prefix-sums") and not declared(backbone, "pooling")
    possible: list[Engine] = []
    if backbone.capabilities.closed_form and not inherited:
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


class PrefixLogits(Protocol):
    """One bag, ready to give the logits of prefixes of any sequence of its tiles."""

    def logits(self, prefixes: Prefixes) -> Tensor:
        """Logits ``[J, C]`` of all steps."""


@dataclass(frozen=True, eq=False)
class ReferenceReveal:
    """Forwards the features ``[N, D]`` of every subset on their own, in bag order."""

    backbone: Backbone
    features: Tensor

    def logits(self, prefixes: Prefixes) -> Tensor:
        """See :class:`PrefixLogits`."""
        subsets = map(prefixes.subset, range(len(prefixes.sizes)))
        return torch.stack([self.backbone(self.features[subset]) for subset in subsets])


@dataclass(frozen=True, eq=False)
class PrefixReveal:
    """A backbone whose ``prefixes`` method gives every count itself, from tokens ``[N, d]``.

    For DSMIL, max pooling and third-party models; ABMIL and the like never come here.
    """

    backbone: Backbone
    tokens: Tensor

    def logits(self, prefixes: Prefixes) -> Tensor:
        """See :class:`PrefixLogits`."""
        order = prefixes.sequence[: int(prefixes.sizes.max())]
        return self.backbone.prefixes(self.tokens[order], prefixes.sizes)


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

    @classmethod
    def fitting(cls, backbone: Backbone, tokens: Tensor) -> Batches:
        """Tokens forwarded at once: what stays in the cache of a CPU; as many as fit on a GPU."""
        d = tokens.shape[1]
        widest = max(int(backbone.config.get("hidden") or d), d)
        per_token = (2 * widest + 8 * d) * tokens.element_size()
        fitting = max(1, int(MEMORY / per_token))
        cached = min(fitting, 768)
        return cls(cached, fitting, grows=True) if tokens.is_cuda else cls(cached, cached)

    def run(self, sizes: Tensor, forward: Callable[[slice], Tensor]) -> Tensor:
        """What ``forward`` gives for batches of consecutive steps, of ``sizes`` tiles, together.

        Raises:
            torch.OutOfMemoryError: If a single step does not fit, or on a device that does not
                grow.

        >>> sizes = torch.tensor([1, 2, 3, 9])
        >>> Batches(9, 9).run(sizes, lambda steps: torch.full_like(sizes[steps], steps.start))
        tensor([0, 0, 0, 3])
        """
        found: list[Tensor] = []
        lengths, start = sizes.tolist(), 0
        while start < len(lengths):
            stop, padded = self._next_batch(lengths, start)
            try:
                found.append(forward(slice(start, stop)))
            except torch.OutOfMemoryError:
                if not self.grows or stop - start == 1:
                    raise
                self.most = self.tokens = max(1, padded // 2)
                torch.cuda.empty_cache()
                continue
            if self.grows and stop < len(lengths):
                self.tokens = min(self.most, 2 * self.tokens)
            start = stop
        return torch.cat(found)

    def _next_batch(self, lengths: list[int], start: int) -> tuple[int, int]:
        """End of the batch that begins at a step, and its padded size; at least one step."""
        longest, stop = lengths[start], start + 1
        while stop < len(lengths):
            wider = max(longest, lengths[stop])
            if wider * (stop - start + 1) > self.tokens:
                break
            longest, stop = wider, stop + 1
        return stop, longest * (stop - start)


@dataclass(frozen=True, eq=False)
class GenericReveal:
    """Aggregates the tokens ``[N, >= d]`` of every subset, in bag order, for any backbone."""

    backbone: Backbone
    tokens: Tensor
    batches: Batches

    def logits(self, prefixes: Prefixes) -> Tensor:
        """See :class:`PrefixLogits`; batch by batch."""

        def forward(steps: slice) -> Tensor:
            subsets = map(prefixes.subset, range(steps.start, steps.stop))
            padded = pad_sequence([self.tokens[subset] for subset in subsets], batch_first=True)
            places = torch.arange(padded.shape[1], device=padded.device)
            present = places[None, :] < prefixes.sizes[steps][:, None]
            return self.backbone.aggregate(padded, present)

        return self.batches.run(prefixes.sizes, forward)


class PackedReveal:
    """Forwards prefixes of a TransMIL of any width; exact, but cheaper than one by one.

    * Prefixes of neighbouring lengths share a batch, padded to the longest of them, so that hardly
      any padding is multiplied and one batch stays in the processor's cache.
    * The first layer's queries, keys and values do not depend on the prefix and are computed once.
    * In the last layer only the CLS token is needed (:meth:`EncoderLayer.first`).
    """

    def __init__(self, backbone: TransMIL, tokens: Tensor, batches: Batches) -> None:
        self.backbone, self.batches = backbone, batches
        self.hidden = torch.cat([backbone.cls[None].to(tokens.dtype), tokens])  # [1 + N, d]
        self.layers = cast("list[EncoderLayer]", list(backbone.layers))
        self.first = self.layers[0].qkv(self.hidden)

    def logits(self, prefixes: Prefixes) -> Tensor:
        """See :class:`PrefixLogits`; batch by batch."""
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
