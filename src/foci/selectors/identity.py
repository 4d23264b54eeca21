"""Which backbone a selector belongs to: a hash of its weights and its answer to a fixed bag."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from pydantic import ConfigDict
from torch import Tensor, nn

from foci.backbones.base import Backbone
from foci.backbones.freezing import eval_mode, fingerprint, home
from foci.errors import FociError
from foci.selectors.frozen import full_logits

_PROBE_TILES = 8
_PROBE_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Identity:
    """What identifies a backbone.

    A function without parameters has nothing to hash, so its logits for a fixed bag are kept too.

    Attributes:
        architecture: Name of the architecture.
        fingerprint: Hash of parameters and buffers.
        probe: Logits for a fixed random bag; NaN where the backbone gives none.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    architecture: str
    fingerprint: str
    probe: tuple[float, ...]

    @classmethod
    def of(cls, backbone: Backbone) -> Identity:
        """The identity of a backbone in eval mode."""
        rng = np.random.default_rng(0)
        bag = torch.from_numpy(rng.standard_normal((_PROBE_TILES, backbone.d_in), np.float32))
        with eval_mode(backbone):
            logits = full_logits(backbone, [bag])[0]
        return cls(backbone.architecture, fingerprint(backbone), tuple(logits.double().tolist()))

    def matches(self, other: Identity) -> bool:
        """Same weights, and the same logits up to differences between machines."""
        near = len(self.probe) == len(other.probe) and all(
            map(_same_answer, self.probe, other.probe)
        )
        return self.fingerprint == other.fingerprint and near

    def check(self, backbone: Backbone) -> None:
        """Refuse any other backbone, and the same one in another precision."""
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
        """The precision in which the backbone has this fingerprint, if there is one."""
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
