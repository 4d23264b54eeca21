"""``foci demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foci.cli.commands import compare, doctor
from foci.cli.terminal import say, say_next, say_pages, say_study_page, starting
from foci.errors import FociError
from foci.outputs import Output
from foci.words import in_percent

if TYPE_CHECKING:
    from foci.audits import StoredAudit
    from foci.audits.records import TruthRecord


def demo(
    out: Annotated[Path, typer.Argument(help="Folder for the demo.")] = Path("foci-demo"),
    number: Annotated[
        int | None, typer.Option(min=12, help="Number of slides; default 240, of a study 100.")
    ] = None,
    classes: Annotated[int, typer.Option(min=2, max=3, help="Number of classes.")] = 2,
    output: Annotated[
        Output,
        typer.Option(help="What is planted: class, cox, hazards, regression or multilabel."),
    ] = "class",
    seed: Annotated[int, typer.Option(help="Seed of the synthetic slides.")] = 0,
    slides: Annotated[
        bool,
        typer.Option("--slides", help="Also paint them as whole-slide images, 3 MB each."),
    ] = False,
    cohort_only: Annotated[
        bool, typer.Option("--cohort-only", help="Make and check the slides, then exit.")
    ] = False,
    study: Annotated[
        bool,
        typer.Option("--study", help="Instead, a whole study in miniature: seven backbones."),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Cells of the study at the same time; default one per core."),
    ] = None,
) -> None:
    """Try FOCI without data of your own: synthetic slides, three classifiers, an audit of each.

    Results of an earlier run of the same demo are kept.
    """
    starting("making a cohort")
    if study:
        _study(out, number, seed, workers)
        return
    number = number or 240
    from foci.bags.cohort import CohortOptions
    from foci.bags.doctor import examine
    from foci.demo import make

    if output != "class" and slides:
        what, fix = "is planted in features alone, not in images", "leave out --slides"
        raise FociError(f"--output {output}", what, fix)
    folder = make(out, seed=seed, slides=number, classes=classes, output=output)
    features = folder / "features_demo"
    if output == "class":
        options = CohortOptions(features=features, labels=folder / "cohort.csv")
        doctor.show(examine(options), features)
    typer.echo(f"\nSynthetic slides with planted rationales are in {folder}; see its README.md.")
    if slides:
        from foci.demo.folder import Parameters
        from foci.demo.painting import paint_slides

        images = paint_slides(folder, Parameters(seed, number, classes))
        typer.echo(f"Their images are in {images}.")
    if cohort_only:
        return
    if output != "class":
        _outcome(out, output, number, seed)
        return

    from foci.audits.compare import compare as compared
    from foci.audits.folder import REPORT
    from foci.demo.run import run_demo

    done = run_demo(out, seed=seed, slides=number, classes=classes)
    typer.echo("")
    typer.echo(compare.comparison_text(compared(done.audits)))
    found = [_planted_tiles_found(a, a.manifest.truth) for a in done.audits if a.manifest.truth]
    typer.echo("\n" + "\n".join(found))
    typer.echo("")
    say_pages(done.comparison, *(audit.folder / REPORT for audit in done.audits))
    say_next(["foci", "view", done.audits[0].folder])


def _outcome(out: Path, output: Output, number: int, seed: int) -> None:
    """A model of a planted risk, number or of three labels, and its audit."""
    from foci.audits.folder import REPORT
    from foci.cli.text import audit_text
    from foci.demo.run import run_outcome_demo

    audits = run_outcome_demo(out, output, seed=seed, slides=number)
    for audit in audits:
        typer.echo("")
        typer.echo(audit_text(audit))
    found = [_planted_tiles_found(a, a.manifest.truth) for a in audits if a.manifest.truth]
    typer.echo("\n" + "\n".join(found))
    say_pages(*(audit.folder / REPORT for audit in audits))
    say_next(["foci", "view", audits[0].folder])


def _study(out: Path, number: int | None, seed: int, workers: int | None) -> None:
    """The paper's matrix in miniature, from cohorts to ``study.html``."""
    from foci.demo.run import SLIDES_OF_A_STUDY, make_study, run_miniature
    from foci.reports import write_study_page

    folder = make_study(out, slides=number or SLIDES_OF_A_STUDY, seed=seed)
    say(f"Two tasks on synthetic slides, seven backbones and two seeds: {len(folder.plan())} cells")
    tally = run_miniature(folder, workers=workers)
    say(f"{tally.done} of {tally.total} cells done, {len(tally.failed)} failed")
    say_study_page(folder, write_study_page(folder))


def _planted_tiles_found(audit: StoredAudit, truth: TruthRecord) -> str:
    """How much of what was planted each ranking finds, in one line."""
    shares = ", ".join(
        f"{name} {in_percent(share or 0)}" for name, share in truth.precision8.items()
    )
    chance = "" if truth.chance is None else f" (chance {in_percent(truth.chance)})"
    return f"{audit.manifest.name}: planted witnesses among the first 8 tiles: {shares}{chance}"
