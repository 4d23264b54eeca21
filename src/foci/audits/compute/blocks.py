"""Rank and reveal the audited slides block by block, except what an earlier run has written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from foci.audits.compute.jobs import RankingJob
from foci.audits.compute.partial import PartialResults
from foci.audits.compute.slide import RevealedSlide, SlideReveal
from foci.audits.folder.slides import AuditedSlide
from foci.bags import Slide
from foci.bags.store import BagStore
from foci.errors import FociError
from foci.progress import Progress


@dataclass
class _Block:
    """Consecutive slides that are computed and written together.

    Attributes:
        number: Index of the block.
        slides: Slides to read.
        jobs: Ranking jobs still to be computed.
        written: Slides that an earlier run has written; None for a new block.
        records: Slides of this run, audited or skipped.
        revealed: Results of those that were not skipped.
    """

    number: int
    slides: tuple[Slide, ...]
    jobs: tuple[RankingJob, ...]
    written: tuple[AuditedSlide, ...] | None
    records: list[AuditedSlide] = field(default_factory=list)
    revealed: list[RevealedSlide] = field(default_factory=list)


def n_blocks(slides: Sequence[Slide], size: int) -> int:
    """Number of blocks of ``size`` slides."""
    return -(-len(slides) // size)


def reveal_blocks(
    slides: Sequence[Slide],
    store: BagStore,
    reveal: SlideReveal,
    jobs: Sequence[RankingJob],
    parts: PartialResults,
    *,
    progress: Progress,
    say: Callable[[str], None],
) -> None:
    """Compute and write all missing results; every bag is read once for all ranking jobs.

    A slide that cannot be read, or that a ranking refuses, is skipped under every ranking.
    """
    size = reveal.settings.block
    blocks = [
        _block(number, slides[number * size : (number + 1) * size], jobs, parts)
        for number in range(n_blocks(slides, size))
    ]
    work = [(block, slide) for block in blocks if block.jobs for slide in block.slides]
    for step in progress(range(len(work)), "revealing slides"):
        block, slide = work[step]
        _add(block, slide, store, reveal, say)
        if len(block.records) == len(block.slides):
            _write(block, parts)
            block.records, block.revealed = [], []
    for block in blocks:  # an earlier run has skipped all slides of the block
        if block.jobs and not block.slides:
            _write(block, parts)


def _block(
    number: int, slides: Sequence[Slide], jobs: Sequence[RankingJob], parts: PartialResults
) -> _Block:
    written = parts.slides(number)
    if written is None:
        return _Block(number, tuple(slides), tuple(jobs), None)
    kept = {slide.slide_id for slide in written if slide.skipped is None}
    wanted = tuple(slide for slide in slides if slide.slide_id in kept)
    return _Block(number, wanted, parts.missing(number, jobs), written)


def _add(
    block: _Block, slide: Slide, store: BagStore, reveal: SlideReveal, say: Callable[[str], None]
) -> None:
    try:
        result = reveal(slide, store.bag(slide), block.jobs)
    except FociError as error:
        if block.written is not None:
            raise
        reason = str(error)
        say(f"skipped {slide.slide_id}: {reason}")
        skipped = AuditedSlide(slide.slide_id, slide.case_id, slide.label, skipped=reason)
        block.records.append(skipped)
        return
    if block.written is not None and result.slide not in block.written:
        raise FociError(
            slide.slide_id, "has other features than when the audit began", "give --force"
        )
    block.records.append(result.slide)
    block.revealed.append(result)


def _write(block: _Block, parts: PartialResults) -> None:
    if block.written is None:
        parts.write_slides(block.number, block.records, block.revealed)
    for job in block.jobs:
        parts.write_job(block.number, job, block.revealed)
