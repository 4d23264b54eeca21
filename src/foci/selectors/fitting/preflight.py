"""Checks before the first epoch: seed, target, labels, gradient."""

from __future__ import annotations

import operator
from typing import get_args

import torch

from foci.backbones.base import Backbone
from foci.bags import Cohort
from foci.errors import CohortError, FociError
from foci.selectors.fitting import Target
from foci.selectors.fitting.batch import GatedBatch
from foci.selectors.gated.base import GatedBackbone
from foci.selectors.recipes import SelectorRecipe


def check_seed(seed: int) -> int:
    """A seed of 0 or more, as a plain int.

    >>> check_seed(-1)
    Traceback (most recent call last):
    foci.errors.FociError: seed: is -1; give a whole number, 0 or more
    """
    if not hasattr(seed, "__index__") or operator.index(seed) < 0:
        raise FociError("seed", f"is {seed!r}", "give a whole number, 0 or more")
    return operator.index(seed)


def check_target(target: Target) -> None:
    """Refuse a target that is neither the label nor the prediction."""
    known = get_args(Target)
    if target not in known:
        raise FociError("target", f"is {target!r}", f"choose {' or '.join(known)}")


def check_labels(backbone: Backbone, recipe: SelectorRecipe, train: Cohort, val: Cohort) -> None:
    """Refuse labels that are missing, of other classes than the backbone's, or all of one class.

    A class-conditional head learns a class from the slides of that class. With one class alone
    all its other scores would stay as they were drawn.
    """
    found, wanted = len(train.classes), backbone.n_classes
    if found != wanted:
        raise CohortError(
            "labels",
            f"have {found} classes, the backbone has {wanted}",
            "give the backbone's classes in its order, or use target='prediction'",
        )
    present = {train.target(slide.slide_id) for slide in train}
    for slide in val:
        val.target(slide.slide_id)
    if recipe.class_conditional and len(present) == 1 < wanted:
        raise CohortError(
            "split 'train'",
            f"has only slides of class {train.classes[present.pop()]}, and {recipe.name} learns "
            "a score for every class",
            "add slides of other classes, or choose a recipe with one score (paper-ste)",
        )


def check_gradient(gated: GatedBackbone, batch: GatedBatch) -> None:
    """Refuse a backbone that passes no gradient from its logits to the gate.

    Only contiguity and budget could be learned from it.
    """
    gate = batch.mask.to(batch.full.dtype).requires_grad_()
    cause = ""
    try:
        with torch.enable_grad():
            sum_of_logits = gated.logits(batch.tiles, batch.mask, gate).sum()
        if sum_of_logits.requires_grad:
            (slope,) = torch.autograd.grad(sum_of_logits, gate, allow_unused=True)
            if slope is not None:
                return
    except torch.OutOfMemoryError:
        raise
    except RuntimeError as error:  # it raised only because gradients were asked for
        cause = f" ({error})"
    raise FociError(
        f"backbone {gated.backbone.architecture}",
        f"passes no gradient from its logits to the features{cause}",
        "declare differentiable=False, or remove no_grad, detach and NumPy from its forward pass",
    )
