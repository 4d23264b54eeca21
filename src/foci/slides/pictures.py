"""Read pictures of tiles from a slide, at any resolution, several at a time."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from foci.slides.image import Box, SlideImage
from foci.slides.tiling import TileGrid

Picture = NDArray[np.uint8]
"""``[H, W, 3]``, red, green and blue."""

_AHEAD = 32
"""Tiles that are read ahead of the one that is used."""


def tile_pictures(slide: SlideImage, grid: TileGrid, threads: int = 2) -> Iterator[Picture]:
    """Pictures of all tiles, in order, read ahead by threads (OpenSlide is safe for them)."""
    boxes = [Box(int(x), int(y), grid.side, grid.side) for x, y in grid.coords]
    return read_boxes(slide, boxes, grid.pixels, threads)


def read_boxes(
    slide: SlideImage, boxes: Iterable[Box], pixels: int, threads: int = 2
) -> Iterator[Picture]:
    """Pictures of square regions, ``pixels`` wide, in order."""
    size = (pixels, pixels)
    if threads <= 1:
        yield from (np.asarray(slide.read(box, size)) for box in boxes)
        return
    left = iter(boxes)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="tiles")

    def begin(box: Box) -> Future[Picture]:
        return pool.submit(lambda: np.asarray(slide.read(box, size)))

    try:
        waiting = deque(begin(box) for box in itertools.islice(left, _AHEAD))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(begin(box) for box in itertools.islice(left, 1))
    finally:
        pool.shutdown(cancel_futures=True)


def batched(pictures: Iterable[Picture], size: int) -> Iterator[NDArray[np.uint8]]:
    """Stack pictures into batches ``[B, H, W, 3]``."""
    left = iter(pictures)
    while batch := list(itertools.islice(left, size)):
        yield np.stack(batch)
