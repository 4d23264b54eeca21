"""Rank and reveal one slide under every ranking; its bag is embedded once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.audits.compute.counts import deletion_counts, reveal_counts
from foci.audits.compute.jobs import RankingJob
from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.bags import Bag, Slide
from foci.errors import FociError
from foci.reveal import GRID, Curve, Direction, EmbeddedBag, Revealer, choose_engine
from foci.reveal.refinement import Condition, refined_curves

_Points = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Counts ``[J]`` and probabilities ``[J, C]``."""


@dataclass(frozen=True)
class JobCurves:
    """Curves and scores of one ranking job on one slide.

    Attributes:
        curves: Insertion and deletion curve of every seed.
        scores: ``[N]`` tile scores, or None if they are not stored.
    """

    curves: tuple[Curve, ...]
    scores: NDArray[np.float64] | None


@dataclass(frozen=True)
class RevealedSlide:
    """Tiles of one slide, with its curves and scores under every ranking.

    Attributes:
        slide: The slide.
        tiles: ``[N]`` index of every candidate tile in its file.
        coords: ``[N, 2]`` top-left corners, or None.
        jobs: Curves and scores by column.
    """

    slide: AuditedSlide
    tiles: NDArray[np.int64]
    coords: NDArray[np.int64] | None
    jobs: Mapping[str, JobCurves]


class SlideReveal:
    """Rank and reveal slides with one frozen classifier.

    Args:
        backbone: The classifier.
        settings: Which counts, and the confidences near which probabilities are rechecked.
    """

    def __init__(self, backbone: Backbone, settings: AuditSettings) -> None:
        self.backbone, self.settings = backbone, settings
        self.revealer = Revealer(backbone, recheck=settings.kappas)
        self.closed_form = choose_engine(backbone) == "closed-form"

    def __call__(self, slide: Slide, bag: Bag, jobs: Iterable[RankingJob]) -> RevealedSlide:
        """Compute all curves of a slide; class-aware rankings use the predicted class.

        Raises:
            FociError: If a ranking refuses the slide, or the classifier's output is not finite.
        """
        embedded = self.revealer.open(bag)
        full = self._finite(embedded.full().numpy(), bag.slide_id)
        embedded = embedded.with_target(int(full.argmax()))
        results = {job.column: self._job(job, embedded, full) for job in jobs}
        return RevealedSlide(_audited_slide(slide, bag), bag.tiles, bag.coords, results)

    def _job(self, job: RankingJob, bag: EmbeddedBag, full: NDArray[np.float64]) -> JobCurves:
        """Insertion curves of every seed of a job, then their deletion curves."""
        ranked = job.rank(bag)
        both = [self._both(job, torch.from_numpy(ranking.order), bag) for _, ranking in ranked]
        directions: tuple[Direction, ...] = ("insert", "delete")
        curves = tuple(
            Curve(
                bag.slide_id, job.ranking, seed, direction, len(bag), ks,
                self._finite(probs, bag.slide_id), full,
            )
            for side, direction in enumerate(directions)
            for (seed, _), (ks, probs) in zip(ranked, [one[side] for one in both], strict=True)
        )  # fmt: skip
        return JobCurves(curves, ranked[0][1].scores if job.stored else None)

    def _both(self, job: RankingJob, order: Tensor, bag: EmbeddedBag) -> tuple[_Points, _Points]:
        """Counts and probabilities of one order, revealed and deleted."""
        inserted = reveal_counts(self.settings, len(bag))
        deleted = deletion_counts(
            self.settings, len(bag), closed_form=self.closed_form, control=bool(job.orders)
        )
        refined = {}
        if not (job.orders or self.closed_form or self.settings.dense) and len(deleted):
            grid = [k for k in GRID if k <= self.settings.k_max]
            found = refined_curves(bag, order, [self._decisive(bag.target)], grid=grid)
            refined = dict(zip(found.ks.tolist(), found.delete.numpy(), strict=True))
        rest = [int(k) for k in deleted if k not in refined]
        kept, left = bag.both_curves(order, torch.from_numpy(inserted), rest)
        known = {**refined, **dict(zip(rest, left.numpy(), strict=True))}
        ks = np.array(sorted(known), dtype=np.int64)
        gone = np.stack([known[k] for k in ks.tolist()]) if len(ks) else left.numpy()
        return (inserted, kept.numpy()), (ks, gone)

    def _decisive(self, target: int) -> Condition:
        """Whether the first tiles suffice and the decision flips without them."""

        def holds(inserted: Tensor, deleted: Tensor) -> bool:
            enough = int(inserted.argmax()) == target and inserted[target] >= self.settings.kappa
            return bool(enough) and int(deleted.argmax()) != target

        return holds

    @staticmethod
    def _finite(probs: NDArray[np.float64], slide_id: str) -> NDArray[np.float64]:
        if not np.isfinite(probs).all():
            raise FociError(
                slide_id, "the model answers NaN", "check its weights and the slide's features"
            )
        return probs


def _audited_slide(slide: Slide, bag: Bag) -> AuditedSlide:
    """Entry of a slide in ``slides.parquet``, with the hash of its features."""
    features = np.ascontiguousarray(bag.features, dtype=np.float32).reshape(-1)
    return AuditedSlide(
        slide_id=slide.slide_id,
        case_id=slide.case_id,
        label=slide.label,
        n_tiles=len(bag),
        n_total=bag.n_total,
        unit=bag.unit,
        patch_size=bag.patch_size,
        features_sha256=hashlib.sha256(features.data).hexdigest(),
        encoder=bag.provenance.encoder,
        n_zero=bag.n_zero,
        fingerprint=bag.fingerprint(),
    )
