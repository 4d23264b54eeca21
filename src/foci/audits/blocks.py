"""Rank and reveal the audited slides block by block, except what an earlier run has written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from foci.audits.jobs import RankingJob
from foci.audits.parts import PartialResults
from foci.audits.prepare import DriftCheck
from foci.audits.reveal import RevealedSlide, SlideReveal
from foci.audits.stored import AuditedSlide
from foci.audits.workers import Workers
from foci.bags import Bag, Slide
from foci.bags.store import BagStore
from foci.errors import FociError
from foci.progress import track

_LOG = logging.getLogger(__name__)


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
        steady: What a worker process asks its own copy of the model after every block; None where
            nothing is asked.
    """

    store: BagStore
    reveal: SlideReveal
    jobs: tuple[RankingJob, ...]
    parts: PartialResults
    steady: DriftCheck | None = None

    def missing(self, slides: Sequence[Slide]) -> list[Block]:
        """Blocks of which anything is still to be computed."""
        size = self.reveal.settings.block
        blocks = (
            self._block(number, slides[number * size : (number + 1) * size])
            for number in range(n_blocks(slides, size))
        )
        return [block for block in blocks if block.columns]

    def _block(self, number: int, slides: Sequence[Slide]) -> Block:
        written = self.parts.slides(number)
        jobs = self.jobs if written is None else self.parts.missing(number, self.jobs)
        columns = tuple(job.column for job in jobs)
        if written is None:
            return Block(number, tuple(slides), columns, None)
        kept = {slide.slide_id for slide in written if slide.skipped is None}
        wanted = tuple(slide for slide in slides if slide.slide_id in kept)
        return Block(number, wanted, columns, written)

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
                slide.slide_id, "has other features than when the audit began", "give --force"
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

    A slide that cannot be read, or that a ranking refuses, is skipped under every ranking.

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
            if work.steady is not None and step == len(total) // 2:
                work.steady.check("halfway through the run")
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
