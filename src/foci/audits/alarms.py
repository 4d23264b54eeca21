"""What makes the numbers of an audit doubtful: alarms, and caveats beside the numbers.

An alarm says that numbers may not mean what they seem to mean: the wrong features, labels, classes
or slides. A caveat says what is undefined or needs care, with the reason.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from foci.audits.folder import AuditedSlide
from foci.audits.measure import MeasuredSlides, WholeSlides
from foci.audits.records import Alarm, RankingNumbers
from foci.audits.settings import KEPT, PAPER, RANDOM, AuditSettings, View
from foci.metrics import case_means, percentile_interval
from foci.metrics.answers import MIN_CASES
from foci.metrics.cohort import adaptive_budget, class_auc_draws, class_aucs
from foci.metrics.deletion import PAPER_COUNTS
from foci.metrics.inputs import Floats
from foci.metrics.stats import MIN_DRAWS, Interval
from foci.outputs import SURVIVAL
from foci.words import counted, in_percent, listed, some, tally

if TYPE_CHECKING:
    from foci.backbones.saved import ModelRecord, TrainingData

ZERO_SHARE = 0.5
"""Share of zero tiles from which a bag is named."""

REPEATED_SHARE = 0.9
"""Share of tiles with an equal one from which a bag is named."""

FAR_BELOW_CHANCE = 0.4
"""An AUC up to this, whose whole interval lies below 0.5, is far below chance."""

TEST_MARGIN = 0.05
"""A score this far below the model's own, whose whole interval lies below it, is clearly below."""

NORM_FACTOR, FEW_FACTOR, MEAN_WIDTHS, MEAN_SHARE = 2.0, 4.0, 1.5, 0.25
"""Limits of :func:`feature_scale`."""

CONSTANT = 0.01
"""Probabilities that differ by less than this over all slides are one answer."""

DRAWS, LEVEL = 1000, 0.95


def find_alarms(
    slides: Sequence[AuditedSlide],
    whole: WholeSlides,
    classes: Sequence[str],
    *,
    record: ModelRecord | None = None,
    trained_on: Collection[str] = (),
    fitted: Mapping[str, str | None] | None = None,
    overlapping: Collection[str] = (),
    patients: Collection[str] = (),
) -> list[Alarm]:
    """All alarms, those that question the most numbers first.

    None of them depends on the threshold or the budget. ``fitted`` holds the encoder of every slide
    that selectors were fitted on, ``overlapping`` the patients in more than one split, ``patients``
    those of the whole cohort, audited or not.
    """
    data = None if record is None else record.data
    constant = constant_answer(whole)
    found = (
        other_encoder(slides, data),
        mixed_encoders(slides, fitted or {}),
        feature_scale(slides, data),
        below_chance(whole.labelled, classes),
        below_test_figure(whole.labelled, record),
        constant,
        None if constant else single_class(whole, classes),
        training_slides(slides, data, trained_on),
        patient_overlap(slides, overlapping),
        patient_spelling(slides, patients),
        duplicate_bags(slides),
        zero_tiles(slides),
        repeated_tiles(slides),
        coordinate_order(slides),
    )
    return [alarm for alarm in found if alarm is not None]


def other_encoder(slides: Sequence[AuditedSlide], data: TrainingData | None) -> Alarm | None:
    """Audited slides of another encoder than any that the model was trained on."""
    if data is None or not data.encoders:
        return None
    known = {_plain(name) for name in data.encoders}
    strange = [s for s in slides if s.encoder is not None and _plain(s.encoder) not in known]
    if not strange:
        return None
    return Alarm(
        kind="other encoder",
        sentence=(
            f"{len(strange)} of {len(slides)} audited slides were encoded by "
            f"{_names(s.encoder for s in strange)}, but the model was trained on features of "
            f"{_names(data.encoders)}. They are equally wide and mean something else: what is "
            "measured on them does not describe the model."
        ),
        numbers={"slides": len(strange), "audited": len(slides)},
        slides=[slide.slide_id for slide in strange],
    )


