"""The slides of a view, and the class that is followed on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foci.audits.folder.curves import CurveTable
from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import View
from foci.errors import FociError
from foci.metrics.inputs import Floats, Integers
from foci.reveal import Curve


@dataclass(frozen=True, eq=False)
class ViewSlides:
    """Some slides of an audit, S of them.

    Attributes:
        rows: ``[S]`` their positions in the curve table.
        targets: ``[S]`` the class followed.
        labels: ``[S]`` the class that is true; -1 where nobody knows.
        full: ``[S, C]`` full-bag probabilities.
        n_tiles: ``[S]`` candidate tiles.
        cases: The patient of each.
    """

    rows: Integers
    targets: Integers
    labels: Integers
    full: Floats
    n_tiles: Integers
    cases: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def predictions(self) -> Integers:
        """``[S]`` what the model says of the full bag."""
        predicted: Integers = self.full.argmax(axis=1)
        return predicted

    def of(self, curves: Sequence[Curve]) -> list[Curve]:
        """The curves of these slides, out of those of all slides."""
        return [curves[row] for row in self.rows]


def slides_by_view(
    curves: CurveTable, slides: Sequence[AuditedSlide], classes: Sequence[str]
) -> dict[View, ViewSlides]:
    """Every view of an audit: all slides by prediction, those that have a label by label.

    The label view is absent where no slide has a label.
    """
    known = {slide.slide_id: slide for slide in slides}
    missing = [name for name in curves.slide_ids if name not in known]
    if missing:
        raise FociError(missing[0], "has curves but is not among the slides", "audit again")
    ordered = [known[name] for name in curves.slide_ids]
    first = curves.rankings[0]
    stored = curves.get(first, curves.seeds(first)[0])
    full = np.stack([curve.full for curve in stored])
    everyone = ViewSlides(
        rows=np.arange(len(stored)),
        targets=full.argmax(axis=1),
        labels=np.array([_class(slide, classes) for slide in ordered]),
        full=full,
        n_tiles=np.array([curve.n_tiles for curve in stored]),
        cases=tuple(slide.case_id for slide in ordered),
    )
    labelled = np.flatnonzero(everyone.labels >= 0)
    views: dict[View, ViewSlides] = {"prediction": everyone}
    if len(labelled):
        views["label"] = ViewSlides(
            rows=labelled,
            targets=everyone.labels[labelled],
            labels=everyone.labels[labelled],
            full=full[labelled],
            n_tiles=everyone.n_tiles[labelled],
            cases=tuple(everyone.cases[row] for row in labelled),
        )
    return views


def _class(slide: AuditedSlide, classes: Sequence[str]) -> int:
    if slide.label is None:
        return -1
    if slide.label not in classes:
        what = f"has the label {slide.label!r}, which is no class of the model"
        raise FociError(slide.slide_id, what, f"classes: {', '.join(classes)}")
    return list(classes).index(slide.label)
