"""``foci fit``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foci.cli.options import Choice, Device, Given, SplitSeed, TargetName, cohort_options, settings
from foci.cli.terminal import starting
from foci.errors import FociError

if TYPE_CHECKING:
    from foci.selectors import FitEpoch
    from foci.selectors.choices import Target

_LOG = logging.getLogger(__name__)


@cohort_options(required=("features",))
def fit(
    cohort: Given,
    model: Annotated[Path, typer.Argument(help="Folder of foci train, or a checkpoint file.")],
    out: Annotated[Path, typer.Option(help="Folder for the selector.")],
    expect: Annotated[
        Path | None, typer.Option(help="Answers of your own code, as for foci audit.")
    ] = None,
    recipe: Annotated[
        str, typer.Option(help="Recipe: default, paper-ste, paper-soft, paper-adaptive, ...")
    ] = "default",
    change: Annotated[
        list[str],
        typer.Option("--set", help="Replace a setting of the recipe: --set budget.k_max=16."),
    ] = [],  # noqa: B006
    seed: Annotated[
        int,
        typer.Option(min=0, help="Random seed; the same seed gives the same selector (on a CPU)."),
    ] = 0,
    target: Annotated[
        TargetName | None,
        typer.Option(
            help="Class to support: the label, or the model's own prediction (needs no labels)."
        ),
    ] = None,
    choose_by: Annotated[
        Choice | None, typer.Option(help="Criterion for the best epoch; default: the recipe's.")
    ] = None,
    split_seed: SplitSeed = None,
    memory_gb: Annotated[float, typer.Option(min=0, help="Memory for embedded bags, in GB.")] = 4.0,
    device: Device = "auto",
) -> None:
    """Fit a selector to a frozen classifier, which stays unchanged.

    An interrupted fit resumes when the same command is run again.
    """
    starting("loading the model and the cohort")
    from foci import selectors
    from foci.audits.prepare import check_width, for_backbone, ready_to_fit
    from foci.audits.settings import Inputs
    from foci.audits.sources import announce, open_sources
    from foci.cli.options import choose
    from foci.cli.terminal import end_if_many, many_skipped_of
    from foci.configuration import configure
    from foci.files.run_log import RunLog

    changes, model_options = _parted(settings(change, "--set"))
    plan = selectors.vary(selectors.recipe(recipe), changes)
    wanted: Target = plan.target if target is None else target.value
    if "labels" not in cohort and wanted == "label":
        raise FociError("--labels", "is missing", "give a label table, or --target prediction")
    given = {
        "model": model,
        "model_options": model_options,
        "expect": expect,
        "split_seed": split_seed,
        **cohort,
    }
    inputs = configure(Inputs, given)
    sources = open_sources(inputs.model, inputs, **inputs.opening, device=choose(device))
    backbone = sources.backbone
    selectors.check_free(out)
    slides = for_backbone(sources.cohort, backbone)
    check_width(slides)
    slides = ready_to_fit(slides, sources.split_seed)
    criterion = plan.choose_by if choose_by is None else choose_by.value
    shown = None if criterion == "loss" else f"val {criterion}"
    with RunLog(out, f"fit {plan.name}"):
        announce(slides, sources.model_notes, sources.alarms)
        fitted = selectors.fit(
            backbone,
            slides,
            plan,
            seed=seed,
            target=wanted,
            out=out,
            criterion=criterion,
            memory_gb=memory_gb,
            model_files=sources.model_files,
            report=lambda epoch: _LOG.info(_line(epoch, shown)),
        )
        _LOG.info("%s: gate at the %s, best epoch %d", plan.name, fitted.site, fitted.best_epoch)
        for note in fitted.notes:
            _LOG.info("note: %s", note)
        _LOG.info("the backbone is unchanged: parameters, buffers and full-bag logits compared")
        _LOG.info("wrote %s", out)
    end_if_many(many_skipped_of(slides))


def _parted(changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Separate settings of the recipe from options of the checkpoint."""
    own = {k.partition(".")[2]: v for k, v in changes.items() if k.startswith("model_options.")}
    return {k: v for k, v in changes.items() if not k.startswith("model_options.")}, own


def _line(epoch: FitEpoch, criterion: str | None) -> str:
    """One epoch in one line."""
    terms = ", ".join(f"{name} {value:.3f}" for name, value in epoch.terms.items())
    width = len(str(epoch.epochs))
    score = f"  {criterion} {epoch.score:.3f}" if criterion else ""
    return (
        f"fit {epoch.epoch:>{width}}/{epoch.epochs}  loss {epoch.loss:.3f} ({terms})  "
        f"val loss {epoch.val_loss:.3f}{score}{'  best' if epoch.best else ''}"
    )
