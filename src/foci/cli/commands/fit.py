"""``foci fit``."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foci.cli.options import (
    COHORT,
    SPLIT_SEED,
    Device,
    Given,
    ModelArg,
    Setting,
    choose_device,
    model_options,
    settings,
    with_settings,
)
from foci.cli.terminal import end_if_many_skipped, starting
from foci.cli.text import epoch_line
from foci.errors import FociError
from foci.selectors import ChooseBy, Target

if TYPE_CHECKING:
    from foci.selectors import FitEpoch

_LOG = logging.getLogger(__name__)


@with_settings(
    features=replace(COHORT["features"], required=True),
    model=Setting(
        Path,
        "Folder of foci train, a checkpoint, or package.module:factory of your own model.",
        argument=True,
        required=True,
    ),
    expect=Setting(Path, "Answers of your own code, as for foci audit."),
    split_seed=SPLIT_SEED,
)
def fit(
    given: Given,
    out: Annotated[Path, typer.Option(help="Folder for the selector.")],
    recipe: Annotated[
        str, typer.Option(help="Recipe: default, paper-ste, paper-soft, paper-adaptive, ...")
    ] = "default",
    change: Annotated[
        list[str],
        typer.Option("--set", help="Replace a setting of the recipe: --set budget.k_max=16."),
    ] = [],  # noqa: B006
    model_arg: ModelArg = [],  # noqa: B006
    seed: Annotated[
        int,
        typer.Option(min=0, help="Random seed; the same seed gives the same selector (on a CPU)."),
    ] = 0,
    target: Annotated[
        Target | None,
        typer.Option(
            help="Class to support: the label, or the model's own prediction (needs no labels)."
        ),
    ] = None,
    choose_by: Annotated[
        ChooseBy | None,
        typer.Option(help="Criterion for the best epoch; default: the recipe's."),
    ] = None,
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
    from foci.configuration import configure
    from foci.files.run_log import RunLog

    changes = model_options(model_arg) | settings(change, "--set")
    of_model = [name for name in changes if name.startswith("model_options.")]
    given["model_options"] = {name.partition(".")[2]: changes.pop(name) for name in of_model}
    plan = selectors.vary(selectors.recipe(recipe), changes)
    target, criterion = target or plan.target, choose_by or plan.choose_by
    if "labels" not in given and target == "label":
        raise FociError("--labels", "is missing", "give a label table, or --target prediction")
    inputs = configure(Inputs, given)
    sources = open_sources(inputs.model, inputs, **inputs.opening, device=choose_device(device))
    if sources.output not in (None, "class"):
        what = f"is a model of {sources.output}, for which only an audit fits a selector"
        raise FociError(inputs.model, what, "run foci audit --fit")
    selectors.check_free(out)
    slides = for_backbone(sources.cohort, sources.backbone)
    check_width(slides)
    slides = ready_to_fit(slides, sources.split_seed)

    def report(epoch: FitEpoch) -> None:
        score = "" if criterion == "loss" else f"  val {criterion} {epoch.score:.3f}"
        _LOG.info(epoch_line(epoch, "fit", score))

    with RunLog(out, f"fit {plan.name}"):
        announce(slides, sources.model_notes, sources.alarms)
        fitted = selectors.fit(
            sources.backbone,
            slides,
            plan,
            seed=seed,
            target=target,
            out=out,
            criterion=criterion,
            memory_gb=memory_gb,
            model_files=sources.model_files,
            report=report,
        )
        _LOG.info("%s: gate at the %s, best epoch %d", plan.name, fitted.site, fitted.best_epoch)
        for note in fitted.notes:
            _LOG.info("note: %s", note)
        _LOG.info("the backbone is unchanged: parameters, buffers and full-bag logits compared")
        _LOG.info("wrote %s", out)
    end_if_many_skipped(slides)
