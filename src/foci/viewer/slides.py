"""What a viewer shows: one audit, its slides by number, and the image of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from foci.audits import RankedTiles, StoredAudit
from foci.audits.settings import View
from foci.errors import FociError
from foci.exports.tables import corners_of
from foci.metrics.curve import followed, reached
from foci.reports.payload import SlideDetails, cohort_payload, slide_columns, slide_measures
from foci.reports.text import LINE, answers
from foci.reveal import Direction
from foci.slides.find import find_images, match_images, read_thumbnails
from foci.viewer.models import (
    CohortAnswer,
    DecisionCurve,
    SlideFlags,
    SlidePyramid,
    ViewerCohort,
    ViewerSlide,
)
from foci.viewer.pictures import SIDE, OpenImages, Pictures, Pyramid, stamp_of
from foci.words import PLAIN_NAMES, colour_of

FIRST = 8
"""Tiles that two rankings are compared by."""

_TILES_KEPT = 12


class NoSuchSlideError(FociError):
    """A number that no slide of the audit has."""


class Catalogue:
    """One audit with its slides; a slide is known by its number in the audit, never by a path.

    Args:
        audit: A finished audit.
        images: Image of every slide that has one.
        slide_mpp: Micrometres per level-0 pixel of images that do not say.
    """

    def __init__(
        self,
        audit: StoredAudit,
        images: Mapping[str, Path] | None = None,
        slide_mpp: float | None = None,
    ) -> None:
        self.audit = audit
        self.paths = dict(images or {})
        self.slide_mpp = slide_mpp
        self.images = OpenImages(slide_mpp)
        self.pictures = Pictures(self.images)
        self.tiles = lru_cache(maxsize=_TILES_KEPT)(self._tiles)
        self._by_id = {slide.slide_id: slide for slide in audit.slides}

    @cached_property
    def details(self) -> SlideDetails:
        """Packs single slides, with all their tiles."""
        measured, kappa = self.audit.measured(), self.audit.manifest.settings.kappa
        return SlideDetails(measured, self.audit.slides, kappa, complete=True)

    def slide_id(self, number: int) -> str:
        """Name of a slide; a number that the audit does not have raises NoSuchSlideError."""
        known = self.audit.curves.slide_ids
        if not 0 <= number < len(known):
            raise NoSuchSlideError(f"slide {number}", "is not in this audit", "choose another")
        return known[number]

    def image(self, number: int) -> Path | None:
        """Image of a slide; None where there is none."""
        return self.paths.get(self.slide_id(number))

    def corner(self, number: int, tile: int) -> tuple[int, int, int]:
        """Top-left corner and side in level-0 pixels of the tile at a position of the bag."""
        tiles, slide = self.tiles(number), self._by_id[self.slide_id(number)]
        if not 0 <= tile < len(tiles):
            raise NoSuchSlideError(f"tile {tile}", "is not on this slide", "choose another")
        x, y = corners_of(slide, tiles)[tile].tolist()
        return x, y, slide.patch_size or 1

    def _tiles(self, number: int) -> RankedTiles:
        return next(iter(self.audit.tiles([self.slide_id(number)])))


def images_of(audit: StoredAudit, folder: Path | None) -> dict[str, Path]:
    """Images of an audit's slides: those in a folder, by name.

    Without a folder, those whose thumbnails lie in the audit folder.
    """
    if folder is None:
        return {name: one.image for name, one in read_thumbnails(audit.folder).items()}
    wanted = [(slide.slide_id, None) for slide in audit.slides]
    return {found.slide_id: found.path for found in match_images(wanted, find_images(folder)).found}


def cohort_of(catalogue: Catalogue) -> ViewerCohort:
    """The cohort of an audit: answers, slide table, and what the presets of the table choose by."""
    audit = catalogue.audit
    summary = audit.summary
    native, best = compared(audit)
    changed = [] if audit.changed_note is None else [audit.changed_note]
    measured = catalogue.details.measured
    slides = slide_columns(measured, audit.slides, slide_measures(measured))
    return ViewerCohort(
        audit=cohort_payload(audit, summary, catalogue.details, slides),
        name=audit.manifest.name,
        line=LINE,
        answers=[
            CohortAnswer.model_validate(one, from_attributes=True)
            for one in answers(summary, audit.manifest)
        ],
        alarms=[*changed, *(f"{alarm.kind}: {alarm.sentence}" for alarm in audit.alarms)],
        notes=[*audit.manifest.notes, *summary.notes],
        native=native,
        best=best,
        shared_of=FIRST,
        flags=_flags(catalogue, native, best),
        names={name: PLAIN_NAMES.get(name, name) for name in audit.curves.rankings},
        colours={
            name: (colour_of(name), colour_of(name, dark=True)) for name in audit.curves.rankings
        },
    )


def compared(audit: StoredAudit) -> tuple[str, str | None]:
    """The map that is judged, and what to compare it with: the answers' candidate, or the best.

    The best of the others needs the fewest tiles on average; random orders are no ranking.
    """
    measured = audit.measured()
    names = [name for name in measured.curves.rankings if name != "random"]
    if not names:
        return measured.curves.rankings[0], None
    own = audit.summary.map
    native = own if own in names else names[0]
    candidate = audit.answers.order.candidate
    if candidate in names and candidate != native:
        return native, candidate
    others = [name for name in names if name != native]
    return native, min(others, key=lambda name: measured.of(name).restricted.mean(), default=None)


def _flags(catalogue: Catalogue, native: str, best: str | None) -> SlideFlags:
    audit, measured = catalogue.audit, catalogue.audit.measured()
    names = [name for name in (native, best) if name is not None]
    falls_back = np.zeros(len(measured.slides), dtype=np.bool_)
    for name in names:
        own = measured.of(name)
        falls_back |= (reached(own.msk) & (own.stable != own.msk)).any(axis=0)
    return SlideFlags(
        undecided=(measured.slides.sure < audit.manifest.settings.kappa).tolist(),
        falls_back=falls_back.tolist(),
        shared=_shared(audit, [catalogue.details.columns_of(name) for name in names]),
        image=[name in catalogue.paths for name in measured.curves.slide_ids],
    )


def _shared(audit: StoredAudit, columns: list[list[str]]) -> list[float | None]:
    """Share of their first tiles that two rankings have in common, the first seed of each."""
    names = audit.curves.slide_ids
    if len(columns) < 2 or not all(columns):
        return [None] * len(names)
    first, second = (one[0] for one in columns)
    by_slide: dict[str, float] = {}
    for tiles in audit.tiles():
        a, b = (set(tiles.order(name)[:FIRST].tolist()) for name in (first, second))
        by_slide[tiles.slide_id] = round(len(a & b) / len(a), 4)
    return [by_slide.get(name) for name in names]


def slide_of(catalogue: Catalogue, number: int) -> ViewerSlide:
    """One slide: tiles, curves and pictures; an unreadable image is a message, not an error."""
    detail = catalogue.details.pack(number, catalogue.tiles(number))
    pyramid, message = image_of(catalogue, number)
    return ViewerSlide(
        number=number,
        detail=detail,
        keeps={view: _decisions(catalogue, number, view, "insert") for view in detail.views},
        deletions={view: _decisions(catalogue, number, view, "delete") for view in detail.views},
        pyramid=pyramid,
        message=message,
    )


def image_of(catalogue: Catalogue, number: int) -> tuple[SlidePyramid | None, str | None]:
    """Image of a slide, or why there is none to show."""
    path = catalogue.image(number)
    if path is None:
        return None, None
    try:
        catalogue.corner(number, 0)  # tiles without positions cannot be shown on an image
        image = catalogue.images.get(path)
        version = hashlib.sha256(repr(stamp_of(path)).encode()).hexdigest()[:12]
    except FociError as error:
        return None, plain(error)
    pyramid = Pyramid(image.bounds)
    return (
        SlidePyramid(
            width=image.bounds.width,
            height=image.bounds.height,
            origin=(image.bounds.x, image.bounds.y),
            side=SIDE,
            coarsest=pyramid.coarsest,
            finest=pyramid.finest,
            mpp=image.mpp,
            version=version,
        ),
        None,
    )


def plain(error: FociError) -> str:
    """An error for the page: the file's name without its folder.

    >>> plain(FociError("/data/patients/a.svs", "has vanished", "bring it back"))
    'a.svs: has vanished; bring it back'
    """
    return f"{Path(error.where).name}: {error.what}; {error.fix}"


def _decisions(
    catalogue: Catalogue, number: int, view: View, direction: Direction
) -> dict[str, DecisionCurve]:
    """What the model says of the first K tiles, or without them, under every stored ranking."""
    curves = catalogue.audit.curves
    target = int(catalogue.audit.measured().targets[view][number])
    found = {}
    for name, (ranking, seed) in catalogue.details.columns.items():
        own = (
            curves.get(ranking, seed) if direction == "insert" else curves.deletions(ranking, seed)
        )
        if own and len(own[number].ks):
            curve = own[number]
            p = np.round(followed(curve.probs, target).confidence, 6).tolist()
            sure = np.round(curve.probs.max(axis=1), 6).tolist()
            says = curve.probs.argmax(axis=1).tolist()
            found[name] = DecisionCurve(ks=curve.ks.tolist(), p=p, says=says, sure=sure)
    return found
