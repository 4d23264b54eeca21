"""The fastest exact engine that a backbone allows, and the settings it runs with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.base import declared
from foci.backbones.freezing import frozen, home
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.models.transmil import TransMIL
from foci.errors import FociError
from foci.reveal.curves import KAPPA
from foci.reveal.engines.batches import Batches
from foci.reveal.engines.closed_form import PooledReveal, PrefixReveal
from foci.reveal.engines.generic import GenericReveal
from foci.reveal.engines.packed import PackedReveal
from foci.reveal.engines.pooled_tiles import PooledTiles
from foci.reveal.engines.reference import ReferenceReveal
from foci.reveal.float64_recheck import Float64Recheck
from foci.reveal.prefixes import Prefixes

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
            with torch.autocast(home(self.backbone)[0].type, enabled=False):
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
