"""Frozen means frozen: a classifier that is read out is the same before and after, to the bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foci.backbones.contract import Backbone
from foci.backbones.fingerprint import fingerprint
from foci.backbones.frozen import eval_mode
from foci.backbones.placement import placed
from foci.errors import FociError

_PROBE_TILES = 8
_PROBE_TOLERANCE = 1e-3


@contextmanager
def held_still(backbone: Backbone, bags: Sequence[Tensor]) -> Iterator[None]:
    """Eval mode and no gradients inside; what was switched off is switched on again afterwards.

    Args:
        backbone: The classifier.
        bags: Features ``[N, D]`` of a few bags on which its answers are compared.

    Raises:
        FociError: If a parameter, a buffer or a full-bag logit has changed when the block ends.
    """
    learning = [parameter for parameter in backbone.parameters() if parameter.requires_grad]
    backbone.requires_grad_(False)
    try:
        with eval_mode(backbone):
            weights, answers = fingerprint(backbone), full_logits(backbone, bags)
            yield
            changed = [
                what
                for what, same in (
                    ("parameters or buffers", fingerprint(backbone) == weights),
                    ("full-bag logits", torch.equal(full_logits(backbone, bags), answers)),
                )
                if not same
            ]
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)
    if changed:
        raise FociError(
            f"backbone {backbone.architecture}",
            f"{' and '.join(changed)} changed while it was read out",
            "discard this fit: something else trains or edits the backbone meanwhile",
        )


@torch.no_grad()
def full_logits(backbone: Backbone, bags: Sequence[Tensor]) -> Tensor:
    """Logits ``[len(bags), C]`` of whole bags."""
    return torch.stack([backbone(placed(bag, backbone)) for bag in bags])


@dataclass(frozen=True)
class Identity:
    """Which classifier a selector belongs to.

    A function without parameters has nothing to hash, so its answer to a fixed bag is kept too.

    Attributes:
        architecture: Its name.
        fingerprint: Hash of parameters and buffers.
        probe: Its logits for a fixed random bag.
    """

    architecture: str
    fingerprint: str
    probe: tuple[float, ...]

    @classmethod
    def of(cls, backbone: Backbone) -> Identity:
        """The identity of a classifier, as it answers in eval mode."""
        rng = np.random.default_rng(0)
        bag = torch.from_numpy(rng.standard_normal((_PROBE_TILES, backbone.d_in), np.float32))
        with eval_mode(backbone):
            logits = full_logits(backbone, [bag])[0]
        return cls(backbone.architecture, fingerprint(backbone), tuple(logits.double().tolist()))

    @classmethod
    def read(cls, facts: dict[str, Any]) -> Identity:
        """From JSON."""
        return cls(facts["architecture"], facts["fingerprint"], tuple(facts["probe"]))

    def matches(self, other: Identity) -> bool:
        """Same weights, and the same answer within what another machine may differ by."""
        near = len(self.probe) == len(other.probe) and all(
            abs(a - b) <= _PROBE_TOLERANCE * max(1.0, abs(a))
            for a, b in zip(self.probe, other.probe, strict=True)
        )
        return self.fingerprint == other.fingerprint and near
