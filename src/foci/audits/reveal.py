"""Rank and reveal one slide under every ranking; its bag is embedded once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.audits.adaptive_counts import AdaptiveCurves, Points
from foci.audits.jobs import DELETED_ORDERS, RankingJob, deletion_counts, reveal_counts
from foci.audits.settings import AuditSettings
from foci.audits.stored import AuditedSlide
from foci.backbones import Backbone
from foci.backbones.freezing import device_and_dtype, eval_mode, pinned
from foci.bags import Bag, Slide
from foci.errors import FociError
from foci.reveal import Curve, Direction, EmbeddedBag, Revealer, choose_engine


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
        classes: Class names in the classifier's order: a label view follows the label's curve.
    """

    def __init__(
        self, backbone: Backbone, settings: AuditSettings, classes: Sequence[str] = ()
    ) -> None:
        self.backbone, self.settings, self.classes = backbone, settings, tuple(classes)
        self.revealer = Revealer(backbone, recheck=settings.kappas)
        self.adaptive = not settings.dense and choose_engine(backbone) != "closed-form"

    def staged(self, bag: Bag) -> Bag:
        """The bag where a GPU can copy it while it computes; on a CPU as it is."""
        device = device_and_dtype(self.backbone)[0]
        if device.type == "cpu":
            return bag
        return replace(bag, features=pinned(bag.x, device).numpy())

    def __call__(self, slide: Slide, bag: Bag, jobs: Iterable[RankingJob]) -> RevealedSlide:
        """Compute all curves of a slide; class-aware rankings use the predicted class.

        Raises:
            FociError: If a ranking refuses the slide, or the classifier's output is not finite.
        """
        with eval_mode(self.backbone):
            return self._revealed(slide, bag, jobs)

    def _revealed(self, slide: Slide, bag: Bag, jobs: Iterable[RankingJob]) -> RevealedSlide:
        embedded = self.revealer.open(bag)
        full = self._finite(embedded.full().numpy(), bag.slide_id)
        embedded = embedded.with_target(int(full.argmax()))
        label = self.classes.index(slide.label) if slide.label in self.classes else None
        adaptive = AdaptiveCurves(embedded, self.settings, full, label) if self.adaptive else None
        results = {job.column: self._job(job, embedded, full, adaptive) for job in jobs}
        return RevealedSlide(_audited_slide(slide, bag), bag.tiles, bag.coords, results)

    def _job(
        self,
        job: RankingJob,
        bag: EmbeddedBag,
        full: NDArray[np.float64],
        adaptive: AdaptiveCurves | None,
    ) -> JobCurves:
        """Insertion curves of every seed of a job, then the deletion curves that it has."""
        ranked = job.rank(bag)
        orders = [torch.from_numpy(ranking.order) for _, ranking in ranked]
        n_deleted = DELETED_ORDERS if job.orders and not self.settings.dense else len(orders)
        if adaptive is None:
            inserted, deleted = self._dense(orders, orders[:n_deleted], bag)
        else:
            both = [
                adaptive(order, control=bool(job.orders), deleted=place < n_deleted)
                for place, order in enumerate(orders)
            ]
            inserted, deleted = [one[0] for one in both], [one[1] for one in both[:n_deleted]]
        directions: tuple[tuple[Direction, list[Points]], ...] = (
            ("insert", inserted), ("delete", deleted),
        )  # fmt: skip
        curves = tuple(
            Curve(
                bag.slide_id, job.ranking, seed, direction, len(bag), ks,
                self._finite(probs, bag.slide_id), full,
            )
            for direction, points in directions
            for (seed, _), (ks, probs) in zip(ranked, points, strict=False)
        )  # fmt: skip
        return JobCurves(curves, ranked[0][1].scores if job.stored else None)

    def _dense(
        self, inserted: list[Tensor], deleted: list[Tensor], bag: EmbeddedBag
    ) -> tuple[list[Points], list[Points]]:
        """Counts and probabilities of every order, revealed and deleted at every count."""
        up, down = (
            reveal_counts(self.settings, len(bag)),
            deletion_counts(self.settings, len(bag), dense=True),
        )
        nothing = torch.empty(0, self.backbone.n_classes, dtype=torch.float64)
        kept = bag.curves(inserted, torch.from_numpy(up))
        left = (
            bag.curves(deleted, torch.from_numpy(down), "delete")
            if len(down)
            else [nothing] * len(deleted)
        )
        return [(up, probs.numpy()) for probs in kept], [(down, probs.numpy()) for probs in left]

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
