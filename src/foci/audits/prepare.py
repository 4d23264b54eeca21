"""Prepare an audit: do model, cohort and settings fit, which slides are for what, is it stable?"""

from __future__ import annotations

import logging
import platform
import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foci.audits.folder import FORMAT, AuditedSlide
from foci.audits.manifest import (
    MAP_FILES,
    AgreementRecord,
    BackboneRecord,
    Manifest,
    now,
    run_inputs,
    versions_of,
)
from foci.audits.selectors import PretrainedSelectors
from foci.audits.settings import (
    AUTO,
    EVIDENCE,
    FITTING_SETTINGS,
    MINIMAL,
    NATIVE,
    PROFILES,
    SELECTOR,
    AuditSettings,
)
from foci.audits.sources import Sources, check_maps
from foci.backbones import Backbone, CallableBackbone
from foci.backbones.freezing import eval_mode, fingerprint
from foci.backbones.training.run import with_train_and_val
from foci.bags import Cohort
from foci.bags.bag import many_skipped
from foci.bags.cohort import files_read, overlapping_patients
from foci.bags.splits import SPLITS
from foci.errors import BagError, ChangedError, CohortError, FociError, WidthError
from foci.files.hashes import Unchanged, digest
from foci.progress import duration
from foci.rankings import RANKINGS, minimal_is_exact
from foci.reveal import choose_engine
from foci.selectors.gated import choose_site
from foci.selectors.selector import full_logits
from foci.testing import quick_check
from foci.testing.claims import CALLS, MOST_HELD, SUBSETS, subsets_of
from foci.words import counted

_LOG = logging.getLogger(__name__)

FITTING = ("train", "val")
_LOOKED_AT = 16
_SEEN = 0.01
"""Change in probability with the number of tiles that is worth a note."""
_TOLERANCE = 1e-4
"""Allowed difference in probability; GPU sums may differ in their last digits between calls."""


@dataclass(frozen=True)
class Prepared:
    """An audit that is known to be possible; nothing is written yet.

    Attributes:
        notes: On every change.
        pretrained: Selectors that are given; None where they are fitted in the audit.
        inputs: Everything that decides the numbers, see :func:`foci.audits.manifest.run_inputs`.
        features: The feature files, which must stay as they are.
    """

    sources: Sources
    settings: AuditSettings
    notes: tuple[str, ...]
    pretrained: PretrainedSelectors | None
    inputs: Mapping[str, Any]
    versions: Mapping[str, str]
    features: Unchanged

    @property
    def backbone(self) -> Backbone:
        """The classifier."""
        return self.sources.backbone

    @property
    def cohort(self) -> Cohort:
        """The slides."""
        return self.sources.cohort

    def check_model(self) -> DriftCheck | None:
        """Check the classifier on the first slides; its answer, for checks during the run."""
        check_width(self.cohort)
        check_function(self.backbone, self.cohort)
        return check_deterministic(self.backbone, self.cohort)

    def check_files(self) -> None:
        """See that the files of features and model are as they were."""
        for files in (self.features, self.sources.model_files):
            files.check("the audit")


def prepare(sources: Sources, settings: AuditSettings, selectors: Sequence[Path]) -> Prepared:
    """Check that classifier, cohort and settings fit together; no feature file is read."""
    backbone = sources.backbone
    given = PretrainedSelectors.read(selectors, backbone, settings)
    cohort, settings, notes = admit(backbone, sources.cohort, settings, fits=given is None)
    hashes = {} if given is None else given.hashes
    return Prepared(
        sources=replace(sources, cohort=cohort),
        settings=settings,
        notes=notes,
        pretrained=given,
        inputs=run_inputs(backbone, cohort, settings, sources.split_seed, hashes),
        versions=versions_of(backbone),
        features=Unchanged(files_read(cohort)),
    )


def new_manifest(prepared: Prepared) -> Manifest:
    """Manifest of a new run, before it has any results."""
    sources, backbone, inputs = prepared.sources, prepared.backbone, prepared.inputs
    agreed = sources.agreement
    agreement = {} if agreed is None else {"agreement": AgreementRecord.model_validate(agreed)}
    return Manifest(
        format=FORMAT,
        status="running",
        key=digest(inputs),
        name=sources.name,
        settings=prepared.settings,
        sources=dict(sources.places),
        backbone=BackboneRecord(
            architecture=backbone.architecture,
            parameters=sum(p.numel() for p in backbone.parameters()),
            fingerprint=fingerprint(backbone),
            score=backbone.capabilities.score,
            notes=list(sources.model_notes),
            **agreement,
        ),
        classes=list(prepared.cohort.classes),
        split=prepared.settings.split,
        run_inputs=dict(inputs),
        versions={
            **prepared.versions,
            "python": platform.python_version(),
            "numpy": np.__version__,
        },
        started=now(),
        finished=None,
        maps=inputs.get(MAP_FILES, {}),
        overlapping_patients=dict(overlapping_patients(prepared.cohort)),
    )


