"""Numbers of a study, read from its finished cells one audit at a time.

A table asks for a :class:`Measure` at a :class:`Place` and gets a :class:`Value`: mean and standard
deviation over seeds, with a reason for every seed that has no number. Curves are measured by
:mod:`foci.audits.measure` and :mod:`foci.metrics`, never here. What is kept of an audit is small.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from foci.audits import StoredAudit
from foci.audits.measure import MeasuredSlides, Threshold, WholeSlides, measure_slides
from foci.audits.numbers import auc_or_none
from foci.audits.settings import KEPT, AuditSettings, View
from foci.backbones.saved import RECORD
from foci.errors import FociError
from foci.metrics import (
    adaptive_budget,
    mean_drops,
    msk_cond,
    paper_faithfulness,
    restricted_mean,
    seed_spread,
    selected_only_auc,
)
from foci.metrics.deletion import PAPER_COUNTS
from foci.metrics.inputs import Floats, defined_mean
from foci.selectors import recipe, vary
from foci.selectors.objective import Adaptive
from foci.selectors.saved import METADATA, read_metadata
from foci.studies.cells import SHORT, VALIDATION, CostResult, JointResult, read_unchanged
from foci.studies.plan import MAIN, N_CAP, Cell, Plan, StudyFolder
from foci.studies.study import ReadBlock

PUBLISHED = Path(__file__).with_name("published.csv")
"""The paper's printed numbers: table, cohort, row, column, mean, std, seeds, digits."""
COHORTS = ("nsclc", "brca", "panda")
FOCI = "+foci"
"""Ends the name of a row in which a selector ranks the tiles of a backbone."""

ABSENT = "not part of this study"

Reading = float | str
"""A number, or the reason why there is none."""

Spread = Literal["population", "sample"]
T = TypeVar("T")


@dataclass(frozen=True)
class PublishedNumber:
    """One printed cell of the paper.

    Attributes:
        mean: As printed.
        std: As printed after the plus-minus sign; None where nothing is printed.
        seeds: How many seeds were averaged; None where it is not said.
        digits: Decimals printed.
    """

    mean: float
    std: float | None
    seeds: int | None
    digits: int


PublishedNumbers = Mapping[tuple[str, str, str, str], PublishedNumber]
"""By table, cohort, row and column, in the order of print.

* table: the paper's LaTeX label without ``tab:``; ``tests`` for those in its text;
* cohort: ``nsclc``, ``brca``, ``panda``, or ``mean`` and ``all`` over them;
* row: backbone (with ``+foci`` where a selector ranks), recipe, threshold or tile cap;
* column: quantity; Reach in percent where the paper prints percent.
"""


@lru_cache(maxsize=1)
def published() -> PublishedNumbers:
    """Read the paper's numbers.

    >>> published()["main", "nsclc", "transmil+foci", "msk_cond"].mean
    3.21
    """
    with PUBLISHED.open(newline="", encoding="utf-8") as file:
        return {
            (row["label"], row["cohort"], row["row"], row["column"]): PublishedNumber(
                mean=float(row["mean"]),
                std=float(row["std"]) if row["std"] else None,
                seeds=int(row["seeds"]) if row["seeds"] else None,
                digits=int(row["digits"]),
            )
            for row in csv.DictReader(file)
        }


@dataclass(frozen=True)
class Place:
    """Audits that differ only in their seed, or in seed and fold; ``n_cap`` None is the study's."""

    cohort: str
    backbone: str
    variant: str = MAIN
    n_cap: int | None = None


@dataclass(frozen=True)
class Measure:
    """A number of one audit.

    Attributes:
        metric: Its name, as :func:`read_audit` gives it.
        ranking: Which order of the tiles; empty for numbers of the whole bag.
        view: Which class is followed: the label (the paper's tables) or the prediction.
        kappa: Operating confidence; None for the audit's own, and where none is needed.
        k_max: Largest count; None for the audit's own.
        k: Tiles deleted or kept; None for the adaptive number.
    """

    metric: str
    ranking: str = ""
    view: View = "label"
    kappa: float | None = None
    k_max: int | None = None
    k: int | None = None


