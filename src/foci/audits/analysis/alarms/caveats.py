"""Caveats beside the numbers: what is undefined or needs care, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from foci.audits.analysis.per_ranking import RANDOM
from foci.audits.analysis.slides.per_slide import SlideMetrics
from foci.audits.analysis.slides.views import ViewSlides
from foci.audits.analysis.summary import RankingNumbers
from foci.audits.settings import AnalysisSettings, View
from foci.metrics.cohort.selected_only import adaptive_budget
from foci.metrics.curve.deletion import PAPER_COUNTS
from foci.metrics.stats import MIN_DRAWS
from foci.words.plural import counted
from foci.words.rounding import in_percent


def caveats(
    views: Mapping[View, ViewSlides],
    measured: Mapping[View, Mapping[str, SlideMetrics]],
    classes: Sequence[str],
    settings: AnalysisSettings,
    numbers: Mapping[View, Mapping[str, RankingNumbers]],
) -> list[str]:
    """List everything that is undefined or needs care, with the reason.

    Args:
        views: The slides of every view.
        measured: Metrics of every slide, by view and ranking.
        classes: Class names.
        settings: Threshold and budget.
        numbers: Numbers of every ranking, by view.
    """
    everyone, labelled = views["prediction"], views.get("label")
    by_ranking = measured["prediction"]
    return [
        *_patients(everyone, settings),
        *_labels(everyone, labelled, classes, settings),
        *_unreached(by_ranking, settings),
        *_counts(numbers["prediction"]),
        *_relative(by_ranking),
        *_faithfulness(everyone, by_ranking),
        *_selected(labelled, numbers["prediction"]),
        *_spurious(labelled, numbers.get("label", {})),
    ]


def _patients(everyone: ViewSlides, settings: AnalysisSettings) -> list[str]:
    """What one patient, too few draws or single tiles leave open."""
    said = []
    if len(everyone) == 1:
        said.append("One slide was audited: there are no intervals, and it says nothing of others.")
    elif len(set(everyone.cases)) == 1:
        said.append(
            "All slides come from one patient: there are no intervals, and no number carries over "
            "to other patients."
        )
    elif settings.n_boot < MIN_DRAWS:
        draws = counted(settings.n_boot, "bootstrap draw")
        said.append(f"{draws} cannot give an interval: there is none. Raise n_boot.")
    if (everyone.n_tiles == 1).all():
        said.append("Every slide has a single tile: all rankings are the same, whatever they say.")
    return said


def _labels(
    everyone: ViewSlides,
    labelled: ViewSlides | None,
    classes: Sequence[str],
    settings: AnalysisSettings,
) -> list[str]:
    if labelled is None:
        said = ["No audited slide has a label: AUC, accuracy and the label view are left out."]
        if settings.target == "label":
            said.append("The label view cannot come first: the prediction view does.")
        return said
    said = []
    lacking = len(everyone) - len(labelled)
    if lacking:
        said.append(
            f"{lacking} of {len(everyone)} slides {'has' if lacking == 1 else 'have'} no label: "
            f"AUC, accuracy and the label view rest on the other {len(labelled)}."
        )
    absent = [name for i, name in enumerate(classes) if i not in labelled.labels]
    if absent:
        said.append(f"No audited slide is of class {', '.join(absent)}: AUC is undefined.")
    return said


def _unreached(by_ranking: Mapping[str, SlideMetrics], settings: AnalysisSettings) -> list[str]:
    said = []
    for name, measured in by_ranking.items():
        silent = int((measured.reached.sum(axis=1) == 0).sum())
        n = len(measured.msk)
        drawn = "orders" if name == RANDOM else "seeds"
        which = f"{name} reaches" if n == 1 else f"{silent} of {n} {drawn} of {name} reach"
        if silent:
            said.append(
                f"{which} {settings.kappa:g} on no slide within {counted(settings.k_max, 'tile')}: "
                "it has no MSK there; read the restricted mean instead."
            )
    return said


def _counts(numbers: Mapping[str, RankingNumbers]) -> list[str]:
    """What was not computed at every count, and what that does to the numbers."""
    behind = {name: own.counts for name, own in numbers.items()}
    sparse = [own for own in behind.values() if own.insertion == "grid"]
    said = []
    if sparse:
        bounds = sum(own.n_bounds for own in sparse)
        exact = "MSK and Reach are exact" if not bounds else f"MSK is an upper bound {bounds} times"
        worst = max(own.aukc_error for own in sparse)
        said.append(
            f"Tiles were revealed at every count up to the crossing and on a grid beyond: {exact}; "
            f"a mean AUKC is off by at most {worst:.3f}; stable MSK, falling back "
            "and the highest confidence are read off the grid."
        )
    if any(own.deletion == "grid" for own in behind.values()):
        said.append("Tiles were deleted on a grid of counts: decisive K is an upper bound.")
    few = behind.get(RANDOM)
    n_orders = len(numbers[RANDOM].reach_seeds) if few is not None else 0
    if few is not None and 0 < few.n_deleted < n_orders:
        said.append(
            f"Tiles were deleted under {few.n_deleted} of {n_orders} random orders; "
            "--dense computes every count under every order."
        )
    return said


def _relative(by_ranking: Mapping[str, SlideMetrics]) -> list[str]:
    """Crossings of a share of the full bag's confidence that were not looked for count by count."""
    bounds = 0
    for own in by_ranking.values():
        whole, walked = own.sampling.inserted, own.sampling.walked
        relative = [counts.msk for threshold, counts in own.at.items() if threshold.relative]
        bounds += sum(int((~(whole | (msk <= walked))).sum()) for msk in relative)
    if not bounds:
        return []
    return [
        f"Relative to the slide's own confidence, MSK is an upper bound {bounds} times: an audit "
        "with --kappa relative or --dense finds it exactly."
    ]