@dataclass(frozen=True)
class SplitSlides:
    """Slides of an audit by use: fitting, audit, skipped.

    Attributes:
        fitting: Readable slides of ``train`` and ``val``; None if no selector is fitted.
        audited: Slides to audit; they may not have been read yet.
        notes: Assumptions, as sentences for the report.
    """

    fitting: Cohort | None
    audited: Cohort
    skipped: tuple[AuditedSlide, ...]
    notes: tuple[str, ...]

    def count(self, split: str) -> int:
        """Number of slides of a split that selectors are fitted on."""
        return sum(slide.split == split for slide in self.fitting or ())


def check_splits(cohort: Cohort, settings: AuditSettings, *, fits: bool = True) -> None:
    """Check that the cohort has the splits that the audit needs; no file is read."""
    present = {slide.split for slide in cohort} - {None}
    if not present and settings.fits_selectors:
        present = {*SPLITS}  # split_slides will make them
    if present and settings.split not in present:
        cohort.split(settings.split)
    if settings.fits_selectors and fits and "train" not in present:
        raise CohortError(
            "cohort",
            "has no slides in split 'train', which the selector is fitted on",
            "add them, or leave the selector out of the rankings",
        )


def split_slides(
    cohort: Cohort, settings: AuditSettings, split_seed: int, *, fits: bool = True
) -> SplitSlides:
    """Divide a cohort into fitting and audited slides; skip unreadable slides for fitting.

    A cohort without splits is split as in ``foci train`` (remove unreadable slides, then split by
    patient), so that the same seed gives the same split.

    Args:
        cohort: As read from its table.
        settings: Of the audit.
        split_seed: Of the patient split.
        fits: Whether selectors are fitted in the audit; False where they are given: then only the
            audited slides matter, and a split is made if there is none.
    """
    unsplit = all(slide.split is None for slide in cohort)
    if not settings.fits_selectors or not (fits or unsplit):
        audited = cohort if unsplit else cohort.split(settings.split)
        note = (
            "the cohort has no splits: every slide is audited, even if the model was trained on it"
        )
        notes = (*cohort.notes, *([note] if unsplit else _left_out(cohort, settings)))
        return SplitSlides(None, audited, _skipped(cohort, cohort), notes)
    whole = ready_to_fit(cohort, split_seed)
    fitting = replace(whole, slides=tuple(s for s in whole if s.split in FITTING))
    notes = (*whole.notes, *_left_out(whole, settings))
    own = fitting if fits else None
    return SplitSlides(own, whole.split(settings.split), _skipped(whole, cohort), notes)


def ready_to_fit(cohort: Cohort, split_seed: int) -> Cohort:
    """Read the slides of ``train`` and ``val`` once, skip unreadable ones, make missing splits.

    Other slides are not read, unless the split has still to be made.
    """
    unsplit = all(slide.split is None for slide in cohort)
    needed = [s for s in cohort if unsplit or s.split in FITTING]
    read = replace(cohort, slides=tuple(needed)).readable()
    good = {slide.slide_id for slide in read}
    wanted = {slide.slide_id for slide in needed}
    rest = tuple(s for s in cohort if s.slide_id in good or s.slide_id not in wanted)
    whole = with_train_and_val(replace(read, slides=rest), split_seed)
    if not unsplit:
        return whole
    note = "the cohort has no splits: divided by patient into train, val and test"
    return replace(whole, notes=(*whole.notes, f"{note} (70, 10 and 20 %, seed {split_seed})"))


def many_left_out(cohort: Cohort, audited: int, skipped: Collection[str]) -> str | None:
    """A sentence if more than 10 % of the audited slides, or of all rows, were skipped.

    The cohort is the one that was read, before unreadable slides were set aside.
    """
    wanted = sum(s.slide_id in skipped and s.split not in FITTING for s in cohort)
    rows = len(cohort) + len(cohort.skipped)
    of_audited = many_skipped(wanted, wanted + audited, "slides to audit")
    return of_audited or many_skipped(len(skipped), rows)


