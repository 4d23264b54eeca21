"""``foci train``."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foci.cli.options import Config, Given, Setting, choose_device, settings, with_settings
from foci.cli.terminal import end_if_many_skipped, resumable, starting
from foci.cli.text import epoch_line, number
from foci.errors import FociError
from foci.outputs import SURVIVAL, Output
from foci.progress import duration
from foci.words import counted

if TYPE_CHECKING:
    from foci.backbones.training import EpochReport
    from foci.backbones.training.run import TrainingConfiguration
    from foci.bags import Cohort

_LOG = logging.getLogger(__name__)


@with_settings(
    without=("classes",),
    backbone=Setting(str, "Architecture: abmil, clam-sb, dsmil, transmil, ...", argument=True),
    out=Setting(Path, "Folder for the trained backbone."),
    preset=Setting(str, "Preset of the widths: paper (default), official, ..."),
    output=Setting(
        Output, "What is learned: class (default), cox, hazards, regression, multilabel."
    ),
    bins=Setting(int, "Time bins of --output hazards; default 4.", min=2),
    epochs=Setting(int, "Epochs per stage of the objective; default 20.", min=1),
    lr=Setting(float, "Peak learning rate of AdamW; default 2e-4, for attrimil, dsmil 1e-3."),
    weight_decay=Setting(float, "Weight decay of AdamW; default 1e-5.", min=0.0),
    schedule=Setting(str, "Learning-rate schedule: cosine (default) or constant."),
    batch_size=Setting(int, "Bags per step; default 1.", min=1),
    balanced=Setting(bool, "Sample every class equally often."),
    seed=Setting(int, "Random seed, default 0; the same seed gives the same weights (CPU)."),
    device=Setting(str, "auto, cpu, cuda, cuda:1, ...; default auto."),
)
def train(
    given: Given,
    width: Annotated[
        list[str], typer.Option("--set", help="Replace a width of the preset: --set d=128.")
    ] = [],  # noqa: B006
    objective: Annotated[
        list[str], typer.Option(help="Setting of the objective: --objective subtyping=true.")
    ] = [],  # noqa: B006
    config: Config = None,
) -> None:
    """Train a classifier with its own objective and preset, then freeze it.

    With --output, a model of risks (--time, --event), of a number (--value) or of several labels
    (--label-columns).

    An interrupted run resumes when the same command is run again; a complete one ends at once.
    Options override --config.
    """
    starting("loading the cohort")
    from foci.audits.settings import read_yaml
    from foci.backbones.training.run import TrainingConfiguration
    from foci.configuration import configure

    values: dict[str, Any] = {} if config is None else read_yaml(config)
    values |= given
    for name, pairs, option in (
        ("widths", width, "--set"),
        ("objective", objective, "--objective"),
    ):
        values[name] = {**(values.get(name) or {}), **settings(pairs, option)}
    for name in ("backbone", "features", "labels", "out"):
        if name not in values:
            where = name if name == "backbone" else f"--{name}"
            raise FociError(where, "is missing", "give it, or name it in --config")
    _run(configure(TrainingConfiguration, values))


def _run(configuration: TrainingConfiguration) -> None:
    from foci.audits.numbers import split_scores
    from foci.audits.outputs import outcome_split_scores
    from foci.backbones.training import training_recipe
    from foci.backbones.training.run import finished, request_key, train_into
    from foci.bags import N_CAP
    from foci.files.run_log import RunLog

    name, out, table = configuration.backbone, configuration.out, configuration.read(n_cap=N_CAP)
    preset, widths = configuration.preset, configuration.widths
    output, bins, given = configuration.output, configuration.bins, configuration.recipe_settings
    if table.outcomes is not None:
        table.outcomes.check(output)
    recipe, _ = training_recipe(name, table.classes, given, output)
    key = request_key(name, preset, widths, recipe, table, output, bins)
    done = finished(out, key)
    if done is not None:
        _LOG.info("%s: this training is complete, nothing is computed again", out)
        _log_scores(done.metrics)
        return
    epochs = EpochLines()
    with resumable(epochs.stopped):
        with RunLog(out, f"train {name}"):
            slides = _prepared(table, configuration)
            recipe, line = training_recipe(name, slides.classes, given, output)
            _LOG.info(line)
            result = train_into(
                out,
                name,
                slides,
                recipe,
                preset=preset,
                widths=widths,
                device=choose_device(configuration.device),
                request=key,
                output=output,
                bins=bins,
                score=split_scores if output == "class" else outcome_split_scores,
                starting=epochs.starting,
                report=epochs,
            )
            _log_scores(result.metrics)
            for note in result.notes:
                _LOG.info("note: %s", note)
            _LOG.info("wrote %s", out)
        end_if_many_skipped(slides)


def _prepared(table: Cohort, configuration: TrainingConfiguration) -> Cohort:
    """The slides to train on, split; logs how, what was left out, and what each split holds."""
    from dataclasses import replace

    from foci.audits.sources import announce
    from foci.backbones.training.run import trainable, with_train_and_val
    from foci.bags.splits import SPLITS, choose_splits

    slides = trainable(with_train_and_val(table.readable(), configuration.seed))
    counts = dict(sorted(slides.counts().items(), key=lambda part: SPLITS.index(part[0])))
    classes_in = configuration.output == "class"
    notes = [
        f"no {split} slide is of class {', '.join(absent)}: AUC is undefined there"
        for split, classes in counts.items()
        if classes_in and (absent := [name for name in slides.classes if name not in classes])
    ]
    slides = replace(slides, notes=(*slides.notes, *notes))
    announce(slides)
    if all(slide.split is None for slide in table):
        how = f"made by patient, 70, 10 and 20 %{' of each class' if classes_in else ''}, "
        how += f"seed {configuration.seed}"
    else:
        path, _, _ = choose_splits(configuration.splits, configuration.fold)
        how = f"as in {(configuration.labels if path is None else path).name}"
    _LOG.info("splits: %s", how)
    for split, classes in counts.items():
        patients = len({slide.case_id for slide in slides if slide.split == split})
        own = [slide.outcome for slide in slides if slide.split == split]
        each = f" ({_content(configuration.output, slides.classes, classes, own)})"
        n = counted(sum(classes.values()), "slide")
        _LOG.info(f"  {split}: {n} of {counted(patients, 'patient')}{each}")
    return slides


def _content(
    output: Output,
    names: Sequence[str],
    classes: Counter[str],
    outcomes: Sequence[tuple[float, ...]],
) -> str:
    """What a split holds: slides per class or label, events, or the range of the value."""
    if output == "class":
        return ", ".join(f"{name} {classes[name]}" for name in names)
    columns = list(zip(*outcomes, strict=True))
    if output in SURVIVAL:
        return counted(int(sum(columns[1])), "event")
    if output == "regression":
        return f"{min(columns[0]):g} to {max(columns[0]):g}"
    return ", ".join(f"{name} {sum(own):g}" for name, own in zip(names, columns, strict=True))


def _log_scores(metrics: Mapping[str, Mapping[str, float | None]]) -> None:
    for split, values in metrics.items():
        shown = ", ".join(f"{name} {number(value, 3)}" for name, value in values.items())
        _LOG.info("%s: %s", split, shown)


class EpochLines:
    """Logs each epoch, and after the first one how long the others will take."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.done = self.total = 0
        self._started: float | None = None

    def starting(self, done: int, total: int) -> None:
        """Start, after ``done`` of ``total`` epochs."""
        self.done, self.total, self._started = done, total, self.clock()
        if done:
            _LOG.info("resuming after %d of %s", done, counted(total, "epoch"))

    def __call__(self, epoch: EpochReport) -> None:
        """Log one epoch."""
        self.done += 1
        _LOG.info(epoch_line(epoch, epoch.stage, f"  val {epoch.scored} {epoch.val_score:.3f}"))
        if self._started is None:
            return
        seconds, left = self.clock() - self._started, self.total - self.done
        self._started = None
        if left:
            _LOG.info(
                f"one epoch took {duration(seconds)}: about {duration(left * seconds)} for "
                f"{counted(left, 'more epoch')}; Ctrl-C keeps every finished epoch, and the same "
                "command resumes"
            )

    def stopped(self) -> str:
        """What a run that was stopped leaves, and how to resume it."""
        if not self.done:
            return "stopped before the first epoch was finished; run the same command again"
        kept = f"{self.done} of {counted(self.total, 'epoch')}"
        return f"stopped after {kept}, which are kept; run the same command again to resume"
