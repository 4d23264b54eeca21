"""Collect one slide for the viewer: tiles, curves, and how to get its pictures."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from foci.audits.settings import View
from foci.errors import FociError
from foci.viewer.catalogue import Catalogue
from foci.viewer.data.models import DeletionCurve, SlidePyramid, ViewerSlide
from foci.viewer.tissue.open_images import stamp_of
from foci.viewer.tissue.pyramid import SIDE, Pyramid


def slide_of(catalogue: Catalogue, number: int) -> ViewerSlide:
    """One slide; an image that cannot be read is a message, not an error."""
    tiles = catalogue.tiles(number)
    detail = catalogue.details.pack(number, tiles)
    pyramid, message = image_of(catalogue, number)
    return ViewerSlide(
        number=number,
        detail=detail,
        deletions={view: _deletions(catalogue, number, view) for view in detail.views},
        pyramid=pyramid,
        message=message,
    )


def image_of(catalogue: Catalogue, number: int) -> tuple[SlidePyramid | None, str | None]:
    """Image of a slide, or why there is none to show."""
    path = catalogue.image(number)
    if path is None:
        return None, None
    try:
        _check_tiles(catalogue, number)
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


def _check_tiles(catalogue: Catalogue, number: int) -> None:
    """Tiles without positions in level-0 pixels cannot be shown on an image."""
    catalogue.corner(number, 0)


def _target(catalogue: Catalogue, number: int, view: View) -> int:
    """The class that is followed on a slide."""
    group = catalogue.audit.measured().views[view]
    return int(group.targets[np.flatnonzero(group.rows == number)[0]])


def _deletions(catalogue: Catalogue, number: int, view: View) -> dict[str, DeletionCurve]:
    curves, target = catalogue.audit.curves, _target(catalogue, number, view)
    found = {}
    for name, (ranking, seed) in catalogue.details.columns.items():
        deleted = curves.deletions(ranking, seed)
        if deleted and len(deleted[number].ks):
            curve = deleted[number]
            p = np.round(curve.probs[:, target], 6).tolist()
            found[name] = DeletionCurve(ks=curve.ks.tolist(), p=p)
    return found
