"""Slides of the prediction view and of the label view, with the target class of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foci.audits.folder.curves import CurveTable
from foci.audits.folder.slides import AuditedSlide
from foci.audits.settings import View
from foci.errors import FociError
from foci.metrics.inputs import Chosen, Floats, Integers, Marks
from foci.reveal import Curve


@dataclass(frozen=True, eq=False)
class ViewSlides:
    """The S slides of one view, with target classes, labels and full-bag probabilities.

    Attributes:
        rows: ``[S]`` positions of the slides in the curve table.
        targets: ``[S]`` target class of the view.
        labels: ``[S]`` true class; -1 if unknown.
        full: ``[S, C]`` full-bag probabilities.
        n_tiles: ``[S]`` number of candidate tiles.
        cases: Patient of each slide.
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
        """``[S]`` class that the model predicts on the full bag."""
        predicted: Integers = self.full.argmax(axis=1)
        return predicted

    @property
    def sure(self) -> Floats:
        """``[S]`` probability that the full bag gives to the class followed."""
        sure: Floats = np.take_along_axis(self.full, self.targets[:, None], axis=1)[:, 0]
        return sure

    def cases_of(self, chosen: Marks) -> list[str]:
        """Patients of the slides marked in ``[S]``, slide by slide."""
        return [case for case, kept in zip(self.cases, chosen, strict=True) if kept]

    def repeated(self, times: int) -> ViewSlides:
        """The same slides several times over, as if each copy were a slide of its own."""
        return ViewSlides(
            rows=np.tile(self.rows, times),
            targets=np.tile(self.targets, times),
            labels=np.tile(self.labels, times),
            full=np.tile(self.full, (times, 1)),
            n_tiles=np.tile(self.n_tiles, times),
            cases=self.cases * times,
        )

    def followed_by(self, other: ViewSlides, chosen: Integers) -> ViewSlides:
        """These slides, then those of another view at the positions ``chosen``."""
        return ViewSlides(
            rows=np.concatenate([self.rows, other.rows[chosen]]),
            targets=np.concatenate([self.targets, other.targets[chosen]]),
            labels=np.concatenate([self.labels, other.labels[chosen]]),
            full=np.concatenate([self.full, other.full[chosen]]),
            n_tiles=np.concatenate([self.n_tiles, other.n_tiles[chosen]]),
            cases=(*self.cases, *(other.cases[row] for row in chosen)),
        )

    def of(self, curves: Sequence[Curve]) -> list[Curve]:
        """Select the curves of these slides from those of all slides."""
        return [curves[row] for row in self.rows]


def followed_once(views: Sequence[ViewSlides]) -> tuple[ViewSlides, list[Chosen]]:
    """Slides of several views of the same slides, none twice with the same class to follow.

    Returns:
        The slides of the first view, then those of the others that follow another class; and where
        the slides of every view are among them.
    """
    first, *others = views
    together, places = first, list[Chosen]([slice(0, len(first))])
    for other in others:
        differs = np.flatnonzero(other.targets != first.targets)
        place = np.arange(len(first))
        place[differs] = len(together) + np.arange(len(differs))
        together = together.followed_by(other, differs)
        places.append(place)
    return together, places


def slides_by_view(
    curves: CurveTable, slides: Sequence[AuditedSlide], classes: Sequence[str]
) -> dict[View, ViewSlides]:
    """Views of an audit: all slides by prediction, labelled slides by label.

    There is no label view if no slide has a label.
    """
    by_id = {slide.slide_id: slide for slide in slides}
    missing = [name for name in curves.slide_ids if name not in by_id]
    if missing:
        raise FociError(missing[0], "has curves but is not among the slides", "audit again")
    ordered = [by_id[name] for name in curves.slide_ids]
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
