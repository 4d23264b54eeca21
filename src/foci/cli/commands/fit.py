"""``foci fit``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    names,
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
        typer.Option("--set", help="Replace a setting of the recipe: --set budget.k_max=16."),
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
    from foci import selectors
    from foci.audits.config import Origin
    from foci.audits.setup.inputs import open_sources
    from foci.audits.setup.preflight import for_backbone
    from foci.audits.setup.splits import ready_to_fit
    from foci.cli.announce import announce
    from foci.cli.device import choose
    from foci.configuration import configure
    from foci.progress import track

    changes, model_options = _parted(settings(change, "--set"))
    plan = selectors.vary(selectors.recipe(recipe), changes)
    wanted: Target = plan.target if target is None else target.value
    if labels is None and wanted == "label":
        raise FociError("--labels", "is missing", "give a label table, or --target prediction")
    given = {
        "model": model,
        "model_options": model_options,
        "features": features,
        "labels": labels,
        "splits": splits,
        "slide_table": slide_table,
        "label_column": label_column,
        "fold": fold,
        "classes": names(classes),
        "layout": layout,
        "mpp": mpp,
        "n_cap": n_cap,
        "split_seed": split_seed,
    }
    sources = open_sources(configure(Origin, given), choose(device))
    backbone = sources.backbone
    selectors.check_free(out)
    cohort = for_backbone(sources.cohort, backbone)
    cohort = ready_to_fit(cohort, sources.split_seed, track)
    announce(cohort, sources.model_notes)
    shown = "val aukc" if choose_by is Choice.aukc else None
    fitted = selectors.fit(
        backbone,
        cohort,
        plan,
        seed=seed,
        target=wanted,
        out=out,
        criterion=choose_by.value,
        memory_gb=memory_gb,
        report=lambda epoch: typer.echo(line(epoch, shown)),
        progress=track,
    )
    typer.echo(f"{plan.name}: gate at the {fitted.site}, best epoch {fitted.best_epoch}")
    for note in fitted.notes:
        typer.echo(f"note: {note}")
    typer.echo("the backbone is unchanged: parameters, buffers and full-bag logits compared")
    typer.echo(f"wrote {out}")


def _parted(changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Settings of the recipe, and options of the checkpoint."""
    own = {k.partition(".")[2]: v for k, v in changes.items() if k.startswith("model_options.")}
    return {k: v for k, v in changes.items() if not k.startswith("model_options.")}, own


def line(epoch: FitEpoch, criterion: str | None) -> str:
    """One epoch in one line."""
    terms = ", ".join(f"{name} {value:.3f}" for name, value in epoch.terms.items())
    width = len(str(epoch.epochs))
    score = f"  {criterion} {epoch.score:.3f}" if criterion else ""
    return (
        f"fit {epoch.epoch:>{width}}/{epoch.epochs}  loss {epoch.loss:.3f} ({terms})  "
        f"val loss {epoch.val_loss:.3f}{score}{'  best' if epoch.best else ''}"
    )
