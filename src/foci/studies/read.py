"""What stands behind the numbers of one audit: slides, tiles, encoder, model, settings."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import numpy as np

from foci.audits import StoredAudit
from foci.audits.measure import MeasuredSlides, SlideMetrics, Threshold, ViewSlides, measure_slides
from foci.audits.numbers import auc_or_none
from foci.audits.settings import AuditSettings, View
from foci.audits.summary import RankingNumbers
from foci.backbones.saved import RECORD
from foci.errors import FociError
from foci.files.bounds import read_json
from foci.metrics import (
    adaptive_budget,
    mean_drops,
    msk_cond,
    paper_faithfulness,
    restricted_mean,
    seed_spread,
)
from foci.metrics import selected_only_auc as only
from foci.metrics.deletion import PAPER_COUNTS
from foci.metrics.inputs import Floats, defined_mean
from foci.selectors import recipe, vary
from foci.selectors.gates import Adaptive
from foci.selectors.saved import METADATA, read_metadata
from foci.studies.cells import SHORT, VALIDATION, CostResult, JointResult
from foci.studies.folder import StudyFolder
from foci.studies.plan import N_CAP, Cell, Plan
from foci.studies.study import Study

KEPT = 32


@dataclass(frozen=True, eq=False)
class AuditFacts:
    """Facts of one audit that tables and their headers state.

    Attributes:
        n_slides: Audited slides.
        n_cases: Their patients.
        median_tiles: Median number of candidate tiles.
        share_of_32: Mean share of a bag that its first 32 tiles are.
        whole_at_32: Share of slides that have at most 32 tiles.
        encoder: Tile encoder that most feature files name; None if none does.
        fingerprint: Hash of the classifier's weights.
        full: Full-bag probabilities ``[S, C]``, in the order of the slides.
        slides: Names of the slides.
        classes: Class names.
        recipe: Of the selector.
        kappa: Operating confidence.
        k_max: Largest reveal count.
        epoch: Epoch of the selector that was kept; None without a selector.
    """

    n_slides: int
    n_cases: int
    median_tiles: float
    share_of_32: float
    whole_at_32: float
    encoder: str | None
    fingerprint: str | None
    full: Floats
    slides: tuple[str, ...]
    classes: tuple[str, ...]
    recipe: str
    kappa: float
    k_max: int
    epoch: int | None


def facts_of(audit: StoredAudit, slides: ViewSlides) -> AuditFacts:
    """Collect them."""
    manifest = audit.manifest
    named = Counter(slide.encoder for slide in audit.slides if slide.encoder is not None)
    selectors = manifest.selectors
    return AuditFacts(
        n_slides=len(slides),
        n_cases=len(set(slides.cases)),
        median_tiles=float(np.median(slides.n_tiles)),
        share_of_32=float((np.minimum(slides.n_tiles, KEPT) / slides.n_tiles).mean()),
        whole_at_32=float((slides.n_tiles <= KEPT).mean()),
        encoder=named.most_common(1)[0][0] if named else None,
        fingerprint=manifest.backbone.fingerprint,
        full=slides.full,
        slides=audit.curves.slide_ids,
        classes=tuple(manifest.classes),
        recipe=manifest.settings.recipe,
        kappa=manifest.settings.kappa,
        k_max=manifest.settings.k_max,
        epoch=selectors[0].best_epoch if selectors else None,
    )


# Names of the quantities that tables ask for, and of where in a study they are measured.


MAIN = "main"
NATIVE, SELECTOR, RANDOM, EVIDENCE = "native", "selector", "random", "evidence"


@dataclass(frozen=True)
class Place:
    """Audits that differ only in their seed, or in seed and fold.

    Attributes:
        cohort: Name of the cohort in the study.
        backbone: Name of the backbone in the study.
        variant: ``"main"``, or a variant of a sweep.
        n_cap: Most tiles per bag; None for the study's own.
    """

    cohort: str
    backbone: str
    variant: str = MAIN
    n_cap: int | None = None


@dataclass(frozen=True)
class Measure:
    """A number of one audit.

    Attributes:
        metric: Its name, see :mod:`foci.studies.read`.
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


