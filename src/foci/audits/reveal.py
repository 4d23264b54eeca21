"""Rank and reveal the audited slides shard by shard, except what an earlier run has written.

The bag of a slide is read and embedded once for all rankings. A slide that cannot be read, or that
a ranking refuses, is skipped under every ranking. Shards are tasks of the engines: they are
computed in this process, in others, on a Ray cluster or under SLURM, with the same bytes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch import Tensor

from foci.audits.folder import PARTS, AuditedSlide, CurveTable, RankedTiles
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
from foci.audits.measure import Shard, measure_shard
from foci.audits.numbers import pair_agreement
from foci.audits.prepare import DriftCheck
from foci.audits.run_folder import Receipt, RevealedSlide, Shards
from foci.audits.settings import EVIDENCE, PAPER, SHARES, AuditSettings
from foci.backbones import Backbone
from foci.backbones.freezing import device_and_dtype, eval_mode, pinned
from foci.bags import Bag, Slide
from foci.bags.store import BagStore
from foci.engines.base import Engine, Outcome, Task, run_tasks
from foci.engines.local import Processes, available_cores
from foci.engines.ray import RayCluster
from foci.errors import FociError
from foci.files.lock import check_locks
from foci.metrics.curve import followed
from foci.progress import track
from foci.rankings import Ranking, minimal_set
from foci.reveal import Curve, Direction, EmbeddedBag, Revealer, Stored, choose_engine

_LOG = logging.getLogger(__name__)

RELU_STEPS = 1
"""Of the search for the bound of a ReLU head: more would cost half an inference each."""

COUNTS_AT_ONCE = 8192
"""Counts beyond the largest reveal count that are computed together; bounds the memory."""


class SlideReveal:
    """Rank and reveal slides with one frozen classifier; ``classes`` name its outputs.

    ``every_label`` is the model of all labels, where the classifier is that of one of them.
    """

    def __init__(
        self,
        backbone: Backbone,
        settings: AuditSettings,
        classes: Sequence[str] = (),
        every_label: Backbone | None = None,
    ) -> None:
        self.backbone, self.settings, self.classes = backbone, settings, tuple(classes)
        self.every_label = every_label
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

    def __call__(self, slide: Slide, bag: Bag, jobs: Sequence[RankingJob]) -> RevealedSlide:
        """Compute all curves of a slide; class-aware rankings use the predicted class.

        Or the one that is followed on every slide, where one was asked for.

        Raises:
            FociError: If a ranking refuses the slide, or the classifier's output is not finite.
        """
        label = self.classes.index(slide.label) if slide.label in self.classes else None
        with eval_mode(self.backbone):
            embedded = self.revealer.open(bag)
            full = self._finite(embedded.full().numpy(), bag.slide_id)
            embedded = embedded.with_target(int(full.argmax()))
            asked = self.settings.followed(self.classes)
            followed_class = embedded if asked is None else embedded.with_target(asked)
            found: dict[str, list[Curve]] = {job.column: [] for job in jobs}
            ranked: dict[str, Ranking] = {}
            stored = [job for job in jobs if job.stored]
            compared = any(bag.slide_id in job.null_maps for job in jobs if job.null_maps)
            for group in filter(None, (stored, *([job] for job in jobs if not job.stored))):
                every = self._curves(group, followed_class, full, label, compared)
                for column, ranking, curve in every:
                    found[column].append(curve)
                    if ranking is not None:
                        ranked[column] = ranking
            curves = {column: tuple(own) for column, own in found.items()}
            scores = {job.column: ranked[job.column].scores for job in stored}
            tiles = RankedTiles.of(bag.slide_id, bag.file_rows, bag.coords, scores, bag.sources)
            known = self._deciding(ranked.get(EVIDENCE), curves, embedded.target)
            limit = RELU_STEPS if self.backbone.capabilities.structure == "relu head" else None
            least = minimal_set(embedded, self.settings.kappa, known, steps=limit)
        record = replace(
            _audited_slide(slide, bag),
            k_star=least.k,
            k_star_kind=least.kind,
            k_star_theorem=least.theorem or None,
            label_outputs=self._label_outputs(embedded),
        )
        return RevealedSlide(record, tiles, curves)

    def _label_outputs(self, bag: EmbeddedBag) -> tuple[float, ...] | None:
        if self.every_label is None:
            return None
        whole = EmbeddedBag(self.every_label, bag.inputs, tokens=bag.tokens)
        return tuple(whole.logits.double().tolist())

    def _deciding(
        self, ranking: Ranking | None, curves: Mapping[str, Sequence[Curve]], target: int
    ) -> list[int] | None:
        """The first tiles of ``evidence`` that are seen to decide; None if none are."""
        if self.backbone.capabilities.structure == "none" or ranking is None:
            return None
        inserted, deleted = curves[EVIDENCE][:2]  # tails may follow
        counts, alone, without = np.intersect1d(inserted.ks, deleted.ks, return_indices=True)
        suffices = followed(inserted.probs[alone], target).sure(self.settings.kappa)
        flips = followed(deleted.probs[without], target).lost()
        found = counts[suffices & flips & (counts > 0)]
        return ranking.order[: found[0]].tolist() if len(found) else None

    def _curves(
        self,
        jobs: Sequence[RankingJob],
        bag: EmbeddedBag,
        full: NDArray[np.float64],
        label: int | None,
        compared: bool,
    ) -> Iterator[tuple[str, Ranking | None, Curve]]:
        """Curves of jobs that are revealed together, with the column and the ranking of each.

        Of every job the insertion curves of all seeds come first, then the deletion curves.
        """
        null_maps = jobs[0].null_maps
        if null_maps is not None:
            curve = null_maps.curve(bag, full)
            self._finite(curve.probs, bag.slide_id)
            yield jobs[0].column, None, curve
            return
        ranked = [(job, *one) for job in jobs for one in job.rank(bag)]
        orders = [torch.from_numpy(ranking.order) for *_, ranking in ranked]
        tied = [ranking.tied if job.stored else 0.0 for job, _, ranking in ranked]
        some = jobs[0].orders and not self.settings.dense
        n_deleted = min(DELETED_ORDERS, len(orders)) if some else len(orders)
        searched = 0
        if self.adaptive:
            adaptive = AdaptiveCurves(bag, self.settings, full, label, compared)
            both = [
                adaptive(order, control=bool(jobs[0].orders), deleted=place < n_deleted)
                for place, order in enumerate(orders)
            ]
            inserted, deleted = [one[0] for one in both], [one[1] for one in both[:n_deleted]]
        else:
            inserted, deleted = self._dense(orders, orders[:n_deleted], bag, full, label)
            searched = int(self.settings.last_deletion(len(bag))) if self.closed_form else 0
        directions: list[tuple[Stored, list[Points]]] = [("insert", inserted), ("delete", deleted)]
        if self.has_tails:
            kept = self._tails(bag, orders[:n_deleted], inserted, "insert")
            left = self._tails(bag, orders[:n_deleted], deleted, "delete")
            directions += [("insert-tail", kept), ("delete-tail", left)]
        for direction, points in directions:
            for place, (ks, probs) in enumerate(points):
                job, seed, ranking = ranked[place]
                self._finite(probs, bag.slide_id)
                curve = Curve(
                    bag.slide_id, job.ranking, seed, direction, len(bag), ks, probs, full,
                    tied[place], searched,
                )  # fmt: skip
                yield job.column, ranking, curve

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
    return AuditedSlide(
        slide_id=slide.slide_id,
        case_id=slide.case_id,
        label=slide.label,
        n_tiles=len(bag),
        n_total=bag.n_total,
        unit=bag.unit,
        patch_size=bag.patch_size,
        features_xxh3=xxhash.xxh3_128_hexdigest(features.data),
        encoder=bag.provenance.encoder,
        n_zero=bag.n_zero,
        n_repeated=bag.n_repeated,
        fingerprint=bag.fingerprint(),
        feature_norm=bag.feature_norm,
        feature_mean=bag.feature_mean,
        misplaced=bag.provenance.misplaced,
        outcome=slide.outcome or None,
    )


# Shards

MOST_SHARDS = 1024
"""Of a large audit, so that its folder does not fill with small files."""


def n_shards(n_slides: int, size: int) -> int:
    """Number of shards of at least ``size`` slides.

    >>> n_shards(65, 32), n_shards(1_000_000, 32)
    (3, 1024)
    """
    return -(-n_slides // shard_size(n_slides, size))


def shard_size(n_slides: int, size: int) -> int:
    """Slides of each shard but the last."""
    return max(size, -(-n_slides // MOST_SHARDS))


@dataclass(frozen=True)
class ShardReveal:
    """Computes and writes single shards; what other processes and machines are given.

    The curves of a slide depend on nothing but the slide, so that it does not matter who computes
    which shard. Another process asks its own copy of the model again (``drift``) after every shard.

    Attributes:
        damaged: Receipts of shards that are no longer as they were written; they are computed
            again, and their slides must be the same.
    """

    slides: tuple[Slide, ...]
    store: BagStore
    reveal: SlideReveal
    jobs: tuple[RankingJob, ...]
    shards: Shards
    drift: DriftCheck | None = None
    damaged: Mapping[int, Receipt] = field(default_factory=dict)

    def __len__(self) -> int:
        return n_shards(len(self.slides), self.reveal.settings.block)

    def of(self, shard: int) -> tuple[Slide, ...]:
        """The slides of a shard."""
        size = shard_size(len(self.slides), self.reveal.settings.block)
        return self.slides[shard * size : (shard + 1) * size]

    def missing(self) -> tuple[list[int], ShardReveal]:
        """Shards that are still to be computed, and this with those that are damaged."""
        found, damaged = [], {}
        for shard in range(len(self)):
            written = self.shards.kept(shard, [slide.slide_id for slide in self.of(shard)])
            if written is None or not self.shards.intact(written):
                if self.shards.complete(shard):  # it is no longer
                    self.shards.receipt_path(shard).unlink()
                found.append(shard)
                if written is not None:
                    damaged[shard] = written
        return found, replace(self, damaged=damaged)

    def __call__(self, task: Task) -> Outcome:
        """Compute a shard in another process, unless it is complete."""
        start, shard = time.monotonic(), int(task.key)
        with self.shards.claimed(shard) as free:
            if free:
                for _ in self.compute(shard):
                    pass
                if self.drift is not None:  # the first process's copy of the model computes nothing
                    self.drift.check("in a worker process")
        return Outcome(task.key, time.monotonic() - start)

    def compute(self, shard: int) -> Iterator[Slide]:
        """Compute a shard slide by slide and write it at the end; yields every slide that is done.

        The next bag is read while the curves of one are computed.
        """
        wanted, written = self.of(shard), self.damaged.get(shard)
        if written is not None:
            audited = {slide.slide_id for slide in written.slides if slide.skipped is None}
            wanted = tuple(slide for slide in wanted if slide.slide_id in audited)
        records: list[AuditedSlide] = []
        revealed: list[RevealedSlide] = []
        for slide, bag in _read_ahead(wanted, self._read):
            try:
                result = self.reveal(slide, bag.result(), self.jobs)
            except FociError as error:
                if written is not None:
                    raise
                _LOG.info("skipped %s: %s", slide.slide_id, error)
                records.append(
                    AuditedSlide(slide.slide_id, slide.case_id, slide.label, skipped=str(error))
                )
            else:
                if written is not None and result.slide not in written.slides:
                    what = "has other features than when the audit started"
                    raise FociError(slide.slide_id, what, "give --force")
                records.append(result.slide)
                revealed.append(result)
            del bag
            yield slide
        slides = records if written is None else written.slides
        self.shards.write(shard, slides, revealed, *self._measured(revealed))

    def _measured(self, revealed: Sequence[RevealedSlide]) -> tuple[Shard | None, Shard | None]:
        """What is measured of the slides, and how their rankings agree."""
        if not revealed:
            return None, None
        curves = CurveTable.of(c for one in revealed for own in one.curves.values() for c in own)
        settings, classes = self.reveal.settings, self.reveal.classes
        measured, means = measure_shard(curves, [one.slide for one in revealed], classes, settings)
        columns = columns_of(self.jobs)
        agreed = [pair_agreement(one.ranked, columns) for one in revealed]
        arrays: dict[str, NDArray[np.float64]] = {}
        if agreed[0]:
            arrays["agreement"] = np.array([list(one.values()) for one in agreed])
        facts = {**means.facts, "pairs": list(agreed[0])}
        return measured, Shard({**means.arrays, **arrays}, facts)

    def _read(self, slide: Slide) -> Bag:
        return self.reveal.staged(self.store.bag(slide))


def reveal_shards(
    work: ShardReveal, *, workers: int = 1, threads: int | None = None, address: str | None = None
) -> None:
    """Compute and write all missing shards: here, in ``workers`` processes, or on a Ray cluster.

    The model is asked again halfway, see :class:`DriftCheck`. Threads of torch stay as they are
    where their number is None.
    """
    (work.shards.folder / PARTS).mkdir(parents=True, exist_ok=True)
    shards, work = work.missing()
    total = range(sum(len(work.of(shard)) for shard in shards))
    with ExitStack() as stack:
        if address is not None:
            check_locks(work.shards.folder)
            engine: Engine = stack.enter_context(RayCluster(work, address))
            done = _elsewhere(work, shards, engine, threads or 1)
        elif workers > 1 and shards:
            engine = Processes(work, min(workers, len(shards)), threads or 1)
            done = _elsewhere(work, shards, stack.enter_context(engine), threads or 1)
        else:
            done = _here(work, shards)
        stack.enter_context(_threads(threads))
        for step in track(total, "revealing slides"):
            if work.drift is not None and step == len(total) // 2:
                work.drift.check("halfway through the run")
            next(done)
        for _ in done:  # writes the last shard
            pass


def _here(work: ShardReveal, shards: Iterable[int]) -> Iterator[Slide]:
    for shard in shards:
        with work.shards.claimed(shard) as free:
            left = dict.fromkeys(work.of(shard))
            for slide in work.compute(shard) if free else ():
                del left[slide]
                yield slide
            yield from left  # skipped by the run before, or all computed by another process


def _elsewhere(
    work: ShardReveal, shards: Sequence[int], engine: Engine, threads: int
) -> Iterator[Slide]:
    """Have shards computed by an engine; yields their slides as shards end, in any order."""
    gpus = 0.0 if device_and_dtype(work.reveal.backbone)[0].type == "cpu" else None
    tasks = [Task(str(shard), threads=threads, gpus=gpus) for shard in shards]
    for outcome in run_tasks(tasks, engine):
        for message in outcome.messages:
            _LOG.info(message)
        if outcome.error is not None:
            fix = "give the same command again, with fewer --workers"
            raise FociError("a worker process", outcome.error, fix)
        yield from work.of(int(outcome.key))


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


SHARDS_PER_WORKER = 2
"""A process has to import torch first; with fewer shards for each it would not pay."""


def default_workers(shards: int, device: torch.device) -> int:
    """One process per core, but no more than one for every two shards; a GPU gets one process."""
    if device.type != "cpu":
        return 1
    return max(1, min(available_cores(), shards // SHARDS_PER_WORKER))


def threads_of(workers: int) -> int:
    """Threads of torch in each process: one where there are several, else as many as it has."""
    return 1 if workers > 1 else torch.get_num_threads()
