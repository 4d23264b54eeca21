"""Shuffled, padded training batches of slides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import torch

from foci.backbones.batch import Batch, pad
from foci.bags import Bag, Cohort, Slide
from foci.bags.grid import spacing


def epoch_order(
    slides: Sequence[Slide], *, balanced: bool, rng: np.random.Generator
) -> list[Slide]:
    """Shuffle the slides; ``balanced`` draws with replacement, each class equally likely."""
    if not balanced:
        return [slides[i] for i in rng.permutation(len(slides))]
    counts = Counter(slide.label for slide in slides)
    weights = np.array([1.0 / counts[slide.label] for slide in slides])
    chosen = rng.choice(len(slides), size=len(slides), p=weights / weights.sum())
    return [slides[i] for i in chosen]


def batch_of(cohort: Cohort, slides: Sequence[Slide]) -> Batch:
    """Read and pad the bags of some slides."""
    bags = [cohort.store.bag(slide) for slide in slides]
    labels = [cohort.target(slide.slide_id) for slide in slides]
    features = [bag.x for bag in bags]
    if any(bag.coords is None for bag in bags):
        return pad(features, labels)
    coords = [torch.from_numpy(bag.coords) for bag in bags]
    return pad(features, labels, coords, [stride(bag) for bag in bags])


def batches(cohort: Cohort, slides: Sequence[Slide], size: int) -> Iterator[Batch]:
    """Consecutive batches of at most ``size`` bags."""
    for start in range(0, len(slides), size):
        yield batch_of(cohort, slides[start : start + size])


def stride(bag: Bag) -> int:
    """Grid spacing of a bag's tiles; the tile size where no two tiles are neighbours."""
    step = None if bag.coords is None else spacing(bag.coords)
    return round(step) if step is not None else bag.patch_size or 1
