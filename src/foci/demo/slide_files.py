"""Write the slides of the demo as pyramidal TIFF files: the cohort's own tiles, painted."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foci.demo.features import Palette
from foci.demo.folder import Parameters
from foci.demo.painting import DISTRACTOR, HARD_WITNESS, VARIANTS, WITNESS, tile_picture
from foci.demo.planted import PATCH_SIZE, TARGET_MAGNIFICATION, PlantedSlide
from foci.demo.tissue import TUMOUR
from foci.files.atomic import sweep, whole_file
from foci.progress import Progress

SLIDES = "slides"
"""Folder of the images in the demo folder."""

_MPP_AT_20 = 0.5
_DOWN = (4, 16)
_WHITE = 244
_BLOCK = 256

Look = tuple[int, int, int, int]
"""Arguments of :func:`foci.demo.painting.tile_picture`."""


def paint_slides(
    folder: Path,
    parameters: Parameters,
    progress: Progress = lambda items, what: items,
) -> Path:
    """Paint every slide of a demo cohort; images that are already there are kept.

    Args:
        folder: The demo folder.
        parameters: Of the cohort in it.
        progress: Wraps the loop over slides.

    Returns:
        The folder of the images.
    """
    out = folder / SLIDES
    out.mkdir(exist_ok=True)
    sweep(out)
    plans, palette = parameters.plans(), parameters.palette()
    drawn = parameters.planted(plans)
    for plan in progress(plans, "painting slides"):
        slide, path = next(drawn), out / f"{plan.slide_id}.tiff"
        if not path.exists():
            with whole_file(path, durable=False) as temporary:
                write_slide(slide, looks(slide, palette), temporary)
    return out


def looks(slide: PlantedSlide, palette: Palette) -> list[Look]:
    """What each tile looks like: its tissue, and the class of witnesses and distractors."""
    tissue, plan = slide.tissue, slide.plan
    glands = np.where(tissue.witness, HARD_WITNESS if plan.hard else WITNESS, 0)
    glands[tissue.distractor] = DISTRACTOR
    label = np.where(tissue.distractor, _distracting_class(slide, palette), plan.label)
    label[glands == 0] = 0
    variant = np.arange(len(tissue.kind)) % VARIANTS
    rows = zip(tissue.kind, label, glands, variant, strict=True)
    return [(int(a), int(b), int(c), int(d)) for a, b, c, d in rows]


def write_slide(slide: PlantedSlide, looks: list[Look], path: Path) -> None:
    """Write one slide: level 0 tile by tile, then two reduced levels."""
    import tifffile

    side, (width, height) = slide.patch_size, slide.size
    mpp = _MPP_AT_20 * TARGET_MAGNIFICATION / slide.plan.magnification
    cells = {(int(x), int(y)): i for i, (x, y) in enumerate(slide.coords // side)}
    common: dict[str, Any] = {
        "dtype": np.uint8,
        "photometric": "rgb",
        "compression": "zlib",
        "metadata": None,
    }
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(
            _level_0(slide, looks, cells),
            shape=(height, width, 3),
            tile=(side, side),
            resolution=(1e4 / mpp, 1e4 / mpp),
            resolutionunit="CENTIMETER",
            **common,
        )
        for down in _DOWN:
            canvas = _reduced(slide, looks, down)
            blocks = _blocks(canvas)
            file.write(blocks, shape=canvas.shape, tile=(_BLOCK, _BLOCK), subfiletype=1, **common)


def _distracting_class(slide: PlantedSlide, palette: Palette) -> int:
    """The class that the distractors hint at: the one of which they hold more than other tumour."""
    tissue = slide.tissue
    amounts = slide.features @ palette.classes.T
    others = (tissue.kind == TUMOUR) & ~tissue.distractor & ~tissue.witness
    more = amounts[tissue.distractor].mean(axis=0) - amounts[others].mean(axis=0)
    return int(np.argmax(more))


def _level_0(
    slide: PlantedSlide, looks: list[Look], cells: dict[tuple[int, int], int]
) -> Iterator[bytes]:
    """Compressed tiles of the file, row by row: each is one tile of the cohort, or glass."""
    side, (width, height) = slide.patch_size, slide.size
    for row in range(-(-height // side)):
        for column in range(-(-width // side)):
            tile = cells.get((column, row))
            yield _glass(side) if tile is None else _compressed(looks[tile], side)


@cache
def _compressed(look: Look, side: int) -> bytes:
    return zlib.compress(_scaled(look, side).tobytes(), 6)


@cache
def _glass(side: int) -> bytes:
    return zlib.compress(bytes([_WHITE]) * (side * side * 3), 6)


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
