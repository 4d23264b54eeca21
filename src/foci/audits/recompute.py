"""Recompute a summary from stored curves at another threshold, budget or view; no model runs."""

from __future__ import annotations

from typing import Any

from foci.audits.analysis.agreement import agreement
from foci.audits.analysis.summarise import summarise
from foci.audits.analysis.summary import Summary
from foci.audits.audit import StoredAudit
from foci.audits.settings import RELATIVE, AuditSettings, Kappa, View
from foci.errors import FociError


def changed_settings(
    audit: StoredAudit,
    *,
    kappa: Kappa | None = None,
    k_max: int | None = None,
    view: View | None = None,
) -> AuditSettings:
    """Replace kappa, k_max or view in the settings; refuse what stored curves cannot answer.

    Args:
        audit: A finished audit.
        kappa: Operating confidence; None for the stored one. ``"relative"`` keeps the stored one
            and adds the answers relative to each slide's own confidence.
        k_max: Budget of tiles, at most the stored one; None for the stored one.
        view: Which view comes first; None for the stored one.
    """
    stored = audit.manifest.settings
    changed: dict[str, Any] = {"kappa": kappa, "k_max": k_max, "target": view}
    if kappa == RELATIVE:
        changed |= {"kappa": None, "relative": True}
    changed = {name: value for name, value in changed.items() if value is not None}
    if k_max is not None and k_max > stored.k_max:
        what = f"is {k_max}, but curves were stored up to {stored.k_max} tiles"
        raise FociError("--k-max", what, f"give at most {stored.k_max}, or audit again")
    if k_max is not None and k_max < 1:
        raise FociError("--k-max", f"is {k_max}", "give 1 or more")
    if not isinstance(kappa, str | None) and not 0 < kappa < 1:
        raise FociError("--kappa", f"is {kappa}", "give a confidence between 0 and 1")
    if view == "label" and "label" not in audit.summary.views:
        raise FociError("--view label", "no audited slide has a label", "use --view prediction")
    return stored.model_copy(update=changed)


def recompute(
    audit: StoredAudit,
    *,
    kappa: Kappa | None = None,
    k_max: int | None = None,
    view: View | None = None,
) -> Summary:
    """Recompute the summary at other settings; return the stored one if nothing differs.

    The audit folder is not changed.
    """
    settings = changed_settings(audit, kappa=kappa, k_max=k_max, view=view)
    stored = audit.summary
    asked = settings.relative and not (stored.answers and stored.answers.relative)
    if asked or (settings.kappa, settings.k_max) != (stored.kappa, stored.k_max):
        return summarise(
            audit.measured(settings),
            audit.curves,
            audit.manifest.classes,
            settings,
            agreement(audit.curves, audit.tiles()),
            n_skipped=len(audit.skipped),
        )
    return stored if view is None else stored.model_copy(update={"first_view": view})
