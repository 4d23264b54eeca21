"""Rank and reveal one slide under every ranking; its bag is embedded once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from foci.audits.compute.jobs import RankingJob
from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import AuditSettings
from foci.backbones import Backbone
from foci.bags import Bag, Slide
from foci.errors import FociError
from foci.rankings import Ranking
from foci.reveal import Curve, Direction, EmbeddedBag, Revealer


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
        settings: Reveal counts, and the confidence near which probabilities are rechecked.
    """

    def __init__(self, backbone: Backbone, settings: AuditSettings) -> None:
        self.backbone, self.settings = backbone, settings
        self.revealer = Revealer(backbone, recheck=(settings.kappa,))

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
        directions: tuple[Direction, ...] = ("insert", "delete")
        ranked = job.rank(bag)
        curves = tuple(
            self._curve(job, seed, ranking, direction, bag, full)
            for direction in directions
            for seed, ranking in ranked
        )
        return JobCurves(curves, ranked[0][1].scores if job.stored else None)

    def _curve(
        self,
        job: RankingJob,
        seed: int | None,
        ranking: Ranking,
        direction: Direction,
        bag: EmbeddedBag,
        full: NDArray[np.float64],
    ) -> Curve:
        n = len(bag)
        ks = (
            reveal_counts(self.settings, n)
            if direction == "insert"
            else _below(self.settings.deletion, n)
        )
        probs = np.empty((0, len(full)))  # the only tile of a bag cannot be deleted
        if len(ks):
            order = torch.from_numpy(ranking.order)
            probs = bag.curve(order, torch.from_numpy(ks), direction).numpy()
        probs = self._finite(probs, ranking.slide_id)
        return Curve(ranking.slide_id, job.ranking, seed, direction, n, ks, probs, full)

    @staticmethod
    def _finite(probs: NDArray[np.float64], slide_id: str) -> NDArray[np.float64]:
        if not np.isfinite(probs).all():
            raise FociError(
                slide_id, "the model answers NaN", "check its weights and the slide's features"
            )
        return probs


def reveal_counts(settings: AuditSettings, n_tiles: int) -> NDArray[np.int64]:
    """Reveal counts of a slide: all up to ``k_max``, or the given grid, cut off at N tiles.

    >>> reveal_counts(AuditSettings(k_max=4), 3).tolist()
    [1, 2, 3]
    >>> reveal_counts(AuditSettings(counts=(1, 2, 8, 32)), 5).tolist()
    [1, 2, 5]
    """
    wanted = range(1, settings.k_max + 1) if settings.counts is None else settings.counts
    return np.unique(np.minimum(np.asarray(wanted, dtype=np.int64), n_tiles))


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
    )


def _below(counts: tuple[int, ...], n_tiles: int) -> NDArray[np.int64]:
    return np.array([k for k in counts if k < n_tiles], dtype=np.int64)
