"""Audit a classifier in one call, and open finished audits: for notebooks and scripts."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foci.audits import StoredAudit, Summary
from foci.audits.audit import recompute
from foci.audits.run import RunOptions, run
from foci.audits.settings import AuditSettings, Kappa, View
from foci.audits.sources import open_sources
from foci.backbones import Backbone
from foci.bags import Cohort
from foci.configuration import configure
from foci.progress import Progress, showing
from foci.reports.report import notebook_html, write_report
from foci.words import counted


@dataclass(frozen=True, repr=False)
class Audit(StoredAudit):
    """A finished audit: its numbers and its report, which a notebook shows by itself.

    ``foci.Audit.load(folder)`` opens one, :func:`foci.audit` makes one.

    Attributes:
        folder: The audit folder; if nobody asked for one, it lives as long as this object.
    """

    _kept: tempfile.TemporaryDirectory[str] | None = field(default=None, compare=False)

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        kappa: Kappa | None = None,
        k_max: int | None = None,
        view: View | None = None,
    ) -> Path:
        """Write the report; see :func:`foci.reports.write_report`."""
        return write_report(self, path, kappa=kappa, k_max=k_max, view=view)

    def recompute(
        self,
        *,
        kappa: Kappa | None = None,
        k_max: int | None = None,
        view: View | None = None,
    ) -> Summary:
        """All numbers at another threshold or budget, from the stored curves."""
        return recompute(self, kappa=kappa, k_max=k_max, view=view)

    def __repr__(self) -> str:
        summary = self.summary
        skipped = f"{summary.n_skipped} skipped, " if summary.n_skipped else ""
        slides, n = counted(summary.n_slides, "slide"), len(self.alarms)
        alarms = f"{counted(n, 'alarm').upper()}, " if n else ""
        name = f"{self.manifest.name!r}, {alarms}{slides}, {skipped}{summary.in_short}"
        return f"Audit({name}, {str(self.folder)!r})"

    def _repr_html_(self) -> str:
        return notebook_html(self)


def audit(
    model: Backbone | str | Path,
    cohort: Cohort,
    out: str | Path | None = None,
    *,
    name: str | None = None,
    expect: str | Path | None = None,
    model_options: Mapping[str, Any] | None = None,
    force: bool = False,
    workers: int | None = 1,
    yes: bool = False,
    progress: Progress | bool | None = None,
    **settings: Any,
) -> Audit:
    """Audit a frozen classifier: which tiles suffice, and can its heat map be believed?

    Args:
        model: A backbone (:class:`foci.backbones.CallableBackbone` makes one of any function), or
            the path of a checkpoint. A model of ``foci train`` brings its class names along, and
            its tile cap if the cohort was read without one.
        cohort: Its slides; selectors are fitted on the splits ``train`` and ``val``.
        out: The audit folder, with ``report.html`` in it; default is a temporary one that lives as
            long as the result.
        name: What people call the model.
        expect: Table of ``slide_id`` and one column per class: answers of your own code for a few
            slides. They decide what a checkpoint leaves open, or the audit is refused.
        model_options: What a checkpoint's tensors do not show, if you know it.
        force: Remove another audit that is in the folder.
        workers: Processes that compute slides side by side; None for as many as ``foci audit``
            takes. More than one needs ``if __name__ == "__main__":`` around a script.
        yes: Run also if that takes more than eight hours and nobody watches.
        progress: False shows no progress, True always does; by default it is shown on a terminal
            and in a notebook. Or a function that wraps every loop that takes a while.
        **settings: Of :class:`foci.audits.settings.AuditSettings`.

    >>> audit(lambda x: x.mean(0), cohort=None)
    Traceback (most recent call last):
    foci.errors.FociError: model: is a function; wrap it: foci.backbones.CallableBackbone(...)
    """
    chosen = configure(AuditSettings, settings)
    sources = open_sources(
        model,
        cohort,
        model_options=model_options or {},
        expect=expect,
        n_cap=chosen.tile_cap,
        output=chosen.output,
    )
    if name is not None:
        sources = replace(sources, name=name)
    kept = None if out is not None else tempfile.TemporaryDirectory(prefix="foci-audit-")
    folder = Path(kept.name, "audit") if kept is not None else Path(str(out))
    with showing(progress):
        done = run(sources, chosen, folder, RunOptions(force=force, workers=workers, yes=yes))
    if kept is None:
        write_report(done)
    return Audit(done.folder, done.cache, kept, changed=done.changed)
