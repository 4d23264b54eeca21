"""One bag before a frozen classifier: embedded once, it serves every ranking."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from foci.backbones import Backbone
from foci.backbones.base import class_index
from foci.backbones.freezing import frozen, placed
from foci.bags import Bag
from foci.errors import FociError
from foci.reveal.candidates import PooledCandidates, pools
from foci.reveal.subsets import BUDGET, Candidates, ForwardedCandidates
from foci.reveal.whole_numbers import at_least_one

T = TypeVar("T")


class EmbeddedBag:
    """What a ranking may look at; everything that costs is computed when first asked for.

    Attributes:
        backbone: The frozen classifier.
        slide_id: The slide; ``"bag"`` for a plain tensor.
        bag: The bag, or None for a plain tensor.
        features: ``[N, D]`` where the classifier's weights are, and in their dtype.

    Args:
        backbone: The frozen classifier.
        bag: A bag, or its features ``[N, D]``.
        target: Class that the ranking is about; None for the class the full bag predicts.

    >>> from foci import backbones
    >>> model = backbones.create("abmil", d_in=8, n_classes=2)
    >>> bag = EmbeddedBag(model, torch.randn(5, 8), target=1)
    >>> bag, bag.tokens.shape
    (EmbeddedBag('bag', 5 tiles, target 1), torch.Size([5, 256]))
    """

    def __init__(self, backbone: Backbone, bag: Bag | Tensor, target: int | None = None) -> None:
        self.backbone = backbone
        self.bag = bag if isinstance(bag, Bag) else None
        self.slide_id = bag.slide_id if isinstance(bag, Bag) else "bag"
        features = bag.x if isinstance(bag, Bag) else bag.detach()
        if features.dim() != 2 or not len(features) or features.shape[1] != backbone.d_in:
            shape = " x ".join(map(str, features.shape))
            raise FociError(
                self.slide_id,
                f"has features of shape {shape}, not tiles x {backbone.d_in}",
                "give one bag of the features that the backbone was trained on",
            )
        self.features = placed(features, backbone)
        self._computed: dict[str, Any] = {}
        self._target = target if target is None else class_index(target, backbone.n_classes)

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        target = "the predicted class" if self._target is None else self._target
        return f"EmbeddedBag({self.slide_id!r}, {len(self)} tiles, target {target})"

    def aimed(self, target: int) -> EmbeddedBag:
        """The same bag for another target class; what either computes serves both."""
        other = copy.copy(self)
        other._target = class_index(target, self.backbone.n_classes)
        return other

    @property
    def tokens(self) -> Tensor:
        """``[N, d]``."""
        return self._once("tokens", lambda: self.backbone.embed(self.features))

    @property
    def logits(self) -> Tensor:
        """``[C]`` of the full bag."""
        return self._once("logits", lambda: self.candidates().full())

    @property
    def target(self) -> int:
        """Class that the ranking is about."""
        if self._target is None:
            self._target = int(self.logits.argmax())
        return self._target

    def probability(self, logits: Tensor) -> Tensor:
        """Logits ``[..., C]`` to the target's probability ``[...]``, in float64."""
        return torch.softmax(logits.double(), dim=-1)[..., self.target]

    def log_odds(self, logits: Tensor) -> Tensor:
        r"""Logits ``[..., C]`` to the target's log-odds ``[...]``, in float64.

        .. math:: \log\frac{p_t}{1 - p_t} = \ell_t - \log\sum_{c \ne t} e^{\ell_c}

        They sort sets as :math:`p_t` does, also where that rounds to 1.
        """
        logits = logits.double()
        rivals = torch.arange(logits.shape[-1], device=logits.device) != self.target
        return logits[..., self.target] - torch.logsumexp(logits[..., rivals], dim=-1)

    def candidates(self, budget: int = BUDGET) -> Candidates:
        """Sets with one tile more or fewer: in closed form where the classifier allows it."""
        budget, backbone = at_least_one(budget, "budget"), self.backbone
        if not pools(backbone):
            return ForwardedCandidates(backbone, self.tokens, budget)
        return self._once("pooled", lambda: PooledCandidates(backbone, self.tokens))

    def _once(self, name: str, compute: Callable[[], T]) -> T:
        if name not in self._computed:
            with frozen(self.backbone):
                self._computed[name] = compute()
        found: T = self._computed[name]
        return found
