"""Paint the slides of the demo: one look per kind of tissue, and one per class on its witnesses.

A slide is a pyramidal TIFF file of the cohort's own tiles.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from foci.demo.cohort import (
    KINDS,
    PATCH_SIZE,
    TARGET_MAGNIFICATION,
    TUMOUR,
    Palette,
    PlantedSlide,
)
from foci.demo.folder import Parameters
from foci.files.atomic import sweep, whole_file
from foci.progress import track

SLIDES = "slides"
"""Folder of the images in the demo folder."""

VARIANTS = 4
"""Pictures per look; a slide repeats them."""

WITNESS, HARD_WITNESS, DISTRACTOR = 10, 7, 2
"""Glands in the colour of a class: on a witness, on one that carries less, on a distractor."""

_TISSUE = {
    "stroma": ((236, 178, 200), 20, 5),
    "fat": ((246, 206, 214), 4, 4),
    "lymphoid": ((206, 178, 214), 330, 4),
    "necrosis": ((226, 190, 182), 60, 3),
    "normal epithelium": ((224, 170, 205), 110, 6),
    "tumour": ((214, 150, 196), 130, 8),
    "pen": ((70, 110, 190), 0, 0),
    "fold": ((150, 90, 150), 90, 6),
}
"""Colour of a tile, number of its nuclei and their radius in pixels."""

_NUCLEUS = np.array([96, 62, 140])
_CLASS_TINT = np.array([[205, 60, 120], [60, 140, 190], [225, 150, 40]])
"""What a class looks like: red for A-type, blue for B-type, amber for C-type."""

_LUMEN = np.array([245, 236, 240])

_WHITE = 244
_BLOCK = 256

Look = tuple[int, int, int, int]
"""Kind of tissue, class that the glands show, number of glands, and one of the variants."""


def paint_slides(folder: Path, parameters: Parameters) -> Path:
    """Paint every slide of a demo folder and return the folder of the images.

    Images that are already there are kept.
    """
    out = folder / SLIDES
    out.mkdir(exist_ok=True)
    sweep(out)
    plans, palette = parameters.plans(), parameters.palette()
    drawn = parameters.planted(plans)
    for plan in track(plans, "painting slides"):
        slide, path = next(drawn), out / f"{plan.slide_id}.tiff"
        if not path.exists():
            with whole_file(path, durable=False) as temporary:
                write_slide(slide, looks(slide, palette), temporary)
    return out


def looks(slide: PlantedSlide, palette: Palette) -> list[Look]:
    """What each tile looks like: its tissue, and the class of witnesses and distractors."""
    tissue, plan = slide.tissue, slide.plan
    # distractors hint at the class of which they hold more than other tumour
    amounts = slide.features @ palette.classes.T
    others = (tissue.kind == TUMOUR) & ~tissue.distractor & ~tissue.witness
    more = amounts[tissue.distractor].mean(axis=0) - amounts[others].mean(axis=0)
    glands = np.where(tissue.witness, HARD_WITNESS if plan.hard else WITNESS, 0)
    glands[tissue.distractor] = DISTRACTOR
    label = np.where(tissue.distractor, int(np.argmax(more)), plan.label)
    label[glands == 0] = 0
    variant = np.arange(len(tissue.kind)) % VARIANTS
    rows = zip(tissue.kind, label, glands, variant, strict=True)
    return [(int(a), int(b), int(c), int(d)) for a, b, c, d in rows]


def write_slide(slide: PlantedSlide, looks: list[Look], path: Path) -> None:
    """Write one slide: level 0 tile by tile, then two reduced levels."""
    import tifffile

    side, (width, height) = slide.patch_size, slide.size
    mpp = 0.5 * TARGET_MAGNIFICATION / slide.plan.magnification
    common: dict[str, Any] = {
        "dtype": np.uint8,
        "photometric": "rgb",
        "compression": "zlib",
        "metadata": None,
    }
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(
            _level_0(slide, looks),
            shape=(height, width, 3),
            tile=(side, side),
            resolution=(1e4 / mpp, 1e4 / mpp),
            resolutionunit="CENTIMETER",
            **common,
        )
        for down in (4, 16):
            canvas = _reduced(slide, looks, down)
            blocks = _blocks(canvas)
            file.write(blocks, shape=canvas.shape, tile=(_BLOCK, _BLOCK), subfiletype=1, **common)


def _level_0(slide: PlantedSlide, looks: list[Look]) -> Iterator[bytes]:
    """Compressed tiles of the file, row by row: each is one tile of the cohort, or glass."""
    side, (width, height) = slide.patch_size, slide.size
    cells = {(int(x), int(y)): i for i, (x, y) in enumerate(slide.coords // side)}
    glass = zlib.compress(bytes([_WHITE]) * (side * side * 3), 6)
    for row in range(-(-height // side)):
        for column in range(-(-width // side)):
            tile = cells.get((column, row))
            yield glass if tile is None else _compressed(looks[tile], side)


@cache
def _compressed(look: Look, side: int) -> bytes:
    return zlib.compress(_scaled(look, side).tobytes(), 6)


@cache
def _scaled(look: Look, side: int) -> NDArray[np.uint8]:
    """A tile's picture at another size: repeated pixels, or means of blocks."""
    picture = tile_picture(*look)
    if side >= PATCH_SIZE:
        times = side // PATCH_SIZE
        larger: NDArray[np.uint8] = picture.repeat(times, axis=0).repeat(times, axis=1)
        return larger
    by = PATCH_SIZE // side
    means = picture.reshape(side, by, side, by, 3).mean(axis=(1, 3))
    smaller: NDArray[np.uint8] = np.rint(means).astype(np.uint8)
    return smaller