# Read one audit: every number that a table of a study may ask for, and the data of its figures.
#
# Curves are measured by :mod:`foci.audits.analysis` and :mod:`foci.metrics`, never here. What is
# kept is small, so that a study of many audits is read one audit at a time.


Reading = float | str
"""A number, or the reason why there is none."""


@dataclass(frozen=True)
class Wanted:
    """At what thresholds and counts an audit is read: the ``read`` block of a study.

    Attributes:
        kappas: Confidences.
        budgets: Largest reveal counts.
        selected_k: Counts of the selected-only tables.
        alpha: Share of the adaptive count.
        k_min: Its smallest value.
    """

    kappas: tuple[float, ...] = (0.7, 0.8, 0.9, 0.95)
    budgets: tuple[int, ...] = (32, 256)
    selected_k: tuple[int, ...] = (8, 16, 32, 64, 128)
    alpha: float = 0.03
    k_min: int = 16


@dataclass(frozen=True, eq=False)
class AuditReading:
    """What a study keeps of one audit.

    Attributes:
        numbers: By measure: the number, or why there is none.
        facts: Slides, tiles, model and settings behind them.
        curves: Mean probability of the label at every count from 1 on, by ranking.
        msk: MSK of every slide in the label view, by ranking; the first seed.
    """

    numbers: Mapping[Measure, Reading]
    facts: AuditFacts
    curves: Mapping[str, Floats]
    msk: Mapping[str, Floats]


def read_audit(audit: StoredAudit, wanted: Wanted) -> AuditReading:
    """Measure the stored curves of an audit at every threshold and budget that tables show."""
    stored = audit.manifest.settings
    numbers: dict[Measure, Reading] = {}
    budgets = {None: stored.k_max} | {b: b for b in wanted.budgets if b <= stored.k_max}
    measured: dict[int, MeasuredSlides] = {}
    for name, k_max in budgets.items():
        settings = _settings(stored, wanted, k_max)
        if k_max not in measured:
            measured[k_max] = measure_slides(
                audit.curves, audit.slides, audit.manifest.classes, settings
            )
        numbers |= dict(_sufficiency(measured[k_max], settings, name))
    own = measured[stored.k_max]
    facts = facts_of(audit, own.views["prediction"])
    numbers |= dict(_deletion(own))
    numbers |= dict(_selected(audit, own, wanted))
    numbers |= dict(_decided(audit))
    numbers |= {Measure("share_32"): 100 * facts.share_of_32}
    label = own.metrics.get("label", {})
    return AuditReading(
        numbers=numbers,
        facts=facts,
        curves={name: _every_count(metrics, stored.k_max) for name, metrics in label.items()},
        msk={name: metrics.msk[0] for name, metrics in label.items()},
    )


def _settings(stored: AuditSettings, wanted: Wanted, k_max: int) -> AuditSettings:
    changes = {"kappas": wanted.kappas, "k_max": k_max, "deletion": PAPER_COUNTS}
    return stored.model_copy(update=changes)


def _sufficiency(
    measured: MeasuredSlides, settings: AuditSettings, k_max: int | None
) -> Iterator[tuple[Measure, Reading]]:
    """Conditional MSK, Reach in percent, AUKC and restricted mean."""
    views: tuple[View, ...] = ("label", "prediction")
    for view in views:
        for name, own in measured.metrics.get(view, {}).items():
            yield Measure("aukc", name, view, k_max=k_max), float(own.aukc.mean())
            for kappa in (None, *settings.kappas):
                counts = own.msk if kappa is None else own.at[Threshold(kappa)].msk
                reaches = ~np.isnan(counts)
                mean = float(defined_mean(np.array([msk_cond(row) for row in counts])))
                least = settings.kappa if kappa is None else kappa
                reason = f"no slide reaches {least:g}"
                yield (
                    Measure("msk_cond", name, view, kappa, k_max),
                    mean if reaches.any() else reason,
                )
                yield Measure("reach", name, view, kappa, k_max), 100 * float(reaches.mean())
                means = [restricted_mean(row, own.k_max) for row in counts]
                yield Measure("restricted", name, view, kappa, k_max), float(np.mean(means))