def mixed_encoders(
    slides: Sequence[AuditedSlide], fitted: Mapping[str, str | None]
) -> Alarm | None:
    """Features of several encoders among the slides that were audited or fitted on."""
    every = {**fitted, **{slide.slide_id: slide.encoder for slide in slides}}
    named = {name: encoder for name, encoder in every.items() if encoder is not None}
    counts = Counter(_plain(encoder) for encoder in named.values())
    if len(counts) < 2:
        return None
    usual = counts.most_common(1)[0][0]
    odd = [name for name, encoder in named.items() if _plain(encoder) != usual]
    return Alarm(
        kind="mixed encoders",
        sentence=(
            f"The cohort mixes features of {len(counts)} encoders "
            f"({tally(Counter(named.values()))} slides): a model can read only one of them. Use "
            "one encoder for the whole cohort."
        ),
        numbers={"encoders": len(counts), "slides": len(odd)},
        slides=odd,
    )


def feature_scale(slides: Sequence[AuditedSlide], data: TrainingData | None) -> Alarm | None:
    """Features of another size, or around another mean, than those that the model was trained on.

    The median audited slide is compared with the middle half of the training slides: a median and
    quartiles, because a few slides of blank tiles or artefacts say nothing of a cohort. The norm
    may be a factor of two beyond that range, and the mean beyond it by 1.5 times its width (Tukey's
    fences), or by a quarter of a feature's typical size where that is more: another split or
    another hospital stays inside, while a forgotten scaling, division by the norm or
    standardisation moves it by more.
    The median of fewer than six slides, on either side, may be that of one odd slide: only the norm
    counts then, from four times on.
    """
    if data is None or data.feature_norm is None or data.feature_mean is None:
        return None
    known = [s for s in slides if s.feature_norm is not None and s.feature_mean is not None]
    if not known:
        return None
    enough = min(len(known), len(data.fingerprints)) >= MIN_CASES
    norm, mean = data.feature_norm, data.feature_mean
    factor = NORM_FACTOR if enough else FEW_FACTOR
    typical = norm.median / math.sqrt(data.width)
    width = mean.high - mean.low
    beyond = max(MEAN_WIDTHS * width, MEAN_SHARE * typical) if enough else math.inf
    checks = (
        ("norm", "the norm of a tile's features", norm, norm.low / factor, norm.high * factor),
        ("mean", "the mean of all features", mean, mean.low - beyond, mean.high + beyond),
    )
    found, numbers, odd = list[str](), dict[str, float](), set[str]()
    for name, what, trained, low, high in checks:
        own = {s.slide_id: getattr(s, f"feature_{name}") for s in known}
        here = float(np.median(list(own.values())))
        if low <= here <= high:
            continue
        found.append(
            f"{what} is {here:.3g} on the median slide and was {trained.median:.3g} in training "
            f"({trained.low:.3g} to {trained.high:.3g} on the middle half of the slides)"
        )
        numbers |= {name: here, f"{name}_in_training": trained.median}
        odd |= {slide for slide, value in own.items() if not low <= value <= high}
    if not found:
        return None
    what = ", and ".join(found)
    return Alarm(
        kind="feature scale",
        sentence=(
            f"{what[0].upper()}{what[1:]}: the features were scaled or normalised in another way, "
            "or are of another encoder. Prepare them as for training."
        ),
        numbers={**numbers, "slides": len(odd), "audited": len(slides)},
        slides=[slide.slide_id for slide in slides if slide.slide_id in odd],
    )


def training_slides(
    slides: Sequence[AuditedSlide], data: TrainingData | None, trained_on: Collection[str]
) -> Alarm | None:
    """Audited slides that the model was trained on, under their own or under other names."""
    content = set() if data is None else set(data.fingerprints.values())
    seen = [s.slide_id for s in slides if s.slide_id in trained_on or s.fingerprint in content]
    if not seen:
        return None
    renamed = sum(name not in trained_on for name in seen)
    under = f", {renamed} of them under other names" if renamed else ""
    return Alarm(
        kind="training slides",
        sentence=(
            f"{len(seen)} of the {len(slides)} audited slides are among those that the model was "
            f"trained on{under}: what is measured there does not carry over to new slides."
        ),
        numbers={"slides": len(seen), "renamed": renamed, "audited": len(slides)},
        slides=seen,
    )


def patient_overlap(slides: Sequence[AuditedSlide], overlapping: Collection[str]) -> Alarm | None:
    """Audited slides of patients who are in another split as well."""
    touched = [slide.slide_id for slide in slides if slide.case_id in overlapping]
    if not touched:
        return None
    return Alarm(
        kind="patient overlap",
        sentence=(
            f"{len(touched)} of the {len(slides)} audited slides are of patients in another split "
            "as well: what is measured there does not carry over to new patients."
        ),
        numbers={"slides": len(touched), "audited": len(slides), "patients": len(overlapping)},
        slides=touched,
    )


