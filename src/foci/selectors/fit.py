"""Fit a selector to a frozen classifier."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

import foci
from foci.backbones.contract import Backbone, GateSite
from foci.backbones.placement import home
from foci.backbones.training.loop import Progress
from foci.bags import Cohort
from foci.errors import CohortError, FociError
from foci.selectors.folder import FACTS, save
from foci.selectors.frozen import Identity, held_still
from foci.selectors.head import SelectorHead
from foci.selectors.loop import Fit, randomness, run
from foci.selectors.prepared import PreparedBags, read
from foci.selectors.recipes import SelectorRecipe, Target
from foci.selectors.recipes import recipe as named
from foci.selectors.selector import Criterion, FitEpoch, FittedSelector, Selector
from foci.selectors.views import choose_site, view_of

STATE = "fitting.safetensors"
_WATCHED_BAGS = 4


def fit(
    backbone: Backbone,
    cohort: Cohort,
    recipe: str | SelectorRecipe = "default",
    *,
    seed: int = 0,
    target: Target | None = None,
    out: str | Path | None = None,
    criterion: Criterion | None = None,
    memory_gb: float = 4.0,
    report: Callable[[FitEpoch], None] = lambda epoch: None,
    progress: Progress = lambda items, what: items,
) -> FittedSelector:
    """Train a selector on a classifier that stays as it is.

    The classifier is in eval mode, without gradients and outside the optimizer; parameters,
    buffers and full-bag logits are compared before and after, to the bit.

    Args:
        backbone: Trained. Its device is where the fit happens.
        cohort: With splits ``train`` (to learn from) and ``val`` (to choose the epoch), all
            readable; other slides are not touched. Its classes are in the backbone's order.
        recipe: A name of :data:`foci.selectors.RECIPES`, ``"default"``, or a recipe.
        seed: Same seed, same selector (on a CPU).
        target: ``"label"``, or ``"prediction"``, the full-bag prediction of the classifier, which
            needs no labels; None takes the recipe's.
        out: Folder for ``selector.safetensors`` and ``selector.json``. A killed fit, started again
            with the same arguments, goes on after its last whole epoch.
        criterion: Judges the selector after every epoch, higher is better, for instance by
            validation AUKC; None takes the negative objective on the validation slides.
        memory_gb: How much of the embedded bags may stay in memory between epochs.
        report: Called after every epoch.
        progress: Wraps the steps of an epoch.
    """
    chosen = named(recipe) if isinstance(recipe, str) else recipe
    target = target or chosen.target
    site = choose_site(backbone, chosen.sites)
    train, val = cohort.split("train"), cohort.split("val")
    folder = None if out is None else _new_folder(Path(out))
    if target == "label":
        _check_labels(backbone, train, val)
    watched = [read(cohort, slide, backbone).x for slide in train.slides[:_WATCHED_BAGS]]
    with held_still(backbone, watched):
        identity = Identity.of(backbone)
        head = new_head(backbone, chosen, seed)
        work = Fit(
            head=head,
            bags=PreparedBags(
                cohort, view_of(backbone, site, dense=chosen.dense), target, memory_gb
            ),
            train=train.slides,
            val=val.slides,
            recipe=chosen,
            seed=seed,
        )
        current = Selector(head, backbone, identity)
        best_weights, history = run(
            work,
            key=_run_key(identity, chosen, seed, target, site, train, val, criterion),
            state_file=None if folder is None else folder / STATE,
            criterion=None if criterion is None else lambda: criterion(current),
            report=report,
            progress=progress,
        )
    best = new_head(backbone, chosen, seed)
    best.load_state_dict(best_weights)
    fitted = FittedSelector(
        best=Selector(best.requires_grad_(False), backbone, identity),
        last=Selector(head.requires_grad_(False), backbone, identity),
        recipe=chosen,
        seed=seed,
        target=target,
        site=site,
        history=tuple(history),
        facts={
            "classes": list(cohort.classes),
            "n_cap": cohort.store.n_cap,
            "slides": {"train": len(train), "val": len(val)},
            "versions": {"foci": foci.__version__, "torch": torch.__version__,
                         "python": platform.python_version()},
        },
    )  # fmt: skip
    if folder is not None:
        save(fitted, folder)
        (folder / STATE).unlink(missing_ok=True)
    return fitted


def new_head(backbone: Backbone, recipe: SelectorRecipe, seed: int) -> SelectorHead:
    """A freshly drawn head beside its classifier; the caller's random state stays as it is."""
    outputs = backbone.n_classes if recipe.class_conditional else 1
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(randomness(seed, 0)[1].initial_seed())
        head = SelectorHead(backbone.d_token, outputs)
    device, dtype = home(backbone)
    return head.to(device, dtype)


def _new_folder(folder: Path) -> Path:
    if (folder / FACTS).exists():
        raise FociError(folder, "already holds a fitted selector", "choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _check_labels(backbone: Backbone, *parts: Cohort) -> None:
    found, wanted = len(parts[0].classes), backbone.n_classes
    if found != wanted:
        raise CohortError(
            "labels",
            f"have {found} classes, the backbone has {wanted}",
            "give the backbone's classes in its order, or use target='prediction'",
        )
    for part in parts:
        for slide in part:
            part.target(slide.slide_id)


def _run_key(
    identity: Identity,
    recipe: SelectorRecipe,
    seed: int,
    target: Target,
    site: GateSite,
    train: Cohort,
    val: Cohort,
    criterion: Criterion | None,
) -> str:
    rows = [[[s.slide_id, s.label] for s in part] for part in (train, val)]
    judge = getattr(criterion, "__qualname__", type(criterion).__name__)
    what = [asdict(identity), recipe.model_dump(), seed, target, site, rows, train.store.n_cap,
            train.classes, judge]  # fmt: skip
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()
