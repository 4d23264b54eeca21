"""Fit a selector to a frozen backbone: checks, the key by which it resumes, and the training loop.

The loop is deterministic, and resumable after every epoch.
"""

from __future__ import annotations

import math
import operator
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from torch import Tensor, nn

from foci._version import __version__
from foci.backbones.base import Backbone, GateSite
from foci.backbones.freezing import device_and_dtype
from foci.backbones.training.loop import (
    RunState,
    epoch_order,
    load_run,
    save_run,
    snapshot,
    stored_key,
)
from foci.bags import Cohort, Slide
from foci.bags.cohort import files_read, what_is_read
from foci.errors import ChangedError, CohortError, FociError
from foci.files.hashes import Unchanged, digest
from foci.progress import track
from foci.selectors import Target
from foci.selectors.criterion import CRITERIA, tune
from foci.selectors.gated import GatedBackbone, choose_site, gate_backbone
from foci.selectors.objective import GatedBatch, loss_terms, total
from foci.selectors.prepared import PreparedBags, read_bag
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.recipes import recipe as named
from foci.selectors.saved import METADATA, STATE, fit_folder, head_shape, load, occupied, save
from foci.selectors.selector import (
    EvidenceHead,
    FitEpoch,
    FittedSelector,
    Head,
    Identity,
    Selector,
    keep_frozen,
    scores_at,
)

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


@dataclass(frozen=True)
class Fit:
    """Head (trained in place), data and recipe of one fit; the seed is that of order and noise."""

    head: Head
    bags: PreparedBags
    train: Sequence[Slide]
    val: Sequence[Slide]
    recipe: SelectorRecipe
    seed: int


def run(
    fit: Fit,
    *,
    key: str,
    state_file: Path | None,
    criterion: Callable[[], float] | None,
    compare: Callable[[], None],
    report: Callable[[FitEpoch], None],
) -> tuple[dict[str, Tensor], list[FitEpoch]]:
    """Train for all epochs, or for those that are left after an interruption.

    Every epoch draws its random numbers from (seed, epoch) alone, so a resumed fit continues as if
    it had never stopped.

    A state with another key (:func:`~foci.selectors.fitting.run_key`) is ignored. The criterion
    scores the head after an epoch, higher is better; None takes ``-val_loss``. ``compare`` is
    called before a state is written, and raises if the classifier has changed. The head ends with
    the weights of the last epoch; those of the best are returned, with one entry per epoch.

    Raises:
        FociError: At the first epoch whose losses, weights or score are not finite.
    """
    schedule = fit.recipe.schedule
    learned = list(fit.head.parameters())
    epochs = schedule.epochs if learned else 1  # a mix of columns has nothing to learn
    optimizer = torch.optim.AdamW(
        learned or [nn.Parameter(torch.zeros(()))],
        lr=schedule.peak,
        weight_decay=schedule.weight_decay,
    )
    stateless = nn.Module()  # the objective has no state of its own

    def judge() -> float:
        return -validate(fit)[0] if criterion is None else float(criterion())

    state = None
    if state_file is not None:
        try:
            state = load_run(state_file, key, fit.head, stateless, optimizer)
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            what = f"is not the state of a fit ({type(error).__name__}: {error})"
            raise FociError(state_file, what, "remove it, and the fit starts anew") from error
    state = state or _start(fit, judge)
    history = [FitEpoch(**entry) for entry in state.history]
    best_epoch = max((entry.epoch for entry in history if entry.best), default=0)
    patience = math.inf if schedule.patience is None else schedule.patience
    while state.epoch < epochs and state.epoch - best_epoch < patience:
        number = state.epoch + 1
        rate, loss, terms = train_epoch(fit, optimizer, number)
        if not all(bool(weight.isfinite().all()) for weight in fit.head.parameters()):
            raise _diverged(fit, number, "weights are not finite")
        val_loss, val_terms = validate(fit)
        if not math.isfinite(val_loss):
            raise _diverged(fit, number, f"validation loss is {val_loss}")
        score = -val_loss if criterion is None else float(criterion())
        if not math.isfinite(score):
            what = f"was judged {score} after epoch {number}"
            raise FociError(f"selector {fit.recipe.name}", what, "check the features")
        best = -score < state.best_loss
        if best:
            state.best_loss, state.best, best_epoch = -score, snapshot(fit.head), number
        done = FitEpoch(number, epochs, rate, loss, terms, val_loss, val_terms, score, best)
        history.append(done)
        state.epoch = number
        state.history.append(asdict(done))
        if state_file is not None:
            compare()
            save_run(state_file, key, state, fit.head, stateless, optimizer)
        report(done)
    return state.best, history


