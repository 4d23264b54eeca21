"""An audit in one call, for notebooks and scripts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from foci.audits import Audit
from foci.audits.run import run
from foci.audits.settings import AuditSettings
from foci.audits.sources import model_facts, with_classes
from foci.backbones import Backbone, load
from foci.backbones.checkpoints import inspect
from foci.backbones.training.loop import Progress
from foci.bags import Cohort
from foci.configuration import configure
from foci.errors import FociError
from foci.reports.report import write_report
from foci.reports.wording import LINE, fixed, percent, with_spread


@dataclass(frozen=True, repr=False)
class Audited(Audit):
    """A finished audit that shows itself.

    Attributes:
        folder: The audit folder; if nobody asked for one, it lives as long as this object.
    """

    _kept: tempfile.TemporaryDirectory[str] | None = field(default=None, compare=False)

    def to_html(self, path: str | Path | None = None, **changes: Any) -> Path:
        """Write the report; see :func:`foci.reports.write_report`."""
        return write_report(self, path, **changes)

    def __repr__(self) -> str:
        verdict = self.verdict["verdict"] if self.verdict else "no verdict"
        slides = f"{self.summary['n_slides']} slides"
        return f"Audited({self.manifest['name']!r}, {slides}, {verdict}, {str(self.folder)!r})"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("ranking", *(title for title, _ in SHOWN)))
        rows = Markup("").join(
            Markup("<tr><th>{}</th>{}</tr>").format(
                name,
                Markup("").join(Markup("<td>{}</td>").format(show(found)) for _, show in SHOWN),
            )
            for name, found in self.summary["views"]["prediction"].items()
        )
        verdict = self.verdict or {
            "verdict": "no verdict",
            "sentence": "Not all rankings were run.",
        }
        return (
            f"<p><b>{escape(self.manifest['name'])}: {escape(verdict['verdict'])}</b>. "
            f"{escape(verdict['sentence'])}</p>"
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{LINE}</p>"
        )


SHOWN: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("restricted mean K", lambda found: with_spread(found["restricted"])),
    ("conditional MSK", lambda found: with_spread(found["msk_cond"])),
    ("reach", lambda found: percent(found["reach"]["estimate"])),
    ("AUKC", lambda found: fixed(found["aukc"]["estimate"])),
    ("faithfulness AUC", lambda found: fixed(found["faithfulness"]["estimate"])),
)


def audit(
    model: Backbone | str | Path,
    cohort: Cohort,
    out: str | Path | None = None,
    *,
    name: str | None = None,
    force: bool = False,
    progress: Progress = lambda items, what: items,
    **settings: Any,
) -> Audited:
    """Audit a frozen classifier: which tiles suffice, and can its heat map be believed?

    Args:
        model: A backbone (:class:`foci.backbones.CallableBackbone` makes one of any function), or
            the path of a checkpoint. A model of ``foci train`` brings its class names along.
        cohort: Its slides; selectors are fitted on the splits ``train`` and ``val``.
        out: The audit folder; default is a temporary one that lives as long as the result.
        name: What people call the model.
        force: Remove another audit that is in the folder.
        progress: Wraps every loop that takes a while; :func:`foci.progress.track` shows bars.
        **settings: Of :class:`foci.audits.settings.AuditSettings`.

    >>> audit(lambda x: x.mean(0), cohort=None)
    Traceback (most recent call last):
    foci.errors.FociError: model: is a function; wrap it: foci.backbones.CallableBackbone(...)
    """
    chosen = configure(AuditSettings, settings)
    backbone, facts, given = _opened(model)
    given |= {} if name is None else {"name": name}
    cohort = with_classes(cohort, facts["classes"]) if "classes" in facts else cohort
    kept = None if out is not None else tempfile.TemporaryDirectory(prefix="foci-audit-")
    folder = Path(kept.name, "audit") if kept is not None else Path(str(out))
    done = run(backbone, cohort, chosen, folder, force=force, progress=progress, **given)
    return Audited(done.folder, kept)


def _opened(model: object) -> tuple[Backbone, dict[str, Any], dict[str, Any]]:
    """The classifier, what was written beside its weights, and what the audit is told of it."""
    if isinstance(model, Backbone):
        return model, {}, {"name": model.architecture}
    if not isinstance(model, str | Path):
        fix = "wrap it: foci.backbones.CallableBackbone(...)"
        raise FociError("model", f"is a {type(model).__name__}", fix)
    path = Path(model)
    facts = model_facts(path)
    told = {
        "name": path.stem,
        "split_seed": facts.get("recipe", {}).get("seed", 0),
        "sources": {"model": str(path.resolve())},
        "model_notes": () if facts else inspect(path).notes,
    }
    return load(path), facts, told
