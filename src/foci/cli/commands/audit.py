"""``foci audit``."""

from __future__ import annotations

import logging
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foci.cli.options import (
    Choice,
    Given,
    SplitSeed,
    TargetName,
    cohort_options,
    confidence,
    names,
    settings,
)
from foci.cli.terminal import starting
from foci.errors import FociError
from foci.processes import preload

if TYPE_CHECKING:
    from foci.audits.settings import AuditConfiguration

_LOG = logging.getLogger(__name__)


@cohort_options()
def audit(
    cohort: Given,
    model: Annotated[
        Path | None, typer.Option(help="Folder of foci train, or a checkpoint file.")
    ] = None,
    expect: Annotated[
        Path | None,
        typer.Option(
            help="Table of slide_id and one column per class: answers of your own code, which "
            "decide what the checkpoint leaves open."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the audit.")] = None,
    rankings: Annotated[
        str | None,
        typer.Option(
            help="Rankings, separated by commas, from-file=PATH among them; "
            "default native,evidence,selector,random."
        ),
    ] = None,
    heat_map: Annotated[
        str | None,
        typer.Option("--map", help="from-file=PATH: the map to judge, in the native one's place."),
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="Recipe of the selector: default, paper-ste, paper-soft, ...")
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="Defaults of all other settings: foci (default) or paper."),
    ] = None,
    fit_target: Annotated[
        TargetName | None,
        typer.Option(help="Class that the selector is trained to support; default the recipe's."),
    ] = None,
    target: Annotated[
        TargetName | None,
        typer.Option(help="View that comes first in the report; default prediction."),
    ] = None,
    kappa: Annotated[
        str | None,
        typer.Option(
            help="Operating confidence, default 0.9; relative: answers also relative to each "
            "slide's own confidence."
        ),
    ] = None,
    k_max: Annotated[int | None, typer.Option(help="Largest reveal count; default 256.")] = None,
    seeds: Annotated[str | None, typer.Option(help="One selector per seed; default 0,1,2.")] = None,
    random_orders: Annotated[
        int | None, typer.Option(help="Number of random orders in the control; default 10.")
    ] = None,
    choose_by: Annotated[
        Choice | None,
        typer.Option(help="Criterion for the selector's best epoch; default: the recipe's."),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split to audit; default test.")] = None,
    split_seed: SplitSeed = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda, cuda:1, ...; default auto.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="YAML file with any of these settings.")
    ] = None,
    change: Annotated[
        list[str],
        typer.Option("--set", help="Any setting: --set n_boot=500, --set recipe_settings.dense=1."),
    ] = [],  # noqa: B006
    dense: Annotated[
        bool,
        typer.Option("--dense", help="Every count under every ranking, and each selector seed."),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; default one per core, each with at least 64 slides.", min=1),
    ] = None,
    slides: Annotated[
        Path | None,
        typer.Option(help="Folder of whole-slide images; the report shows their tissue."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite another audit in --out.")
    ] = False,
) -> None:
    """Audit a frozen classifier: which tiles suffice, and can its heat map be believed?

    An interrupted audit resumes when the same command is run again.

    --set overrides options, and options override --config.
    """
    starting("loading the model and the cohort")
    if workers is not None and workers > 1:  # they load torch while this process does
        preload()
    from foci.audits.settings import read_configuration

    given: dict[str, Any] = {
        "model": model,
        "expect": expect,
        "out": out,
        "rankings": names(rankings),
        "map": heat_map,
        "recipe": recipe,
        "profile": profile,
        "fit_target": _value(fit_target),
        "target": _value(target),
        "kappa": confidence(kappa),
        "k_max": k_max,
        "seeds": _numbers(seeds),
        "random_orders": random_orders,
        "choose_by": _value(choose_by),
        "split": split,
        "split_seed": split_seed,
        "device": device,
        "dense": dense or None,
        **cohort,
    }
    configuration = read_configuration(config, given, settings(change, "--set"))
    try:
        _run(configuration, force, workers, slides)
    except KeyboardInterrupt:
        typer.echo("foci: stopped; give the same command again to go on", err=True)
        raise typer.Exit(130) from None


def _run(
    configuration: AuditConfiguration, force: bool, workers: int | None, slides: Path | None
) -> None:
    from foci.audits.prepare import many_left_out
    from foci.audits.run import RunOptions, run
    from foci.audits.sources import open_sources
    from foci.cli.options import choose
    from foci.cli.terminal import end_if_many, picture_slides, say_next, say_pages
    from foci.cli.text import show
    from foci.reports import write_report

    device = choose(configuration.device)
    sources = open_sources(
        configuration.model, configuration, **configuration.opening, device=device
    )
    options = RunOptions(force=force, workers=workers)
    done = run(sources, configuration.settings, configuration.out, options)
    skipped = {slide.slide_id for slide in done.skipped}
    many = many_left_out(sources.cohort, len(done.slides), skipped)
    if many is not None:
        _LOG.warning(many)
    show(done)
    if slides is not None:
        picture_slides(done, sources.cohort, slides, configuration.mpp)
    report = write_report(done)
    typer.echo(f"wrote {configuration.out}")
    say_pages(report)
    images: list[str | Path] = [] if slides is None else ["--slides", slides]
    say_next(
        ["foci", "view", configuration.out, *images],
        ["foci", "report", configuration.out, "--kappa", "0.8"],
        ["foci", "compare", configuration.out, "ANOTHER-AUDIT", "--out", "compare.html"],
    )
    end_if_many(many)


def _numbers(text: str | None) -> tuple[int, ...] | None:
    try:
        return None if text is None else tuple(int(number) for number in text.split(","))
    except ValueError:
        what = f"cannot be {text!r}"
        raise FociError("--seeds", what, "give whole numbers with commas between them") from None


def _value(choice: Enum | None) -> Any:
    return None if choice is None else choice.value