def _deletion(measured: MeasuredSlides) -> Iterator[tuple[Measure, Reading]]:
    """Mean drops at the paper's counts, and the paper's Faithfulness AUC; label view."""
    for name, own in measured.metrics.get("label", {}).items():
        largest = int(measured.views["label"].n_tiles.max())
        means, n_slides = mean_drops(own.drops)
        absent: str | None = None
        for k, mean, n in zip(PAPER_COUNTS, means, n_slides, strict=True):
            few = f"no slide has more than {k} tiles"
            reason = few if largest <= k else f"no deletion of {k} tiles was measured"
            absent = absent or (None if n else reason)
            yield Measure("drop", name, k=k), float(mean) if n else reason
            yield Measure("drop_slides", name, k=k), float(n)
        yield Measure("faithfulness", name), absent or paper_faithfulness(own.drops)
        per_slide = float(defined_mean(own.faithfulness.ravel()))
        few = "no slide was deleted at two of the paper's counts"
        yield Measure("slide_faithfulness", name), few if np.isnan(per_slide) else per_slide


def _selected(
    audit: StoredAudit, measured: MeasuredSlides, wanted: Wanted
) -> Iterator[tuple[Measure, Reading]]:
    """AUC with all tiles, and with only the first K."""
    labelled = measured.views.get("label")
    if labelled is None:
        return
    full = auc_or_none(labelled.full, labelled.labels)
    reason = "a class has no slide"
    yield Measure("auc"), reason if full is None else full
    yield Measure("accuracy"), 100 * float((labelled.predictions == labelled.labels).mean())
    if full is None:
        return
    budgets = [adaptive_budget(int(n), wanted.alpha, wanted.k_min) for n in labelled.n_tiles]
    counts: dict[int | None, int | list[int]] = {k: k for k in {*wanted.selected_k, KEPT}}
    counts[None] = budgets
    for name in audit.curves.rankings:
        for k, kept in counts.items():
            found = [_auc(labelled, audit, name, seed, kept) for seed in audit.curves.seeds(name)]
            value: Reading = "this count was not revealed"
            if not np.isnan(found).any():
                value = float(np.mean(found))
            yield Measure("selected_auc", name, k=k), value


def _auc(
    labelled: ViewSlides, audit: StoredAudit, name: str, seed: int | None, kept: int | list[int]
) -> float:
    chosen = labelled.of(audit.curves.get(name, seed))
    probs, ks = [curve.probs for curve in chosen], [curve.ks for curve in chosen]
    return only(probs, ks, labelled.n_tiles, labelled.full, labelled.labels, kept)


def _decided(audit: StoredAudit) -> Iterator[tuple[Measure, Reading]]:
    """Counts over decided slides and decisive K, as the audit's summary has them."""
    for name, numbers in audit.summary.views["prediction"].items():
        yield from _of_decided(name, numbers)


def _of_decided(name: str, numbers: RankingNumbers) -> Iterator[tuple[Measure, Reading]]:
    decided = numbers.decided
    if decided is None:
        return
    view: View = "prediction"
    undecided = "the model is sure of no slide"
    mean = undecided if decided.restricted is None else decided.restricted.estimate
    yield Measure("decided_k", name, view), mean
    if decided.decisive is None:
        reason = undecided if not decided.n_slides else "deletion was not measured at every count"
        yield Measure("decisive_k", name, view), reason
        return
    median = decided.decisive.median
    missing = {"beyond": "more than K_max tiles on half of the decided slides"}.get(
        median.missing or "", "half of the decided slides have no decisive set"
    )
    yield Measure("decisive_k", name, view), missing if median.value is None else median.value
    if decided.decisive_share is not None:
        yield Measure("decisive_share", name, view), 100 * decided.decisive_share


def _every_count(metrics: SlideMetrics, k_max: int) -> Floats:
    """Mean curve at 1, 2, ..., K_max; between its counts and after its last it holds its value."""
    held = np.searchsorted(metrics.curve.ks, np.arange(1, k_max + 1), side="right") - 1
    values: Floats = metrics.curve.mean[np.maximum(held, 0)]
    return values


