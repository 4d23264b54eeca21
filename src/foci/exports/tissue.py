"""Pictures of the slide behind the exported tiles: an overview, and crops of single tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foci.errors import SlideError
from foci.exports.ranked import RankedColumn, RankedSlide
from foci.slides.image import Box, SlideImage, fitted
from foci.slides.pictures import Picture, read_boxes

OVERVIEW = 1400
"""Longer side of an overview in pixels: 300 per inch at the width of a printed panel."""

CROP = 256
CROPS = 8
"""Tiles that are shown as pictures."""

_MARGIN = 0.04


@dataclass(frozen=True, eq=False)
class Tissue:
    """What a figure shows of the slide.

    Attributes:
        box: The part of the slide that the overview covers.
        overview: Its picture; None where there is no image.
        crops: Pictures of the first tiles, by column.
        mpp: Micrometres per level-0 pixel; None where unknown.
        origin: Top-left corner of the scanned part.
    """

    box: Box
    overview: Picture | None
    crops: Mapping[str, list[Picture]]
    mpp: float | None
    origin: tuple[int, int]


def look(
    ranked: RankedSlide, image: Path | None, slide_mpp: float | None, *, pictures: bool
) -> Tissue:
    """Read the pictures of one slide.

    Args:
        ranked: The slide with its rankings.
        image: Its image; None where there is none.
        slide_mpp: Micrometres per level-0 pixel where the image does not say.
        pictures: Whether pictures are wanted, or only origin and resolution.

    Raises:
        SlideError: If the image cannot be read, or is not that of these tiles.
    """
    box = extent(ranked.corners, ranked.side)
    if image is None:
        return Tissue(box, None, {}, slide_mpp, (0, 0))
    with SlideImage(image, slide_mpp) as slide:
        outside = beyond(ranked.corners, ranked.side, slide.size)
        if outside:
            what = f"{outside} of {len(ranked.corners)} tiles lie outside the image"
            raise SlideError(image, what, "check that the features were made from this slide")
        origin = slide.bounds.x, slide.bounds.y
        if not pictures:
            return Tissue(box, None, {}, slide.mpp, origin)
        overview = np.asarray(slide.read(box, fitted(box, OVERVIEW)))
        crops = {one.name: _crops(slide, ranked, one) for one in ranked.columns}
        return Tissue(box, overview, crops, slide.mpp, origin)


def extent(corners: NDArray[np.int64], side: int) -> Box:
    """The rectangle around all tiles, with a margin.

    >>> extent(np.array([[100, 100], [300, 200]]), 100)
    Box(x=88, y=88, width=324, height=224)
    """
    low, high = corners.min(axis=0), corners.max(axis=0) + side
    margin = int(_MARGIN * (high - low).max())
    width, height = (high - low + 2 * margin).tolist()
    return Box(int(low[0]) - margin, int(low[1]) - margin, width, height)


def beyond(corners: NDArray[np.int64], side: int, size: tuple[int, int]) -> int:
    """Number of tiles that lie, in part or whole, outside an image of this size."""
    outside = (corners < 0).any(axis=1) | (corners + side > np.array(size)).any(axis=1)
    return int(outside.sum())


def _crops(slide: SlideImage, ranked: RankedSlide, column: RankedColumn) -> list[Picture]:
    first = ranked.corners[column.order[:CROPS]]
    boxes = [Box(int(x), int(y), ranked.side, ranked.side) for x, y in first]
    return list(read_boxes(slide, boxes, CROP))
