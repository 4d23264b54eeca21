"""Check that classifier, cohort and settings fit together, and that a function is usable."""

from __future__ import annotations

from dataclasses import replace

from foci.audits.profiles import PROFILES
from foci.audits.settings import AuditSettings
from foci.audits.setup.maps import check_maps
from foci.audits.setup.splits import FITTING, check_splits
from foci.backbones import Backbone, CallableBackbone
from foci.bags import Cohort
from foci.errors import CohortError, FociError
from foci.rankings import RANKINGS
from foci.selectors.gated.choice import choose_site
from foci.testing import quick_check
from foci.words.plural import counted


def admit(
    backbone: Backbone, cohort: Cohort, settings: AuditSettings, *, fits: bool = True
) -> tuple[Cohort, AuditSettings, tuple[str, ...]]:
    """Check cohort and settings against a classifier; adapt them, with notes on every change.

    The native ranking is left out where the classifier has none and nobody asked for it. A selector
    that nobody gave a target for is fitted for the recipe's own, where the slides allow it.

    Args:
        backbone: The classifier.
        cohort: The slides.
        settings: Of the audit.
        fits: Whether selectors are fitted in the audit; False where they are given.

    Raises:
        FociError: If a requested ranking is impossible, or the classes do not match.
    """
    settings, notes = _without_native(backbone, settings)
    for one in settings.requested:
        given = {"selector": None} if one.method == "selector" else one.options
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


def check_function(backbone: Backbone, cohort: Cohort) -> None:
    """Check a wrapped function on a few tiles of the first readable bag; others are left alone.

    The quick part of :func:`foci.testing.check_backbone`: shapes, finite answers, logits that are
    none, and an order of tiles that matters although it was declared not to.

    Raises:
        FociError: If the function breaks a claim.
    """
    if not isinstance(backbone, CallableBackbone):
        return
    for slide in cohort:
        try:
            tiles = cohort.store.bag(slide).x
        except FociError:  # the run will skip this slide and say why
            continue
        broken = next((one for one in quick_check(backbone, tiles) if not one.passed), None)
        if broken is not None:
            raise FociError(
                f"function {backbone.called}",
                f"fails a check on tiles of {slide.slide_id}: {broken.detail}",
                "run foci.testing.check_backbone on it for the whole list",
            )
        return
