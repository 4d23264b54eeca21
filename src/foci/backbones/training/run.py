"""Train a classifier on a cohort and save it to a folder."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field

from foci._version import __version__
from foci.backbones.base import Backbone, create
from foci.backbones.outcomes import BINS, OutcomePredictions, OutcomeTask
from foci.backbones.saved import (
    RECORD,
    FeatureRange,
    ModelRecord,
    TrainingData,
    load_folder,
    read_record,
    save,
)
from foci.backbones.training.loop import (
    EpochReport,
    Predictions,
    Scores,
    predict,
    predict_outcomes,
    run_key,
    stored_key,
    train,
)
from foci.backbones.training.presets import TrainingRecipe, checked_widths
from foci.bags import Cohort
from foci.bags.cohort import CohortOptions, files_read, what_is_read
from foci.bags.splits import SPLITS, check_labels
from foci.errors import ChangedError, CohortError
from foci.files.atomic import sweep
from foci.files.hashes import Unchanged, digest
from foci.files.lock import alone_in
from foci.outputs import Output
from foci.words import counted, tally

STATE = "training.safetensors"


class TrainingConfiguration(TrainingRecipe, CohortOptions):
    """All that ``foci train`` needs, from options or from a file.

    ``backbone`` is one of :func:`foci.backbones.available`, ``widths`` are constructor arguments
    that replace those of the preset. ``bins`` are the time bins of hazards.
    """

    backbone: str
    labels: Path
    out: Path
    preset: str = "paper"
    widths: dict[str, Any] = Field(default_factory=dict)
    device: str = "auto"
    output: Output = "class"
    bins: Annotated[int, Field(ge=2, le=100)] = BINS

    @property
    def recipe_settings(self) -> dict[str, Any]:
        """The hyperparameters that were given; all others are the training preset's."""
        own = TrainingRecipe.model_fields.keys() & self.model_fields_set
        return {name: getattr(self, name) for name in sorted(own)}


@dataclass(frozen=True)
class TrainedBackbone:
    """Result of :func:`train_into`: a frozen backbone with the weights of its best epoch.

    Scores are by split, None where one is undefined; notes say which split could not be scored, and
    why, and whether it mixes encoders.
    """

    backbone: Backbone
    history: list[EpochReport]
    metrics: dict[str, Scores]
    notes: tuple[str, ...] = ()


def train_into(
    folder: str | Path,
    name: str,
    cohort: Cohort,
    recipe: TrainingRecipe,
    *,
    preset: str = "paper",
    widths: dict[str, Any] | None = None,
    device: str = "cpu",
    request: str | None = None,
    output: Output = "class",
    bins: int = BINS,
    score: Callable[[Any], Scores] | None = None,
    starting: Callable[[int, int], None] = lambda done, total: None,
    report: Callable[[EpochReport], None] = lambda epoch: None,
) -> TrainedBackbone:
    """Train a classifier on a cohort's train split and write it to a folder.

    A killed run, started again with the same arguments, continues after its last complete epoch.

    The cohort has the splits ``train`` and ``val``; ``test`` is only scored. All slides are
    readable. ``request``, the key of what was asked for (:func:`request_key`), is written to
    ``backbone.json``, and so is what ``score`` returns for the predictions of a split, by default
    loss and accuracy. With another ``output`` than classes the numbers of the table are learned.
    A split that it fails on is written without scores, and a note says so.
    ``starting`` and ``report`` are those of :func:`~foci.backbones.training.loop.train`.
    """
    folder = Path(folder)
    _check_free(folder)
    check_labels(cohort.slides, cohort.classes)
    training, validation = cohort.split("train"), cohort.split("val")
    task = None
    if output != "class":
        learned = [slide.outcome for slide in training]
        task = OutcomeTask.of(output, learned, cohort.classes, bins)
    own = checked_widths(name, preset, widths or {})
    features = Unchanged(files_read(cohort))
    d_in = next(iter(cohort.bags())).width
    torch.manual_seed(recipe.seed)
    n_outputs = len(cohort.classes) if task is None else task.n_outputs
    backbone = create(name, preset, d_in=d_in, n_classes=n_outputs, **own).to(device)
    parts = {split: cohort.split(split) for split in SPLITS if split in cohort.counts()}
    folder.mkdir(parents=True, exist_ok=True)
    with alone_in(folder, "foci train"):
        _check_free(folder)
        sweep(folder)
        if (folder / RECORD).exists():
            key = run_key(backbone, training, validation, recipe, task)
            result = _killed_at_its_end(folder, cohort, key)
        else:
            history = train(
                backbone,
                training,
                validation,
                recipe,
                task=task,
                score=score,
                state_file=folder / STATE,
                starting=starting,
                report=report,
            )
            metrics, notes = _scored(backbone, parts, score or _loss_and_accuracy, task)
            data = _training_data(training)
            if len(data.encoders) > 1:
                several = tally(Counter(data.encoders))
                notes.append(f"trained on features of several encoders ({several})")
            try:
                features.check("the training")
            except ChangedError:
                (folder / STATE).unlink(missing_ok=True)
                raise
            save(
                backbone,
                folder,
                name=name,
                preset=preset,
                classes=list(cohort.classes),
                n_cap=cohort.store.n_cap,
                recipe=recipe.model_dump(),
                metrics=metrics,
                notes=[*cohort.notes, *notes],
                history=[asdict(epoch) for epoch in history],
                slides={split: len(part) for split, part in parts.items()},
                trained_on=[slide.slide_id for slide in training],
                **({} if request is None else {"request": request}),
                **({} if task is None else asdict(task)),
                data=data.model_dump(),
                versions={"foci": __version__, "torch": torch.__version__,
                          "python": platform.python_version()},
            )  # fmt: skip
            backbone.requires_grad_(False)
            result = TrainedBackbone(backbone, history, metrics, tuple(notes))
    # after everything else: a run that is killed before this can be given again
    (folder / STATE).unlink(missing_ok=True)
    return result


