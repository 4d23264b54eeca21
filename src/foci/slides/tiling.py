"""Lay a grid of tiles over the tissue of a slide, at a resolution in micrometres per pixel."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from foci.errors import SlideError
from foci.slides.image import Box, Picture, SlideImage, fitted, read_boxes

if TYPE_CHECKING:
    from PIL.Image import Image

NEARLY = 0.05
"""Scanners of one magnification differ by this much (0.2525, 0.2428, 0.25): as the field does,
they are tiled alike instead of being resampled."""


class TilingSettings(BaseModel):
    """How slides are tiled.

    Attributes:
        tile: Side of a tile in pixels.
        mpp: Micrometres per pixel of a tile.
        min_tissue: Least share of tissue on a tile.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tile: int = Field(default=256, ge=16, le=4096)
    mpp: float = Field(default=0.5, gt=0.05, le=20)
    min_tissue: float = Field(default=0.25, ge=0, le=1)


@dataclass(frozen=True, eq=False)
class TileGrid:
    """Tiles of one slide.

    Attributes:
        coords: ``[N, 2]`` int64, top-left corners in level-0 pixels, row by row.
        side: Side of a tile in level-0 pixels.
        pixels: Side of a tile's picture.
    """

    coords: NDArray[np.int64]
    side: int
    pixels: int

    def __len__(self) -> int:
        return len(self.coords)


def lay_tiles(slide: SlideImage, settings: TilingSettings) -> TileGrid:
    """Tiles of the scanned part of a slide that hold enough tissue; no tile crosses its edge.

    Raises:
        SlideError: If the resolution is unknown or too coarse, or no tile holds tissue.
    """
    mpp = slide.known_mpp()
    side = level0_side(settings, mpp)
    if side is None:
        what = f"has {mpp:.4g} um per pixel, coarser than the {settings.mpp:g} asked for"
        raise SlideError(slide.path, what, f"give --mpp {mpp:.2g} or more, or leave the slide out")
    bounds = slide.bounds
    columns, rows = bounds.width // side, bounds.height // side
    grid = np.stack(np.meshgrid(np.arange(columns), np.arange(rows)), axis=-1).reshape(-1, 2)
    corners = (grid * side + [bounds.x, bounds.y]).astype(np.int64)
    if len(corners):
        share = tissue_share(slide, corners, side, mpp)
        corners = corners[(share >= settings.min_tissue) & (share > 0)]
    if not len(corners):
        raise SlideError(slide.path, "holds no tissue", "look at the slide, or leave it out")
    return TileGrid(corners, side, settings.tile)


def tile_pictures(slide: SlideImage, grid: TileGrid) -> Iterator[Picture]:
    """Pictures of all tiles, in order."""
    boxes = [Box(int(x), int(y), grid.side, grid.side) for x, y in grid.coords]
    return read_boxes(slide, boxes, grid.pixels)


def batched(pictures: Iterable[Picture], size: int) -> Iterator[NDArray[np.uint8]]:
    """Stack pictures into batches ``[B, H, W, 3]``."""
    left = iter(pictures)
    while batch := list(itertools.islice(left, size)):
        yield np.stack(batch)


def level0_side(settings: TilingSettings, mpp: float) -> int | None:
    """Side of a tile in level-0 pixels; None where the slide is coarser than asked for.

    >>> settings = TilingSettings()
    >>> [level0_side(settings, mpp) for mpp in (0.25, 0.2525, 0.499, 0.3, 1.0)]
    [512, 512, 256, 427, None]
    """
    ratio = settings.mpp / mpp
    whole = max(round(ratio), 1)
    if abs(ratio / whole - 1) <= NEARLY:
        return settings.tile * whole
    return None if ratio < 1 else round(settings.tile * ratio)


def magnification(mpp: float) -> int:
    """What a microscope calls a resolution.

    >>> magnification(0.499), magnification(0.2525), magnification(1.0)
    (20, 40, 10)
    """
    return max(1, round(10 / mpp))


# Tissue: the stained pixels of a small picture of a slide

MASK_MPP = 8.0
"""Micrometres per pixel of the mask: a tile of 128 micrometres has 16 x 16 of them."""

_LONGEST = 6000
_SATURATION = (8, 18)
"""Otsu's threshold is kept in this range, so that a slide full of tissue is not split in two and
an empty one is not searched for specks. Of 255, as are the dark pixels."""

_DARK = 30
"""Darker pixels are scanner borders and ink, whatever their saturation."""


def tissue_share(
    slide: SlideImage, corners: NDArray[np.int64], side: int, mpp: float
) -> NDArray[np.float64]:
    """Share of tissue ``[n]`` in squares with these top-left corners ``[n, 2]``.

    Tissue is found in a picture of the slide at :data:`MASK_MPP`.
    """
    box = slide.bounds
    longest = round(max(box[2:]) * min(1.0, mpp / MASK_MPP))
    mask = stained(slide.read(box, fitted(box, min(max(longest, 1), _LONGEST))))

    def pixels(position: NDArray[Any], down: float, limit: int) -> NDArray[np.int64]:
        return np.clip(np.rint(position / down), 0, limit).astype(np.int64)

    height, width = mask.shape
    sums = np.zeros((height + 1, width + 1))
    sums[1:, 1:] = mask.cumsum(axis=0).cumsum(axis=1)
    x, y = (corners - [box.x, box.y]).T
    left, right = (pixels(x + by, box.width / width, width) for by in (0, side))
    top, bottom = (pixels(y + by, box.height / height, height) for by in (0, side))
    inside = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    share: NDArray[np.float64] = inside / np.maximum((right - left) * (bottom - top), 1)
    return share


def stained(picture: Image) -> NDArray[np.bool_]:
    """Pixels ``[H, W]`` that are stained: saturated above Otsu's threshold, smoothed by a pixel."""
    from scipy.ndimage import grey_closing, grey_opening, median_filter

    _, saturated, value = (np.asarray(band) for band in picture.convert("HSV").split())
    saturation = median_filter(saturated, footprint=_disk(1), mode="nearest")
    threshold = np.clip(otsu_threshold(saturation), *_SATURATION)
    mask = (saturation > threshold) & (value > _DARK)
    closed = grey_closing(mask, footprint=_disk(2))
    tissue: NDArray[np.bool_] = grey_opening(closed, footprint=_disk(1))
    return tissue


def otsu_threshold(values: NDArray[np.uint8]) -> int:
    """Otsu's threshold: the value t that best separates the values up to t from those above.

    It maximises the variance between the two classes, ``n1 n2 (mean1 - mean2)^2``; of equal ones it
    is the smallest, and 0 if all values are the same.

    >>> otsu_threshold(np.array([3, 3, 4, 90, 91], dtype=np.uint8))
    4
    """
    low, high = int(values.min()), int(values.max())
    if low == high:
        return 0
    level = np.arange(low, high + 1)
    # single precision decides between thresholds that are all but equal, as in scikit-image
    count = np.bincount(values.ravel(), minlength=high + 1)[low:].astype(np.float32)
    below, above = np.cumsum(count), np.cumsum(count[::-1])[::-1]
    mean_below = np.cumsum(count * level) / below
    mean_above = np.cumsum((count * level)[::-1])[::-1] / above
    between = below[:-1] * above[1:] * (mean_below[:-1] - mean_above[1:]) ** 2
    return low + int(np.argmax(between))


def _disk(radius: int) -> NDArray[np.bool_]:
    """Pixels at most ``radius`` from the centre of a square."""
    offset = np.arange(-radius, radius + 1)
    disk: NDArray[np.bool_] = offset[:, None] ** 2 + offset**2 <= radius**2
    return disk
