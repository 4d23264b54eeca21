"""Small pictures of slides in an audit folder, which its report embeds."""

from __future__ import annotations

import io
import itertools
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from foci.errors import SlideError
from foci.files.atomic import write_whole
from foci.progress import Progress
from foci.slides.find import FoundSlide, Search
from foci.slides.image import Box, SlideImage, file_name
from foci.slides.tiling import TileGrid

FOLDER, INDEX = "thumbnails", "index.json"
LONGEST, QUALITY = 512, 70


class Thumbnail(BaseModel):
    """A small picture of one slide.

    Attributes:
        file: JPEG file in the folder.
        image: The whole-slide image.
        how: How it was found.
        box: The part of level 0 that the picture covers.
        mpp: Micrometres per level-0 pixel; None where unknown.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    image: Path
    how: str
    box: Box
    mpp: float | None


_INDEX: TypeAdapter[dict[str, Thumbnail]] = TypeAdapter(dict[str, Thumbnail])


def write_thumbnails(
    slides: Search,
    audit: Path,
    *,
    slide_mpp: float | None = None,
    progress: Progress = lambda items, what: items,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Thumbnail]:
    """Write the thumbnails of an audit's slides; a slide that cannot be read has none.

    Args:
        slides: The audited slides and their images.
        audit: The audit folder.
        slide_mpp: Micrometres per level-0 pixel of images that do not say.
        progress: Wraps the loop over slides.
        say: Called with one line per slide without a picture.
    """
    folder = audit / FOLDER
    folder.mkdir(exist_ok=True)
    index: dict[str, Thumbnail] = {}
    for lost in slides.missing:
        say(f"no picture of {lost.slide_id}: {lost.reason}")
    for found in progress(slides.found, "thumbnails"):
        try:
            index[found.slide_id] = _write(found, folder, slide_mpp)
        except SlideError as error:
            say(f"no picture of {found.slide_id}: {error}")
    content = _INDEX.dump_python(index, mode="json")
    write_whole(folder / INDEX, json.dumps(content, indent=1) + "\n")
    return index


def read_thumbnails(audit: Path) -> dict[str, Thumbnail]:
    """The thumbnails of an audit, by slide; none where none were made or the index is damaged."""
    try:
        return _INDEX.validate_json((audit / FOLDER / INDEX).read_bytes())
    except (OSError, ValidationError):
        return {}


def _write(found: FoundSlide, folder: Path, slide_mpp: float | None) -> Thumbnail:
    with SlideImage(found.path, slide_mpp) as slide:
        picture, box, mpp = slide.thumbnail(LONGEST), slide.bounds, slide.mpp
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=QUALITY, optimize=True)
    name = f"{file_name(found.slide_id)}.jpg"
    write_whole(folder / name, content.getvalue(), durable=False)
    return Thumbnail(file=name, image=found.path.absolute(), how=found.how, box=box, mpp=mpp)


# Read pictures of tiles from a slide, at any resolution, several at a time.


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
