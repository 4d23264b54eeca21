"""Check that classifier, cohort and settings fit together, and that the model is deterministic."""

from __future__ import annotations

from dataclasses import replace

import torch

from foci.audits.profiles import PROFILES
from foci.audits.settings import AuditSettings
from foci.audits.setup.maps import check_maps
from foci.audits.setup.splits import FITTING, check_splits
from foci.backbones import Backbone
from foci.backbones.freezing import eval_mode
from foci.bags import Cohort
from foci.errors import CohortError, FociError
from foci.plural import counted
from foci.rankings import RANKINGS
from foci.selectors.frozen import full_logits
from foci.selectors.gated.choice import choose_site


def admit(
    backbone: Backbone, cohort: Cohort, settings: AuditSettings
) -> tuple[Cohort, AuditSettings, tuple[str, ...]]:
    """Check cohort and settings against a classifier; adapt them, with notes on every change.

    The native ranking is left out where the classifier has none and nobody asked for it. A selector
    that nobody gave a target for is fitted for the recipe's own, where the slides allow it.

    Raises:
        FociError: If a requested ranking is impossible, or the classes do not match.
    """
    settings, notes = _without_native(backbone, settings)
    for one in settings.requested:
        given = {"selector": None} if one.method == "selector" else one.options
        RANKINGS[one.method].check(backbone, given)
    if settings.fits_selectors:
        choose_site(backbone, settings.plan.sites)
    check_splits(cohort, settings)
    notes += check_maps(cohort, settings)
    labelled = any(slide.label is not None for slide in cohort)
    if settings.target == "label" and not labelled:
        what = "cannot be the label: the cohort has none"
        raise FociError("target", what, "give a label table, or target prediction")
    cohort = for_backbone(cohort, backbone)
    if settings.fits_selectors:
        settings, fallback = _with_fit_target(cohort, settings)
        notes += fallback
    return cohort, settings, notes


def _with_fit_target(
    cohort: Cohort, settings: AuditSettings
) -> tuple[AuditSettings, tuple[str, ...]]:
    """Settings with the selector's target decided, and a note where labels do not suffice for it.

    Raises:
        FociError: If the label was asked for.
    """
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
    store = cohort.store.for_model(backbone.d_in)
    return replace(cohort, classes=_classes(backbone, cohort), store=store)


def _without_native(
    backbone: Backbone, settings: AuditSettings
) -> tuple[AuditSettings, tuple[str, ...]]:
    usual = PROFILES[settings.profile].get("rankings")
    asked_for = "rankings" in settings.model_fields_set and settings.rankings != usual
    if asked_for or settings.map is not None or backbone.capabilities.score != "none":
        return settings, ()
    rest = tuple(name for name in settings.rankings if name != "native")
    note = f"{backbone.architecture} has no tile score of its own: there is no native ranking"
    return settings.model_copy(update={"rankings": rest}), (note,)


def _classes(backbone: Backbone, cohort: Cohort) -> tuple[str, ...]:
    if not cohort.classes:
        return tuple(f"class {number}" for number in range(backbone.n_classes))
    if len(cohort.classes) != backbone.n_classes:
        names = ", ".join(cohort.classes)
        raise CohortError(
            "labels",
            f"have {len(cohort.classes)} classes ({names}), the model has {backbone.n_classes}",
            "give the model's classes in its order",
        )
    return cohort.classes


_TOLERANCE = 1e-4
"""Allowed difference in probability; GPU sums may differ in their last digits between calls."""


def check_deterministic(backbone: Backbone, cohort: Cohort) -> None:
    """Check that the model gives the same output twice, on the first readable bag.

    A wrapped function may hide a module in training mode, and its dropout cannot be switched off
    from outside.

    Raises:
        FociError: If the two outputs differ by more than rounding.
    """
    for slide in cohort:
        try:
            x = cohort.store.bag(slide).x
            with eval_mode(backbone):
                logits = full_logits(backbone, [x, x])
        except FociError:  # the run will skip this slide and say why
            continue
        first, second = torch.softmax(logits.double(), dim=-1)
        digits = torch.finfo(logits.dtype).eps if logits.is_floating_point() else 0.0
        difference = float((first - second).abs().max())
        if difference > max(_TOLERANCE, 8 * digits):
            raise FociError(
                f"backbone {backbone.architecture}",
                f"the model gives two answers to one bag: on {slide.slide_id} its probabilities "
                f"differ by {difference:.2g}",
                "put it in eval mode (model.eval()), or switch off its randomness",
            )
        return
