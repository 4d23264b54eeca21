"""Training loop: resumable after every epoch, the same bytes for the same seed."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from foci.backbones.base import Backbone, Batch, Objective, pad
from foci.backbones.freezing import device_and_dtype, frozen
from foci.backbones.outcomes import OutcomeObjective, OutcomePredictions, OutcomeTask
from foci.backbones.training.presets import TrainingRecipe, checked_objective
from foci.bags import Bag, Cohort, Slide
from foci.bags.bag import spacing
from foci.bags.cohort import what_is_read
from foci.errors import FociError
from foci.files.atomic import write_whole
from foci.files.hashes import digest
from foci.progress import track

Scores = Mapping[str, float | None]


@dataclass(frozen=True)
class EpochReport:
    """Losses and score of one epoch, counted from 1, of the ``epochs`` of a stage.

    ``loss`` and its ``terms`` are means over the training steps, ``val_loss`` is that on the
    validation slides, ``best`` whether it is the smallest so far. What ``val_score`` is, ``scored``
    says; a C-index, R2 or macro AUC chooses the best epoch in the place of the loss.
    """

    stage: str
    epoch: int
    epochs: int
    loss: float
    terms: dict[str, float]
    val_loss: float
    val_score: float
    best: bool
    scored: str = "accuracy"


def train(
    backbone: Backbone,
    train_cohort: Cohort,
    val_cohort: Cohort,
    recipe: TrainingRecipe,
    *,
    task: OutcomeTask | None = None,
    score: Callable[[Any], Scores] | None = None,
    state_file: Path | None = None,
    starting: Callable[[int, int], None] = lambda done, total: None,
    report: Callable[[EpochReport], None] = lambda epoch: None,
) -> list[EpochReport]:
    """Train in place with the classifier's own objective; the best validation epoch is kept.

    Every epoch draws its randomness from (seed, stage, epoch) alone, so a run that is resumed
    from ``state_file`` continues as if it had never stopped.

    With a ``task`` the numbers of the label table are learned, by every backbone in the same way,
    and the first entry of what ``score`` says of the validation slides chooses the epoch; the loss
    where there is none.

    Training runs on the device of the untrained backbone. All training slides must be readable;
    those of ``val_cohort`` choose the epoch. The state file is written after every epoch, and the
    caller removes it at the end. ``starting`` is called once, with the epochs that are done and all
    epochs of the run, ``report`` after every epoch; the result holds the report of every epoch,
    those of a resumed run included.

    Raises:
        FociError: At the first epoch whose training or validation loss is not finite, and for a
            setting that the objective does not know or cannot take.
    """
    objective = _objective(backbone, recipe, task)
    device, _ = device_and_dtype(backbone)
    objective.to(device)
    trainable = [p for p in backbone.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trainable, lr=recipe.lr, weight_decay=recipe.weight_decay)
    key = run_key(backbone, train_cohort, val_cohort, recipe, task)
    state = RunState(0, 0, math.inf, {}, [])
    if state_file is not None:
        state = load_run(state_file, key, backbone, objective, optimizer) or state
    size = recipe.batch_size
    steps = math.ceil(len(train_cohort) / size)
    starting(len(state.history), len(objective.stages) * recipe.epochs)

    for stage in range(state.stage, len(objective.stages)):
        name = objective.stages[stage]
        if stage > state.stage:
            backbone.load_state_dict(state.best)
            optimizer.state.clear()
            state = RunState(stage, 0, math.inf, {}, state.history)
        if state.epoch == 0:
            _seed(recipe.seed, stage, 0)
            objective.begin_stage(name, recipe.epochs * steps)
        for epoch in range(state.epoch, recipe.epochs):
            rng = _seed(recipe.seed, stage, epoch + 1)
            order = epoch_order(train_cohort.slides, balanced=recipe.balanced, rng=rng)
            rates = [_rate(recipe, epoch * steps + step, steps) for step in range(steps)]
            batches = (
                batch_of(train_cohort, order[step * size : (step + 1) * size], task).to(device)
                for step in track(range(steps), f"{name} {epoch + 1}/{recipe.epochs}")
            )
            loss, terms = _epoch(objective, optimizer, batches, rates, recipe.clip)
            where = f"{backbone.architecture}, {name} epoch {epoch + 1}"
            _check_finite(where, "training", loss, recipe.lr)
            val_loss, scored, value, rank = _judge(backbone, val_cohort, task, score)
            _check_finite(where, "validation", val_loss, recipe.lr)
            before = [entry["val_loss"] for entry in state.history if entry["best"]]
            tie = rank == state.best_loss and task is not None and val_loss < before[-1]
            best = rank < state.best_loss or tie
            if best:
                state.best_loss, state.best = rank, snapshot(backbone)
            done = EpochReport(name, epoch + 1, recipe.epochs, loss, terms, val_loss, value, best,
                               scored)  # fmt: skip
            state.epoch = epoch + 1
            state.history.append(asdict(done))
            if state_file is not None:
                save_run(state_file, key, state, backbone, objective, optimizer)
            report(done)
    backbone.load_state_dict(state.best)
    backbone.eval()
    return [EpochReport(**entry) for entry in state.history]


def _objective(backbone: Backbone, recipe: TrainingRecipe, task: OutcomeTask | None) -> Objective:
    if task is not None:
        for name in ("objective", "balanced"):
            if getattr(recipe, name):
                what = f"means nothing for output {task.output}"
                raise FociError(f"--{name}", what, "leave it out")
        return OutcomeObjective(backbone, task)
    try:
        return backbone.make_objective(**checked_objective(backbone, recipe.objective))
    except TypeError as error:
        where = f"objective of {backbone.architecture}"
        raise FociError(where, str(error), "see its documented settings") from error


def _judge(
    backbone: Backbone,
    cohort: Cohort,
    task: OutcomeTask | None,
    score: Callable[[Any], Scores] | None,
) -> tuple[float, str, float, float]:
    """Validation loss, name and value of the score, and the number that is least at best."""
    if task is None:
        found = predict(backbone, cohort)
        return found.loss, "accuracy", found.accuracy, found.loss
    seen = predict_outcomes(backbone, cohort, task)
    scores = {} if score is None else score(seen)
    name = next(iter(scores), "loss")
    value = scores.get(name)
    if value is None or name == "loss":
        return seen.loss, "loss", seen.loss, seen.loss
    return seen.loss, name, value, -value


def run_key(
    backbone: Backbone,
    train_cohort: Cohort,
    val_cohort: Cohort,
    recipe: TrainingRecipe,
    task: OutcomeTask | None = None,
) -> str:
    """Digest of everything that a run depends on; only a state with the same key is resumed.

    Feature files enter by name, size and time of change.
    """
    cohorts = [what_is_read(cohort) for cohort in (train_cohort, val_cohort)]
    own = [] if task is None else [asdict(task)]
    return digest([backbone.architecture, backbone.config, recipe.model_dump(), *cohorts, *own])


def _epoch(
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Batch],
    rates: list[float],
    clip: float,
) -> tuple[float, dict[str, float]]:
    """One pass over the batches; mean loss and mean terms, ended by a loss that is not finite."""
    objective.backbone.train()
    objective.train()
    objective.begin_epoch()
    total, sums = 0.0, dict[str, float]()
    for batch, rate in zip(batches, rates, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = objective(batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if clip:
            clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], clip)
        optimizer.step()
        objective.after_step()
        value = float(loss.detach())
        if not math.isfinite(value):
            return value, {}
        total += value
        for name, term in objective.terms.items():
            sums[name] = sums.get(name, 0.0) + term
    n = len(rates)
    return total / n, {name: term / n for name, term in sums.items()}


def _check_finite(where: str, which: str, loss: float, lr: float) -> None:
    if not math.isfinite(loss):
        raise FociError(where, f"the {which} loss is {loss}", f"lower --lr (it is {lr:g})")


def _rate(recipe: TrainingRecipe, step: int, steps: int) -> float:
    if recipe.schedule == "constant":
        return recipe.lr
    return 0.5 * recipe.lr * (1 + math.cos(math.pi * step / (recipe.epochs * steps)))


def _seed(seed: int, stage: int, epoch: int) -> np.random.Generator:
    root = np.random.SeedSequence([seed, stage, epoch])
    torch.manual_seed(int(root.generate_state(1)[0]))
    return np.random.default_rng(root)


def epoch_order(
    slides: Sequence[Slide], *, balanced: bool, rng: np.random.Generator
) -> list[Slide]:
    """Shuffle the slides; ``balanced`` draws with replacement, each class equally likely."""
    if not balanced:
        return [slides[i] for i in rng.permutation(len(slides))]
    counts = Counter(slide.label for slide in slides)
    weights = np.array([1.0 / counts[slide.label] for slide in slides])
    chosen = rng.choice(len(slides), size=len(slides), p=weights / weights.sum())
    return [slides[i] for i in chosen]


def batch_of(cohort: Cohort, slides: Sequence[Slide], task: OutcomeTask | None = None) -> Batch:
    """Read and pad the bags of some slides; with a task, they have outcomes and no class."""
    bags = [cohort.store.bag(slide) for slide in slides]
    features = [bag.x for bag in bags]
    if task is not None:
        outcomes = torch.tensor([slide.outcome for slide in slides], dtype=torch.float64)
        return replace(pad(features, [0] * len(slides)), outcomes=outcomes)
    labels = [cohort.target(slide.slide_id) for slide in slides]
    if any(bag.coords is None for bag in bags):
        return pad(features, labels)
    coords = [torch.from_numpy(bag.coords) for bag in bags]
    return pad(features, labels, coords, [stride(bag) for bag in bags])


def stride(bag: Bag) -> int:
    """Grid spacing of a bag's tiles; the tile size where no two tiles are neighbours."""
    step = None if bag.coords is None else spacing(bag.coords)
    return round(step) if step is not None else bag.patch_size or 1


