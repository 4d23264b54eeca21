"""``foci audit``."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foci.cli.options import (
    SPLIT_SEED,
    Config,
    Given,
    ModelArg,
    Setting,
    TruthClass,
    TruthShare,
    TruthSource,
    choose_device,
    confidence,
    model_options,
    names,
    settings,
    with_settings,
)
from foci.cli.terminal import MANY_SKIPPED_CODE, resumable, say_next, say_pages, starting
from foci.cli.text import audit_text, show_truth
from foci.errors import FociError
from foci.outputs import Output
from foci.processes import preload
from foci.selectors import ChooseBy, Target
from foci.words import counted

if TYPE_CHECKING:
    from foci.audits import StoredAudit
    from foci.bags import Cohort

_LOG = logging.getLogger(__name__)


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        what = f"cannot be {text!r}"
        raise FociError("--seeds", what, "give whole numbers with commas between them") from None


@with_settings(
    model=Setting(
        Path, "Folder of foci train, a checkpoint, or package.module:factory of your own model."
    ),
    expect=Setting(
        Path,
        "Table of slide_id and one column per class: answers of your own code, which decide what "
        "the checkpoint leaves open.",
    ),
    out=Setting(Path, "Folder for the audit."),
    rankings=Setting(
        str,
        "Rankings, separated by commas, from-file=PATH among them; default "
        "native,evidence,selector,random, and minimal in the selector's place where it is proven.",
        names,
    ),
    map=Setting(
        str, "NAME=from-file:PATH (or from-file=PATH): the map to judge, in the native one's place."
    ),
    fit=Setting(bool, "Fit a selector even where no order can do better than minimal, proven."),
    recipe=Setting(str, "Recipe of the selector: default, paper-ste, paper-soft, ..."),
    profile=Setting(str, "Defaults of all other settings: foci (default) or paper."),
    fit_target=Setting(
        Target, "Class that the selector is trained to support; default the recipe's."
    ),
    target=Setting(Target, "View that comes first in the report; default prediction."),
    output=Setting(
        Output,
        "What the model's outputs are: class, cox, hazards, regression, multilabel; default what "
        "its file says.",
    ),
    cut=Setting(float, "Where a risk or number is cut; default the median of the val slides."),
    tau=Setting(float, "Distance from the cut that is clear; default half their IQR."),
    target_class=Setting(
        str, "The label to audit, of several; or a class to follow on every slide."
    ),
    kappa=Setting(
        str,
        "Operating confidence, default 0.9; relative: answers also relative to each slide's own "
        "confidence.",
        confidence,
    ),
    k_max=Setting(int, "Largest reveal count; default 256."),
    seeds=Setting(str, "One selector per seed; default 0,1,2.", _seeds),
    random_orders=Setting(int, "Number of random orders in the control; default 10."),
    null_maps=Setting(
        int, "Number of maps that know nothing, which a believable map has to beat; default 139."
    ),
    choose_by=Setting(ChooseBy, "Criterion for the selector's best epoch; default: the recipe's."),
    split=Setting(str, "Split to audit; default test."),
    split_seed=SPLIT_SEED,
    device=Setting(str, "auto, cpu, cuda, cuda:1, ...; default auto."),
    dense=Setting(bool, "Every count under every ranking, and each selector seed."),
)
def audit(
    given: Given,
    config: Config = None,
    change: Annotated[
        list[str],
        typer.Option("--set", help="Any setting: --set n_boot=500, --set recipe_settings.dense=1."),
    ] = [],  # noqa: B006
    model_arg: ModelArg = [],  # noqa: B006
    workers: Annotated[
        int | None,
        typer.Option(help="Processes; default one per core, each with at least 64 slides.", min=1),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Ray cluster to compute on: auto, or HOST:PORT.")
    ] = None,
    slurm: Annotated[
        bool,
        typer.Option(
            "--slurm", help="Fit selectors, then print an array job: --slurm > job.sbatch."
        ),
    ] = False,
    slurm_option: Annotated[
        list[str],
        typer.Option(help="Another #SBATCH option: --slurm-option=--partition=gpu."),
    ] = [],  # noqa: B006
    slides: Annotated[
        Path | None,
        typer.Option(help="Folder of whole-slide images; the report shows their tissue."),
    ] = None,
    truth: TruthSource = None,
    truth_class: TruthClass = None,
    truth_share: TruthShare = 0.5,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite another audit in --out.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Run also if it takes more than eight hours.")
    ] = False,
    index: Annotated[int | None, typer.Option(hidden=True, min=0)] = None,
    of: Annotated[int, typer.Option(hidden=True, min=1)] = 1,
) -> None:
    """Audit a frozen classifier: which tiles suffice, and can its heat map be believed?

    An interrupted audit resumes when the same command is run again, on any number of processes.

    --set overrides options, and options override --config.
    """
    starting("loading the model and the cohort")
    if workers is not None and workers > 1:  # they load torch while this process does
        preload()
    from foci.audits.prepare import many_left_out
    from foci.audits.run import RunOptions, array_job, run, run_shards
    from foci.audits.settings import read_configuration
    from foci.audits.sources import open_sources
    from foci.audits.truth import attach, read_truth
    from foci.reports import write_report

    changes = model_options(model_arg) | settings(change, "--set")
    asked = read_configuration(config, given, changes)
    marked = None if truth is None else read_truth(truth, name=truth_class, share=truth_share)
    out, device = asked.out, choose_device(asked.device)
    with resumable():
        options = RunOptions(force=force, workers=workers, yes=yes, address=address)
        # what is printed on the way does not belong into the script of a job
        aside = contextlib.redirect_stdout(sys.stderr) if slurm else contextlib.nullcontext()
        with aside:
            sources = open_sources(
                asked.model,
                asked,
                **asked.opening,
                n_cap=asked.tile_cap,
                device=device,
                output=asked.output,
            )
            if slurm:
                job = array_job(
                    sources, asked.settings, out, options, _again(sys.argv[2:]),
                    slurm_options=slurm_option,
                )  # fmt: skip
        if slurm:
            typer.echo(job, nl=False)
            return
        if index is not None:  # an element of the array job
            n = run_shards(sources, asked.settings, out, index, of)
            typer.echo(f"computed {counted(n, 'shard')} of {out}")
            return
        done = run(sources, asked.settings, out, options)
        skipped = {slide.slide_id for slide in done.skipped}
        many = many_left_out(sources.cohort, len(done.slides), skipped)
        if many is not None:
            _LOG.warning(many)
        typer.echo(audit_text(done))
        if slides is not None:
            _picture(done, sources.cohort, slides, asked.mpp)
        if marked is not None:
            done = attach(done, marked)
            show_truth(done)
        report = write_report(done)
    typer.echo(f"wrote {out}")
    say_pages(report)
    images: list[str | Path] = [] if slides is None else ["--slides", slides]
    say_next(
        ["foci", "view", out, *images],
        ["foci", "report", out, "--kappa", "0.8"],
        ["foci", "compare", out, "ANOTHER-AUDIT", "--out", "compare.html"],
    )
    if many is not None:
        raise typer.Exit(MANY_SKIPPED_CODE)


def _again(arguments: Sequence[str]) -> list[str]:
    """The arguments of this command for the jobs that follow it.

    >>> _again(["--out", "o", "--slurm", "--force", "--slurm-option", "--qos=x", "--yes"])
    ['--out', 'o', '--yes']
    """
    left = list(arguments)
    kept = []
    while left:
        one = left.pop(0)
        if one in ("--slurm-option", "--workers", "--address"):
            left.pop(0)
        elif one not in ("--slurm", "--force") and not one.startswith("--slurm-option="):
            kept.append(one)
    return kept


def _picture(audit: StoredAudit, cohort: Cohort, slides: Path, slide_mpp: float | None) -> None:
    """Write thumbnails of the audited slides that have an image; log those that have none.

    An image is named by ``slide_path`` in the cohort's table, or found in ``slides`` by name.
    """
    from foci.slides.find import find_images, match_images, write_thumbnails

    paths = {slide.slide_id: slide.slide_path for slide in cohort}
    wanted = [(slide.slide_id, paths.get(slide.slide_id)) for slide in audit.slides]
    write_thumbnails(match_images(wanted, find_images(slides)), audit.folder, slide_mpp=slide_mpp)