def _skipped(checked: Cohort, table: Cohort) -> tuple[AuditedSlide, ...]:
    rows = {slide.slide_id: slide for slide in table}
    found = []
    for entry in checked.skipped:
        row = rows.get(entry.slide_id)
        case_id, label = (entry.slide_id, None) if row is None else (row.case_id, row.label)
        found.append(AuditedSlide(entry.slide_id, case_id, label, skipped=entry.reason))
    return tuple(found)


def _left_out(cohort: Cohort, settings: AuditSettings) -> list[str]:
    others = Counter(s.split for s in cohort if s.split not in (*FITTING, settings.split))
    return [
        f"left out: {counted(n, 'slide')} in {'no split' if split is None else f'split {split}'}"
        for split, n in others.items()
    ]


# Do classifier, cohort and settings fit together?


def admit(
    backbone: Backbone, cohort: Cohort, settings: AuditSettings, *, fits: bool = True
) -> tuple[Cohort, AuditSettings, tuple[str, ...]]:
    """Check cohort and settings against a classifier; adapt them, with notes on every change.

    The native ranking is left out where the classifier has none and nobody asked for it. Where the
    order ``minimal`` is proven to be the best, it takes the place of the selector. A selector
    that nobody gave a target for is fitted for the recipe's own, where the slides allow it;
    ``fits`` is false where selectors are given.

    Raises:
        FociError: If a requested ranking is impossible, or the classes do not match.
    """
    usual = "rankings" not in settings.model_fields_set
    settings, notes = _possible(backbone, settings)
    if minimal_is_exact(backbone):
        settings, proven = _with_minimal(settings, usual=usual, fits=fits)
        notes += proven
    for one in settings.requested:
        given = {"selector": None} if one.method == SELECTOR else one.options
        RANKINGS[one.method].check(backbone, given)
    if settings.fits_selectors:
        choose_site(backbone, settings.plan.sites)
    check_splits(cohort, settings, fits=fits)
    notes += check_maps(cohort, settings)
    labelled = any(slide.label is not None for slide in cohort)
    if settings.target == "label" and not labelled:
        what = "cannot be the label: the cohort has none"
        raise FociError("target", what, "give a label table, or target prediction")
    cohort = for_backbone(cohort, backbone)
    if settings.fits_selectors:
        settings = settings.model_copy(update={"choose_by": settings.chosen_by})
    if settings.fits_selectors and fits:
        settings, fallback = _with_fit_target(cohort, settings)
        notes += fallback
    return cohort, settings, notes


def _with_minimal(
    settings: AuditSettings, *, usual: bool, fits: bool
) -> tuple[AuditSettings, tuple[str, ...]]:
    """``minimal`` as the readout, and no selector unless it was asked for.

    ``usual`` are rankings that nobody chose; ``fits`` is false where selectors are given.
    """
    rankings, notes = settings.rankings, list[str]()
    if usual:
        asked = settings.fit or not fits or {*FITTING_SETTINGS} & settings.model_fields_set
        chosen = [name for name in rankings if asked or name != SELECTOR]
        chosen.insert(chosen.index(EVIDENCE), MINIMAL)
        rankings = tuple(chosen)
        if not asked:
            what = "no order can do better than minimal, proven: no selector is fitted"
            notes.append(f"{what} (--fit fits one)")
    update: dict[str, Any] = {"rankings": rankings}
    if settings.readout == AUTO and MINIMAL in rankings:
        update["readout"] = MINIMAL
    return settings.model_copy(update=update), tuple(notes)


def _with_fit_target(
    cohort: Cohort, settings: AuditSettings
) -> tuple[AuditSettings, tuple[str, ...]]:
    """Settings with the selector's target decided, and a note where labels do not suffice."""
    lacking = _lacks(cohort, settings) if settings.fitted_for == "label" else None
    if lacking is None:
        return settings.model_copy(update={"fit_target": settings.fitted_for}), ()
    if settings.fit_target is not None:
        what, fix = f"cannot be the label: {lacking}", "fill the labels, or fit for prediction"
        raise FociError("fit_target", what, fix)
    note = f"the selector is fitted for the model's own prediction: {lacking}"
    return settings.model_copy(update={"fit_target": "prediction"}), (note,)


def _lacks(cohort: Cohort, settings: AuditSettings) -> str | None:
    """Why no selector can be fitted for the label, as far as the table says."""
    learned = [s for s in cohort if s.split == "train"] or list(cohort)  # a split is made later
    chosen = [s for s in cohort if s.split in FITTING] or learned
    unlabelled = sum(slide.label is None for slide in chosen)
    if unlabelled:
        return f"{unlabelled} of {counted(len(chosen), 'slide')} to fit on without a label"
    present = {slide.label for slide in learned}
    if settings.plan.class_conditional and len(present) == 1 < len(cohort.classes):
        return f"all slides to learn from are of class {present.pop()}"
    return None