@dataclass(frozen=True)
class Value:
    """Mean and standard deviation of one quantity over the n seeds that have a number.

    Attributes:
        std: None for fewer than two seeds.
        seeds: The number of every seed, or of every seed and fold.
        gaps: Why a seed has none, by seed; ``None`` as a key for the value as a whole.
        spread: Which standard deviation that is.
    """

    mean: float | None
    std: float | None = None
    n: int = 0
    seeds: Mapping[str, float] = field(default_factory=dict)
    gaps: Mapping[str | None, str] = field(default_factory=dict)
    spread: Spread = "population"

    @classmethod
    def over(cls, readings: Mapping[str, Reading], spread: Spread = "population") -> Value:
        """Average the seeds that have a number.

        >>> value = Value.over({"42": 3.0, "43": 3.6, "44": 3.3, "45": "diverged"})
        >>> round(value.mean, 6), round(value.std, 6), value.n
        (3.3, 0.244949, 3)
        """
        gaps: dict[str | None, str] = {s: r for s, r in readings.items() if isinstance(r, str)}
        found = {seed: float(r) for seed, r in readings.items() if not isinstance(r, str)}
        seeds = {seed: number for seed, number in found.items() if math.isfinite(number)}
        gaps |= {seed: "is not defined" for seed in found if seed not in seeds}
        numbers = list(seeds.values())
        std = None
        if len(numbers) > 1:
            population = spread == "population"
            std = seed_spread(numbers) if population else float(np.std(numbers, ddof=1))
        mean = float(np.mean(numbers)) if numbers else None
        return cls(mean, std, len(numbers), seeds, gaps, spread)

    @classmethod
    def absent(cls, reason: str) -> Value:
        """A value that no seed has, for one reason."""
        return cls(None, gaps={None: reason})

    @property
    def gap(self) -> str | None:
        """Why seeds have no number, in one line; None if all have one.

        >>> Value.over({"42": 1.0, "43": "diverged", "44": "diverged"}).gap
        'seeds 43, 44: diverged'
        """
        by_reason: dict[str, list[str]] = {}
        for seed, reason in self.gaps.items():
            by_reason.setdefault(reason, []).extend([] if seed is None else [seed])
        parts = [
            f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}: {reason}" if seeds else reason
            for reason, seeds in by_reason.items()
        ]
        return "; ".join(parts) or None


def combine(function: Callable[..., float], *values: Value) -> Value:
    """Apply a function seed by seed, where every value has the seed, and average.

    Where a value has no seeds but a mean (a number from print), the function is applied to the
    means. Of the gaps of a seed, the first reason stays.

    >>> base, foci = Value.over({"1": 4.0, "2": 8.0}), Value.over({"1": 2.0, "2": 2.0})
    >>> combine(lambda a, b: b - a, base, foci).mean
    -4.0
    """
    means = [value.mean for value in values if value.mean is not None and not value.seeds]
    if len(means) == len(values):
        return Value(function(*means), None, min(value.n for value in values))
    shared = [s for s in values[0].seeds if all(s in value.seeds for value in values)]
    each = {s: function(*(value.seeds[s] for value in values)) for s in shared}
    found = Value.over(each, values[0].spread)
    gaps: dict[str | None, str] = {}
    for value in values:
        for seed, reason in value.gaps.items():
            gaps.setdefault(seed, reason)
    return replace(found, gaps={**gaps, **found.gaps})


