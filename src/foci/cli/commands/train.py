"""``foci train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foci.cli.announce import starting
from foci.cli.cohort_options import Given, cohort_options
from foci.cli.options import Device, settings

if TYPE_CHECKING:
    from foci.backbones.training import EpochReport, Predictions
    from foci.bags import Cohort


@cohort_options(required=("features", "labels"), without=("classes",))
def train(
    cohort: Given,
    backbone: Annotated[
        str, typer.Argument(help="Architecture: abmil, acmil, asmil, attrimil, clam-sb, ...")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the trained backbone.")],
    preset: Annotated[str, typer.Option(help="Preset of the widths: paper, official, ...")] = (
        "paper"
    ),
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
        typer.Option(help="Peak learning rate of AdamW; default 2e-4, for attrimil 1e-3."),
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
        int, typer.Option(help="Random seed; the same seed gives the same weights (on a CPU).")
    ] = 0,
    device: Device = "auto",
) -> None:
    """Train one of the seven classifiers with its own objective and preset, then freeze it.

    An interrupted run resumes when the same command is run again. With other options, slides or
    feature files it starts over.
    """
    starting("loading the cohort")
    from dataclasses import replace

    from foci.backbones.training import TrainingRecipe, training_recipe
    from foci.backbones.training.run import train_into, trainable, with_train_and_val
    from foci.bags.cohort.options import CohortOptions
    from foci.cli.announce import announce
    from foci.cli.device import choose
    from foci.cli.show_audit import number
    from foci.configuration import configure
    from foci.progress import track

    options = {
        "epochs": epochs,
        "lr": lr,
        "weight_decay": weight_decay,
        "schedule": schedule,
        "batch_size": batch_size,
        "balanced": balanced or None,
        "objective": settings(objective, "--objective"),
        "seed": seed,
    }
    given = {name: value for name, value in options.items() if value is not None}
    configure(TrainingRecipe, given)  # refused before anything is read
    slides = configure(CohortOptions, cohort).read().readable(track)
    slides = trainable(with_train_and_val(slides, seed))
    slides = replace(slides, notes=(*slides.notes, *_without_auc(slides)))
    announce(slides)
    recipe, line = training_recipe(backbone, slides.classes, given)
    typer.echo(line)
    result = train_into(
        out,
        backbone,
        slides,
        recipe,
        preset=preset,
        widths=settings(width, "--set"),
        device=choose(device),
        score=scores,
        report=lambda epoch: typer.echo(_line(epoch)),
        progress=track,
    )
    for split, values in result.metrics.items():
        shown = ", ".join(f"{name} {number(value, 3)}" for name, value in values.items())
        typer.echo(f"{split}: {shown}")
    for note in result.notes:
        typer.echo(f"note: {note}")
    typer.echo(f"wrote {out}")


def _without_auc(cohort: Cohort) -> list[str]:
    """Notes on splits that lack a class, so that their AUC is undefined."""
    from foci.bags.cohort.splits import SPLITS

    notes, counts = [], cohort.counts()
    for split in (name for name in SPLITS if name in counts):
        absent = ", ".join(name for name in cohort.classes if name not in counts[split])
        if absent:
            notes.append(f"no {split} slide is of class {absent}: AUC is undefined there")
    return notes


def scores(predictions: Predictions) -> dict[str, float | None]:
    """AUC, accuracy and loss of a split; AUC is None if a class is absent."""
    from foci.audits.analysis.selected_only import auc_or_none

    return {
        "auc": auc_or_none(predictions.probabilities, predictions.labels),
        "accuracy": predictions.accuracy,
        "loss": predictions.loss,
    }


def _line(epoch: EpochReport) -> str:
    """One epoch in one line."""
    terms = ", ".join(f"{name} {value:.3f}" for name, value in epoch.terms.items())
    width = len(str(epoch.epochs))
    return (
        f"{epoch.stage} {epoch.epoch:>{width}}/{epoch.epochs}  loss {epoch.loss:.3f} ({terms})  "
        f"val loss {epoch.val_loss:.3f}  val accuracy {epoch.val_accuracy:.3f}"
        f"{'  best' if epoch.best else ''}"
    )