def _reduced(slide: PlantedSlide, looks: list[Look], down: int) -> NDArray[np.uint8]:
    """The whole slide, ``down`` times smaller."""
    width, height = (-(-length // down) for length in slide.size)
    canvas = np.full((height, width, 3), _WHITE, dtype=np.uint8)
    side = slide.patch_size // down
    for (x, y), look in zip(slide.coords // down, looks, strict=True):
        canvas[y : y + side, x : x + side] = _scaled(look, side)
    return canvas


def _blocks(canvas: NDArray[np.uint8]) -> Iterator[bytes]:
    """Compressed blocks of a level, row by row, padded with glass."""
    height, width = canvas.shape[:2]
    for top in range(0, height, _BLOCK):
        for left in range(0, width, _BLOCK):
            block = np.full((_BLOCK, _BLOCK, 3), _WHITE, dtype=np.uint8)
            part = canvas[top : top + _BLOCK, left : left + _BLOCK]
            block[: part.shape[0], : part.shape[1]] = part
            yield zlib.compress(block.tobytes(), 1)  # four times as fast, a few kilobytes more


@cache
def tile_picture(kind: int, label: int, glands: int, variant: int) -> NDArray[np.uint8]:
    """A tile ``[256, 256, 3]`` with so many glands of a class; the same look, the same pixels."""
    colour, nuclei, radius = _TISSUE[KINDS[kind]]
    rng = np.random.default_rng((kind, label, glands, variant))
    cloud = gaussian_filter(rng.normal(size=(PATCH_SIZE, PATCH_SIZE)), 9, mode="wrap")
    steps = np.rint(cloud / cloud.std()) * 6  # few values: the file stays small
    canvas = np.array(colour) + steps[..., None]
    for centre in rng.uniform(0, PATCH_SIZE, size=(nuclei, 2)):
        _disc(canvas, centre, radius * rng.uniform(0.7, 1.3), _NUCLEUS)
    for centre in rng.uniform(20, PATCH_SIZE - 20, size=(glands, 2)):
        _disc(canvas, centre, rng.uniform(18, 26), _CLASS_TINT[label])
        _disc(canvas, centre, 7, _LUMEN)
    painted: NDArray[np.uint8] = np.clip(np.rint(canvas), 0, 255).astype(np.uint8)
    return painted


def _disc(
    canvas: NDArray[np.float64],
    centre: NDArray[np.float64],
    radius: float,
    colour: NDArray[np.int64],
) -> None:
    """Paint a disc; what lies beyond the tile's edge is cut off."""
    low = np.maximum(np.floor(centre - radius).astype(int), 0)
    high = np.minimum(np.ceil(centre + radius).astype(int) + 1, PATCH_SIZE)
    y, x = np.mgrid[low[0] : high[0], low[1] : high[1]]
    inside = (y - centre[0]) ** 2 + (x - centre[1]) ** 2 <= radius**2
    canvas[low[0] : high[0], low[1] : high[1]][inside] = colour
