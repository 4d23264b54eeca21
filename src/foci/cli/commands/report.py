"""``foci report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foci.cli.options import (
    AcceptChanged,
    AuditFolder,
    TruthClass,
    TruthShare,
    TruthSource,
    confidence,
)
from foci.cli.terminal import open_audit, page, say_next, say_pages, starting
from foci.cli.text import audit_text, show_truth
from foci.selectors import Target


def report(
    folder: AuditFolder,
    kappa: Annotated[
        str | None,
        typer.Option(
            help="Another operating confidence, between 0 and 1; relative: answers also over all "
            "slides, sure or not."
        ),
    ] = None,
    k_max: Annotated[
        int | None, typer.Option(help="Smaller budget of tiles than the audit's.")
    ] = None,
    view: Annotated[
        Target | None,
        typer.Option(help="View that comes first; default is the audit's."),
    ] = None,
    truth: TruthSource = None,
    truth_class: TruthClass = None,
    truth_share: TruthShare = 0.5,
    out: Annotated[
        Path | None,
        typer.Option(
            help="HTML page to write; default is report.html or report-... in the folder."
        ),
    ] = None,
    accept_changed: AcceptChanged = False,
) -> None:
    """Write the report of an audit again, optionally at another threshold, budget or view.

    It prints the same table and answers as foci audit. No model is run: everything is computed
    from the stored curves. The audit's numbers stay unchanged; a report at other settings gets its
    own file name. With --truth the comparison is stored in the audit, in place of an earlier one.
    """
    starting("opening the audit")
    from foci.audits.audit import recompute
    from foci.audits.truth import attach, read_truth
    from foci.reports import write_report

    file, audit = page(out), open_audit(folder, accept_changed)
    if truth is not None:
        audit = attach(audit, read_truth(truth, name=truth_class, share=truth_share))
    asked = None if kappa is None else confidence(kappa)
    summary = recompute(audit, kappa=asked, k_max=k_max, view=view)
    path = write_report(audit, file, kappa=asked, k_max=k_max, view=view, summary=summary)
    typer.echo(audit_text(audit, summary=summary))
    show_truth(audit)
    typer.echo(f"wrote {path}")
    say_pages(path)
    say_next(["foci", "view", folder])
