"""Turn a model of risks, numbers or labels into one of two sides, before it is audited.

See :mod:`foci.outputs` for the rule. Where the cut lies is decided on the validation slides.
"""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from foci.audits.settings import AuditSettings
from foci.audits.sources import Sources
from foci.backbones import Backbone
from foci.backbones.freezing import frozen, to_model
from foci.backbones.outcomes import OutcomePredictions, scalar, two_sides
from foci.bags import Cohort, Slide
from foci.errors import FociError
from foci.metrics.outcomes import c_index, macro_auc, r_squared
from foci.metrics.ranking import spearman
from foci.outputs import SIDES, SURVIVAL, Cut, Output, check_kappa, find_cut, logit
from foci.progress import track
from foci.words import counted

_LOG = logging.getLogger(__name__)


def with_sides(sources: Sources, settings: AuditSettings) -> tuple[Sources, AuditSettings]:
    """Sources and settings of the audit of a scalar output; those of classes as they are.

    The model becomes a classifier of two sides, its cohort has these classes, and the settings say
    where the cut is.
    """
    output = settings.output or sources.output or "class"
    cohort = sources.cohort
    if output == "class":
        for name in ("cut", "tau"):
            if getattr(settings, name) is not None:
                fix = "give --output cox, hazards or regression, or leave it out"
                raise FociError(f"--{name}", "means nothing for classes", fix)
        if cohort.outcomes is not None and not any(slide.label for slide in cohort):
            cohort.outcomes.check(output)
        names, wanted = cohort.classes, settings.target_class
        if wanted is not None and names and wanted not in names:
            fix = f"give one of {', '.join(names)}"
            raise FociError(f"--target-class {wanted}", "is no class of the model", fix)
        return sources, settings
    check_kappa(settings.kappa)
    backbone = sources.backbone
    if cohort.outcomes is not None:
        cohort.outcomes.check(output)
    label, names = _sides(output, settings, cohort, backbone)
    mean, scale = (0.0, 1.0) if sources.record is None else sources.record.units
    if output == "multilabel":
        tau = logit(settings.kappa) if settings.tau is None else settings.tau
        cut, where = Cut(settings.cut or 0.0, tau), ""
    elif settings.cut is not None and settings.tau is not None:
        cut, where = Cut(settings.cut, settings.tau), ""
    else:
        values, where = _validation_outputs(backbone, output, cohort)
        cut = find_cut([mean + scale * f for f in values], settings.cut, settings.tau)
    own_units = Cut((cut.value - mean) / scale, cut.tau / scale)
    sided = two_sides(backbone, output, own_units, settings.kappa, label)
    note = (
        f"the model's output ({output}) is read against the cut {cut.value:.4g}: "
        f"{names[1]} above it, {names[0]} below, clear from a distance of {cut.tau:.4g} on{where}"
    )
    _LOG.info(note)
    slides = tuple(replace(one, label=_label(one, output, cut, names, label)) for one in cohort)
    spread = None if output == "multilabel" else settings.scale or cut.scale or 2 * cut.tau
    labels = cohort.classes if output == "multilabel" else ()
    found = {
        "output": output,
        "cut": cut.value,
        "tau": cut.tau,
        "scale": spread,
        "label_names": labels,
    }
    return replace(
        sources,
        backbone=sided,
        cohort=replace(cohort, slides=slides, classes=names),
        model_notes=(*sources.model_notes, note),
        every_label=backbone if labels else None,
    ), settings.model_copy(update=found)


def _sides(
    output: Output, settings: AuditSettings, cohort: Cohort, backbone: Backbone
) -> tuple[int | None, tuple[str, str]]:
    """The label that is followed, and what the two sides are called."""
    if output != "multilabel":
        return None, SIDES[output]
    labels, name = cohort.classes, settings.target_class
    fix = f"give --target-class, one of {', '.join(labels)}"
    if len(labels) != backbone.n_classes:
        what = f"has {counted(len(labels), 'label')}, the model has {backbone.n_classes}"
        raise FociError("output multilabel", what, "name all with --label-columns, in its order")
    if name is None:
        raise FociError("output multilabel", "is audited one label at a time", fix)
    if name not in labels:
        raise FociError(f"--target-class {name}", "is no label of the model", fix)
    return labels.index(name), (f"no {name}", name)


def _label(
    slide: Slide, output: Output, cut: Cut, names: tuple[str, str], label: int | None
) -> str | None:
    """The side that a slide is truly on; None where it is unknown, as of every survival."""
    if not slide.outcome or output in SURVIVAL:
        return None
    if label is not None:
        return names[int(slide.outcome[label])]
    return names[int(slide.outcome[0] >= cut.value)]


def _validation_outputs(
    backbone: Backbone, output: Output, cohort: Cohort
) -> tuple[list[float], str]:
    """The model's output on the validation slides; without any, on those it was trained on, or all.

    And where they came from, in words.
    """
    chosen, called = list(cohort), "of the cohort, which has no validation slides"
    for split, name in (("train", "to train on: there are no validation slides"), ("val", "")):
        if own := [slide for slide in cohort if slide.split == split]:
            chosen, called = own, name or "to validate on"
    store = cohort.store.for_model(backbone.d_in)
    values: list[float] = []
    with frozen(backbone):
        for slide in track(chosen, "placing the cut"):
            try:
                x = to_model(backbone.inputs(store.bag(slide)), backbone)
            except FociError:  # said where the slide is read
                continue
            values.append(float(scalar(backbone(x).double(), output)))
    if not values or not np.isfinite(values).all():
        what = "is not finite" if values else "is known of no readable slide"
        raise FociError("output", f"{what}, so that it cannot be cut", "give --cut and --tau")
    return values, f" (median and half the interquartile range of {len(values)} slides {called})"


def outcome_split_scores(seen: OutcomePredictions) -> dict[str, float | None]:
    """Scores of a split; the first one chooses the epoch of a training. None where undefined."""
    values = seen.values[:, 0]
    if seen.output in SURVIVAL:
        found = {"C-index": c_index(values, *seen.outcomes.T)}
    elif seen.output == "regression":
        truth = seen.outcomes[:, 0]
        found = {"R2": r_squared(values, truth), "Spearman": spearman(values, truth)}
    else:
        found = {"macro AUC": macro_auc(seen.values, seen.outcomes)}
    known = {name: one if np.isfinite(one) else None for name, one in found.items()}
    return {**known, "loss": seen.loss}
