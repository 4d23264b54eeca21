"""Rank and reveal the audited slides block by block, except what an earlier run has written.

The bag of a slide is read and embedded once for all rankings. A slide that cannot be read, or that
a ranking refuses, is skipped under every ranking.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from foci.audits.folder import AuditedSlide, RankedTiles
from foci.audits.jobs import (
    DELETED_ORDERS,
    DENSE_UP_TO,
    AdaptiveCurves,
    Points,
    RankingJob,
    columns_of,
    decisive_grid,
    deletion_counts,
    doubtful_steps,
    far_counts,
    first_decisive,
    reveal_counts,
    tail_counts,
)
from foci.audits.measure import followed
from foci.audits.numbers import Agreements
from foci.audits.parts import Assembly, PartialResults, RevealedSlide, remove_parts
from foci.audits.prepare import DriftCheck, Prepared, SplitSlides
from foci.audits.records import PairAgreement
from foci.audits.settings import EVIDENCE, PAPER, SHARES, AuditSettings
from foci.backbones import Backbone
from foci.backbones.freezing import device_and_dtype, eval_mode, pinned
from foci.bags import Bag, Slide
from foci.bags.store import BagStore
from foci.errors import ChangedError, FociError
from foci.processes import preload, warm_context
from foci.progress import track
from foci.rankings import minimal_set
from foci.reveal import Curve, Direction, EmbeddedBag, Revealer, Stored, choose_engine

_LOG = logging.getLogger(__name__)

RELU_STEPS = 1
"""Of the search for the bound of a ReLU head: more would cost half an inference each."""

COUNTS_AT_ONCE = 8192
"""Counts beyond the largest reveal count that are computed together; bounds the memory."""


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

    The model is asked again halfway and at the end, see :class:`DriftCheck`.

    Raises:
        ChangedError: If model, feature files or answers change meanwhile; no block is kept then.
    """
    settings, cohort, audited = prepared.settings, prepared.cohort, slides.audited.slides
    agreements = Agreements(columns_of(jobs))
    one = SlideReveal(prepared.backbone, settings, cohort.classes)
    work = BlockReveal(cohort.store, one, jobs, PartialResults(folder), drift)
    blocks = n_blocks(audited, settings.block)
    try:
        with Assembly(folder, blocks, agreements.add) as assembly:
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
    """Rank and reveal slides with one frozen classifier; ``classes`` name its outputs."""

    def __init__(
        self, backbone: Backbone, settings: AuditSettings, classes: Sequence[str] = ()
    ) -> None:
        self.backbone, self.settings, self.classes = backbone, settings, tuple(classes)
        self.revealer = Revealer(backbone, recheck=settings.kappas)
        self.closed_form = choose_engine(backbone) == "closed-form"
        self.adaptive = not settings.dense and not self.closed_form
        self.has_tails = not self.closed_form or settings.profile == PAPER

    def staged(self, bag: Bag) -> Bag:
        """The bag where a GPU can copy it while it computes; on a CPU as it is."""
        device = device_and_dtype(self.backbone)[0]
        if device.type == "cpu":
            return bag
        return replace(bag, features=pinned(bag.x, device).numpy())

    def __call__(self, slide: Slide, bag: Bag, jobs: Iterable[RankingJob]) -> RevealedSlide:
        """Compute all curves of a slide; class-aware rankings use the predicted class.

        Or the one that is followed on every slide, where one was asked for.

        Raises:
            FociError: If a ranking refuses the slide, or the classifier's output is not finite.
        """
        label = self.classes.index(slide.label) if slide.label in self.classes else None
        curves: dict[str, tuple[Curve, ...]] = {}
        scores: dict[str, NDArray[np.float64]] = {}
        with eval_mode(self.backbone):
            embedded = self.revealer.open(bag)
            full = self._finite(embedded.full().numpy(), bag.slide_id)
            embedded = embedded.with_target(int(full.argmax()))
            asked = self.settings.asked(self.classes) if not self.settings.tau else None
            followed_class = embedded if asked is None else embedded.with_target(asked)
            adaptive = None
            if self.adaptive:
                adaptive = AdaptiveCurves(followed_class, self.settings, full, label)
            for job in jobs:
                curves[job.column], own = self._job(job, followed_class, full, label, adaptive)
                if job.stored:
                    scores[job.column] = own
            tiles = RankedTiles.of(bag.slide_id, bag.file_rows, bag.coords, scores, bag.sources)
            known = self._deciding(tiles, curves, embedded.target)
            limit = RELU_STEPS if self.backbone.capabilities.structure == "relu head" else None
            least = minimal_set(embedded, self.settings.kappa, known, steps=limit)
        record = replace(
            _audited_slide(slide, bag),
            k_star=least.k,
            k_star_kind=least.kind,
            k_star_theorem=least.theorem or None,
        )
        return RevealedSlide(record, tiles, curves)

    def _deciding(
        self, tiles: RankedTiles, curves: Mapping[str, Sequence[Curve]], target: int
    ) -> list[int] | None:
        """The first tiles of ``evidence`` that are seen to decide; None if none are."""
        if self.backbone.capabilities.structure == "none" or EVIDENCE not in curves:
            return None
        inserted, deleted = curves[EVIDENCE]
        counts, alone, without = np.intersect1d(inserted.ks, deleted.ks, return_indices=True)
        suffices = followed(inserted.probs[alone], target).sure(self.settings.kappa)
        flips = ~followed(deleted.probs[without], target).kept
        found = counts[suffices & flips & (counts > 0)]
        return tiles.order(EVIDENCE)[: found[0]].tolist() if len(found) else None

    def _job(
        self,
        job: RankingJob,
        bag: EmbeddedBag,
        full: NDArray[np.float64],
        label: int | None,
        adaptive: AdaptiveCurves | None,
    ) -> tuple[tuple[Curve, ...], NDArray[np.float64]]:
        """Insertion curves of every seed of a job, then deletion curves; scores of the first."""
        if job.null_maps is not None:
            curve = job.null_maps.curve(bag, full)
            self._finite(curve.probs, bag.slide_id)
            return (curve,), np.empty(0)
        ranked = job.rank(bag)
        orders = [torch.from_numpy(ranking.order) for _, ranking in ranked]
        n_deleted = DELETED_ORDERS if job.orders and not self.settings.dense else len(orders)
        searched = 0
        if adaptive is None:
            inserted, deleted = self._dense(orders, orders[:n_deleted], bag, full, label)
            searched = int(self.settings.last_deletion(len(bag))) if self.closed_form else 0
        else:
            both = [
                adaptive(order, control=bool(job.orders), deleted=place < n_deleted)
                for place, order in enumerate(orders)
            ]
            inserted, deleted = [one[0] for one in both], [one[1] for one in both[:n_deleted]]
        directions: list[tuple[Stored, list[Points]]] = [("insert", inserted), ("delete", deleted)]
        if self.has_tails:
            kept = self._tails(bag, orders[:n_deleted], inserted, "insert")
            left = self._tails(bag, orders[:n_deleted], deleted, "delete")
            directions += [("insert-tail", kept), ("delete-tail", left)]
        curves = tuple(
            Curve(
                bag.slide_id, job.ranking, seed, direction, len(bag), ks,
                self._finite(probs, bag.slide_id), full, ranking.tied if job.stored else 0.0,
                searched,
            )
            for direction, points in directions
            for (seed, ranking), (ks, probs) in zip(ranked, points, strict=False)
        )  # fmt: skip
        return curves, ranked[0][1].scores

    def _tails(
        self, bag: EmbeddedBag, orders: list[Tensor], curves: list[Points], way: Direction
    ) -> list[Points]:
        """A few counts beyond those of every curve, to the last tile of the slide."""
        found = []
        for order, (ks, _) in zip(orders, curves, strict=False):
            beyond = tail_counts(int(ks.max(initial=0)), len(bag), way)
            probs = np.empty((0, self.backbone.n_classes))
            if len(beyond):
                probs = bag.curve(order, torch.from_numpy(beyond), way).numpy()
            found.append((beyond, probs))
        return found

    def _dense(
        self,
        inserted: list[Tensor],
        deleted: list[Tensor],
        bag: EmbeddedBag,
        full: NDArray[np.float64],
        label: int | None,
    ) -> tuple[list[Points], list[Points]]:
        """Counts and probabilities of every order, revealed and deleted at every count."""
        up = reveal_counts(self.settings, len(bag))
        down = deletion_counts(self.settings, len(bag), dense=True)
        first, last = self.settings.k_max, int(self.settings.last_deletion(len(bag)))
        beyond = {k for k in down.tolist() if k > first}
        if self.closed_form and last > first:
            both = list(self._to_the_end(deleted, bag, full, label, beyond))
            others = bag.curves(inserted[len(deleted) :], torch.from_numpy(up))
            alone = [*(own[0] for own in both), *((up, probs.numpy()) for probs in others)]
            return alone, [own[1] for own in both]
        if last > first:
            every = range(1, last + 1) if len(bag) <= DENSE_UP_TO else None
            grid = every or decisive_grid(self.settings, len(bag))
            beyond |= {k for k in grid if k > first}
            down = np.array(sorted({*down.tolist()} | beyond), dtype=np.int64)
        far = np.array(sorted(beyond), dtype=np.int64) if last > first else down[:0]
        kept = bag.curves(inserted, torch.from_numpy(up))
        alone = [(up, probs.numpy()) for probs in kept]
        if len(far):
            more = bag.curves(deleted, torch.from_numpy(far))
            for place, probs in enumerate(more):
                alone[place] = np.append(up, far), np.concatenate([alone[place][1], probs.numpy()])
        left = [torch.empty(0, self.backbone.n_classes, dtype=torch.float64)] * len(deleted)
        if len(down):
            left = bag.curves(deleted, torch.from_numpy(down), "delete")
        return alone, [(down, probs.numpy()) for probs in left]

    def _to_the_end(
        self,
        orders: list[Tensor],
        bag: EmbeddedBag,
        full: NDArray[np.float64],
        label: int | None,
        reported: set[int],
    ) -> Iterator[tuple[Points, Points]]:
        """Both curves of every order, in closed form, from every count that leaves a tile.

        Every count up to ``k_max`` is kept; beyond it a grid, those reported, and the first to
        decide. All are tried in the classifier's own precision, and in float64 where rounding could
        move the first that decides.
        """
        first, last = self.settings.k_max, int(self.settings.last_deletion(len(bag)))
        ways: tuple[Direction, ...] = ("insert", "delete")
        blocks = torch.split(torch.arange(1, last + 1), COUNTS_AT_ONCE)
        parts = [[bag.curves(orders, ks, way, rechecked=first) for ks in blocks] for way in ways]
        grid = {*range(1, first + 1), *far_counts(first, last)} | reported
        targets = {int(full.argmax())} | ({label} if label is not None else set())
        for place, order in enumerate(orders):
            alone, without = (torch.cat([own[place] for own in part]).numpy() for part in parts)
            far_alone, far_without = alone[first:], without[first:]
            counts = set(grid)
            for target in targets:
                needed = [*self.settings.kappas, *(s * float(full[target]) for s in SHARES)]
                if bag.margin:
                    again = doubtful_steps(far_alone, far_without, target, needed, bag.margin)
                    if len(again):
                        exact = torch.from_numpy(first + 1 + again)
                        far_alone[again], far_without[again] = (
                            bag.exact_curve(order, exact, way).numpy() for way in ways
                        )
                steps = first_decisive(far_alone, far_without, target, needed)
                counts |= {first + 1 + step for step in steps}
            ks = np.array(sorted(counts), dtype=np.int64)
            yield (ks, alone[ks - 1]), (ks, without[ks - 1])

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
    time, event = slide.outcome if len(slide.outcome) == 2 else (None, None)
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
        n_repeated=bag.n_repeated,
        fingerprint=bag.fingerprint(),
        feature_norm=bag.feature_norm,
        feature_mean=bag.feature_mean,
        misplaced=bag.provenance.misplaced,
        time=time,
        event=event,
        value=slide.outcome[0] if len(slide.outcome) == 1 else None,
    )


