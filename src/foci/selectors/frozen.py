"""Frozen means frozen: a classifier that is read out is the same before and after, to the bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from pydantic import ConfigDict
from torch import Tensor, nn

from foci.backbones.base import Backbone
from foci.backbones.freezing import eval_mode, fingerprint, home, placed
from foci.errors import FociError

_PROBE_TILES = 8
_PROBE_TOLERANCE = 1e-3


class ChangedError(FociError):
    """A classifier that is no longer what it was when its readout began."""


@contextmanager
def held_still(backbone: Backbone, bags: Sequence[Tensor]) -> Iterator[Callable[[], None]]:
    """Eval mode and no gradients inside; what was switched off is switched on again afterwards.

    Args:
        backbone: The classifier.
        bags: Features ``[N, D]`` of a few bags on which its answers are compared.

    Yields:
        The comparison that is made when the block ends, for use on the way.

    Raises:
        ChangedError: If a parameter, a buffer or a full-bag logit has changed.
    """
    learning = [parameter for parameter in backbone.parameters() if parameter.requires_grad]
    backbone.requires_grad_(False)
    try:
        with eval_mode(backbone):
            weights, answers = fingerprint(backbone), full_logits(backbone, bags)

            def compare() -> None:
                now = full_logits(backbone, bags)
                changed = [
                    what
                    for what, same in (
                        ("parameters or buffers", fingerprint(backbone) == weights),
                        ("full-bag logits", torch.equal(now, answers)),
                    )
                    if not same
                ]
                if changed:
                    raise ChangedError(
                        f"backbone {backbone.architecture}",
                        f"{' and '.join(changed)} changed while it was read out",
                        "discard this fit: something else trains or edits the backbone meanwhile",
                    )

            yield compare
            compare()
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


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
        probe: Its logits for a fixed random bag; NaN where it has no answer.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

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

    def matches(self, other: Identity) -> bool:
        """Same weights, and the same answer within what another machine may differ by."""
        near = len(self.probe) == len(other.probe) and all(
            map(_same_answer, self.probe, other.probe)
        )
        return self.fingerprint == other.fingerprint and near

    def check(self, backbone: Backbone) -> None:
        """Refuse another classifier, or the same one in another precision."""
        found = Identity.of(backbone)
        if self.matches(found):
            return
        where = f"backbone {backbone.architecture}"
        precision = None if found.fingerprint == self.fingerprint else self._precision(backbone)
        if precision is not None:
            raise FociError(
                where,
                f"computes in {_plain(home(backbone)[1])}, the selector was fitted on it in "
                f"{_plain(precision)}",
                f"convert it back with backbone.to({precision})",
            )
        raise FociError(
            where,
            "is not the one that the selector was fitted on "
            f"({self.architecture} {self.fingerprint[:12]})",
            "load that backbone, or fit a selector for this one",
        )

    def _precision(self, backbone: Backbone) -> torch.dtype | None:
        """The precision in which a classifier has this fingerprint, if there is one."""
        candidates = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
        weights = backbone.state_dict()
        return next((p for p in candidates if self.fingerprint == _cast(weights, p)), None)


def _same_answer(a: float, b: float) -> bool:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= _PROBE_TOLERANCE * max(1.0, abs(a))


def _cast(weights: dict[str, Tensor], precision: torch.dtype) -> str:
    """Fingerprint of the same weights in another precision."""

    class Cast(nn.Module):
        def state_dict(self, *_: Any, **__: Any) -> Any:
            return {k: v.to(precision) if v.is_floating_point() else v for k, v in weights.items()}

    return fingerprint(Cast())


def _plain(precision: torch.dtype) -> str:
    return str(precision).removeprefix("torch.")
