"""Alarms about a model's answers to whole slides: wrong way round, too bad, or always the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.records import Alarm
from foci.backbones.saved import ModelRecord
from foci.metrics import case_means, percentile_interval
from foci.metrics.answers import MIN_CASES
from foci.metrics.cohort.discrimination import class_auc_draws, class_aucs
from foci.metrics.inputs import Floats
from foci.metrics.stats import Interval
from foci.words.plural import tally

FAR_BELOW_CHANCE = 0.4
"""An AUC up to this, whose whole interval lies below 0.5, is far below chance."""

TEST_MARGIN = 0.05
"""A score this far below the model's own, whose whole interval lies below it, is clearly below."""

CONSTANT = 0.01
"""Probabilities that differ by less than this over all slides are one answer."""

DRAWS, LEVEL = 1000, 0.95


def below_chance(labelled: ViewSlides | None, classes: Sequence[str]) -> Alarm | None:
    """AUC far below 0.5: classes in another order, or labels of another task."""
    if labelled is None or _patients(labelled) < MIN_CASES:
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
        numbers=_numbers("auc", found),
    )


def below_test_figure(labelled: ViewSlides | None, record: ModelRecord | None) -> Alarm | None:
    """AUC (or accuracy, without one) clearly below what the model reached on its test split."""
    if labelled is None or record is None or _patients(labelled) < MIN_CASES:
        return None
    aucs = class_aucs(labelled.full, labelled.labels)
    auc, before = float(aucs.mean()), record.test_score("auc")
    if before is not None and not np.isnan(auc):
        if auc > before - TEST_MARGIN:
            return None
        draws = class_auc_draws(labelled.full, labelled.labels, labelled.cases, DRAWS)
        return _below("AUC", percentile_interval(auc, draws.mean(axis=1), LEVEL), before)
    before = record.test_score("accuracy")
    return None if before is None else _below("Accuracy", _accuracy(labelled), before)


def _below(name: str, here: Interval, before: float) -> Alarm | None:
    """An alarm if a score is clearly below the model's own on its test split."""
    if here.estimate > before - TEST_MARGIN or not here.below(before):
        return None
    return Alarm(
        kind="below test figure",
        sentence=(
            f"{name} is {_with_ends(here)}, clearly below {before:.3f}, the model's own on its "
            "test split: are these the features, the classes and the kind of slides that it was "
            "trained for?"
        ),
        numbers={**_numbers(name.lower(), here), "test": before},
    )


def constant_answer(everyone: ViewSlides) -> Alarm | None:
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


def single_class(
    everyone: ViewSlides, labelled: ViewSlides | None, classes: Sequence[str]
) -> Alarm | None:
    """One predicted class for all slides, unless they are all of that class."""
    if len(everyone) < MIN_CASES or len(set(everyone.predictions.tolist())) > 1:
        return None
    known = Counter() if labelled is None else Counter(classes[i] for i in labelled.labels)
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


def _patients(group: ViewSlides) -> int:
    return len(set(group.cases))


def _accuracy(labelled: ViewSlides) -> Interval:
    right: Floats = (labelled.predictions == labelled.labels).astype(np.float64)
    draws = case_means(right[:, None], labelled.cases, DRAWS)[:, 0]
    return percentile_interval(float(right.mean()), draws, LEVEL)


def _with_ends(one: Interval) -> str:
    return (
        f"{one.estimate:.3f} ({LEVEL:.0%} interval over patients {one.low:.3f} to {one.high:.3f})"
    )


def _numbers(name: str, one: Interval) -> dict[str, float]:
    return {name: one.estimate, "low": one.low, "high": one.high}
