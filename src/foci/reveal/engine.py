"""Curves of many bags under one frozen classifier, by the fastest exact way it allows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.base import declared
from foci.backbones.freezing import frozen, home, placed
from foci.backbones.models._pooled import PooledBackbone
from foci.backbones.models.transmil import TransMIL
from foci.errors import FociError
from foci.reveal.float64_recheck import Arbiter
from foci.reveal.generic import GenericReveal
from foci.reveal.packed import PackedReveal
from foci.reveal.pooled import PooledReveal, PrefixReveal
from foci.reveal.prefixes import (
    Direction,
    Nested,
    check_counts,
    check_order,
    default_counts,
    nest,
)
from foci.reveal.reference import ReferenceReveal

Engine = Literal["auto", "closed-form", "packed", "generic", "reference"]
Stop = Callable[[Tensor], bool]

KAPPA = 0.9
"""The paper's operating confidence."""


class Strategy(Protocol):
    """Logits of a nested family of subsets, some steps at a time."""

    def steps(self, nested: Nested) -> Iterator[tuple[slice, Tensor]]:
        """Consecutive steps with their logits ``[b, C]``."""


class Revealer:
    """Opens bags for one frozen classifier.

    Args:
        backbone: Used in eval mode and without gradients; never changed.
        engine: ``"auto"`` follows the declared capabilities; the others force one way.
        memory_mb: Ceiling for the subsets that are in flight beside the model and the bag. A
            closed form has none: it holds its sums, rows x width float64 numbers per tile.
        settle: Confidences at which a crossing must not depend on rounding: every probability
            close to one of them is computed again in float64. Empty for none.
        autocast: Half-precision type for the tile-wise and set-wise work, or None.
    """

    def __init__(
        self,
        backbone: Backbone,
        *,
        engine: Engine = "auto",
        memory_mb: float = 512.0,
        settle: Sequence[float] = (KAPPA,),
        autocast: torch.dtype | None = None,
    ) -> None:
        self.backbone = backbone
        self.engine = choose_engine(backbone, engine)
        self.memory_mb, self.autocast = memory_mb, autocast
        self.arbiter = Arbiter(backbone, tuple(settle), autocast)

    def open(self, features: Tensor, tokens: Tensor | None = None) -> OpenBag:
        """Embed a bag once; every curve of it starts from the tokens.

        Args:
            features: ``[N, D]`` of one bag.
            tokens: ``[N, d]``, where the bag is embedded already.
        """
        return OpenBag(self, features, tokens)

    @contextlib.contextmanager
    def precision(self) -> Iterator[None]:
        """Eval mode, without gradients, in half precision where asked for."""
        device, half = home(self.backbone)[0].type, self.autocast is not None
        with frozen(self.backbone), torch.autocast(device, dtype=self.autocast, enabled=half):
            yield


class OpenBag:
    """One embedded bag, ready for any ranking and both directions."""

    def __init__(self, revealer: Revealer, features: Tensor, tokens: Tensor | None = None) -> None:
        backbone, features = revealer.backbone, torch.as_tensor(features)
        if features.dim() != 2 or not len(features) or features.shape[1] != backbone.d_in:
            shape = " x ".join(map(str, features.shape))
            raise FociError(
                "features",
                f"have shape {shape}, not tiles x {backbone.d_in}",
                "give one bag as the backbone was trained on",
            )
        self.features = placed(features, backbone)
        self.revealer = revealer
        with revealer.precision():
            self.strategy = self._strategy(tokens)

    def __len__(self) -> int:
        return len(self.features)

    def _strategy(self, tokens: Tensor | None) -> Strategy:
        revealer, backbone = self.revealer, self.revealer.backbone
        if revealer.engine == "reference":
            return ReferenceReveal(backbone, self.features)
        if tokens is None:
            tokens = backbone.embed(self.features)
        if revealer.engine == "closed-form":
            if isinstance(backbone, PooledBackbone) and declared(backbone, "pooled-prefixes"):
                return PooledReveal(backbone, tokens)
            return PrefixReveal(backbone, tokens)
        budget = token_budget(backbone, tokens, revealer.memory_mb)
        if revealer.engine == "packed":
            return PackedReveal(backbone, tokens, budget)  # type: ignore[arg-type]
        return GenericReveal(backbone, tokens, budget)

    def curve(
        self,
        order: Tensor | Sequence[int],
        ks: Tensor | Sequence[int] | None = None,
        direction: Direction = "insert",
        stop: Stop | None = None,
    ) -> Tensor:
        """Class probabilities at every count, ``[len(ks), C]`` in float64 on the CPU.

        Args:
            order: Tile indices, most important first.
            ks: Increasing counts of tiles revealed (or deleted); default is every count up to 256.
            direction: ``"insert"`` reveals the first k tiles, ``"delete"`` removes them.
            stop: Asked with the probabilities so far after every block of counts; if it says True
                the rest is spared and a shorter curve comes back.
        """
        n = len(self)
        order = check_order(order, n).to(self.features.device)
        if ks is None:
            ks = default_counts(n, direction)
        counts = check_counts(ks, n, direction).to(self.features.device)
        nested = nest(order, counts, direction)
        blocks: list[Tensor] = []
        with self.revealer.precision():
            for chunk, logits in self.strategy.steps(nested):
                block = torch.softmax(logits.double(), dim=-1)
                block = self.revealer.arbiter(block, self.features, nested, chunk.start)
                blocks.append(block.cpu())
                if stop is not None and stop(torch.cat(blocks)):
                    break
        return torch.cat(blocks)

    def full(self) -> Tensor:
        """Probabilities ``[C]`` of the full bag."""
        return self.curve(torch.arange(len(self)), ks=[0], direction="delete")[0]


def choose_engine(backbone: Backbone, engine: Engine = "auto") -> Engine:
    """The way that ``"auto"`` takes for a backbone, or a check that the given one exists."""
    possible: list[Engine] = []
    if backbone.capabilities.closed_form:
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


def token_budget(backbone: Backbone, tokens: Tensor, memory_mb: float) -> int:
    """How many tokens may be in flight: by the ceiling, and on a CPU by what stays in its cache."""
    d = tokens.shape[1]
    widest = max(int(backbone.config.get("hidden") or d), d)
    per_token = (2 * widest + 8 * d) * tokens.element_size()
    fitting = max(1, int(memory_mb * 2**20 / per_token))
    return fitting if tokens.is_cuda else min(fitting, 768)