def for_backbone(cohort: Cohort, backbone: Backbone) -> Cohort:
    """Adapt a cohort to a classifier: features of its width, one class name per output."""
    classes = cohort.classes or tuple(f"class {number}" for number in range(backbone.n_classes))
    store = cohort.store.for_model(backbone.d_in)
    if len(classes) != backbone.n_classes:
        what = f"have {len(classes)} classes ({', '.join(classes)}), the model has "
        fix = "give the model's classes in its order"
        check_width(replace(cohort, store=store))  # features of another model come first
        raise CohortError("labels", f"{what}{backbone.n_classes}", fix)
    return replace(cohort, classes=classes, store=store)


def _possible(backbone: Backbone, settings: AuditSettings) -> tuple[AuditSettings, tuple[str, ...]]:
    """Leave out rankings that nobody asked for and the classifier cannot have."""
    usual = PROFILES[settings.profile].get("rankings")
    if "rankings" in settings.model_fields_set and settings.rankings != usual:
        return settings, ()
    claims, left_out = backbone.capabilities, {}
    if claims.score == "none" and settings.map is None:
        left_out[NATIVE] = "has no tile score of its own: there is no native ranking"
    if not claims.gate_sites:
        left_out[SELECTOR] = "passes no gradient back to its tiles: no selector is fitted"
    rest = tuple(name for name in settings.rankings if name not in left_out)
    if rest == tuple(settings.rankings):
        return settings, ()
    notes = tuple(f"{backbone.architecture} {why}" for why in left_out.values())
    return settings.model_copy(update={"rankings": rest}), notes


def check_function(backbone: Backbone, cohort: Cohort) -> None:
    """Check a wrapped function on a few tiles of the first readable bag; others are left alone.

    The quick part of :func:`foci.testing.check_backbone`: shapes, finite answers, logits that are
    none, and an order of tiles that matters although it was declared not to.
    """
    if not isinstance(backbone, CallableBackbone):
        return
    for slide in cohort:
        try:
            tiles = backbone.inputs(cohort.store.bag(slide))
        except FociError:  # the run will skip this slide and say why
            continue
        broken = next((one for one in quick_check(backbone, tiles) if not one.passed), None)
        if broken is not None:
            raise FociError(
                backbone.called,
                f"fails a check on tiles of {slide.slide_id}: {broken.detail}",
                "run foci.testing.check_backbone on it for the whole list",
            )
        return


def check_width(cohort: Cohort) -> None:
    """Look at a few slides, until one has features that the classifier can read.

    Raises:
        BagError: If all that can be read have another width; one line for the whole cohort.
    """
    wrong: list[WidthError] = []
    places = np.unique(np.linspace(0, len(cohort) - 1, min(len(cohort), _LOOKED_AT)).astype(int))
    for place in places.tolist():
        try:
            cohort.store.bag(cohort.slides[place])
        except WidthError as error:
            wrong.append(error)
        except FociError:  # the run will skip this slide and say why
            continue
        else:
            return
    if wrong:
        first = wrong[0]
        seen = f"so in all of {counted(len(wrong), 'slide')} looked at"
        raise BagError(first.where, f"{first.what} ({seen})", first.fix)


# How long will it take?

EXPECTED = 100
"""Forward passes that a slide usually takes where there is no closed form; see ``jobs.PASSES``."""

_LONG, _TOO_LONG = 60.0, 8 * 3600.0
_SMALLER = 4096


def check_time(backbone: Backbone, audited: Cohort, *, workers: int, yes: bool) -> None:
    """Time a forward pass of the largest slide, where curves cost many, and log the estimate.

    Which slide is the largest, and how much smaller others are, is taken from the file sizes.

    Raises:
        FociError: If the audit would take more than eight hours, unless ``yes`` is given or the
            command runs in a terminal.
    """
    if choose_engine(backbone) == "closed-form":
        return
    sizes = {s: s.feature_path.stat().st_size for s in audited if s.feature_path is not None}
    try:
        largest = max(sizes, key=sizes.__getitem__)
        x = backbone.inputs(audited.store.bag(largest))
    except (FociError, ValueError):  # said where the slide is audited
        return

    def estimate(tiles: Tensor) -> float:
        start = time.perf_counter()
        with eval_mode(backbone):
            full_logits(backbone, [tiles])
        return EXPECTED * (time.perf_counter() - start)

    each = estimate(x)
    total = each * sum(sizes.values()) / sizes[largest] / workers
    if each < _LONG and total < _TOO_LONG:
        return
    cut = len(x) > _SMALLER
    smaller = f"--n-cap {_SMALLER} about {duration(estimate(x[:_SMALLER]))}" if cut else ""
    _LOG.warning(
        "%s has %s tiles: about %s per slide%s",
        largest.slide_id, f"{len(x):,}", duration(each), f"; {smaller}" if cut else "",
    )  # fmt: skip
    if total > _TOO_LONG and not yes and not sys.stdin.isatty():
        fix = f"give {'--n-cap, or ' if cut else ''}--yes to run it anyway"
        raise FociError("audit", f"would take about {duration(total)}", fix)


