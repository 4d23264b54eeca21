"""``foci train``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foci.cli.options import Given, cohort_options, settings
from foci.cli.terminal import starting
from foci.errors import FociError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from foci.backbones.training.run import TrainingConfiguration
    from foci.bags import Cohort
    from foci.cli.text import EpochLines

_LOG = logging.getLogger(__name__)


@cohort_options(without=("classes",))
def train(
    cohort: Given,
    backbone: Annotated[
        str | None, typer.Argument(help="Architecture: abmil, clam-sb, dsmil, transmil, ...")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the trained backbone.")] = None,
    preset: Annotated[
        str | None, typer.Option(help="Preset of the widths: paper (default), official, ...")
    ] = None,
    width: Annotated[
        list[str], typer.Option("--set", help="Replace a width of the preset: --set d=128.")
    ] = [],  # noqa: B006
    objective: Annotated[
        list[str], typer.Option(help="Setting of the objective: --objective subtyping=true.")
    ] = [],  # noqa: B006
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs per stage of the objective; default 20.")
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(help="Peak learning rate of AdamW; default 2e-4, for attrimil, dsmil 1e-3."),
    ] = None,
    weight_decay: Annotated[
        float | None, typer.Option(min=0.0, help="Weight decay of AdamW; default 1e-5.")
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="Learning-rate schedule: cosine (default) or constant.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Bags per step; default 1.")] = None,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Sample every class equally often.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="Random seed, default 0; the same seed gives the same weights (CPU)."),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda, cuda:1, ...; default auto.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML file with any of these settings.")
    ] = None,
) -> None:
    """Train a classifier with its own objective and preset, then freeze it.

    An interrupted run resumes when the same command is run again; a complete one ends at once.
    Options override --config.
    """
    starting("loading the cohort")
    from foci.audits.settings import read_yaml
    from foci.backbones.training.run import TrainingConfiguration
    from foci.configuration import configure

    options = {
        "backbone": backbone,
        "out": out,
        "preset": preset,
        "epochs": epochs,
        "lr": lr,
        "weight_decay": weight_decay,
        "schedule": schedule,
        "batch_size": batch_size,
        "balanced": balanced or None,
        "seed": seed,
        "device": device,
        **cohort,
    }
    values: dict[str, Any] = {} if config is None else read_yaml(config)
    values |= {name: value for name, value in options.items() if value is not None}
    for name, given in {
        "widths": settings(width, "--set"),
        "objective": settings(objective, "--objective"),
    }.items():
        values[name] = {**(values.get(name) or {}), **given}
    for name in ("backbone", "features", "labels", "out"):
        if name not in values:
            where = name if name == "backbone" else f"--{name}"
            raise FociError(where, "is missing", "give it, or name it in --config")
    _run(configure(TrainingConfiguration, values))


def _run(configuration: TrainingConfiguration) -> None:
    from foci.backbones.training import training_recipe
    from foci.backbones.training.run import finished, request_key
    from foci.cli.terminal import end_if_many, many_skipped_of
    from foci.cli.text import EpochLines
    from foci.files.run_log import RunLog

    out, given = configuration.out, configuration.recipe_settings
    name, preset, widths = configuration.backbone, configuration.preset, configuration.widths
    table = configuration.read()
    recipe, _ = training_recipe(name, table.classes, given)
    key = request_key(name, preset, widths, recipe, table)
    done = finished(out, key)
    if done is not None:
        _LOG.info("%s: this training is complete, nothing is computed again", out)
        _show_scores(done.metrics)
        return
    epochs = EpochLines()
    try:
        with RunLog(out, f"train {name}"):
            slides = _prepared(table.readable(), table, configuration)
            _train(slides, configuration, key, epochs)
        end_if_many(many_skipped_of(slides))
    except KeyboardInterrupt:
        typer.echo(f"foci: {epochs.stopped}", err=True)
        raise typer.Exit(130) from None


def _prepared(readable: Cohort, table: Cohort, configuration: TrainingConfiguration) -> Cohort:
    """The slides to train on, split; says how, and what was left out."""
    from dataclasses import replace

    from foci.audits.sources import announce
    from foci.backbones.training.run import trainable, with_train_and_val
    from foci.cli.text import split_lines, splits_from

    slides = trainable(with_train_and_val(readable, configuration.seed))
    slides = replace(slides, notes=(*slides.notes, *_without_auc(slides)))
    announce(slides)
    for line in split_lines(slides, splits_from(table, configuration)):
        _LOG.info(line)
    return slides


def _train(
    slides: Cohort, configuration: TrainingConfiguration, key: str, epochs: EpochLines
) -> None:
    from foci.audits.numbers import split_scores
    from foci.backbones.training import training_recipe
    from foci.backbones.training.run import train_into
    from foci.cli.options import choose

    name = configuration.backbone
    recipe, line = training_recipe(name, slides.classes, configuration.recipe_settings)
    _LOG.info(line)
    result = train_into(
        configuration.out,
        name,
        slides,
        recipe,
        preset=configuration.preset,
        widths=configuration.widths,
        device=choose(configuration.device),
        request=key,
        score=split_scores,
        starting=epochs.starting,
        report=epochs,
    )
    _show_scores(result.metrics)
    for note in result.notes:
        _LOG.info("note: %s", note)
    _LOG.info("wrote %s", configuration.out)


def _show_scores(metrics: Mapping[str, Mapping[str, float | None]]) -> None:
    from foci.cli.text import number

    for split, values in metrics.items():
        shown = ", ".join(f"{name} {number(value, 3)}" for name, value in values.items())
        _LOG.info("%s: %s", split, shown)


def _without_auc(cohort: Cohort) -> list[str]:
    """Notes on splits that lack a class, so that their AUC is undefined."""
    from foci.bags.splits import SPLITS

    notes, counts = [], cohort.counts()
    for split in (name for name in SPLITS if name in counts):
        absent = ", ".join(name for name in cohort.classes if name not in counts[split])
        if absent:
            notes.append(f"no {split} slide is of class {absent}: AUC is undefined there")
    return notes