def of_means(function: Callable[..., float], *values: Value) -> Value:
    """Apply a function once, to means over seeds: for SHI, which averages first.

    The means are over the seeds that all values have. The numbers of the seeds are those of the
    function seed by seed; they show the spread.

    >>> base, foci = Value.over({"1": 4.0, "2": 8.0}), Value.over({"1": 2.0, "2": 2.0})
    >>> saved = of_means(lambda a, b: (a - b) / a, base, foci)
    >>> round(saved.mean, 6), saved.seeds
    (0.666667, {'1': 0.5, '2': 0.75})
    """
    seed_by_seed = combine(function, *values)
    if seed_by_seed.mean is None or not seed_by_seed.seeds:
        return seed_by_seed
    means = [float(np.mean([value.seeds[s] for s in seed_by_seed.seeds])) for value in values]
    return replace(seed_by_seed, mean=function(*means))


@dataclass(frozen=True, eq=False)
class AuditReading:
    """What a study keeps of one audit.

    Attributes:
        curves: Mean probability of the label at every count from 1 on, by ranking.
        slides: All of them: patients, numbers of tiles, full-bag probabilities.
        encoder: Tile encoder that most feature files name; None if none does.
        fingerprint: Hash of the classifier's weights.
    """

    numbers: Mapping[Measure, Reading]
    curves: Mapping[str, Floats]
    slides: WholeSlides
    encoder: str | None
    fingerprint: str | None
    k_max: int


def read_audit(audit: StoredAudit, block: ReadBlock) -> AuditReading:
    """Measure the stored curves of an audit at every threshold and budget that tables show."""
    manifest, stored = audit.manifest, audit.manifest.settings
    numbers: dict[Measure, Reading] = {}
    budgets = {None: stored.k_max} | {b: b for b in block.budgets if b <= stored.k_max}
    measured: dict[int, MeasuredSlides] = {}
    for name, k_max in budgets.items():
        changes = {"kappas": block.kappas, "k_max": k_max, "deletion": PAPER_COUNTS}
        settings = stored.model_copy(update=changes)
        if k_max not in measured:
            measured[k_max] = measure_slides(audit.curves, audit.slides, manifest.classes, settings)
        numbers |= dict(_sufficiency(measured[k_max], settings, name))
    own = measured[stored.k_max]
    slides = own.slides
    share = float((np.minimum(slides.n_tiles, KEPT) / slides.n_tiles).mean())
    numbers |= dict([*_deletion(own), *_selected(audit, own, block), *_decided(audit)])
    numbers[Measure("share_32")] = 100 * share
    encoders = Counter(slide.encoder for slide in audit.slides if slide.encoder is not None)
    every = np.arange(1, stored.k_max + 1)
    curves = {}
    for ranking, curve in own.mean_curves.get("label", {}).items():
        held = np.searchsorted(curve.ks, every, side="right") - 1  # until its next count
        curves[ranking] = np.array(curve.mean, dtype=np.float64)[np.maximum(held, 0)]
    return AuditReading(
        numbers=numbers,
        curves=curves,
        slides=slides,
        encoder=encoders.most_common(1)[0][0] if encoders else None,
        fingerprint=manifest.backbone.fingerprint,
        k_max=stored.k_max,
    )


def _sufficiency(
    measured: MeasuredSlides, settings: AuditSettings, k_max: int | None
) -> Iterator[tuple[Measure, Reading]]:
    """Conditional MSK, Reach in percent, AUKC and restricted mean."""
    views: tuple[View, ...] = ("label", "prediction")
    for view in (view for view in views if view in measured.tables):
        for name in measured.curves.rankings:
            own = measured.of(name, view)
            yield Measure("aukc", name, view, k_max=k_max), float(own.aukc.mean())
            for kappa in (None, *settings.kappas):
                counts = own.msk if kappa is None else own.at("msk_at", Threshold(kappa))
                reaches = ~np.isnan(counts)
                mean: Reading = f"no slide reaches {settings.kappa if kappa is None else kappa:g}"
                if reaches.any():
                    mean = float(defined_mean(np.array([msk_cond(row) for row in counts])))
                restricted = [restricted_mean(row, own.k_max) for row in counts]
                at = (name, view, kappa, k_max)
                yield Measure("msk_cond", *at), mean
                yield Measure("reach", *at), 100 * float(reaches.mean())
                yield Measure("restricted", *at), float(np.mean(restricted))


