"""Whole-slide images made by hand: coloured squares whose every pixel is known."""

from __future__ import annotations

import colorsys
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
GLASS = 245


def colours(n: int) -> Pixels:
    """Strongly stained colours, all different, ``[n, 3]``."""
    wheel = [colorsys.hsv_to_rgb(i / n, 0.4 + 0.5 * (i % 3) / 2, 0.9) for i in range(n)]
    return np.rint(np.array(wheel) * 255).astype(np.uint8)


def squares(columns: int, rows: int, side: int, glass: tuple[tuple[int, int], ...] = ()) -> Pixels:
    """A grid of squares, each of its own colour; those in ``glass`` are empty."""
    shades = colours(columns * rows).reshape(rows, columns, 3)
    for column, row in glass:
        shades[row, column] = GLASS
    return shades.repeat(side, axis=0).repeat(side, axis=1)


def write_slide(
    path: Path, pixels: Pixels, mpp: float | None = 0.5, levels: tuple[int, ...] = (4,)
) -> Path:
    """A pyramidal TIFF that OpenSlide opens; without ``mpp`` it does not say its resolution."""
    path.parent.mkdir(parents=True, exist_ok=True)
    how: dict[str, Any] = {"photometric": "rgb", "compression": "zlib", "metadata": None}
    known = {} if mpp is None else {"resolution": (1e4 / mpp,) * 2, "resolutionunit": "CENTIMETER"}
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(pixels, tile=(256, 256), **known, **how)
        for down in levels:
            file.write(pixels[::down, ::down], tile=(256, 256), subfiletype=1, **how)
    return path


_SCN = """<?xml version="1.0"?>
<scn xmlns="http://www.leica-microsystems.com/scn/2010/10/01"><collection name="c" uuid="u"
sizeX="{all_x}" sizeY="{all_y}"><barcode>A</barcode>
<image name="macro" uuid="m"><creationDate>2020-01-01T00:00:00Z</creationDate>
<device model="Leica SCN400" version="1"/>
<pixels sizeX="{small_x}" sizeY="{small_y}"><dimension sizeX="{small_x}" sizeY="{small_y}" r="0"
ifd="0"/></pixels>
<view sizeX="{all_x}" sizeY="{all_y}" offsetX="0" offsetY="0" spacingZ="0"/>
<scanSettings><objectiveSettings><objective>0.6</objective></objectiveSettings>
<illuminationSettings><numericalAperture>0.8</numericalAperture>
<illuminationSource>brightfield</illuminationSource></illuminationSettings></scanSettings></image>
<image name="main" uuid="n"><creationDate>2020-01-01T00:00:00Z</creationDate>
<device model="Leica SCN400" version="1"/>
<pixels sizeX="{x}" sizeY="{y}"><dimension sizeX="{x}" sizeY="{y}" r="0" ifd="1"/></pixels>
<view sizeX="{main_x}" sizeY="{main_y}" offsetX="{left}" offsetY="{top}" spacingZ="0"/>
<scanSettings><objectiveSettings><objective>20</objective></objectiveSettings>
<illuminationSettings><numericalAperture>0.4</numericalAperture>
<illuminationSource>brightfield</illuminationSource></illuminationSettings></scanSettings></image>
</collection></scn>"""


def write_bounded(path: Path, pixels: Pixels, origin: tuple[int, int]) -> Path:
    """A Leica SCN file: the scan begins at ``origin`` of a larger image, as in MIRAX."""
    height, width = pixels.shape[:2]
    mpp, nm = 0.5, 500
    whole = (origin[0] + width + 512, origin[1] + height + 512)
    small = pixels[::16, ::16]
    xml = _SCN.format(
        x=width, y=height, main_x=width * nm, main_y=height * nm,
        left=origin[0] * nm, top=origin[1] * nm, all_x=whole[0] * nm, all_y=whole[1] * nm,
        small_x=small.shape[1], small_y=small.shape[0],
    )  # fmt: skip
    how: dict[str, Any] = {
        "photometric": "rgb", "compression": "zlib", "metadata": None, "tile": (256, 256),
        "resolution": (1e4 / mpp,) * 2, "resolutionunit": "CENTIMETER",
    }  # fmt: skip
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(small, description=xml, **how)
        file.write(pixels, **how)
    return path
