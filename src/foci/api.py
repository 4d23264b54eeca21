"""Audit a classifier in one call, and open finished audits: for notebooks and scripts."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foci.audits import StoredAudit, Summary
from foci.audits.audit import recompute
from foci.audits.records import Alarm
from foci.audits.run import run
from foci.audits.settings import AuditSettings, Kappa, View
from foci.audits.sources import model_files, model_metadata, other_order, with_alphabetical_classes
from foci.backbones import Backbone
from foci.backbones.checkpoints import Agreement, OpenCheckpoint, agree, check_answers
from foci.backbones.saved import ModelRecord
from foci.bags import N_CAP, Cohort
from foci.configuration import configure
from foci.errors import FociError
from foci.progress import Progress, showing
from foci.reports.notebook import notebook_html
from foci.reports.report import write_report
from foci.words import counted

_LOG = logging.getLogger("foci")


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
    progress: Progress | bool | None = None,
    **settings: Any,
) -> Audit:
    """Audit a frozen classifier: which tiles suffice, and can its heat map be believed?

    Args:
        model: A backbone (:class:`foci.backbones.CallableBackbone` makes one of any function), or
            the path of a checkpoint. A model of ``foci train`` brings its class names along, and
            its tile cap if the cohort was read with the usual one.
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
        progress: False shows no progress, True always does; by default it is shown on a terminal
            and in a notebook. Or a function that wraps every loop that takes a while.
        **settings: Of :class:`foci.audits.settings.AuditSettings`.

    >>> audit(lambda x: x.mean(0), cohort=None)
    Traceback (most recent call last):
    foci.errors.FociError: model: is a function; wrap it: foci.backbones.CallableBackbone(...)
    """
    chosen = configure(AuditSettings, settings)
    backbone, cohort, given = _opened(model, cohort, expect, model_options or {})
    given |= {} if name is None else {"name": name}
    kept = None if out is not None else tempfile.TemporaryDirectory(prefix="foci-audit-")
    folder = Path(kept.name, "audit") if kept is not None else Path(str(out))
    with showing(progress):
        done = run(backbone, cohort, chosen, folder, force=force, workers=workers, **given)
    if kept is None:
        write_report(done)
    return Audit(done.folder, done._measured, kept, changed=done.changed)


def _opened(
    model: object, cohort: Cohort, expect: str | Path | None, options: Mapping[str, Any]
) -> tuple[Backbone, Cohort, dict[str, Any]]:
    """The classifier, the cohort as it was trained to read it, and what the audit is told of it."""
    if isinstance(model, Backbone):
        if options:
            raise FociError("model_options", "are given with a model", "give them to load()")
        told = {"name": model.architecture, "model_notes": model.notes}
        met = None if expect is None else check_answers(model, expect, cohort)
        return model, cohort, _with_agreement(told, met, expect)
    if not isinstance(model, str | Path):
        fix = "wrap it: foci.backbones.CallableBackbone(...)"
        raise FociError("model", f"is a {type(model).__name__}", fix)
    path = Path(model)
    files, file, agreement = model_files(path), OpenCheckpoint(path), None
    alarms, cohort = _swapped(cohort, file.record), _as_trained(cohort, file.record)
    if expect is None:
        checkpoint = file.load(**options)
    else:
        checkpoint, agreement = agree(file, expect, cohort, **options)
    given = {
        **vars(model_metadata(checkpoint.facts)),
        "sources": {"model": str(path.resolve())},
        "alarms": alarms,
        "model_files": files,
    }
    for note in given["model_notes"]:
        _LOG.warning("%s: %s", path, note)
    return checkpoint.backbone, cohort, _with_agreement(given, agreement, expect)


def _swapped(cohort: Cohort, record: ModelRecord | None) -> list[Alarm]:
    """An alarm if somebody put the classes in another order than the model's."""
    names = () if record is None else record.classes
    chosen = list(cohort.classes) != sorted(cohort.classes)  # not the order of a plain table
    swapped = other_order(cohort.classes, names) if names and chosen else None
    return [] if swapped is None else [swapped]


def _with_agreement(
    given: dict[str, Any], agreement: Agreement | None, expect: str | Path | None
) -> dict[str, Any]:
    if agreement is None:
        return given
    sources = {**given.get("sources", {}), "expect": str(Path(str(expect)).resolve())}
    notes = (*given["model_notes"], agreement.note)
    return {**given, "model_notes": notes, "sources": sources, "agreement": agreement}


def _as_trained(cohort: Cohort, record: ModelRecord | None) -> Cohort:
    """Give the cohort the model's classes and tile cap; what the caller chose is kept."""
    if record is not None:
        cohort = _with_cap(cohort, record.tile_cap(cohort.store.n_cap))
        if record.classes:
            return cohort.with_classes(record.classes)
    if not cohort.classes or list(cohort.classes) != sorted(cohort.classes):
        return cohort  # there are none, or somebody has put them in order
    return with_alphabetical_classes(cohort)


def _with_cap(cohort: Cohort, n_cap: int | None) -> Cohort:
    """Cut bags as in training, unless the cohort was read with a cap of its own."""
    store = cohort.store
    if n_cap == store.n_cap:
        return cohort
    if store.n_cap == N_CAP:
        return replace(cohort, store=store.with_cap(n_cap))
    cut = f"the cohort keeps {_cap(store.n_cap)} per bag, the model was trained with {_cap(n_cap)}"
    return replace(cohort, notes=(*cohort.notes, cut))


def _cap(n_cap: int | None) -> str:
    return "all tiles" if n_cap is None else f"at most {counted(n_cap, 'tile')}"