def _deletion(measured: MeasuredSlides) -> Iterator[tuple[Measure, Reading]]:
    """Mean drops at the paper's counts, and the paper's Faithfulness AUC; label view."""
    labelled = measured.slides.labelled
    if labelled is None:
        return
    largest = int(labelled.n_tiles.max())
    for name in measured.curves.rankings:
        own = measured.of(name, "label")
        drops = own.mean_drops
        means, n_slides = mean_drops(drops)
        absent: str | None = None
        for k, mean, n in zip(PAPER_COUNTS, means, n_slides, strict=True):
            few = f"no slide has more than {k} tiles"
            reason = few if largest <= k else f"no deletion of {k} tiles was measured"
            absent = absent or (None if n else reason)
            yield Measure("drop", name, k=k), float(mean) if n else reason
            yield Measure("drop_slides", name, k=k), float(n)
        yield Measure("faithfulness", name), absent or paper_faithfulness(drops)
        per_slide = float(defined_mean(own.with_deletions.faithfulness.ravel()))
        few = "no slide was deleted at two of the paper's counts"
        yield Measure("slide_faithfulness", name), few if np.isnan(per_slide) else per_slide
        gain = float(defined_mean(own.with_deletions.relevance_gain.ravel()))
        known = "no slide was followed to its last tile"
        yield Measure("relevance_gain", name), known if np.isnan(gain) else gain


def _selected(
    audit: StoredAudit, measured: MeasuredSlides, block: ReadBlock
) -> Iterator[tuple[Measure, Reading]]:
    """AUC with all tiles, and with only the first K."""
    labelled = measured.slides.labelled
    if labelled is None:
        return
    full, n_tiles = auc_or_none(labelled.full, labelled.labels), labelled.n_tiles
    yield Measure("auc"), "a class has no slide" if full is None else full
    if full is None:
        return
    adaptive = block.adaptive
    counts: dict[int | None, int | list[int]] = {k: k for k in {*block.selected_k, KEPT}}
    counts[None] = [adaptive_budget(int(n), adaptive.alpha, adaptive.k_min) for n in n_tiles]
    for name in audit.curves.rankings:
        for k, kept in counts.items():
            areas = []
            for seed in audit.curves.seeds(name):
                stored = audit.curves.get(name, seed)
                curves = [stored[row] for row in measured.rows("label")]
                probs, ks = [curve.probs for curve in curves], [curve.ks for curve in curves]
                areas.append(
                    selected_only_auc(probs, ks, n_tiles, labelled.full, labelled.labels, kept)
                )
            known = not np.isnan(areas).any()
            value = float(np.mean(areas)) if known else "this count was not revealed"
            yield Measure("selected_auc", name, k=k), value


def _decided(audit: StoredAudit) -> Iterator[tuple[Measure, Reading]]:
    """Counts over decided slides and decisive K, as the audit's summary has them."""
    undecided = "the model is sure of no slide"
    for name, numbers in audit.summary.views["prediction"].items():
        decided = numbers.decided
        if decided is None:
            continue
        mean = undecided if decided.restricted is None else decided.restricted.estimate
        yield Measure("decided_k", name, "prediction"), mean
        if decided.decisive is None:
            few = "deletion was not measured at every count" if decided.n_slides else undecided
            yield Measure("decisive_k", name, "prediction"), few
            continue
        median = decided.decisive.median
        missing = "half of the decided slides have no decisive set"
        if median.missing == "beyond":
            missing = "more than K_max tiles on half of the decided slides"
        found = missing if median.value is None else median.value
        yield Measure("decisive_k", name, "prediction"), found
        if decided.decisive_share is not None:
            yield Measure("decisive_share", name, "prediction"), 100 * decided.decisive_share
        near = None if decided.efficiency is None else decided.efficiency.estimate
        unknown = "no minimum is proven of any decided slide"
        yield Measure("efficiency", name, "prediction"), unknown if near is None else near


