"""A selector: a head, and the one classifier whose tokens it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from pydantic import ConfigDict
from torch import Tensor

from foci.backbones.base import Backbone, GateSite, class_index
from foci.backbones.freezing import frozen, placed
from foci.selectors.frozen import Identity
from foci.selectors.head import SelectorHead
from foci.selectors.recipes import SelectorRecipe, Target


class Selector:
    """Ranks the tiles of a bag for one frozen classifier.

    Args:
        head: Trained on the tokens of ``backbone``.
        backbone: The classifier it belongs to.
        identity: What :meth:`check` recognises that classifier by.
    """

    def __init__(self, head: SelectorHead, backbone: Backbone, identity: Identity) -> None:
        self.head, self.backbone, self.identity = head, backbone, identity

    @property
    def class_conditional(self) -> bool:
        """Whether a score is of a tile and a class, and not of a tile alone."""
        return self.head.outputs > 1

    def check(self, backbone: Backbone) -> None:
        """Refuse another classifier than the one that the head was trained on."""
        self.identity.check(backbone)

    @torch.no_grad()
    def __call__(self, tokens: Tensor) -> Tensor:
        """Scores ``[N, outputs]`` of one embedded bag: one column, or one per class."""
        scores: Tensor = self.head(tokens)
        return scores

    @torch.no_grad()
    def scores(self, tokens: Tensor, target: int | None = None) -> Tensor:
        """Scores ``[N]`` of one embedded bag; higher is revealed earlier.

        Args:
            tokens: ``[N, d]`` of the selector's own classifier.
            target: The class in question; a class-conditional selector is read at the full-bag
                prediction where it is not given.
        """
        if target is not None:
            class_index(target, self.backbone.n_classes)
        if not self.class_conditional:
            target = 0
        elif target is None:
            target = self.predicted(tokens)
        return self(tokens)[:, target]

    def rank(self, features: Tensor, target: int | None = None) -> Tensor:
        """Scores ``[N]`` of one bag of features ``[N, D]``; see :meth:`scores`."""
        with frozen(self.backbone):
            tokens = self.backbone.embed(placed(features, self.backbone))
        return self.scores(tokens, target)

    def predicted(self, tokens: Tensor) -> int:
        """The classifier's own decision on the full bag."""
        with frozen(self.backbone):
            return int(self.backbone.aggregate(tokens.unsqueeze(0))[0].argmax())


@dataclass(frozen=True)
class FitEpoch:
    """What one epoch came to.

    Attributes:
        epoch: Counted from 1.
        epochs: How many there are.
        rate: Learning rate of its last step.
        loss: Mean training loss.
        terms: Means of the losses before their weights; ``full`` is the full-bag cross-entropy,
            which only watches that the classifier stays what it is.
        val_loss: The same objective on the validation slides.
        val_terms: Its terms.
        score: What chose the epoch, higher is better: the caller's criterion, or ``-val_loss``.
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


@dataclass(frozen=True)
class FittedSelector:
    """Result of a fit, in memory or on disk.

    Attributes:
        best: The selector of the best validation epoch.
        last: The selector of the last epoch.
        recipe: How it was fitted.
        seed: Of its initialisation, order and noise.
        target: Which class the kept tiles were to support.
        site: Where the gate acted.
        history: One entry per epoch.
        facts: More that was kept with it: slides, versions, and ``notes`` where there are any.
    """

    best: Selector
    last: Selector
    recipe: SelectorRecipe
    seed: int
    target: Target
    site: GateSite
    history: tuple[FitEpoch, ...]
    facts: dict[str, Any]

    @property
    def best_epoch(self) -> int:
        """The epoch of ``best``, counted from 1."""
        return max(entry.epoch for entry in self.history if entry.best)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before using it, in plain sentences."""
        return tuple(self.facts.get("notes", ()))

    def __call__(self, tokens: Tensor) -> Tensor:
        """All scores of the best epoch; see :meth:`Selector.__call__`."""
        return self.best(tokens)

    def scores(self, tokens: Tensor, target: int | None = None) -> Tensor:
        """Scores of the best epoch; see :meth:`Selector.scores`."""
        return self.best.scores(tokens, target)

    def rank(self, features: Tensor, target: int | None = None) -> Tensor:
        """Scores of the best epoch; see :meth:`Selector.rank`."""
        return self.best.rank(features, target)


Criterion = Callable[[Selector], float]
"""Judges a selector after every epoch; the highest value wins.

A killed fit is resumed with the same criterion only: by its attribute ``name`` where it has one,
else by its code and what it closes over, see :func:`foci.selectors.fitting.run_key.content`.
"""
