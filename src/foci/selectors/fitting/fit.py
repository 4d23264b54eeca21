"""Fit a selector to a frozen classifier."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from foci._version import __version__
from foci.backbones.base import Backbone
from foci.backbones.freezing import home
from foci.bags import Cohort
from foci.progress import Progress
from foci.selectors.fitting.admission import check_gradient, check_labels, check_seed, check_target
from foci.selectors.fitting.loop import Fit, randomness, run
from foci.selectors.fitting.prepared import PreparedBags, read
from foci.selectors.fitting.run_key import run_key
from foci.selectors.frozen import ChangedError, Identity, held_still
from foci.selectors.gated.views import choose_site, view_of
from foci.selectors.head import SelectorHead
from foci.selectors.recipes import SelectorRecipe, Target
from foci.selectors.recipes import recipe as named
from foci.selectors.saved import enter, save
from foci.selectors.selector import Criterion, FitEpoch, FittedSelector, Selector

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
        seed: 0 or more. Same seed, same selector (on a CPU).
        target: ``"label"``, or ``"prediction"``, the full-bag prediction of the classifier, which
            needs no labels; None takes the recipe's.
        out: Folder for ``selector.safetensors`` and ``selector.json``. A killed fit, started again
            with the same arguments and feature files, goes on after its last whole epoch.
        criterion: Judges the selector after every epoch, higher is better, for instance by
            validation AUKC; None takes the negative objective on the validation slides. See
            :data:`~foci.selectors.Criterion` for what makes it the same in a resumed fit.
        memory_gb: How much of the embedded bags may stay in memory between epochs.
        report: Called after every epoch.
        progress: Wraps the steps of an epoch.

    Raises:
        FociError: If the classifier passes no gradient to its tiles, changes meanwhile, or the
            losses do not stay finite; if a class-conditional recipe is given labels of one class.
    """
    chosen = named(recipe) if isinstance(recipe, str) else recipe
    target, seed = target or chosen.target, check_seed(seed)
    check_target(target)
    site = choose_site(backbone, chosen.sites)
    train, val = cohort.split("train"), cohort.split("val")
    if target == "label":
        check_labels(backbone, chosen, train, val)
    folder = None if out is None else enter(Path(out))
    watched = [read(cohort, slide, backbone).x for slide in train.slides[:_WATCHED_BAGS]]
    with _learning(), _voiding(folder), held_still(backbone, watched) as compare:
        identity = Identity.of(backbone)
        head = new_head(backbone, chosen, seed)
        view = view_of(backbone, site, dense=chosen.dense)
        bags = PreparedBags(cohort, view, target, memory_gb)
        check_gradient(view, bags.batch(train.slides[:1]))
        current = Selector(head, backbone, identity)
        best_weights, history = run(
            Fit(head, bags, train.slides, val.slides, chosen, seed),
            key=run_key(identity, chosen, seed=seed, target=target, site=site, train=train, val=val,
                        criterion=criterion),
            state_file=None if folder is None else folder / STATE,
            criterion=None if criterion is None else lambda: criterion(current),
            compare=compare,
            report=report,
            progress=progress,
        )  # fmt: skip
        notes = _notes(backbone, chosen, bags, train)
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
            "versions": {"foci": __version__, "torch": torch.__version__,
                         "python": platform.python_version()},
            **({"notes": notes} if notes else {}),
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


@contextmanager
def _learning() -> Iterator[None]:
    """Gradients, wherever the caller has switched them off."""
    with torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def _voiding(folder: Path | None) -> Iterator[None]:
    """A fit of a classifier that has changed leaves nothing that could be resumed."""
    try:
        yield
    except ChangedError:
        if folder is not None:
            (folder / STATE).unlink(missing_ok=True)
        raise


def _notes(
    backbone: Backbone, recipe: SelectorRecipe, bags: PreparedBags, train: Cohort
) -> list[str]:
    """Which scores of a class-conditional head no training slide has asked for."""
    if not recipe.class_conditional:
        return []
    seen = {bags.target_of(slide) for slide in train}
    missing = [number for number in range(backbone.n_classes) if number not in seen]
    if not missing:
        return []
    known = train.classes if len(train.classes) == backbone.n_classes else None
    names = ", ".join(known[number] if known else str(number) for number in missing)
    return [f"no training slide had class {names} as target: scores for it are untrained"]