def patient_spelling(slides: Sequence[AuditedSlide], patients: Collection[str]) -> Alarm | None:
    """Audited slides of patients of whom the cohort has another spelling: ``P1`` and ``p1``."""
    spellings = defaultdict[str, set[str]](set)
    for case in (*patients, *(slide.case_id for slide in slides)):
        spellings[case.strip().casefold()].add(case)
    groups = {name: sorted(own) for name, own in spellings.items() if len(own) > 1}
    touched = [slide for slide in slides if slide.case_id.strip().casefold() in groups]
    if not touched:
        return None
    found = list(dict.fromkeys(slide.case_id.strip().casefold() for slide in touched))
    named = listed([" and ".join(f"'{case}'" for case in groups[name]) for name in found])
    return Alarm(
        kind="patient spelling",
        sentence=(
            f"Patients that differ only in case or in blanks around their names ({named}) are "
            "counted as different ones: if they are the same, intervals are too narrow, and a "
            "patient may be in two splits. Spell every patient in one way in the label table."
        ),
        numbers={
            "slides": len(touched),
            "audited": len(slides),
            "patients": len(found),
            "names": sum(len(groups[name]) for name in found),
        },
        slides=[slide.slide_id for slide in touched],
    )


def not_compared(slides: Sequence[AuditedSlide], record: ModelRecord | None) -> list[str]:
    """Notes on what could not be compared with the features that a model was trained on."""
    if record is None:
        return []
    data = record.data
    if data is None:
        return [
            "the model's folder does not say which features it was trained on: encoder and "
            "training slides cannot be compared"
        ]
    silent = sum(slide.encoder is None for slide in slides)
    if data.encoders and silent:
        return [
            f"{silent} of {len(slides)} audited slides are of files that name no encoder: whether "
            f"it is {_names(data.encoders)}, as in training, cannot be told"
        ]
    if not data.encoders and silent < len(slides):
        return ["the model was trained on files that name no encoder: it cannot be compared"]
    return []


def _plain(encoder: str) -> str:
    """An encoder's name without case and punctuation: tools spell it differently."""
    return re.sub(r"[^a-z0-9]", "", encoder.lower())


def _names(encoders: Iterable[str | None]) -> str:
    return " and ".join(sorted({name for name in encoders if name is not None}))


def below_chance(labelled: WholeSlides | None, classes: Sequence[str]) -> Alarm | None:
    """AUC far below 0.5: classes in another order, or labels of another task."""
    if labelled is None or len(set(labelled.cases)) < MIN_CASES:
        return None
    estimates = class_aucs(labelled.full, labelled.labels)
    if not (estimates <= FAR_BELOW_CHANCE).any():
        return None
    worst = int(np.nanargmin(estimates))
    draws = class_auc_draws(labelled.full, labelled.labels, labelled.cases, DRAWS)
    found = percentile_interval(float(estimates[worst]), draws[:, worst], LEVEL)
    if not found.below(0.5):
        return None
    what = "AUC" if len(classes) == 2 else f"AUC of {classes[worst]} against the rest"
    return Alarm(
        kind="below chance",
        sentence=(
            f"{what} is {_with_ends(found)}, far below 0.5: the model tells the classes apart the "
            f"wrong way round. Are they in the model's order ({', '.join(classes)}), and are these "
            "the labels of its task?"
        ),
        numbers={"auc": found.estimate, "low": found.low, "high": found.high},
    )


def below_test_figure(labelled: WholeSlides | None, record: ModelRecord | None) -> Alarm | None:
    """AUC or accuracy clearly below what the model reached on its test split.

    Both are checked: features that are ten times too large leave the order of the slides, and with
    it the AUC, nearly as it was, while decisions go wrong.
    """
    if labelled is None or record is None or len(set(labelled.cases)) < MIN_CASES:
        return None
    full, labels, cases = labelled.full, labelled.labels, labelled.cases
    right: Floats = (labelled.predictions == labels).astype(np.float64)
    figures: tuple[tuple[str, float, Callable[[], Floats]], ...] = (
        ("AUC", float(class_aucs(full, labels).mean()),
         lambda: class_auc_draws(full, labels, cases, DRAWS).mean(axis=1)),
        ("accuracy", float(right.mean()),
         lambda: case_means(right[:, None], cases, DRAWS)[:, 0]),
    )  # fmt: skip
    fallen, numbers = list[str](), dict[str, float]()
    for name, here, draws in figures:
        before = record.test_score(name.lower())
        if before is None or np.isnan(here) or here > before - TEST_MARGIN:
            continue
        found = percentile_interval(here, draws(), LEVEL)
        if found.below(before):
            fallen.append(f"{name} is {_with_ends(found)}, clearly below {before:.3f}")
            own = {"": here, "_low": found.low, "_high": found.high, "_test": before}
            numbers |= {name.lower() + ending: value for ending, value in own.items()}
    if not fallen:
        return None
    what = ", and ".join(fallen)
    return Alarm(
        kind="below test figure",
        sentence=(
            f"{what[0].upper()}{what[1:]}, the model's own on its test split: are these the "
            "features, the classes and the kind of slides that it was trained for?"
        ),
        numbers=numbers,
    )