# Is the model deterministic, and does its answer stay the same?


@dataclass(frozen=True, eq=False)
class DriftCheck:
    """A model's first answers to subsets of one bag, to be asked for again later.

    Attributes:
        bags: Subsets of several sizes, and the bag itself unless it is large.
        first: ``[len(bags), C]`` the logits.
        weights: Hash of the model's parameters and buffers.
    """

    backbone: Backbone
    slide_id: str
    bags: Sequence[Tensor]
    first: Tensor
    weights: str
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The classifier, in errors."""
        return f"backbone {self.backbone.architecture}"

    def check(self, when: str) -> None:
        """Hash the weights and ask again.

        Raises:
            ChangedError: If the weights differ, or the probabilities by more than rounding.
        """
        if fingerprint(self.backbone) != self.weights:
            what = "changed while it was audited"
            raise ChangedError(self.name, what, "leave it alone, try again")
        with eval_mode(self.backbone):
            now = full_logits(self.backbone, self.bags)
        gap = _gap(self.first, now)
        if gap > _allowed(now):
            raise ChangedError(
                self.name,
                f"the model's answer drifts: on {self.slide_id} its probabilities {when} differ "
                f"by {gap:.2g} from those at the start",
                "make it forget what it has seen (counters, running statistics, caches)",
            )


def check_deterministic(backbone: Backbone, cohort: Cohort) -> DriftCheck | None:
    """Check that the model gives the same output to the same subsets of the first readable bag.

    A wrapped function may hide a module in training mode, and its dropout cannot be switched off
    from outside; it may err now and then, or on bags of some sizes only.

    Returns:
        The answers, for further checks during the run; None if no bag can be read.

    Raises:
        FociError: If two outputs differ by more than rounding.
    """
    for slide in cohort:
        try:
            x = backbone.inputs(cohort.store.bag(slide))
            bags = subsets_of(x)
            with eval_mode(backbone):
                first, *others = [
                    full_logits(backbone, bags) for _ in range(2 + CALLS // len(bags))
                ]
        except FociError:  # the run will skip this slide and say why
            continue
        gap = max(_gap(first, second) for second in others)
        if gap > _allowed(first):
            raise FociError(
                f"backbone {backbone.architecture}",
                f"the model gives two answers to one bag: on {slide.slide_id}, or some of its "
                f"tiles, its probabilities differ by {gap:.2g}",
                "put it in eval mode (model.eval()), or switch off its randomness",
            )
        notes = _on_size(backbone, bags, first)
        held = [bag for bag in bags if len(bag) <= MOST_HELD]
        weights = fingerprint(backbone)
        return DriftCheck(backbone, slide.slide_id, held, first[: len(held)], weights, notes)
    return None


def _on_size(backbone: Backbone, bags: Sequence[Tensor], answers: Tensor) -> tuple[str, ...]:
    """A note where the same tiles twice over give another answer: no fault, but good to know."""
    small = [place for place, bag in enumerate(bags) if len(bag) <= max(SUBSETS)]
    try:
        with eval_mode(backbone):
            doubled = full_logits(backbone, [bags[place].repeat(2, 1) for place in small])
    except Exception:  # a model that takes no tile twice is not asked to
        return ()
    gap = _gap(answers[small], doubled) if small else 0.0
    if gap < _SEEN:
        return ()
    return (
        "the model's answer depends on the number of tiles, not only on which they are: with every "
        f"tile twice its probabilities move by up to {gap:.2g}. Curves hold that, too",
    )


def _gap(first: Tensor, second: Tensor) -> float:
    """Largest difference between two answers, in probability."""
    one, other = (torch.softmax(logits.double(), dim=-1) for logits in (first, second))
    return float((one - other).abs().max())


def _allowed(logits: Tensor) -> float:
    digits = torch.finfo(logits.dtype).eps if logits.is_floating_point() else 0.0
    return max(_TOLERANCE, 8 * digits)
