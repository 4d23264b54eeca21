"""Rank and reveal the audited slides block by block, except what an earlier run has written.

The bag of a slide is read and embedded once for all rankings. A slide that cannot be read, or that
a ranking refuses, is skipped under every ranking.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.audits.folder import AuditedSlide
from foci.audits.jobs import (
    DELETED_ORDERS,
    AdaptiveCurves,
    Points,
    RankingJob,
    columns_of,
    deletion_counts,
    reveal_counts,
)
from foci.audits.numbers import Agreements
from foci.audits.parts import Assembly, PartialResults, RevealedSlide, remove_parts
from foci.audits.prepare import DriftCheck, Prepared, SplitSlides
from foci.audits.records import PairAgreement
from foci.audits.settings import AuditSettings
from foci.audits.workers import Workers
from foci.backbones import Backbone
from foci.backbones.freezing import device_and_dtype, eval_mode, pinned
from foci.bags import Bag, Slide
from foci.bags.store import BagStore
from foci.errors import ChangedError, FociError
from foci.progress import track
from foci.reveal import Curve, Direction, EmbeddedBag, Revealer, choose_engine

_LOG = logging.getLogger(__name__)


def reveal(
    prepared: Prepared,
    slides: SplitSlides,
    jobs: tuple[RankingJob, ...],
    folder: Path,
    *,
    drift: DriftCheck | None,
    workers: int,
    threads: int | None,
) -> list[PairAgreement]:
    """Write slides, curves and tile scores into the audit folder, and compare the rankings.

    Args:
        prepared: The audit.
        slides: Which slides are audited.
        jobs: The ranking jobs, in order.
        folder: The audit folder.
        drift: Asks the model again, halfway and at the end; None where nothing is asked.
        workers: Processes that compute blocks side by side.
        threads: Of torch, in each process.

    Raises:
        ChangedError: If model, feature files or answers change meanwhile; no block is kept then.
    """
    settings, cohort, audited = prepared.settings, prepared.cohort, slides.audited.slides
    parts, agreements = PartialResults(folder), Agreements(columns_of(jobs))
    one = SlideReveal(prepared.backbone, settings, cohort.classes)
    work = BlockReveal(cohort.store, one, jobs, parts, drift)
    blocks = n_blocks(audited, settings.block)
    try:
        with Assembly(folder, parts, blocks, jobs, agreements.add) as assembly:
            reveal_blocks(
                audited, work, workers=workers, threads=threads, spare=assembly.merge_next
            )
            if drift is not None:
                drift.check("at the end of the run")
            prepared.features.check("the audit")
            prepared.sources.model_files.check("the audit")
            assembly.finish([slide.slide_id for slide in audited], slides.skipped)
    except ChangedError:
        remove_parts(folder)
        raise
    return agreements.over_slides()


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
        label = self.classes.index(slide.label) if slide.label in self.classes else None
        curves: dict[str, tuple[Curve, ...]] = {}
        scores: dict[str, NDArray[np.float64] | None] = {}
        with eval_mode(self.backbone):
            embedded = self.revealer.open(bag)
            full = self._finite(embedded.full().numpy(), bag.slide_id)
            embedded = embedded.with_target(int(full.argmax()))
            adaptive = None
            if self.adaptive:
                adaptive = AdaptiveCurves(embedded, self.settings, full, label)
            for job in jobs:
                curves[job.column], scores[job.column] = self._job(job, embedded, full, adaptive)
        own = _audited_slide(slide, bag)
        return RevealedSlide(own, bag.tiles, bag.coords, curves, scores)

    def _job(
        self,
        job: RankingJob,
        bag: EmbeddedBag,
        full: NDArray[np.float64],
        adaptive: AdaptiveCurves | None,
    ) -> tuple[tuple[Curve, ...], NDArray[np.float64] | None]:
        """Insertion curves of every seed of a job, then the deletion curves that it has."""
        if job.null_maps is not None:
            curve = job.null_maps.curve(bag, full)
            self._finite(curve.probs, bag.slide_id)
            return (curve,), None
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
                self._finite(probs, bag.slide_id), full, ranking.tied if job.stored else 0.0,
            )
            for direction, points in directions
            for (seed, ranking), (ks, probs) in zip(ranked, points, strict=False)
        )  # fmt: skip
        return curves, ranked[0][1].scores if job.stored else None

    def _dense(
        self, inserted: list[Tensor], deleted: list[Tensor], bag: EmbeddedBag
    ) -> tuple[list[Points], list[Points]]:
        """Counts and probabilities of every order, revealed and deleted at every count."""
        up = reveal_counts(self.settings, len(bag))
        down = deletion_counts(self.settings, len(bag), dense=True)
        kept = bag.curves(inserted, torch.from_numpy(up))
        left = [torch.empty(0, self.backbone.n_classes, dtype=torch.float64)] * len(deleted)
        if len(down):
            left = bag.curves(deleted, torch.from_numpy(down), "delete")
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


# Blocks


@dataclass(frozen=True)
class Block:
    """Consecutive slides that are computed and written together.

    Attributes:
        number: Index of the block.
        slides: Slides to read.
        columns: Names of the ranking jobs still to be computed; :attr:`BlockReveal.jobs` holds them
            once, with their selectors.
        written: Slides that an earlier run has written; None for a new block.
    """

    number: int
    slides: tuple[Slide, ...]
    columns: tuple[str, ...]
    written: tuple[AuditedSlide, ...] | None


def n_blocks(slides: Sequence[Slide], size: int) -> int:
    """Number of blocks of ``size`` slides."""
    return -(-len(slides) // size)


@dataclass(frozen=True)
class BlockReveal:
    """Computes and writes single blocks; what a worker process is given.

    The curves of a slide depend on nothing but the slide, so that it does not matter which process
    computes which block.

    Attributes:
        store: Reads the bags.
        reveal: Computes the curves of a slide.
        jobs: All ranking jobs of the audit.
        parts: Where the blocks are written.
        drift: What a worker process asks its own copy of the model after every block; None where
            nothing is asked.
    """

    store: BagStore
    reveal: SlideReveal
    jobs: tuple[RankingJob, ...]
    parts: PartialResults
    drift: DriftCheck | None = None

    def missing(self, slides: Sequence[Slide]) -> list[Block]:
        """Blocks of which anything is still to be computed."""
        size, blocks = self.reveal.settings.block, []
        for number in range(n_blocks(slides, size)):
            wanted = tuple(slides[number * size : (number + 1) * size])
            jobs, written = self.jobs, self.parts.slides(number)
            if written is not None:
                jobs = self.parts.missing(number, self.jobs)
                kept = {slide.slide_id for slide in written if slide.skipped is None}
                wanted = tuple(slide for slide in wanted if slide.slide_id in kept)
            if jobs:
                blocks.append(Block(number, wanted, tuple(job.column for job in jobs), written))
        return blocks

    def __call__(self, block: Block) -> Iterator[Slide]:
        """Compute a block slide by slide and write it at the end; yields every slide that is done.

        The next bag is read while the curves of one are computed.
        """
        jobs = tuple(job for job in self.jobs if job.column in block.columns)
        records: list[AuditedSlide] = []
        revealed: list[RevealedSlide] = []
        for slide, bag in _read_ahead(block.slides, self._read):
            result = self._one(block, jobs, slide, bag)
            if isinstance(result, RevealedSlide):
                revealed.append(result)
            records.append(result.slide if isinstance(result, RevealedSlide) else result)
            yield slide
        if block.written is None:
            self.parts.write_slides(block.number, records, revealed)
        with ThreadPoolExecutor(len(jobs)) as disk:  # every file waits for it
            for written in [
                disk.submit(self.parts.write_job, block.number, job, revealed) for job in jobs
            ]:
                written.result()

    def _read(self, slide: Slide) -> Bag:
        return self.reveal.staged(self.store.bag(slide))

    def _one(
        self, block: Block, jobs: Sequence[RankingJob], slide: Slide, bag: Future[Bag]
    ) -> RevealedSlide | AuditedSlide:
        try:
            result = self.reveal(slide, bag.result(), jobs)
        except FociError as error:
            if block.written is not None:
                raise
            reason = str(error)
            _LOG.info("skipped %s: %s", slide.slide_id, reason)
            return AuditedSlide(slide.slide_id, slide.case_id, slide.label, skipped=reason)
        if block.written is not None and result.slide not in block.written:
            raise FociError(
                slide.slide_id, "has other features than when the audit started", "give --force"
            )
        return result


def reveal_blocks(
    slides: Sequence[Slide],
    work: BlockReveal,
    *,
    workers: int = 1,
    threads: int | None = None,
    spare: Callable[[], bool] = lambda: False,
) -> None:
    """Compute and write all missing results; every bag is read once for all ranking jobs.

    Args:
        slides: The audited slides.
        work: Computes a block.
        workers: Processes that compute blocks side by side; 1 computes them here.
        threads: Of torch, in each process; None leaves them as they are.
        spare: What this process does while it waits for others; see :meth:`Workers.run`.
    """
    blocks = work.missing(slides)
    total = range(sum(len(block.slides) for block in blocks))
    if workers > 1:
        done = Workers(work, min(workers, len(blocks)), threads or 1).run(blocks, spare)
    else:
        done = (slide for block in blocks for slide in work(block))
    with _threads(threads):
        for step in track(total, "revealing slides"):
            if work.drift is not None and step == len(total) // 2:
                work.drift.check("halfway through the run")
            next(done)
        for _ in done:  # blocks of which an earlier run has skipped all slides
            pass


def _read_ahead(
    slides: Sequence[Slide], read: Callable[[Slide], Bag]
) -> Iterator[tuple[Slide, Future[Bag]]]:
    """Every slide with its bag; the next one is read in the meantime."""
    with ThreadPoolExecutor(max_workers=1) as reader:
        bags = [reader.submit(read, slide) for slide in slides[:1]]
        for place, slide in enumerate(slides):
            bag = bags.pop()
            if place + 1 < len(slides):
                bag.exception()  # one at a time: a store holds few bags
                bags.append(reader.submit(read, slides[place + 1]))
            yield slide, bag


@contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """So many threads of torch, restored on exit."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