@dataclass(frozen=True, eq=False)
class StudyNumbers:
    """Numbers of all cells that were read, by place and by seed (or seed and fold).

    Attributes:
        backbones: Families by name of the backbone.
        audits: What was read, or why there is nothing.
        spread: Which standard deviation over seeds.
        validation: Score of fitted selectors on the validation slides.
        short_validation: Their AUKC up to 32 tiles, where the budget is adaptive.
        adaptive: Share and smallest count of the adaptive budget, by variant.
        trained: AUC on the test slides as noted when a classifier was trained.
        joint: AUC on the validation slides before and after every epoch of joint training.
        costs: Time and memory by backbone.
        paper: The paper's numbers; empty where they do not stand beside one's own.
    """

    cohorts: tuple[str, ...]
    backbones: Mapping[str, str]
    audits: Mapping[Place, Mapping[str, AuditReading | str]]
    spread: Spread = "population"
    validation: Mapping[Place, Mapping[str, Reading]] = field(default_factory=dict)
    short_validation: Mapping[Place, Mapping[str, Reading]] = field(default_factory=dict)
    adaptive: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    trained: Mapping[Place, Mapping[str, Reading]] = field(default_factory=dict)
    joint: Mapping[Place, Mapping[str, Sequence[float] | str]] = field(default_factory=dict)
    costs: Mapping[str, CostResult | str] = field(default_factory=dict)
    paper: PublishedNumbers = field(default_factory=dict)

    @property
    def places(self) -> list[Place]:
        """The main audits of every cohort and backbone."""
        return [Place(*pair) for pair in product(self.cohorts, self.backbones)]

    def variants(self, main: Place) -> list[Place]:
        """All places of the same cohort and backbone, the main one included."""
        same = (main.cohort, main.backbone)
        return [place for place in self.audits if (place.cohort, place.backbone) == same]

    def value(self, place: Place, measure: Measure) -> Value:
        """A measure over the seeds of a place; seeds without it say why."""
        found = self.audits.get(place)
        if not found:
            return Value.absent(ABSENT)
        return self.over({seed: _number(one, measure) for seed, one in found.items()})

    def over(self, readings: Mapping[str, Reading]) -> Value:
        """Mean of readings over seeds, with the standard deviation of the study."""
        return Value.over(readings, self.spread)

    def printed(self, label: str, cohort: str, row: str, column: str) -> PublishedNumber | None:
        """What the paper prints in a cell of its tables; None where nothing stands beside."""
        return self.paper.get((label, cohort, row, column))

    def read(self, place: Place) -> dict[str, AuditReading]:
        """What was read of a place, by seed."""
        found = self.audits.get(place, {})
        return {seed: one for seed, one in found.items() if not isinstance(one, str)}


def _number(reading: AuditReading | str, measure: Measure) -> Reading:
    """The number of one audit, or why it has none."""
    if isinstance(reading, str):
        return reading
    if measure in reading.numbers:
        return reading.numbers[measure]
    if measure.ranking and measure.ranking not in {known.ranking for known in reading.numbers}:
        return f"the ranking {measure.ranking} was not run"
    if measure.view == "label" and not any(m.view == "label" for m in reading.numbers):
        return "the slides have no labels"
    if measure.k_max is not None and measure.k_max > reading.k_max:
        return f"the audit ends at {reading.k_max} tiles"
    return "not measured"


