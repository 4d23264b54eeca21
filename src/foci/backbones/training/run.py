"""From a cohort to a folder with a trained classifier."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

import foci
from foci.backbones.contract import Backbone
from foci.backbones.folder import FACTS, save
from foci.backbones.presets import create
from foci.backbones.training.evaluate import Predictions, predict
from foci.backbones.training.loop import EpochReport, Progress, train
from foci.backbones.training.recipe import TrainingRecipe
from foci.bags import Cohort
from foci.bags.splits import check_labels
from foci.errors import CohortError

STATE = "training.safetensors"


@dataclass(frozen=True)
class TrainedBackbone:
    """Result of :func:`train_into`.

    Attributes:
        backbone: Frozen, with the weights of its best validation epoch.
        history: One report per epoch.
        metrics: Scores by split.
    """

    backbone: Backbone
    history: list[EpochReport]
    metrics: dict[str, dict[str, float]]


def train_into(
    folder: str | Path,
    name: str,
    cohort: Cohort,
    recipe: TrainingRecipe,
    *,
    preset: str = "paper",
    widths: dict[str, Any] | None = None,
    device: str = "cpu",
    score: Callable[[Predictions], dict[str, float]] | None = None,
    report: Callable[[EpochReport], None] = lambda epoch: None,
    progress: Progress = lambda items, what: items,
) -> TrainedBackbone:
    """Train a classifier on a cohort's train split and write it to a folder.

    A killed run, started again with the same arguments, goes on after its last whole epoch.

    Args:
        folder: Where ``weights.safetensors`` and ``backbone.json`` go.
        name: One of :func:`foci.backbones.available`.
        cohort: With splits ``train`` and ``val``; ``test`` is only scored. All readable.
        recipe: How to train.
        preset: Widths of the classifier.
        widths: Constructor arguments that replace the preset's.
        device: Where to train.
        score: Numbers for ``backbone.json`` from the predictions of a split; default is loss and
            accuracy.
        report: Called after every epoch.
        progress: Wraps the steps of an epoch.
    """
    folder = Path(folder)
    if (folder / FACTS).exists():
        raise CohortError(folder, "already holds a trained backbone", "choose another --out")
    folder.mkdir(parents=True, exist_ok=True)
    check_labels(cohort.slides, cohort.classes)
    d_in = next(iter(cohort.bags())).width
    torch.manual_seed(recipe.seed)
    backbone = create(name, preset, d_in=d_in, n_classes=len(cohort.classes), **(widths or {})).to(
        device
    )
    history = train(
        backbone,
        cohort.split("train"),
        cohort.split("val"),
        recipe,
        state_file=folder / STATE,
        report=report,
        progress=progress,
    )
    scores = score or (lambda p: {"loss": p.loss, "accuracy": p.accuracy})
    splits = [s for s in ("train", "val", "test") if any(x.split == s for x in cohort)]
    metrics = {split: scores(predict(backbone, cohort.split(split))) for split in splits}
    save(
        backbone,
        folder,
        name=name,
        preset=preset,
        classes=list(cohort.classes),
        n_cap=cohort.store.n_cap,
        recipe=recipe.model_dump(),
        metrics=metrics,
        history=[asdict(epoch) for epoch in history],
        slides={split: len(cohort.split(split)) for split in splits},
        versions={"foci": foci.__version__, "torch": torch.__version__,
                  "python": platform.python_version()},
    )  # fmt: skip
    (folder / STATE).unlink(missing_ok=True)
    return TrainedBackbone(backbone.requires_grad_(False), history, metrics)


def with_train_and_val(cohort: Cohort, seed: int = 0) -> Cohort:
    """All three splits where there are none; ``val`` out of ``train`` where only it is missing."""
    present = {slide.split for slide in cohort}
    if present == {None}:
        return cohort.with_splits(seed=seed)
    if "train" not in present:
        raise CohortError("labels", "has no slides in split 'train'", "add a split column")
    if "val" in present:
        return cohort
    inner = cohort.split("train").with_splits((0.85, 0.15, 0.0), seed=seed)
    chosen = {slide.slide_id: slide.split for slide in inner}
    slides = tuple(replace(s, split=chosen.get(s.slide_id, s.split)) for s in cohort)
    note = f"no 'val' split: {len(inner.split('val'))} slides taken out of 'train', by patient"
    return replace(cohort, slides=slides, notes=(*cohort.notes, note))
