"""Fit a selector to a frozen backbone: checks, the fit itself, and the key by which it resumes."""

from __future__ import annotations

import operator
import platform
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import torch

from foci._version import __version__
from foci.backbones.base import Backbone, GateSite
from foci.backbones.freezing import device_and_dtype
from foci.backbones.training.loop import stored_key
from foci.bags import Cohort
from foci.bags.cohort import files_read, what_is_read
from foci.errors import ChangedError, CohortError, FociError
from foci.files.hashes import Unchanged, digest
from foci.selectors import Target
from foci.selectors.criterion import CRITERIA
from foci.selectors.gated import GatedBackbone, choose_site, gate_backbone
from foci.selectors.heads import Head
from foci.selectors.loop import Fit, randomness, run
from foci.selectors.losses import GatedBatch
from foci.selectors.prepared import PreparedBags, read_bag
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.recipes import recipe as named
from foci.selectors.saved import METADATA, STATE, fit_folder, head_shape, load, occupied, save
from foci.selectors.selector import FitEpoch, FittedSelector, Identity, Selector, keep_frozen

_WATCHED_BAGS = 4


def fit(
    backbone: Backbone,
    cohort: Cohort,
    recipe: str | SelectorRecipe = "default",
    *,
    seed: int = 0,
    target: Target | None = None,
    out: str | Path | None = None,
    criterion: str | None = None,
    memory_gb: float = 4.0,
    model_files: Unchanged | None = None,
    report: Callable[[FitEpoch], None] = lambda epoch: None,
) -> FittedSelector:
    """Train a selector on a frozen backbone.

    The backbone is in eval mode, without gradients and outside the optimizer; its parameters,
    buffers and full-bag logits are compared before and after, bit by bit.

    Args:
        backbone: The trained classifier; the fit runs on its device.
        cohort: With splits ``train`` (to learn from) and ``val`` (to choose the epoch), all
            readable; other slides are not read. Its classes are in the backbone's order.
        recipe: A name of :data:`foci.selectors.RECIPES`, ``"default"``, or a recipe.
        seed: 0 or more. Same seed, same selector (on a CPU).
        target: ``"label"``, or ``"prediction"``, the full-bag prediction of the classifier, which
            needs no labels; None takes the recipe's.
        out: Folder for ``selector.safetensors`` and ``selector.json``. A killed fit, started again
            with the same arguments and feature files, resumes after its last complete epoch.
        criterion: Chooses the epoch on validation slides; None takes the recipe's. ``"aukc"`` is
            their mean AUKC (a class-conditional selector is read at the prediction there, as it
            will be later), ``"decisive"`` compares decisive sets with those of ``evidence``,
            ``"loss"`` is the objective.
        memory_gb: Memory for embedded bags that are kept between epochs.
        model_files: Files that the backbone was loaded from; they must stay as they are.
        report: Called after every epoch.

    Raises:
        FociError: If the backbone passes no gradient to its tiles, if it or a feature file changes
            during the fit, if a loss is not finite, if a class-conditional recipe is given labels
            of one class, or if another fit runs in the folder.
    """
    chosen = named(recipe) if isinstance(recipe, str) else recipe
    target, seed = target or chosen.target, check_seed(seed)
    if target not in get_args(Target):
        raise FociError("target", f"is {target!r}", f"choose {' or '.join(get_args(Target))}")
    criterion = chosen.choose_by if criterion is None else criterion
    make_criterion = CRITERIA[criterion]
    site = choose_site(backbone, chosen.sites)
    train, val = cohort.split("train"), cohort.split("val")
    if target == "label":
        check_labels(backbone, chosen, train, val)
    features = Unchanged([*files_read(train), *files_read(val)])
    identity = Identity.of(backbone)
    key = run_key(identity, chosen, seed=seed, target=target, site=site, train=train, val=val,
                  criterion=criterion)  # fmt: skip
    with fit_folder(out) as folder:
        if folder is not None and (folder / METADATA).exists():  # killed after writing it
            if stored_key(folder / STATE) != key:
                raise occupied(folder)
            return load(folder, backbone)
        watched = [read_bag(cohort, slide, backbone).x for slide in train.slides[:_WATCHED_BAGS]]
        try:
            with (
                torch.inference_mode(False),  # a caller may have switched gradients off
                torch.enable_grad(),
                keep_frozen(backbone, watched) as compare,
            ):
                head = new_head(backbone, chosen, seed)
                gated = gate_backbone(backbone, site, dense=chosen.dense)
                tuned = chosen.start == "tuned"
                bags = PreparedBags(cohort, gated, target, memory_gb, evidence=tuned)
                check_gradient(gated, bags.batch(train.slides[:1]))
                selector = Selector(head, backbone, identity)
                score = make_criterion(bags, val)
                best_weights, history = run(
                    Fit(head, bags, train.slides, val.slides, chosen, seed),
                    key=key,
                    state_file=None if folder is None else folder / STATE,
                    criterion=None if score is None else lambda: score(selector),
                    compare=compare,
                    report=report,
                )
                notes = _notes(backbone, chosen, bags, train)
                for files in (features, model_files):
                    if files is not None:
                        files.check("the fit")
        except ChangedError:
            if folder is not None:
                (folder / STATE).unlink(missing_ok=True)
            raise
        head.load_state_dict(best_weights)
        head.requires_grad_(False)
        fitted = FittedSelector(
            best=selector,
            recipe=chosen,
            seed=seed,
            target=target,
            site=site,
            history=tuple(history),
            metadata={
                "classes": list(cohort.classes),
                "n_cap": cohort.store.n_cap,
                "slides": {"train": len(train), "val": len(val)},
                "versions": {"foci": __version__, "torch": torch.__version__,
                             "python": platform.python_version()},
                **({"notes": notes} if notes else {}),
            },
        )  # fmt: skip
        if folder is not None:
            save(fitted, folder)
    return fitted