def read_numbers(folder: StudyFolder) -> StudyNumbers:
    """Read every finished cell; one that is not finished, failed or is damaged says so instead."""
    study, plan = folder.study, folder.plan()

    def collected(kind: str, read: Callable[[Path], T]) -> dict[Place, dict[str, T | str]]:
        found: dict[Place, dict[str, T | str]] = {}
        for cell in plan.select(kind=kind):
            found.setdefault(_place(cell), {})[_seed(cell)] = _read(folder, plan, cell, read)
        return found

    adaptive = {}
    for cell in plan.select(kind="fit"):
        budget = vary(recipe(cell.recipe), cell.recipe_settings).budget
        if isinstance(budget, Adaptive):
            adaptive[cell.variant] = (budget.alpha, budget.k_min)
    costs = plan.select(kind="cost")
    return StudyNumbers(
        cohorts=tuple(study.cohorts),
        backbones={name: entry.family for name, entry in study.backbones.items()},
        audits=collected("audit", lambda path: read_audit(StoredAudit.load(path), study.read)),
        spread=study.std,
        validation=collected("fit", _validation),
        short_validation=collected("fit", _short_validation),
        adaptive=adaptive,
        trained=collected("train", _trained),
        joint=collected("joint", _joint),
        costs={cell.backbone: _read(folder, plan, cell, CostResult.read) for cell in costs},
        paper=published() if study.published else {},
    )


def audit_folders(folder: StudyFolder) -> dict[Place, dict[str, Path]]:
    """Folders of finished audits, by place and seed."""
    found: dict[Place, dict[str, Path]] = {}
    for cell in folder.plan().select(kind="audit"):
        path = folder.result(cell)
        if path is not None:
            found.setdefault(_place(cell), {})[_seed(cell)] = path
    return found


def _place(cell: Cell) -> Place:
    """Where a cell belongs; cells that differ in seed or fold share a place."""
    cap = cell.n_cap if cell.variant == N_CAP else None
    return Place(cell.cohort, cell.backbone, cell.variant, cap)


def _seed(cell: Cell) -> str:
    """Seed of a cell, with its fold where there are folds.

    >>> _seed(Cell("audit", "nsclc", "abmil", 42, "main", 1024, (), "k", fold=3))
    '42 fold 3'
    """
    return str(cell.seed) if cell.fold is None else f"{cell.seed} fold {cell.fold}"


def _read(folder: StudyFolder, plan: Plan, cell: Cell, read: Callable[[Path], T]) -> T | str:
    """The result of a cell; or why there is none: it failed, one it needs failed, or it waits."""
    path = folder.result(cell)
    if path is not None:
        try:
            return read(path)
        except (FociError, OSError, ValueError, KeyError) as error:
            return f"cannot be read: {error}"
    for one in (cell, *plan.needs(cell)):
        why = folder.failure(one)
        if why is not None:
            return f"{one.kind} failed: {why}"
    return "not run yet"


def _validation(path: Path) -> Reading:
    """Score of the epoch that was kept, on the validation slides."""
    read_unchanged(path / METADATA)
    metadata = read_metadata(path / METADATA)
    return metadata.history[metadata.best_epoch - 1].score


def _short_validation(path: Path) -> Reading:
    """AUKC up to 32 tiles on the validation slides, of a selector with an adaptive budget."""
    if not (path / VALIDATION).is_file():
        return "not measured when the selector was fitted"
    return float(read_unchanged(path / VALIDATION)[f"aukc_{SHORT}"])


def _trained(path: Path) -> Reading:
    """AUC on the test slides as noted when the classifier was trained."""
    if not path.is_dir():
        return "a checkpoint of another program"
    auc = read_unchanged(path / RECORD).get("metrics", {}).get("test", {}).get("auc")
    return "no AUC was noted when it was trained" if auc is None else float(auc)


def _joint(path: Path) -> list[float]:
    """AUC on the validation slides: of the frozen classifier, then after every epoch."""
    result, found = JointResult.read(path), []
    for scores in (result.before, *result.epochs):
        if scores["auc"] is None:
            raise FociError(path, "has no AUC: a class has no validation slide", "check the split")
        found.append(scores["auc"])
    return found