@dataclass(frozen=True)
class Predictions:
    """Full-bag predictions of one cohort, ``[S, C]`` in float64, and its labels ``[S]``."""

    slide_ids: tuple[str, ...]
    probabilities: NDArray[np.float64]
    labels: NDArray[np.int64]

    @property
    def loss(self) -> float:
        r"""Mean cross-entropy :math:`-\log p_y`."""
        chosen = self.probabilities[np.arange(len(self.labels)), self.labels]
        return float(-np.log(np.maximum(chosen, np.finfo(np.float64).tiny)).mean())

    @property
    def accuracy(self) -> float:
        """Share of slides whose most probable class is their label."""
        return float((self.probabilities.argmax(axis=1) == self.labels).mean())


def predict(backbone: Backbone, cohort: Cohort) -> Predictions:
    """Predict the class probabilities of all readable slides of a cohort from their full bags."""
    device, _ = device_and_dtype(backbone)
    names, rows, labels = [], [], []
    with frozen(backbone):
        for bag in cohort.bags():
            names.append(bag.slide_id)
            rows.append(backbone.predict(bag.x.to(device)).cpu().numpy())
            labels.append(cohort.target(bag.slide_id))
    return Predictions(tuple(names), np.stack(rows), np.array(labels, dtype=np.int64))