def new_head(backbone: Backbone, recipe: SelectorRecipe, seed: int) -> Head:
    """A randomly initialised head; the global random state is left unchanged."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(randomness(seed, 0)[1].initial_seed())
        head = head_shape(backbone, recipe).make()
    device, dtype = device_and_dtype(backbone)
    return head.to(device, dtype)


def run_key(
    identity: Identity,
    recipe: SelectorRecipe,
    *,
    seed: int,
    target: Target,
    site: GateSite,
    train: Cohort,
    val: Cohort,
    criterion: str,
) -> str:
    """Digest of everything that decides a selector.

    Slides are identified by name, label and feature file (its name, size and time of change), with
    the classes, layout, resolution and cap of their cohort.
    """
    slides = what_is_read(train), what_is_read(val)
    return digest([asdict(identity), recipe.hash_fields(), seed, target, site, *slides, criterion])


def check_seed(seed: int) -> int:
    """A seed of 0 or more, as a plain int.

    >>> check_seed(-1)
    Traceback (most recent call last):
    foci.errors.FociError: seed: is -1; give a whole number, 0 or more
    """
    if not hasattr(seed, "__index__") or operator.index(seed) < 0:
        raise FociError("seed", f"is {seed!r}", "give a whole number, 0 or more")
    return operator.index(seed)


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


def _notes(
    backbone: Backbone, recipe: SelectorRecipe, bags: PreparedBags, train: Cohort
) -> list[str]:
    """What could not be learned: contiguity without coordinates, classes without a slide."""
    notes = []
    if recipe.weights.contig and train.store.bag(train.slides[0]).coords is None:
        notes = ["the tiles have no coordinates: the contiguity term of the recipe is 0"]
    if not recipe.class_conditional:
        return notes
    seen = {bags.target_of(slide) for slide in train}
    missing = [number for number in range(backbone.n_classes) if number not in seen]
    if not missing:
        return notes
    known = train.classes if len(train.classes) == backbone.n_classes else None
    names = ", ".join(known[number] if known else str(number) for number in missing)
    return [*notes, f"no training slide had class {names} as target: scores for it are untrained"]