# Blocks


@dataclass(frozen=True)
class Block:
    """Consecutive slides that are computed and written together.

    Attributes:
        slides: Slides to read.
        written: The block's slides, where an earlier run has written them and no curves yet.
    """

    number: int
    slides: tuple[Slide, ...]
    written: tuple[AuditedSlide, ...] | None


def n_blocks(slides: Sequence[Slide], size: int) -> int:
    """Number of blocks of ``size`` slides."""
    return -(-len(slides) // size)


@dataclass(frozen=True)
class BlockReveal:
    """Computes and writes single blocks; what a worker process is given.

    The curves of a slide depend on nothing but the slide, so that it does not matter which process
    computes which block. A worker process asks its own copy of the model again (``drift``) after
    every block.
    """

    store: BagStore
    reveal: SlideReveal
    jobs: tuple[RankingJob, ...]
    parts: PartialResults
    drift: DriftCheck | None = None

    def missing(self, slides: Sequence[Slide]) -> list[Block]:
        """Blocks that are still to be computed, or no longer as an earlier run wrote them."""
        size, blocks = self.reveal.settings.block, []
        for number in range(n_blocks(slides, size)):
            wanted = slides[number * size : (number + 1) * size]
            written = self.parts.kept(number, [slide.slide_id for slide in wanted])
            if written is not None:
                if self.parts.intact(number, written):
                    continue
                kept = {slide.slide_id for slide in written if slide.skipped is None}
                wanted = [slide for slide in wanted if slide.slide_id in kept]
            self.parts.reopen(number)
            blocks.append(Block(number, tuple(wanted), written))
        return blocks

    def __call__(self, block: Block) -> Iterator[Slide]:
        """Compute a block slide by slide and write it at the end; yields every slide that is done.

        The next bag is read while the curves of one are computed.
        """
        records: list[AuditedSlide] = []
        revealed: list[RevealedSlide] = []
        for slide, bag in _read_ahead(block.slides, self._read):
            try:
                result = self.reveal(slide, bag.result(), self.jobs)
            except FociError as error:
                if block.written is not None:
                    raise
                _LOG.info("skipped %s: %s", slide.slide_id, error)
                records.append(
                    AuditedSlide(slide.slide_id, slide.case_id, slide.label, skipped=str(error))
                )
            else:
                if block.written is not None and result.slide not in block.written:
                    what = "has other features than when the audit started"
                    raise FociError(slide.slide_id, what, "give --force")
                records.append(result.slide)
                revealed.append(result)
            yield slide
        self.parts.write(block.number, block.written or records, revealed)

    def _read(self, slide: Slide) -> Bag:
        return self.reveal.staged(self.store.bag(slide))


def reveal_blocks(
    slides: Sequence[Slide],
    work: BlockReveal,
    *,
    workers: int = 1,
    threads: int | None = None,
    spare: Callable[[], bool] = lambda: False,
) -> None:
    """Compute and write all missing results; every bag is read once for all ranking jobs.

    While this process waits for others it calls ``spare``, which returns False if there was nothing
    to do. Threads of torch stay as they are where their number is None.
    """
    blocks = work.missing(slides)
    total = range(sum(len(block.slides) for block in blocks))
    if workers > 1:
        done = in_processes(work, blocks, min(workers, len(blocks)), threads or 1, spare)
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


# Worker processes, which start at once: forked off a process that has loaded torch beforehand


BLOCKS_PER_WORKER = 2
"""A process has to import torch first; with fewer blocks for each it would not pay."""


def default_workers(n_blocks: int, device: torch.device) -> int:
    """One process per core, but no more than one for every two blocks; a GPU gets one process."""
    if device.type != "cpu":
        return 1
    return max(1, min(available_cores(), n_blocks // BLOCKS_PER_WORKER))


def threads_of(workers: int) -> int:
    """Threads of torch in each process: one where there are several, else as many as it has."""
    return 1 if workers > 1 else torch.get_num_threads()


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_processes(
    work: BlockReveal,
    blocks: Sequence[Block],
    number: int,
    threads: int,
    spare: Callable[[], bool],
) -> Iterator[Slide]:
    """Compute all blocks in other processes; yields every slide that is done, in any order.

    A block goes to whichever process is free. It writes its files itself; here come only messages.
    If the parent ends, a process ends at its next message.
    """
    try:
        pickled = pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        what = f"cannot be sent to another process ({type(error).__name__}: {error})"
        raise FociError("workers", what, "give --workers 1") from error
    preload()
    context = warm_context()
    processes: list[BaseProcess] = []
    ends: list[Connection] = []
    try:
        for _ in range(number):
            here, there = context.Pipe()
            process = context.Process(
                target=_work, args=(pickled, blocks, there, threads), daemon=True
            )
            try:
                process.start()
            except (EOFError, ConnectionError):
                raise _ended(starting=True) from None
            there.close()
            processes.append(process)
            ends.append(here)
        yield from _served(
            dict(zip(ends, processes, strict=True)), deque(range(len(blocks))), spare
        )
    finally:
        for started in processes:
            started.terminate()
        for started in processes:
            started.join()


def _served(
    ends: Mapping[Connection, BaseProcess], left: deque[int], spare: Callable[[], bool]
) -> Iterator[Slide]:
    """Hand blocks to every process, until none is left and every one is idle.

    While blocks last, each process has the next one queued, so that none waits for this one.
    What is sent is the place of a block: a long message to a busy process would make us wait.
    """
    heard, held = set[Connection](), dict.fromkeys(ends, 1)  # a process begins as if with a block
    while held:
        ready = wait(held, timeout=0)
        while not ready:
            ready = wait(held, timeout=0 if spare() else None)
        for end in [one for one in ready if isinstance(one, Connection)]:
            try:
                kind, content = end.recv()
            except (EOFError, ConnectionError):
                ends[end].join(1)
                killed = (ends[end].exitcode or 0) < 0
                raise _ended(starting=end not in heard and not killed) from None
            heard.add(end)
            if kind == "slide":
                yield content
            elif kind == "said":
                _LOG.info(content)
            elif kind == "error":
                raise content
            else:
                held[end] -= 1
                while left and held[end] < (2 if len(left) > len(ends) else 1):
                    end.send(left.popleft())
                    held[end] += 1
                if not held[end]:
                    del held[end]


def _ended(*, starting: bool) -> FociError:
    """What a process that is gone probably died of."""
    if starting:  # it reads the main script again, which then starts another audit
        what = "exited during start-up"
        fix = "in a script, put your calls under if __name__ == '__main__':, or give workers=1"
    else:
        what = "exited unexpectedly: was it killed, or out of memory?"
        fix = "give the same command again, with fewer --workers"
    return FociError("a worker process", what, fix)


class _ToParent(logging.Handler):
    """Sends the messages of a process to its parent, which logs them."""

    def __init__(self, end: Connection) -> None:
        super().__init__(logging.INFO)
        self._end = end

    def emit(self, record: logging.LogRecord) -> None:
        if not record.exc_info:
            self._end.send(("said", record.getMessage()))


def _work(work: bytes, blocks: Sequence[Block], end: Connection, threads: int) -> None:
    """Main function of a process: compute blocks until the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops us
    torch.set_num_threads(threads)
    # Our own bytes, as multiprocessing would make them; but it would move weights to shared memory.
    reveal: BlockReveal = pickle.loads(work)  # noqa: S301
    gc.freeze()  # nothing that was loaded will ever be garbage
    logging.getLogger("foci").addHandler(_ToParent(end))
    try:
        end.send(("free", None))
        while True:
            block = blocks[end.recv()]
            try:
                for slide in reveal(block):
                    end.send(("slide", slide))
                if reveal.drift is not None:  # the parent's copy of the model computes nothing
                    reveal.drift.check("in a worker process")
                end.send(("free", None))
            except ConnectionError:
                raise
            except (FociError, OSError) as error:
                end.send(("error", error))
            except Exception:
                end.send(("error", RuntimeError(traceback.format_exc())))
    except (EOFError, ConnectionError):
        return
