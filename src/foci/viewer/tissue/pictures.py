"""Read parts of slides as JPEG, and keep those that were asked for last."""

from __future__ import annotations

import io
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from foci.errors import SlideError
from foci.slides.image import Box
from foci.viewer.tissue.open_images import OpenImages, Stamp, stamp_of
from foci.viewer.tissue.pyramid import Pyramid

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

CACHE_BYTES = 16 << 20
QUALITY = 80
CROP = 192
"""Pixels of a crop of one audited tile."""

_READERS = 2
"""Reads at a time: each may need as much memory as a whole level of a slide without others."""


class Pictures:
    """JPEG pictures of slides; safe for threads.

    Args:
        images: Opens the slides.
        cache_bytes: Room for finished pictures.
    """

    def __init__(self, images: OpenImages, cache_bytes: int = CACHE_BYTES) -> None:
        self.images = images
        self._room, self._used = cache_bytes, 0
        self._kept: OrderedDict[tuple[Path, Stamp, Box, tuple[int, int]], bytes] = OrderedDict()
        self._lock, self._readers = threading.Lock(), threading.BoundedSemaphore(_READERS)

    def part(self, path: Path, level: int, column: int, row: int) -> bytes | None:
        """One picture of the pyramid; None outside of it.

        Raises:
            SlideError: If the image cannot be read.
        """
        asked = Pyramid(self.images.get(path).bounds).part(level, column, row)
        return None if asked is None else self._jpeg(path, *asked)

    def crop(self, path: Path, x: int, y: int, side: int) -> bytes:
        """One audited tile, :data:`CROP` pixels wide."""
        return self._jpeg(path, Box(x, y, side, side), (CROP, CROP))

    def _jpeg(self, path: Path, box: Box, size: tuple[int, int]) -> bytes:
        key = path, stamp_of(path), box, size
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with self._readers:
            content = _encoded(self._read(path, lambda: self.images.get(path).read(box, size)))
        with self._lock:
            self._used += len(content) - len(self._kept.pop(key, b""))
            self._kept[key] = content
            while self._used > self._room:
                self._used -= len(self._kept.popitem(last=False)[1])
        return content

    def _read(self, path: Path, read: Callable[[], Picture]) -> Picture:
        try:
            return read()
        except SlideError:
            self.images.drop(path)
            raise


def _encoded(picture: Picture) -> bytes:
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=QUALITY)
    return content.getvalue()
