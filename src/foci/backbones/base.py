"""What every slide classifier offers, and what it declares about itself."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from foci.backbones.batch import Batch
from foci.backbones.objectives.base import CrossEntropy, Objective
from foci.errors import FociError

GateSite = Literal["feature", "attention"]


@dataclass(frozen=True)
class Capabilities:
    """Declared, never guessed; :func:`foci.testing.check_backbone` checks every claim.

    Attributes:
        order_free: Permuting the tiles leaves the logits unchanged.
        closed_form: ``prefixes`` gives every reveal count from one pass over the tiles.
        score: ``"native"`` if the classifier scores its tiles itself, ``"proxy"`` if ``scores``
            is a documented stand-in (TransMIL), ``"none"`` if there is neither.
        gate_sites: Where a keep/drop gate may act: on the tile's feature before ``embed``
            (``"feature"``), on its unnormalised attention weight (``"attention"``).
        homogeneous: ``embed(g * x) == g * embed(x)`` for every gate g in [0, 1], so that gating a
            token *is* gating its feature (a bias-free projection followed by ReLU).
    """

    order_free: bool
    closed_form: bool
    score: Literal["native", "proxy", "none"]
    gate_sites: tuple[GateSite, ...]
    homogeneous: bool = False


class Backbone(nn.Module, ABC):
    """A bag classifier split into tile-wise and set-wise work.

    ``embed`` sees every tile alone and runs once per bag; ``aggregate`` sees sets of tokens and
    runs once per subset. A mask is True where a tile is present: what is masked out is *removed*.

    Attributes:
        architecture: Name under which the class is registered and stored.
        d_in: Width of a tile feature D.
        d_token: Width of a token d.
        n_classes: Number of classes C.

    Args:
        d_in: Feature width.
        n_classes: Number of classes.
        d_token: Token width.
        **widths: The subclass's own constructor arguments, kept for ``config``.
    """

    architecture: ClassVar[str]

    def __init__(self, d_in: int, n_classes: int, *, d_token: int, **widths: Any) -> None:
        super().__init__()
        self.d_in, self.n_classes, self.d_token = d_in, n_classes, d_token
        self._widths = widths

    @property
    def config(self) -> dict[str, Any]:
        """The constructor's arguments: ``type(self)(**config)`` has the same shapes."""
        return {"d_in": self.d_in, "n_classes": self.n_classes, **self._widths}

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this classifier can do."""

    @abstractmethod
    def embed(self, x: Tensor) -> Tensor:
        """Features ``[..., N, D]`` to tokens ``[..., N, d]``, tile by tile."""

    @abstractmethod
    def aggregate(
        self, tokens: Tensor, mask: Tensor | None = None, gate: Tensor | None = None
    ) -> Tensor:
        """Tokens ``[B, N, d]`` to logits ``[B, C]``.

        Args:
            tokens: Embedded tiles in bag order, padded to a common N.
            mask: ``[B, N]`` bool, True where a tile is present; None means all are.
            gate: ``[B, N]`` in [0, 1], multiplies the unnormalised attention weight, so that a
                hard 0/1 gate is removal; None means all ones.
        """

    @abstractmethod
    def scores(self, tokens: Tensor) -> Tensor:
        """The classifier's own ranking of one bag: tokens ``[N, d]`` to ``[N]``."""

    def prefixes(self, tokens: Tensor, ks: Tensor | None = None) -> Tensor:
        """Logits ``[len(ks), C]`` of the first k tokens for every k in ``ks`` (default 1..N).

        Only where ``capabilities.closed_form``; ``tokens`` are ``[N, d]`` in reveal order.
        """
        raise NotImplementedError(f"{type(self).__name__} has no closed form over prefixes")

    def make_objective(self, **settings: Any) -> Objective:
        """The classifier's own training objective, with whatever state it needs while training."""
        return CrossEntropy(self, **settings)

    def objective(self, batch: Batch) -> Tensor:
        """Training loss of one batch under the classifier's own objective."""
        cached: Objective | None = self.__dict__.get("_cached_objective")
        if cached is None:
            cached = self.make_objective()
            self.__dict__["_cached_objective"] = cached  # not a submodule: not part of the model
        loss: Tensor = cached(batch)
        return loss

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Features ``[B, N, D]`` (or one bag ``[N, D]``) to logits ``[B, C]`` (or ``[C]``)."""
        if x.dim() == 2:
            return self.forward(x.unsqueeze(0), None if mask is None else mask.unsqueeze(0))[0]
        return self.aggregate(self.embed(x), mask)

    @torch.no_grad()
    def predict(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Class probabilities, in float64 so that thresholds do not depend on the device."""
        logits: Tensor = self(x, mask)
        return torch.softmax(logits.double(), dim=-1)


def class_index(target: int, n_classes: int) -> int:
    """A class as a plain number; NumPy's are welcome.

    >>> class_index(1, n_classes=2)
    1
    """
    if not hasattr(target, "__index__") or not 0 <= operator.index(target) < n_classes:
        fix = f"give a class index from 0 to {n_classes - 1}, or None for the predicted class"
        raise FociError("target", f"is {target!r}", fix)
    return operator.index(target)