def constant_answer(everyone: WholeSlides) -> Alarm | None:
    """The same probabilities for every slide, unless they are all of one class and rightly so."""
    if len(everyone) < 2 or (everyone.predictions == everyone.labels).all():
        return None
    spread = float(np.ptp(everyone.full, axis=0).max())
    if spread >= CONSTANT:
        return None
    return Alarm(
        kind="constant answer",
        sentence=(
            f"The model gives all {len(everyone)} slides the same answer: their probabilities "
            f"differ by at most {spread:.2g}. It tells no slide from another, so that no tile "
            "matters; are these the features that it was trained on?"
        ),
        numbers={"spread": spread, "slides": len(everyone)},
    )


def single_class(everyone: WholeSlides, classes: Sequence[str]) -> Alarm | None:
    """One predicted class for all slides, unless they are all of that class."""
    if len(everyone) < MIN_CASES or len(set(everyone.predictions.tolist())) > 1:
        return None
    known = Counter(classes[label] for label in everyone.labels if label >= 0)
    predicted = classes[everyone.predictions[0]]
    if set(known) == {predicted}:
        return None
    labels = f"although the labels are {tally(known)}" if known else "and no label says otherwise"
    return Alarm(
        kind="single class",
        sentence=(
            f"All {len(everyone)} slides are predicted to be {predicted}, {labels}: only what "
            f"speaks for {predicted} is measured here."
        ),
        numbers={"slides": len(everyone), "classes": len(known)},
    )


def _with_ends(one: Interval) -> str:
    return (
        f"{one.estimate:.3f} ({LEVEL:.0%} interval over patients {one.low:.3f} to {one.high:.3f})"
    )


def duplicate_bags(slides: Sequence[AuditedSlide]) -> Alarm | None:
    """Slides that hold the same features under several names."""
    by_content = defaultdict[str | None, list[AuditedSlide]](list)
    for slide in slides:
        by_content[slide.fingerprint].append(slide)
    groups = [same for same in by_content.values() if len(same) > 1]
    if not groups:
        return None
    named = [slide.slide_id for same in groups for slide in same]
    unlike = sum(len({slide.label for slide in same} - {None}) > 1 for same in groups)
    sentence = (
        f"{some(named)} hold the same features as another slide: "
        f"{counted(len(slides), 'audited slide')} are only {len(by_content)} different ones, so "
        "that means count some of them again and intervals are too narrow."
    )
    if unlike:
        sentence += f" {counted(unlike, 'group')} of equal bags with different labels."
    return Alarm(
        kind="duplicate bags",
        sentence=sentence,
        numbers={"slides": len(named), "different": len(by_content), "audited": len(slides)},
        slides=named,
    )


def zero_tiles(slides: Sequence[AuditedSlide]) -> Alarm | None:
    """Slides of whose tiles at least half have no features."""
    bad = [s for s in slides if s.n_zero is not None and s.n_zero >= ZERO_SHARE * s.n_tiles]
    if not bad:
        return None
    worst = max(bad, key=lambda slide: (slide.n_zero or 0) / slide.n_tiles)
    named = [slide.slide_id for slide in bad]
    return Alarm(
        kind="zero tiles",
        sentence=(
            f"Half or more of the tiles are all zero in {some(named)}; in {worst.slide_id} "
            f"{worst.n_zero} of {worst.n_tiles}. Such tiles were padded or never encoded: extract "
            "these slides again."
        ),
        numbers={"slides": len(bad), "worst_share": (worst.n_zero or 0) / worst.n_tiles},
        slides=named,
    )