def _start(fit: Fit, judge: Callable[[], float]) -> RunState:
    """The state before the first epoch; a head that is evidence then is the best so far."""
    if not isinstance(fit.head, EvidenceHead):
        return RunState(0, 0, math.inf, {}, [])
    state = RunState(0, 0, -judge(), snapshot(fit.head), [])
    if tune(fit.head, fit.bags, fit.train, randomness(fit.seed, 0)[1]):
        tuned = -judge()
        if tuned < state.best_loss:
            state.best_loss, state.best = tuned, snapshot(fit.head)
    return state


def randomness(seed: int, epoch: int) -> tuple[np.random.Generator, torch.Generator]:
    """Random generators of one epoch: for the order of the slides, and for noise and budgets."""
    root = np.random.SeedSequence([seed, epoch])
    drawn = int(root.generate_state(1)[0])
    return np.random.default_rng(root), torch.Generator().manual_seed(drawn)


def _diverged(fit: Fit, number: int, what: str) -> FociError:
    fix = f"lower schedule.peak (it is {fit.recipe.schedule.peak:g})"
    if any(weight.dtype == torch.float16 for weight in fit.head.parameters()):
        fix = "fit it on the backbone in float32: AdamW divides by 0 in float16"
    return FociError(f"selector {fit.recipe.name}, epoch {number}", f"the {what}", fix)


def train_epoch(
    fit: Fit, optimizer: torch.optim.Optimizer, number: int
) -> tuple[float, float, dict[str, float]]:
    """One pass over the training slides: last learning rate, mean loss and mean terms."""
    recipe, size = fit.recipe, fit.recipe.schedule.batch_size
    rng, generator = randomness(fit.seed, number)
    order = epoch_order(fit.train, balanced=False, rng=rng)
    steps = math.ceil(len(order) / size)
    mean = _Mean()
    rate = recipe.schedule.peak
    for step in track(range(steps), f"fit {number}/{recipe.schedule.epochs}"):
        rate = recipe.schedule.rate((number - 1) * steps + step, steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = fit.bags.batch(order[step * size : (step + 1) * size])
        k = recipe.budget.draw(batch.n_tiles, generator)
        loss, terms = _loss(fit, batch, k, generator)
        if not bool(loss.isfinite()):
            raise _diverged(fit, number, f"training loss is {float(loss.detach())}")
        if recipe.weights.active and loss.requires_grad:  # otherwise weight decay alone would act
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        mean.add(loss, terms, len(batch.targets))
    return rate, *mean.values()


@torch.no_grad()
def validate(fit: Fit) -> tuple[float, dict[str, float]]:
    """Mean loss and terms on the validation slides, without noise and at fixed budgets."""
    mean, size = _Mean(), fit.recipe.schedule.batch_size
    for start in range(0, len(fit.val), size):
        batch = fit.bags.batch(fit.val[start : start + size])
        for k in fit.recipe.budget.ladder(batch.n_tiles):
            mean.add(*_loss(fit, batch, k, None), len(batch.targets))
    return mean.values()


def _loss(
    fit: Fit, batch: GatedBatch, k: Tensor, generator: torch.Generator | None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Objective of one batch, and its terms."""
    scores, recipe = scores_at(fit.head, batch.tiles, batch.targets), fit.recipe
    terms = loss_terms(batch, scores, fit.bags.gated, recipe.gate, k, recipe.weights, generator)
    return total(terms, recipe.weights), terms


class _Mean:
    """Mean over bags of the objective and its terms."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._bags = 0

    def add(self, loss: Tensor, terms: dict[str, Tensor], bags: int) -> None:
        self._bags += bags
        for name, value in {"loss": loss, **terms}.items():
            self._sums[name] = self._sums.get(name, 0.0) + bags * float(value.detach())

    def values(self) -> tuple[float, dict[str, float]]:
        means = {name: value / self._bags for name, value in self._sums.items()}
        return means.pop("loss"), means