def _faithfulness(everyone: ViewSlides, by_ranking: Mapping[str, SlideMetrics]) -> list[str]:
    short = int((everyone.n_tiles <= PAPER_COUNTS[1]).sum())
    said = []
    if short:
        said.append(
            f"{counted(short, 'slide')} with {PAPER_COUNTS[1]} tiles or fewer: left out of the "
            "Faithfulness AUC."
        )
    lost = [
        name
        for name, measured in by_ranking.items()
        if short < len(everyone) and np.isnan(measured.faithfulness).all()
    ]
    if lost:
        counts = ", ".join(map(str, PAPER_COUNTS))
        said.append(f"Deletion was not measured at {counts}: no Faithfulness AUC.")
    return said


def _selected(labelled: ViewSlides | None, numbers: Mapping[str, RankingNumbers]) -> list[str]:
    if labelled is None or len(set(labelled.labels.tolist())) < labelled.full.shape[1]:
        return []  # no AUC is defined at all, which _labels says
    kept = [own.selected_only for own in numbers.values() if own.selected_only is not None]
    said = []
    if any(one.auc is None for one in kept):
        said.append(f"K = {kept[0].k} was not revealed: no selected-only AUC.")
    if any(one.adaptive_auc is None for one in kept):
        largest = max(adaptive_budget(int(n)) for n in labelled.n_tiles)
        said.append(
            f"The adaptive counts (up to {largest} tiles) were not all revealed: no adaptive AUC."
        )
    return said


def _spurious(labelled: ViewSlides | None, numbers: Mapping[str, RankingNumbers]) -> list[str]:
    if labelled is None:
        return []
    accuracy = float((labelled.predictions == labelled.labels).mean())
    above = [name for name, n in numbers.items() if n.reach.estimate > accuracy]
    if not above:
        return []
    return [
        f"In the label view {', '.join(above)} reach{'es' if len(above) == 1 else ''} more slides "
        f"than the model classifies correctly ({in_percent(accuracy)}): on "
        "misclassified slides an order can cross the threshold for the true class by accident."
    ]
