"""Lay a grid of tiles over the tissue of a slide, at a resolution in micrometres per pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from foci.errors import SlideError
from foci.slides.image import SlideImage
from foci.slides.tissue import find_tissue

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

    @property
    def magnification(self) -> int:
        """What a microscope calls this resolution: 20 for 0.5 micrometres per pixel."""
        return magnification(self.mpp)


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
        share = find_tissue(slide, mpp).share(corners[:, 0], corners[:, 1], side)
        corners = corners[(share >= settings.min_tissue) & (share > 0)]
    if not len(corners):
        raise SlideError(slide.path, "holds no tissue", "look at the slide, or leave it out")
    return TileGrid(corners, side, settings.tile)


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
    """Magnification of a resolution.

    >>> magnification(0.499), magnification(0.2525), magnification(1.0)
    (20, 40, 10)
    """
    return max(1, round(10 / mpp))