def predict_outcomes(backbone: Backbone, cohort: Cohort, task: OutcomeTask) -> OutcomePredictions:
    """What a model says of all readable slides of a cohort, from their full bags."""
    device, _ = device_and_dtype(backbone)
    names, rows, known = [], [], []
    with frozen(backbone):
        for bag in cohort.bags():
            names.append(bag.slide_id)
            rows.append(backbone(bag.x.to(device)).double().cpu())
            known.append(cohort[bag.slide_id].outcome)
    logits, outcomes = torch.stack(rows), torch.tensor(known, dtype=torch.float64)
    loss = float(task.loss(logits, outcomes))
    values = task.values(logits).numpy()
    return OutcomePredictions(task.output, tuple(names), values, outcomes.numpy(), loss)


# The state of a run between two epochs, as plain tensors on disk


@dataclass
class RunState:
    """State of a training run after its last complete epoch.

    Stage of the objective, epochs finished in it, the stage's smallest validation loss with the
    weights that had it, and one entry per finished epoch of all stages.
    """

    stage: int
    epoch: int
    best_loss: float
    best: dict[str, Tensor]
    history: list[dict[str, Any]]


def snapshot(model: nn.Module) -> dict[str, Tensor]:
    """Copy of the weights on the CPU."""
    return {name: value.detach().cpu().clone() for name, value in model.state_dict().items()}


def save_run(
    path: Path, key: str, state: RunState, model: nn.Module, objective: nn.Module, optimizer: Any
) -> None:
    """Save everything that the next epoch depends on; ``key`` identifies the run."""
    from safetensors.torch import save

    tensors = {f"best/{k}": v for k, v in state.best.items()}
    tensors |= {f"model/{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"objective/{k}": v for k, v in objective.state_dict().items()}
    for index, slots in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{index}/{name}": value for name, value in slots.items()}
    progress = {"key": key} | {k: v for k, v in vars(state).items() if k != "best"}
    plain = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
    run = json.dumps(progress)
    write_whole(path, save(plain, {"run": run, "sha256": _state_digest(run, plain)}))


def stored_key(path: Path) -> str | None:
    """Key of the run that a state belongs to; None if the file is missing or damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            key = json.loads(file.metadata()["run"])["key"]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None
    return key if isinstance(key, str) else None


def load_run(
    path: Path, key: str, model: nn.Module, objective: nn.Module, optimizer: Any
) -> RunState | None:
    """Restore a run with the same key; None if the file is missing, damaged or of another run."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        progress = json.loads(metadata["run"])
        intact = _state_digest(metadata["run"], tensors) == metadata["sha256"]
    except (OSError, SafetensorError, KeyError, TypeError, ValueError):
        return None
    if not intact or progress.pop("key") != key:
        return None
    model.load_state_dict(_part(tensors, "model"))
    objective.load_state_dict(_part(tensors, "objective"))
    slots: dict[int, dict[str, Tensor]] = {}
    for name, tensor in _part(tensors, "optimizer").items():
        index, slot = name.split("/")
        slots.setdefault(int(index), {})[slot] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": slots})
    return RunState(best=_part(tensors, "best"), **progress)


def _state_digest(run: str, tensors: dict[str, Tensor]) -> str:
    """SHA-256 of everything in a state, so that a damaged one is not resumed from."""
    found = hashlib.sha256(run.encode())
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _part(tensors: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    return {k.removeprefix(f"{name}/"): v for k, v in tensors.items() if k.startswith(f"{name}/")}
