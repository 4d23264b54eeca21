"""Batches of bags, padded to the longest one and masked, and random subsets of their tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


@dataclass(frozen=True)
class Batch:
    """A batch of padded bags; ``mask`` is True where a tile is real.

    Attributes:
        features: ``[B, N, D]``, zero where padded.
        mask: ``[B, N]`` bool.
        labels: ``[B]`` class indices.
        coords: ``[B, N, 2]`` top-left positions, or None if the bags have none.
        strides: ``[B]`` distance between neighbouring tiles in the units of ``coords``, or None.
    """

    features: Tensor
    mask: Tensor
    labels: Tensor
    coords: Tensor | None = None
    strides: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        parts = (self.features, self.mask, self.labels, self.coords, self.strides)
        return Batch(*(None if part is None else part.to(device) for part in parts))  # type: ignore[arg-type]


def pad(
    features: Sequence[Tensor],
    labels: Sequence[int],
    coords: Sequence[Tensor] | None = None,
    strides: Sequence[int] | None = None,
) -> Batch:
    """Pad bags ``[N_b, D]`` to the longest of them.

    >>> batch = pad([torch.ones(2, 3), torch.ones(1, 3)], labels=[0, 1])
    >>> batch.mask.tolist()
    [[True, True], [True, False]]
    """
    lengths = torch.tensor([len(x) for x in features])
    return Batch(
        features=pad_sequence(list(features), batch_first=True),
        mask=torch.arange(int(lengths.max()))[None, :] < lengths[:, None],
        labels=torch.tensor(list(labels), dtype=torch.long),
        coords=None if coords is None else pad_sequence(list(coords), batch_first=True),
        strides=None if strides is None else torch.tensor(list(strides)),
    )


def choose(candidates: Tensor, count: Tensor | int, dim: int = -1) -> Tensor:
    """Mark ``count`` of the candidates at random, all subsets of that size being equally likely.

    Entries compete along ``dim``, and ``count`` is broadcast against the candidates; where there
    are fewer of them, all are chosen. Draws from torch's global generator.

    >>> choose(torch.tensor([True, False, True, True]), 2).sum().item()
    2
    """
    keys = torch.rand(candidates.shape, device=candidates.device)
    place = keys.masked_fill(~candidates, torch.inf).argsort(dim=dim).argsort(dim=dim)
    return (place < count) & candidates
