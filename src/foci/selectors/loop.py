"""Choose the mix of evidence columns that needs the fewest tiles on training slides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from foci.backbones.freezing import frozen
from foci.backbones.training.loop import epoch_order
from foci.backbones.training.resume import RunState, load_run, save_run, snapshot
from foci.bags import Slide
from foci.errors import FociError
from foci.progress import Progress
from foci.reveal import KAPPA
from foci.selectors.evidence import OrderReading, net_gain, read_orders
from foci.selectors.heads import EvidenceHead
from foci.selectors.losses import GatedBatch, loss_terms, total
from foci.selectors.prepared import PreparedBags, confidence
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import FitEpoch, Head, scores_at

AT_MOST = 100
"""Training slides that are read."""


def tune(
    head: EvidenceHead, bags: PreparedBags, slides: Sequence[Slide], generator: torch.Generator
) -> bool:
    """Set the mix of a head: the best single column, or its sum with another one.

    Every mix is read on decided training slides, at the predicted class, and judged by
    :func:`~foci.selectors.evidence.net_gain` over evidence. Nothing is set where no mix
    gains.

    Args:
        head: Its mix is set.
        bags: The bags of the fit.
        slides: The training slides.
        generator: Draws :data:`AT_MOST` of them where there are more.

    Returns:
        Whether a mix was set.
    """
    if head.columns == 1:
        return False
    order = torch.randperm(len(slides), generator=generator).tolist()
    decided = [slides[i] for i in order if _decided(bags, slides[i])][:AT_MOST]
    single = torch.eye(head.columns, dtype=torch.float64)
    if not decided:
        return False
    found = _read(bags, decided, single)
    base = found[0]
    gains = [net_gain(own, base) for own in found]
    best = int(np.argmax(gains))
    pairs = single[best] + single[[p for p in range(head.columns) if p != best]]
    pair_gains = [net_gain(own, base) for own in _read(bags, decided, pairs)]
    mix = single[best] if gains[best] >= max(pair_gains) else pairs[int(np.argmax(pair_gains))]
    if max(gains[best], *pair_gains) <= gains[0]:
        return False
    head.mix.copy_(mix)
    return True


def _decided(bags: PreparedBags, slide: Slide) -> bool:
    prepared = bags[slide]
    return len(prepared.coords) > 1 and confidence(prepared) >= KAPPA


def _read(bags: PreparedBags, slides: Sequence[Slide], mixes: Tensor) -> list[list[OrderReading]]:
    """Readings of every mix ``[M, P]``, slide by slide."""
    found: list[list[OrderReading]] = [[] for _ in mixes]
    for slide in slides:
        target = bags.predicted_of(slide)
        with frozen(bags.gated.backbone):
            bag = bags.opened(slide, target)
            scores = bags[slide].tiles["evidence"][:, target] @ mixes.T.to(bag.features.device)
            orders = list(scores.argsort(dim=0, descending=True, stable=True).T)
            for own, reading in zip(found, read_orders(bag, orders, target), strict=True):
                own.append(reading)
    return found


# Training loop of a selector: deterministic, and resumable after every epoch.


@dataclass(frozen=True)
class Fit:
    """Head, data and recipe of one fit.

    Attributes:
        head: Trained in place.
        bags: Of the training and validation slides.
        train: Slides to learn from.
        val: Slides that choose the epoch.
        recipe: Its configuration.
        seed: Of order, noise and budgets.
    """

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
    progress: Progress,
) -> tuple[dict[str, Tensor], list[FitEpoch]]:
    """Train for all epochs, or for those that are left after an interruption.

    Every epoch draws its random numbers from (seed, epoch) alone, so a resumed fit continues as if
    it had never stopped.

    Args:
        fit: The fit; its head ends with the weights of the last epoch.
        key: See :mod:`foci.selectors.fitting`; a state with another key is ignored.
        state_file: Written after every epoch, or None.
        criterion: Scores the head after an epoch, higher is better; None takes ``-val_loss``.
        compare: Called before a state is written; raises if the classifier has changed.
        report: Called after every epoch.
        progress: Wraps the steps of an epoch.

    Returns:
        The weights of the best epoch, and one entry per epoch.

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
    nothing = nn.Module()  # the objective has no state of its own
    resumed = (
        None if state_file is None else _resumed(state_file, key, fit.head, nothing, optimizer)
    )
    state = resumed or _start(fit, criterion)
    history = [FitEpoch(**entry) for entry in state.history]
    while state.epoch < epochs and not _patience_lost(history, schedule.patience):
        number = state.epoch + 1
        rate, loss, terms = train_epoch(fit, optimizer, number, progress)
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
            state.best_loss, state.best = -score, snapshot(fit.head)
        done = FitEpoch(number, epochs, rate, loss, terms, val_loss, val_terms, score, best)
        history.append(done)
        state.epoch = number
        state.history.append(asdict(done))
        if state_file is not None:
            compare()
            save_run(state_file, key, state, fit.head, nothing, optimizer)
        report(done)
    return state.best, history


