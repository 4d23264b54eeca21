"""``foci fit``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foci.cli.options import (
    Classes,
    Device,
    FeatureFolder,
    Fold,
    LabelColumn,
    Labels,
    Layout,
    Mpp,
    SlideTable,
    Splits,
    SplitSeed,
    settings,
)
from foci.errors import FociError

if TYPE_CHECKING:
    from foci.selectors import FitEpoch
    from foci.selectors.recipes import Target


class TargetName(str, Enum):
    """Which class the kept tiles should support."""

    label = "label"
    prediction = "prediction"


class Choice(str, Enum):
    """What chooses the epoch."""

    aukc = "aukc"
    loss = "loss"


def fit(
    model: Annotated[Path, typer.Argument(help="Folder of foci train, or a checkpoint file.")],
    features: FeatureFolder,
    out: Annotated[Path, typer.Option(help="Folder for the selector.")],
    labels: Labels = None,
    recipe: Annotated[
        str, typer.Option(help="default, paper-ste, paper-soft, paper-adaptive, ...")
    ] = "default",
    change: Annotated[
        list[str],
        typer.Option("--set", help="Replace a setting of the recipe: --set budget.k=16."),
    ] = [],  # noqa: B006
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same selector (on a CPU).")] = 0,
    target: Annotated[
        TargetName | None,
        typer.Option(help="label, or the model's own prediction (needs no labels)."),
    ] = None,
    choose_by: Annotated[Choice, typer.Option(help="What chooses the epoch.")] = Choice.aukc,
    classes: Classes = None,
    split_seed: SplitSeed = None,
    splits: Splits = None,
    slide_table: SlideTable = None,
    label_column: LabelColumn = None,
    fold: Fold = None,
    layout: Layout = "auto",
    mpp: Mpp = None,
    n_cap: Annotated[
        int | None,
        typer.Option(min=1, help="Most tiles per bag; default is the model's, or 1024."),
    ] = None,
    memory_gb: Annotated[
        float, typer.Option(min=0, help="Embedded bags that may stay in memory.")
    ] = 4.0,
    device: Device = "auto",
) -> None:
    """Fit a selector to a frozen classifier, which stays as it is.

    A fit that was killed goes on where it stopped when the same command is given again.
    """
    from foci import backbones, selectors
    from foci.audits.criterion import validation_aukc
    from foci.audits.sources import model_facts
    from foci.backbones.training.run import with_train_and_val
    from foci.bags import N_CAP, Cohort
    from foci.cli.announce import announce
    from foci.cli.device import choose
    from foci.progress import track

    plan = selectors.vary(selectors.recipe(recipe), settings(change, "--set"))
    wanted: Target = plan.target if target is None else target.value
    if labels is None and wanted == "label":
        raise FociError("--labels", "is missing", "give a label table, or --target prediction")
    facts = model_facts(model)
    names = classes.split(",") if classes else facts.get("classes")
    backbone = backbones.load(model).to(choose(device))
    cohort = Cohort.read(
        features,
        labels,
        splits=splits,
        slide_table=slide_table,
        label_column=label_column,
        fold=fold,
        classes=names,
        layout=layout,
        n_cap=n_cap or facts.get("n_cap", N_CAP),
        mpp=mpp,
    ).readable(lambda bags: track(bags, "reading bags"))
    if split_seed is None:
        split_seed = facts.get("recipe", {}).get("seed", 0)
    cohort = with_train_and_val(cohort, split_seed)
    announce(cohort)
    by_aukc = choose_by is Choice.aukc
    fitted = selectors.fit(
        backbone,
        cohort,
        plan,
        seed=seed,
        target=wanted,
        out=out,
        criterion=validation_aukc(backbone, cohort.split("val"), wanted) if by_aukc else None,
        memory_gb=memory_gb,
        report=lambda epoch: typer.echo(line(epoch, "val aukc" if by_aukc else None)),
        progress=track,
    )
    typer.echo(f"{plan.name}: gate at the {fitted.site}, best epoch {fitted.best_epoch}")
    typer.echo("the backbone is unchanged: parameters, buffers and full-bag logits compared")
    typer.echo(f"wrote {out}")


def line(epoch: FitEpoch, criterion: str | None) -> str:
    """One epoch in one line."""
    terms = ", ".join(f"{name} {value:.3f}" for name, value in epoch.terms.items())
    width = len(str(epoch.epochs))
    score = f"  {criterion} {epoch.score:.3f}" if criterion else ""
    return (
        f"fit {epoch.epoch:>{width}}/{epoch.epochs}  loss {epoch.loss:.3f} ({terms})  "
        f"val loss {epoch.val_loss:.3f}{score}{'  best' if epoch.best else ''}"
    )
