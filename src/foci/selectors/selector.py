"""A selector: a head that scores the tokens of one frozen backbone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from pydantic import ConfigDict
from torch import Tensor

from foci.backbones.base import Backbone, GateSite, class_index
from foci.backbones.freezing import frozen, placed
from foci.selectors.evidence.columns import evidence_columns
from foci.selectors.evidence.head import EvidenceHead
from foci.selectors.fitting import Target
from foci.selectors.gated.base import Tiles
from foci.selectors.heads.token import SelectorHead
from foci.selectors.identity import Identity
from foci.selectors.recipes import SelectorRecipe

Head = SelectorHead | EvidenceHead


def scores_at(head: Head, tiles: Tiles, targets: Tensor) -> Tensor:
    """Scores ``[B, N]`` of prepared bags for their target classes ``[B]``."""
    tokens = tiles["tokens"]
    if isinstance(head, EvidenceHead):
        return head.at(tokens, targets, tiles["evidence"]).to(tokens.dtype)
    return head.at(tokens, targets)


class Selector:
    """Scores the tiles of a bag for one frozen backbone.

    Args:
        head: Trained on the tokens of ``backbone``.
        backbone: The backbone it belongs to.
        identity: By which :meth:`check` recognises that backbone.
    """

    def __init__(self, head: Head, backbone: Backbone, identity: Identity) -> None:
        self.head, self.backbone, self.identity = head, backbone, identity

    @property
    def class_conditional(self) -> bool:
        """Whether there is one score per tile and class, not one per tile."""
        return self.head.outputs > 1

    @property
    def reads_evidence(self) -> bool:
        """Whether the head reads the columns of evidence beside the tokens."""
        return isinstance(self.head, EvidenceHead)

    def check(self, backbone: Backbone) -> None:
        """Refuse any backbone but the one that the head was trained on."""
        self.identity.check(backbone)

    @torch.no_grad()
    def __call__(self, tokens: Tensor, evidence: Tensor | None = None) -> Tensor:
        """Scores ``[N, outputs]`` of one embedded bag: one column, or one per class.

        Args:
            tokens: ``[N, d]`` of the selector's own backbone.
            evidence: Columns of :func:`~foci.selectors.evidence.columns.evidence_columns`, where
                they are known; a head that starts as evidence needs them.
        """
        scores: Tensor
        if isinstance(self.head, EvidenceHead):
            if evidence is None:
                with frozen(self.backbone):
                    evidence = evidence_columns(self.backbone, tokens)
            scores = self.head(tokens, evidence)
        else:
            scores = self.head(tokens)
        return scores

    @torch.no_grad()
    def scores(
        self, tokens: Tensor, target: int | None = None, evidence: Tensor | None = None
    ) -> Tensor:
        """Scores ``[N]`` of one embedded bag; higher is revealed earlier.

        Args:
            tokens: ``[N, d]`` of the selector's own backbone.
            target: The class whose scores a class-conditional selector returns; None for the
                full-bag prediction.
            evidence: See :meth:`__call__`.
        """
        if target is not None:
            class_index(target, self.backbone.n_classes)
        if not self.class_conditional:
            target = 0
        elif target is None:
            target = self.predicted(tokens)
        return self(tokens, evidence)[:, target]

    def rank(self, features: Tensor, target: int | None = None) -> Tensor:
        """Scores ``[N]`` of one bag of features ``[N, D]``; see :meth:`scores`."""
        with frozen(self.backbone):
            tokens = self.backbone.embed(placed(features, self.backbone))
        return self.scores(tokens, target)

    def predicted(self, tokens: Tensor) -> int:
        """The class that the backbone predicts for the full bag."""
        with frozen(self.backbone):
            return int(self.backbone.aggregate(tokens.unsqueeze(0))[0].argmax())


@dataclass(frozen=True)
class FitEpoch:
    """Losses and score of one epoch.

    Attributes:
        epoch: Counted from 1.
        epochs: Epochs in total.
        rate: Learning rate of its last step.
        loss: Mean training loss.
        terms: Mean of each loss before its weight; ``full``, the full-bag cross-entropy, is only
            monitored.
        val_loss: The same objective on the validation slides.
        val_terms: Its terms.
        score: Value of the criterion, higher is better; ``-val_loss`` for the criterion ``"loss"``.
        best: Whether the score is the highest so far.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    epoch: int
    epochs: int
    rate: float
    loss: float
    terms: dict[str, float]
    val_loss: float
    val_terms: dict[str, float]
    score: float
    best: bool


@dataclass(frozen=True, repr=False)
class FittedSelector:
    """Result of :func:`foci.selectors.fit`: the best epoch, and how it was made.

    Attributes:
        best: The selector of the best validation epoch.
        recipe: How it was fitted.
        seed: Of its initialisation, order and noise.
        target: Which class the kept tiles should support.
        site: Where the gate acted.
        history: One entry per epoch.
        metadata: Further entries of ``selector.json``: classes, slides, versions, ``notes``.
    """

    best: Selector
    recipe: SelectorRecipe
    seed: int
    target: Target
    site: GateSite
    history: tuple[FitEpoch, ...]
    metadata: dict[str, Any]

    def __repr__(self) -> str:
        epochs = f"epoch {self.best_epoch} of {len(self.history)}"
        where = f"gate at the {self.site}, target {self.target}"
        return f"FittedSelector({self.recipe.name!r}, seed {self.seed}, {epochs}, {where})"

    @property
    def best_epoch(self) -> int:
        """The epoch of ``best``, counted from 1; 0 if none was better than the start."""
        return max((entry.epoch for entry in self.history if entry.best), default=0)

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats to read before using the selector."""
        return tuple(self.metadata.get("notes", ()))

    def __call__(self, tokens: Tensor, evidence: Tensor | None = None) -> Tensor:
        """All scores of the best epoch; see :meth:`Selector.__call__`."""
        return self.best(tokens, evidence)

    def scores(
        self, tokens: Tensor, target: int | None = None, evidence: Tensor | None = None
    ) -> Tensor:
        """Scores of the best epoch; see :meth:`Selector.scores`."""
        return self.best.scores(tokens, target, evidence)

    def rank(self, features: Tensor, target: int | None = None) -> Tensor:
        """Scores of the best epoch; see :meth:`Selector.rank`."""
        return self.best.rank(features, target)