def _start(fit: Fit, criterion: Callable[[], float] | None) -> RunState:
    """The state before the first epoch; a head that is evidence then is the best so far."""
    if not isinstance(fit.head, EvidenceHead):
        return RunState(0, 0, math.inf, {}, [])

    def score() -> float:
        return -validate(fit)[0] if criterion is None else float(criterion())

    state = RunState(0, 0, -score(), snapshot(fit.head), [])
    if tune(fit.head, fit.bags, fit.train, randomness(fit.seed, 0)[1]):
        tuned = -score()
        if tuned < state.best_loss:
            state.best_loss, state.best = tuned, snapshot(fit.head)
    return state


def _resumed(
    path: Path, key: str, head: Head, nothing: nn.Module, optimizer: torch.optim.Optimizer
) -> RunState | None:
    try:
        return load_run(path, key, head, nothing, optimizer)
    except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
        what = f"is not the state of a fit ({type(error).__name__}: {error})"
        raise FociError(path, what, "remove it, and the fit starts anew") from error


def randomness(seed: int, epoch: int) -> tuple[np.random.Generator, torch.Generator]:
    """Random generators of one epoch: for the order of the slides, and for noise and budgets."""
    root = np.random.SeedSequence([seed, epoch])
    drawn = int(root.generate_state(1)[0])
    return np.random.default_rng(root), torch.Generator().manual_seed(drawn)


def _diverged(fit: Fit, number: int, what: str) -> FociError:
    fix = f"lower schedule.peak (it is {fit.recipe.schedule.peak:g})"
    if next(fit.head.parameters()).dtype == torch.float16:
        fix = "fit it on the backbone in float32: AdamW divides by 0 in float16"
    return FociError(f"selector {fit.recipe.name}, epoch {number}", f"the {what}", fix)


def _patience_lost(history: list[FitEpoch], patience: int | None) -> bool:
    if patience is None or not history:
        return False
    return history[-1].epoch - max((e.epoch for e in history if e.best), default=0) >= patience


def train_epoch(
    fit: Fit, optimizer: torch.optim.Optimizer, number: int, progress: Progress
) -> tuple[float, float, dict[str, float]]:
    """One pass over the training slides: last learning rate, mean loss and mean terms."""
    recipe, size = fit.recipe, fit.recipe.schedule.batch_size
    rng, generator = randomness(fit.seed, number)
    order = epoch_order(fit.train, balanced=False, rng=rng)
    steps = math.ceil(len(order) / size)
    mean = _Mean()
    rate = recipe.schedule.peak
    for step in progress(range(steps), f"fit {number}/{recipe.schedule.epochs}"):
        rate = recipe.schedule.rate((number - 1) * steps + step, steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = fit.bags.batch(order[step * size : (step + 1) * size])
        terms = _terms(fit, batch, recipe.budget.draw(batch.n_tiles, generator), generator)
        loss = total(terms, recipe.weights)
        if not bool(loss.isfinite()):
            raise _diverged(fit, number, f"training loss is {float(loss.detach())}")
        if recipe.weights.active and loss.requires_grad:  # otherwise weight decay alone would act
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        mean.add({"loss": loss, **terms}, len(batch.targets))
    terms_mean = mean.values()
    return rate, terms_mean.pop("loss"), terms_mean


@torch.no_grad()
def validate(fit: Fit) -> tuple[float, dict[str, float]]:
    """Mean loss and terms on the validation slides, without noise and at fixed budgets."""
    mean, size = _Mean(), fit.recipe.schedule.batch_size
    for start in range(0, len(fit.val), size):
        batch = fit.bags.batch(fit.val[start : start + size])
        for k in fit.recipe.budget.ladder(batch.n_tiles):
            terms = _terms(fit, batch, k, None)
            loss = total(terms, fit.recipe.weights)
            mean.add({"loss": loss, **terms}, len(batch.targets))
    values = mean.values()
    return values.pop("loss"), values


def _terms(
    fit: Fit, batch: GatedBatch, k: Tensor, generator: torch.Generator | None
) -> dict[str, Tensor]:
    scores = scores_at(fit.head, batch.tiles, batch.targets)
    recipe = fit.recipe
    return loss_terms(batch, scores, fit.bags.gated, recipe.gate, k, recipe.weights, generator)


class _Mean:
    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._bags = 0

    def add(self, terms: dict[str, Tensor], bags: int) -> None:
        self._bags += bags
        for name, value in terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + bags * float(value.detach())

    def values(self) -> dict[str, float]:
        return {name: value / self._bags for name, value in self._sums.items()}
