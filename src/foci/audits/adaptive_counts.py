"""Curves of a classifier without a closed form: counts are spent where they change an answer.

* Insertion runs through every count until the thresholds that matter are crossed: MSK, Reach and
  everything that rests on them are exact. Beyond, a grid gives the areas and the shape.
* Deletion, where every count costs almost an inference, takes the counts that are reported, and
  those that decisive K needs, on a grid with refinement: an upper bound. On a small bag it takes
  every count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.audits.jobs import (
    EVERY_COUNT_UP_TO,
    counts_beyond,
    decisive_grid,
    deletion_counts,
    reveal_counts,
)
from foci.audits.settings import SHARE, SHARES, AuditSettings
from foci.metrics.curve import sufficient_steps
from foci.reveal import EmbeddedBag, curve_until, decisive_curves

Points = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Counts ``[J]`` and probabilities ``[J, C]``."""


@dataclass(frozen=True)
class AdaptiveCurves:
    """Both curves of one slide under any order, at as few counts as its numbers need.

    Attributes:
        bag: The slide, with the predicted class as its target.
        settings: Of the audit.
        full: ``[C]`` probabilities of the full bag.
        label: Index of the true class; None if it is unknown.
    """

    bag: EmbeddedBag
    settings: AuditSettings
    full: NDArray[np.float64]
    label: int | None

    @property
    def thresholds(self) -> list[float]:
        """Confidences in the predicted class at which answers rest on this slide.

        The audit's own, those of its sensitivity at which the slide is decided, and shares of the
        slide's own confidence where relative answers are asked for.
        """
        sure = float(self.full[self.bag.target])
        shares = SHARES if self.settings.relative else ()
        return [
            self.settings.kappa,
            *(kappa for kappa in self.settings.kappas if kappa <= sure),
            *(share * sure for share in shares),
        ]

    def __call__(self, order: Tensor, *, control: bool, deleted: bool) -> tuple[Points, Points]:
        """Insertion and deletion curve of one order.

        Args:
            order: Tile indices, most important first.
            control: Whether it is a random order, of which there are many: a coarser grid.
            deleted: Whether its tiles are deleted too.
        """
        n_tiles = len(self.bag)
        kept = self._inserted(order, control)
        left: dict[int, Tensor] = {}
        if deleted and 1 < n_tiles <= EVERY_COUNT_UP_TO:
            kept, left = self._deleted(order, kept)
        elif deleted and n_tiles > 1:
            reported = deletion_counts(self.settings, n_tiles, dense=False)
            kept, left = decisive_curves(
                self.bag,
                order,
                kept,
                [self._enough(kappa) for kappa in dict.fromkeys(self.thresholds)],
                self._lost,
                grid=decisive_grid(self.settings, n_tiles),
                reported=reported.tolist(),
            )
        return self._points(kept), self._points(left)

    def _inserted(self, order: Tensor, control: bool) -> dict[int, Tensor]:
        """Probabilities of the first k tiles by k; by the profile of the paper, at every k."""
        n_tiles = len(self.bag)
        if self.settings.reveals_every_count:
            counts = reveal_counts(self.settings, n_tiles)
            probs = self.bag.curve(order, torch.from_numpy(counts))
            return dict(zip(counts.tolist(), probs, strict=True))
        beyond = counts_beyond(self.settings, n_tiles, control=control)
        last = min(self.settings.k_max, n_tiles)
        ks, probs = curve_until(self.bag, order, self._settled, last, beyond)
        return dict(zip(ks.tolist(), probs, strict=True))

    def _deleted(
        self, order: Tensor, kept: dict[int, Tensor]
    ) -> tuple[dict[int, Tensor], dict[int, Tensor]]:
        """Both curves by count: every deletion, and insertion also where the decision is lost."""
        counts = deletion_counts(self.settings, len(self.bag), dense=True)
        probs = self.bag.curve(order, torch.from_numpy(counts), "delete")
        left = dict(zip(counts.tolist(), probs, strict=True))
        last = min(self.settings.k_max, len(self.bag))
        asked = [k for k, rest in left.items() if k <= last and k not in kept and self._lost(rest)]
        more = zip(asked, self.bag.curve(order, asked), strict=True) if asked else ()
        return kept | dict(more), left

    def _lost(self, rest: Tensor) -> bool:
        return int(rest.argmax()) != self.bag.target

    def _settled(self, probs: Tensor) -> bool:
        """Whether every first crossing that a number rests on lies within these counts."""
        target, sure = self.bag.target, self.full[self.bag.target]
        shares = SHARES if sure < self.settings.kappa else (SHARE,)
        needed = (*self.thresholds, *(share * sure for share in shares))
        wanted = [(target, kappa) for kappa in needed]
        if self.label is not None:
            wanted.append((self.label, self.settings.kappa))
        values = probs.numpy()
        return all(sufficient_steps(values, aim, kappa).any() for aim, kappa in wanted)

    def _enough(self, kappa: float) -> Callable[[Tensor], bool]:
        def enough(probs: Tensor) -> bool:
            return bool(sufficient_steps(probs[None].numpy(), self.bag.target, kappa).any())

        return enough

    def _points(self, by_count: dict[int, Tensor]) -> Points:
        ks = sorted(by_count)
        nothing = torch.empty(0, len(self.full), dtype=torch.float64)
        probs = torch.stack([by_count[k] for k in ks]) if ks else nothing
        return np.array(ks, dtype=np.int64), probs.numpy()
