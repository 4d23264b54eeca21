"""Maps that know nothing: a control that every believable map has to beat.

Random deletion leaves a representative remainder, so the decision survives it. Any order that is
coherent in feature space removes one kind of tissue first, and beats random orders without knowing
anything of the model. So the tiles of every slide are also sorted along random directions in
feature space, the same ones for all slides, and deleted in that order; the norm of the feature,
both ways, stands beside as a reference.

Maps are compared by the probability that the prediction loses at three counts. For pooling
classifiers all maps together cost less than one inference. Any other classifier has fewer maps, on
a seeded sample of the slides of which it is sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.audits.settings import AuditSettings, null_counts
from foci.bags import Slide
from foci.bags.store import BagStore
from foci.errors import FociError
from foci.rankings import NULL_MAPS
from foci.rankings.controls import null_directions
from foci.reveal import Curve, EmbeddedBag, Revealer

SAMPLE = 64
"""Slides of which the classifier is sure that are sampled where every count costs a pass."""

SPREAD_SLIDES, SPREAD_TILES = 8, 128
"""Slides, and tiles of each, that the spread of the features is taken from."""

FEW_MAPS = 19
"""Maps where every count costs a forward pass: 63 passes per sampled slide."""


@dataclass(frozen=True, eq=False)
class NullMaps:
    """The content-free maps of an audit.

    Attributes:
        directions: ``[M, D]`` in the units of the features.
        sample: Slides that they are computed on; None for all.
    """

    directions: Tensor
    sample: frozenset[str] | None

    def __contains__(self, slide_id: str) -> bool:
        return self.sample is None or slide_id in self.sample

    def curve(self, bag: EmbeddedBag, full: NDArray[np.float64]) -> Curve:
        """Deletion of one slide under every map, then under the references."""
        counts = np.unique(null_counts(len(bag)))
        counts = counts[counts > 0]
        sampled = bag.slide_id in self
        probs = np.empty((0, len(full)))
        if len(counts) and sampled:
            first = self._first(bag.features, int(counts[-1]))
            found = bag.without_first(first, counts.tolist())
            probs = found.flatten(0, 1).numpy()
        ks = counts if sampled else counts[:0]
        return Curve(bag.slide_id, NULL_MAPS, None, "delete", len(bag), ks, probs, full)

    def _first(self, features: Tensor, k: int) -> Tensor:
        """Indices ``[M + 2, k]`` of the first tiles; in float32, nothing hangs on single places."""
        own = features.float()
        along = self.directions.to(own) @ own.T
        length = torch.linalg.vector_norm(own, dim=-1)
        scores = torch.cat([along, length[None], -length[None]])
        return torch.topk(scores, k, dim=1).indices.cpu()


def draw_null_maps(
    settings: AuditSettings, revealer: Revealer, slides: Sequence[Slide], store: BagStore
) -> NullMaps | None:
    """Draw the maps of an audit; None where none are wanted or no slide can be read.

    Slides are visited in a seeded order until there is enough for the spread of the features and,
    where the classifier has no closed form, for the sample of slides of which it is sure.
    """
    if not settings.null_maps:
        return None
    every = revealer.engine == "closed-form"
    seen: list[NDArray[np.float64]] = []
    sure: list[str] = []
    for place in np.random.default_rng(0).permutation(len(slides)):
        if len(seen) >= SPREAD_SLIDES and (every or len(sure) >= SAMPLE):
            break
        try:
            bag = store.bag(slides[place])
            if not every and float(revealer.open(bag).full().max()) >= settings.kappa:
                sure.append(bag.slide_id)
        except FociError:  # said where the slide is audited
            continue
        if len(seen) < SPREAD_SLIDES:
            step = -(-len(bag) // SPREAD_TILES)
            seen.append(np.asarray(bag.features[::step], dtype=np.float64))
    if not seen:
        return None
    tiles = np.concatenate(seen)
    spread = tiles.std(axis=0)
    spread[spread <= 1e-6 * np.abs(tiles).max(axis=0)] = 0.0  # constant, but for rounding
    n_maps = settings.null_maps if every else min(settings.null_maps, FEW_MAPS)
    sample = None if every else frozenset(sure[:SAMPLE])
    return NullMaps(null_directions(n_maps, spread), sample)