def repeated_tiles(slides: Sequence[AuditedSlide]) -> Alarm | None:
    """Slides of whose tiles almost every one is there twice or more; all-zero tiles aside."""
    bad = [
        s
        for s in slides
        if s.n_repeated and s.n_repeated >= REPEATED_SHARE * (s.n_tiles - (s.n_zero or 0))
    ]
    if not bad:
        return None
    worst = max(bad, key=lambda slide: slide.n_repeated or 0)
    named = [slide.slide_id for slide in bad]
    return Alarm(
        kind="repeated tiles",
        sentence=(
            f"Almost every tile is there twice or more in {some(named)}; in {worst.slide_id} "
            f"{worst.n_repeated} of {worst.n_tiles} tiles have the features of another one. "
            "Numbers of tiles are too large, and a deleted tile leaves its copy behind: keep each "
            "tile once."
        ),
        numbers={
            "slides": len(bad),
            "audited": len(slides),
            "repeated": sum(slide.n_repeated or 0 for slide in bad),
            "tiles": sum(slide.n_tiles for slide in bad),
        },
        slides=named,
    )


def coordinate_order(slides: Sequence[AuditedSlide]) -> Alarm | None:
    """Slides whose files show that coordinates are of another order than features."""
    bad = [slide for slide in slides if slide.misplaced is not None]
    if not bad:
        return None
    named = [slide.slide_id for slide in bad]
    return Alarm(
        kind="coordinate order",
        sentence=(
            f"Coordinates seem to be of another order than features in {some(named)}. In "
            f"{named[0]}, {bad[0].misplaced}. Write both in one run of the extraction."
        ),
        numbers={"slides": len(bad), "audited": len(slides)},
        slides=named,
    )


# Caveats


def caveats(
    measured: MeasuredSlides,
    classes: Sequence[str],
    settings: AuditSettings,
    numbers: Mapping[View, Mapping[str, RankingNumbers]],
    left_out: Sequence[str] = (),
) -> list[str]:
    """List everything that is undefined or needs care, with the reason.

    ``left_out`` are the labels without an AUC.
    """
    own, labelled = numbers["prediction"], measured.slides.labelled
    notes = [
        *_on_slides(measured.slides, settings),
        *_on_labels(measured.slides, labelled, classes, settings, left_out),
        *_on_reach(measured, settings),
        *_on_counts(measured, own),
        *_on_faithfulness(measured),
    ]
    if labelled is not None:
        notes += [*_on_selected(labelled, own), *_on_accidents(labelled, numbers["label"])]
    if settings.profile == PAPER and (whole := int((measured.slides.n_tiles <= KEPT).sum())):
        kept = f"K = {KEPT} keeps every tile on {counted(whole, 'slide')}"
        notes.append(f"{kept}: selected-only AUC and Faithfulness say nothing of them.")
    return notes


def _on_slides(slides: WholeSlides, settings: AuditSettings) -> Iterator[str]:
    """What one patient, too few draws or single tiles leave open."""
    if len(slides) == 1:
        yield "One slide was audited: there are no intervals, and it says nothing of others."
    elif len(set(slides.cases)) == 1:
        yield (
            "All slides come from one patient: there are no intervals, and no number carries over "
            "to other patients."
        )
    elif settings.n_boot < MIN_DRAWS:
        draws = counted(settings.n_boot, "bootstrap draw")
        yield f"{draws} cannot give an interval: there is none. Raise n_boot."
    if (slides.n_tiles == 1).all():
        yield "Every slide has a single tile: all rankings are the same, whatever they say."


def _on_labels(
    slides: WholeSlides,
    labelled: WholeSlides | None,
    classes: Sequence[str],
    settings: AuditSettings,
    left_out: Sequence[str],
) -> Iterator[str]:
    if labelled is None and settings.output in SURVIVAL:
        if not np.isfinite(slides.outcomes).all(axis=1).any() or not slides.outcomes.size:
            yield "No audited slide has a time and an event: there is no C-index."
        return
    if labelled is None:
        yield "No audited slide has a label: AUC, accuracy and the label view are left out."
        if settings.target == "label":
            yield "The label view cannot come first: the prediction view does."
        return
    lacking = len(slides) - len(labelled)
    if lacking:
        yield (
            f"{lacking} of {len(slides)} slides {'has' if lacking == 1 else 'have'} no label: "
            f"AUC, accuracy and the label view rest on the other {len(labelled)}."
        )
    absent = [name for i, name in enumerate(classes) if i not in labelled.labels]
    if absent:
        yield f"No audited slide is of class {', '.join(absent)}: AUC is undefined."
    if left_out:
        names = ", ".join(left_out)
        yield f"All scored slides have the same answer to {names}: left out of the macro AUC."


