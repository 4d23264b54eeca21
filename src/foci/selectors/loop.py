"""Training loop of a selector: deterministic, and resumable after every epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from foci.backbones.training.loop import RunState, epoch_order, load_run, save_run, snapshot
from foci.bags import Slide
from foci.errors import FociError
from foci.progress import track
from foci.selectors.criterion import tune
from foci.selectors.heads import EvidenceHead, Head, scores_at
from foci.selectors.losses import GatedBatch, loss_terms, total
from foci.selectors.prepared import PreparedBags
from foci.selectors.recipes import SelectorRecipe
from foci.selectors.selector import FitEpoch


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