def names_of(readings: Sequence[AuditReading]) -> tuple[str, ...]:
    """Rankings that any of these audits has, in the order of the first that has them."""
    return tuple(dict.fromkeys(name for one in readings for name in one.curves))


# A number with its spread over seeds; a seed without one says why.


Spread = Literal["population", "sample"]


class NotMeasured(Exception):  # noqa: N818 - a reason, not a failure
    """Why a number does not exist, in a few words."""


@dataclass(frozen=True)
class Value:
    """Mean and standard deviation over seeds of one quantity.

    Attributes:
        mean: Over the seeds that have a number; None if there is none.
        std: Standard deviation over them; None for fewer than two.
        n: How many seeds have a number.
        seeds: The number of every seed, or of every seed and fold.
        gaps: Why a seed has none, by seed; ``None`` as a key for the value as a whole.
    """

    mean: float | None
    std: float | None = None
    n: int = 0
    seeds: Mapping[str, float] = field(default_factory=dict)
    gaps: Mapping[str | None, str] = field(default_factory=dict)

    @classmethod
    def over(
        cls,
        seeds: Mapping[str, float],
        gaps: Mapping[str | None, str] | None = None,
        spread: Spread = "population",
    ) -> Value:
        """Average the seeds.

        >>> value = Value.over({"42": 3.0, "43": 3.6, "44": 3.3})
        >>> round(value.mean, 6), round(value.std, 6), value.n
        (3.3, 0.244949, 3)
        """
        kept = {seed: float(number) for seed, number in seeds.items() if math.isfinite(number)}
        lost: dict[str | None, str] = dict(gaps or {})
        for seed in seeds:
            if seed not in kept:
                lost.setdefault(seed, "is not defined")
        numbers = list(kept.values())
        mean = float(np.mean(numbers)) if numbers else None
        return cls(mean, _spread(numbers, spread), len(numbers), kept, lost)

    @classmethod
    def absent(cls, reason: str) -> Value:
        """A value that no seed has, for one reason."""
        return cls(None, gaps={None: reason})

    @property
    def gap(self) -> str | None:
        """Why seeds have no number, in one line; None if all have one.

        >>> Value.over({"42": 1.0}, {"43": "diverged", "44": "diverged"}).gap
        'seeds 43, 44: diverged'
        """
        by_reason: dict[str, list[str]] = {}
        for seed, reason in self.gaps.items():
            by_reason.setdefault(reason, []).extend([] if seed is None else [seed])
        parts = [
            f"{_seeds(seeds)}: {reason}" if seeds else reason for reason, seeds in by_reason.items()
        ]
        return "; ".join(parts) or None

    def numbers(self) -> list[float]:
        """The numbers of the seeds that have one."""
        return list(self.seeds.values())


def combine(function: Callable[..., float], *values: Value, spread: Spread = "population") -> Value:
    """Apply a function seed by seed, where every value has the seed, and average.

    The mean is over seeds that all values have. Where a value has no seeds but a mean (a number
    from print), the function is applied to the means.

    >>> base, foci = Value.over({"1": 4.0, "2": 8.0}), Value.over({"1": 2.0, "2": 2.0})
    >>> combine(lambda a, b: b - a, base, foci).mean
    -4.0
    """
    means = [value.mean for value in values if value.mean is not None and not value.seeds]
    if len(means) == len(values):
        return Value(function(*means), None, min(value.n for value in values))
    shared = [s for s in values[0].seeds if all(s in value.seeds for value in values)]
    numbers = {seed: function(*(value.seeds[seed] for value in values)) for seed in shared}
    return Value.over(numbers, all_gaps(values), spread)


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


def all_gaps(values: Sequence[Value]) -> dict[str | None, str]:
    """The gaps of several values, the first reason of every seed."""
    lost: dict[str | None, str] = {}
    for value in values:
        for seed, reason in value.gaps.items():
            lost.setdefault(seed, reason)
    return lost