def _on_reach(measured: MeasuredSlides, settings: AuditSettings) -> Iterator[str]:
    for name in measured.curves.rankings:
        reached = measured.of(name).reached
        n, silent = len(reached), int((reached.sum(axis=1) == 0).sum())
        drawn = "orders" if name == RANDOM else "seeds"
        which = f"{name} reaches" if n == 1 else f"{silent} of {n} {drawn} of {name} reach"
        if silent:
            yield (
                f"{which} {settings.kappa:g} on no slide within {counted(settings.k_max, 'tile')}: "
                "it has no MSK there; read the restricted mean instead."
            )


def _on_counts(measured: MeasuredSlides, numbers: Mapping[str, RankingNumbers]) -> Iterator[str]:
    """What was not computed at every count, and what that does to the numbers."""
    behind = {name: own.counts for name, own in numbers.items()}
    sparse = [own for own in behind.values() if own.insertion == "grid"]
    if sparse:
        bounds = sum(own.n_bounds for own in sparse)
        exact = "MSK and Reach are exact" if not bounds else f"MSK is an upper bound {bounds} times"
        worst = max(own.aukc_error for own in sparse)
        yield (
            f"Tiles were revealed at every count up to the crossing and on a grid beyond: {exact}; "
            f"a mean AUKC is off by at most {worst:.3f}; stable MSK, falling back "
            "and the highest confidence are read off the grid."
        )
    if any(own.deletion == "grid" for own in behind.values()):
        yield "Tiles were deleted on a grid of counts: decisive K is an upper bound."
    if RANDOM in numbers:
        n_deleted, n_orders = behind[RANDOM].n_deleted, len(numbers[RANDOM].reach_seeds)
        if 0 < n_deleted < n_orders:
            yield (
                f"Tiles were deleted under {n_deleted} of {n_orders} random orders; "
                "--dense computes every count under every order."
            )
    own = measured.tables["prediction"]
    shares = [threshold for threshold in own.thresholds if threshold.relative]
    bounds = sum(own.upper_bounds(own.at("msk_at", share)) for share in shares)
    if bounds:
        yield (
            f"Relative to the slide's own confidence, MSK is an upper bound {bounds} times: an "
            "audit with --kappa relative or --dense finds it exactly."
        )


def _on_faithfulness(measured: MeasuredSlides) -> Iterator[str]:
    sizes, fewest = measured.slides.n_tiles, PAPER_COUNTS[1]
    short = int((sizes <= fewest).sum())
    if short:
        slides = counted(short, "slide")
        yield f"{slides} with {fewest} tiles or fewer: left out of the Faithfulness AUC."
    names = measured.curves.rankings
    undefined = (np.isnan(measured.of(name).faithfulness).all() for name in names)
    if short < len(sizes) and any(undefined):
        counts = ", ".join(map(str, PAPER_COUNTS))
        yield f"Deletion was not measured at {counts}: no Faithfulness AUC."


def _on_selected(labelled: WholeSlides, numbers: Mapping[str, RankingNumbers]) -> Iterator[str]:
    if len(set(labelled.labels.tolist())) < labelled.full.shape[1]:
        return  # no AUC is defined at all, which _on_labels says
    kept = [own.selected_only for own in numbers.values() if own.selected_only is not None]
    if any(one.auc is None for one in kept):
        yield f"K = {kept[0].k} was not revealed: no selected-only AUC."
    if any(one.adaptive_auc is None for one in kept):
        largest = max(adaptive_budget(int(n)) for n in labelled.n_tiles)
        yield f"The adaptive counts (up to {largest} tiles) were not all revealed: no adaptive AUC."


def _on_accidents(labelled: WholeSlides, numbers: Mapping[str, RankingNumbers]) -> Iterator[str]:
    accuracy = float((labelled.predictions == labelled.labels).mean())
    above = [name for name, n in numbers.items() if n.reach.estimate > accuracy]
    if above:
        yield (
            f"In the label view {', '.join(above)} reach{'es' if len(above) == 1 else ''} more "
            f"slides than the model classifies correctly ({in_percent(accuracy)}): on "
            "misclassified slides an order can cross the threshold for the true class by accident."
        )