def _check_free(folder: Path) -> None:
    """Refuse a folder with a trained backbone, unless its training was killed at its very end."""
    if (folder / RECORD).exists() and not (folder / STATE).exists():
        raise _occupied(folder)


def _occupied(folder: Path) -> CohortError:
    return CohortError(folder, "already holds a trained backbone", "choose another --out")


def _killed_at_its_end(folder: Path, cohort: Cohort, key: str) -> TrainedBackbone:
    """Result of a training that was killed after writing it, if it is this training."""
    if stored_key(folder / STATE) != key:
        raise _occupied(folder)
    record = read_record(folder)
    extra = record.model_extra or {}
    return TrainedBackbone(
        load_folder(folder, record),
        [EpochReport(**epoch) for epoch in extra["history"]],
        record.metrics,
        tuple(extra["notes"][len(cohort.notes) :]),
    )


def _loss_and_accuracy(predictions: Predictions | OutcomePredictions) -> Scores:
    if isinstance(predictions, OutcomePredictions):
        return {"loss": predictions.loss}
    return {"loss": predictions.loss, "accuracy": predictions.accuracy}


def _scored(
    backbone: Backbone,
    parts: dict[str, Cohort],
    score: Callable[[Any], Scores],
    task: OutcomeTask | None = None,
) -> tuple[dict[str, Scores], list[str]]:
    metrics, notes = dict[str, Scores](), []
    for split, part in parts.items():
        try:
            predictions: Predictions | OutcomePredictions
            predictions = (
                predict(backbone, part) if task is None else predict_outcomes(backbone, part, task)
            )
            metrics[split] = dict(score(predictions))
        except Exception as error:  # whatever it is, it must not cost the trained weights
            why = " ".join(f"{type(error).__name__}: {error}".split())
            notes.append(f"split {split} has no scores ({why})")
    return metrics, notes


def _training_data(cohort: Cohort) -> TrainingData:
    """Read every bag of a training split once more, to describe its features."""
    encoders, layouts, sizes = Counter[str](), Counter[str](), Counter[str]()
    fingerprints, width, norms, means = {}, 0, list[float](), list[float]()
    for bag in cohort.bags():
        origin = bag.provenance
        encoders.update([origin.encoder] if origin.encoder else [])
        layouts.update([origin.layout])
        sizes.update([f"{bag.patch_size} {bag.unit}"] if bag.patch_size else [])
        fingerprints[bag.slide_id] = bag.fingerprint()
        width = bag.width
        norms.append(bag.feature_norm)
        means.append(bag.feature_mean)
    return TrainingData(
        width=width,
        encoders=dict(encoders),
        layouts=dict(layouts),
        tile_sizes=dict(sizes),
        fingerprints=fingerprints,
        feature_norm=FeatureRange.of(norms),
        feature_mean=FeatureRange.of(means),
    )


def trainable(cohort: Cohort) -> Cohort:
    """Keep the slides that have a label, or numbers, and a split; notes say how many do not.

    Apply it after :func:`with_train_and_val`: an audit splits all slides of the table, and its
    split has to be the same for the same seed.
    """
    labelled = [slide for slide in cohort if slide.label is not None or slide.outcome]
    if not labelled:
        raise CohortError("labels", "has no slide with a label", "fill the label column")
    slides = tuple(slide for slide in labelled if slide.split is not None)
    unlabelled, unplaced = len(cohort) - len(labelled), len(labelled) - len(slides)
    notes = cohort.notes
    if unlabelled:
        notes += (f"left out: {counted(unlabelled, 'slide')} without a label",)
    if unplaced:
        notes += (f"left out: {counted(unplaced, 'slide')} in no split",)
    return replace(cohort, slides=slides, notes=notes)


def with_train_and_val(cohort: Cohort, seed: int = 0) -> Cohort:
    """Split a cohort by patient; where only ``val`` is missing, take it out of ``train``."""
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


def request_key(
    name: str,
    preset: str,
    widths: dict[str, Any],
    recipe: TrainingRecipe,
    cohort: Cohort,
    output: Output = "class",
    bins: int = BINS,
) -> str:
    """Digest of all that a run was asked for; feature files by name, size and time of change.

    Unlike :func:`~foci.backbones.training.loop.run_key` it can be computed before a file is read:
    the cohort is that of the table, before unreadable slides are left out.
    """
    splits = [[slide.case_id, slide.split] for slide in cohort]
    own = [] if output == "class" else [output, bins]
    return digest([name, preset, widths, recipe.model_dump(), what_is_read(cohort), splits, *own])


def finished(folder: Path, key: str) -> ModelRecord | None:
    """The run that a folder holds, if it is complete and was asked for the same; else None.

    Raises:
        CohortError: If the folder holds a backbone that was trained in another way.
    """
    if not (folder / RECORD).exists() or (folder / STATE).exists():
        return None  # with its state it was killed at its very end, and training resumes there
    record = read_record(folder)
    if (record.model_extra or {}).get("request") != key:
        what = "already holds a backbone trained with other options, slides or feature files"
        raise CohortError(folder, what, "choose another --out")
    return record