def _spread(numbers: Sequence[float], spread: Spread) -> float | None:
    if len(numbers) < 2:
        return None
    return seed_spread(numbers) if spread == "population" else float(np.std(numbers, ddof=1))


def _seeds(seeds: Sequence[str]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(seeds)}"


# Where tables get their values from: a study's audits, or anything else that answers alike.


class Numbers(Protocol):
    """What the tables of sufficiency, deletion and selection ask."""

    @property
    def cohorts(self) -> tuple[str, ...]:
        """Names of the cohorts, in order."""

    @property
    def backbones(self) -> Mapping[str, str]:
        """Families by the names of the backbones, in order."""

    def value(self, place: Place, measure: Measure) -> Value:
        """A measure over the seeds of a place."""


@dataclass(frozen=True, eq=False)
class StudyNumbers:
    """Numbers of audits that were read: the values of a study.

    Attributes:
        cohorts: Names of the cohorts.
        backbones: Families by name of the backbone.
        audits: By place and by seed (or seed and fold): what was read, or why there is nothing.
        spread: Which standard deviation over seeds.
        validation: Score of fitted selectors on the validation slides, by place and seed.
        short_validation: Their AUKC up to 32 tiles, where the budget is adaptive.
        adaptive: Share and smallest count of the adaptive budget, by variant.
        trained: AUC on the test slides as noted when a classifier was trained, by place and seed.
        joint: AUC on the validation slides before and after every epoch of joint training.
        costs: Time and memory by backbone.
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

    def value(self, place: Place, measure: Measure) -> Value:
        """A measure over the seeds of a place; seeds without it say why."""
        found = self.audits.get(place)
        if not found:
            return Value.absent("not part of this study")
        readings: dict[str, Reading] = {}
        for seed, one in found.items():
            if isinstance(one, str):
                readings[seed] = one
                continue
            readings[seed] = one.numbers.get(measure, _why_not(one, measure))
        return self.over(readings)

    def validation_score(self, place: Place) -> Value:
        """Score on the validation slides of the selectors that were fitted at a place."""
        found = self.validation.get(place)
        return self.over(found) if found else Value.absent("not part of this study")

    def over(self, readings: Mapping[str, Reading]) -> Value:
        """Average readings over seeds."""
        numbers = {seed: one for seed, one in readings.items() if not isinstance(one, str)}
        gaps: dict[str | None, str] = {
            seed: one for seed, one in readings.items() if isinstance(one, str)
        }
        return Value.over(numbers, gaps, self.spread)

    def read(self, place: Place) -> dict[str, AuditReading]:
        """What was read of a place, by seed."""
        found = self.audits.get(place, {})
        return {seed: one for seed, one in found.items() if not isinstance(one, str)}


def _why_not(reading: AuditReading, measure: Measure) -> str:
    rankings = {known.ranking for known in reading.numbers}
    if measure.ranking and measure.ranking not in rankings:
        return f"the ranking {measure.ranking} was not run"
    if measure.view == "label" and not any(m.view == "label" for m in reading.numbers):
        return "the slides have no labels"
    if measure.k_max is not None and measure.k_max > reading.facts.k_max:
        return f"the audit ends at {reading.facts.k_max} tiles"
    return "not measured"


# Read the finished cells of a study folder, one audit at a time.


T = TypeVar("T")


def read_numbers(folder: StudyFolder) -> StudyNumbers:
    """Read every finished cell; one that is not finished, failed or is damaged says so instead."""
    study, plan = folder.study, folder.plan()
    wanted = wanted_by(study)

    def collected(kind: str, read: Callable[[Path], T]) -> dict[Place, dict[str, T | str]]:
        found: dict[Place, dict[str, T | str]] = {}
        for cell in plan.select(kind=kind):
            found.setdefault(place_of(cell), {})[seed_of(cell)] = _read(folder, plan, cell, read)
        return found

    costs = {
        cell.backbone: _read(folder, plan, cell, CostResult.read)
        for cell in plan.select(kind="cost")
    }
    return StudyNumbers(
        cohorts=tuple(study.cohorts),
        backbones={name: entry.family for name, entry in study.backbones.items()},
        audits=collected("audit", lambda path: read_audit(StoredAudit.load(path), wanted)),
        spread=study.std,
        validation=collected("fit", read_validation),
        short_validation=collected("fit", read_short_validation),
        adaptive=_adaptive(plan),
        trained=collected("train", read_trained),
        joint=collected("joint", read_joint),
        costs=costs,
    )


def wanted_by(study: Study) -> Wanted:
    """The ``read`` block of a study."""
    block = study.read
    return Wanted(
        block.kappas, block.budgets, block.selected_k, block.adaptive.alpha, block.adaptive.k_min
    )


def place_of(cell: Cell) -> Place:
    """Where a cell belongs; cells that differ in seed or fold share a place."""
    cap = cell.n_cap if cell.variant == N_CAP else None
    return Place(cell.cohort, cell.backbone, cell.variant, cap)


def seed_of(cell: Cell) -> str:
    """Seed of a cell, with its fold where there are folds.

    >>> seed_of(Cell("audit", "nsclc", "abmil", 42, "main", 1024, (), "k", fold=3))
    '42 fold 3'
    """
    return str(cell.seed) if cell.fold is None else f"{cell.seed} fold {cell.fold}"


def _read(folder: StudyFolder, plan: Plan, cell: Cell, read: Callable[[Path], T]) -> T | str:
    """What a cell has left, or why there is nothing."""
    path = folder.result(cell)
    if path is None:
        return _why(folder, plan, cell)
    try:
        return read(path)
    except (FociError, OSError, ValueError, KeyError) as error:
        return f"cannot be read: {error}"


def _why(folder: StudyFolder, plan: Plan, cell: Cell) -> str:
    """Why a cell has no result: it failed, one that it needs failed, or it was not run."""
    error = folder.failure(cell)
    if error is not None:
        return f"{cell.kind} failed: {error}"
    for needed in plan.needs(cell):
        error = folder.failure(needed)
        if error is not None:
            return f"{needed.kind} failed: {error}"
    return "not run yet"


def read_validation(path: Path) -> Reading:
    """Score of the epoch that was kept, on the validation slides."""
    metadata = read_metadata(path / METADATA)
    return metadata.history[metadata.best_epoch - 1].score


def read_short_validation(path: Path) -> Reading:
    """AUKC up to 32 tiles on the validation slides, of a selector with an adaptive budget."""
    if not (path / VALIDATION).is_file():
        return "not measured when the selector was fitted"
    return float(read_json(path / VALIDATION)[f"aukc_{SHORT}"])


def read_trained(path: Path) -> Reading:
    """AUC on the test slides as noted when the classifier was trained."""
    if not path.is_dir():
        return "a checkpoint of another program"
    metrics = json.loads((path / RECORD).read_text(encoding="utf-8")).get("metrics", {})
    auc = metrics.get("test", {}).get("auc")
    return "no AUC was noted when it was trained" if auc is None else float(auc)


def read_joint(path: Path) -> tuple[float, ...]:
    """AUC on the validation slides: of the frozen classifier, then after every epoch."""
    result = JointResult.read(path)
    found = [scores["auc"] for scores in (result.before, *result.epochs)]
    if any(auc is None for auc in found):
        raise FociError(path, "has no AUC: a class has no validation slide", "check the split")
    return tuple(auc for auc in found if auc is not None)


def _adaptive(plan: Plan) -> dict[str, tuple[float, int]]:
    """Share and smallest count of every variant whose selector has an adaptive budget."""
    found = {}
    for cell in plan.select(kind="fit"):
        budget = vary(recipe(cell.recipe), cell.recipe_settings).budget
        if isinstance(budget, Adaptive):
            found[cell.variant] = (budget.alpha, budget.k_min)
    return found


def audit_folders(folder: StudyFolder) -> dict[Place, dict[str, Path]]:
    """Folders of finished audits, by place and seed."""
    found: dict[Place, dict[str, Path]] = {}
    for cell in folder.plan().select(kind="audit"):
        path = folder.result(cell)
        if path is not None:
            found.setdefault(place_of(cell), {})[seed_of(cell)] = path
    return found
