"""Pictures of whole-slide images for the browser: open files, pyramid geometry, JPEG parts."""

from __future__ import annotations

import io
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foci.errors import SlideError
from foci.slides.image import Box, SlideImage, fitted

if TYPE_CHECKING:
    from PIL.Image import Image as Picture


MOST = 10
"""Images open at a time."""

CACHE_BYTES = 16 << 20
"""Decoded pixels that OpenSlide keeps, for all images together."""

SIDE = 512
"""Pixels of a picture of the pyramid."""

CROP, LARGE = 192, 512
"""Pixels of an audited tile, in a row of them and looked at alone, with its surroundings."""

QUALITY = 80
_READERS = 2
"""Reads at a time: each may need as much memory as a whole level of a slide without others."""

Stamp = tuple[int, int, int]
"""Time of the last change, size, and inode of a file."""


class OpenImages:
    """The images that were used last; safe for threads.

    A file that has changed is opened again, and one that has vanished is an error from then on,
    although its old content could still be read.

    Args:
        slide_mpp: Micrometres per level-0 pixel of images that do not say.
        most: Images open at a time.
    """

    def __init__(self, slide_mpp: float | None = None, most: int = MOST) -> None:
        self._slide_mpp, self._most = slide_mpp, most
        self._open: OrderedDict[Path, tuple[Stamp, SlideImage]] = OrderedDict()
        self._lock = threading.Lock()
        self._cache: Any = None

    def __len__(self) -> int:
        return len(self._open)

    def get(self, path: Path) -> SlideImage:
        """The image, opened now or earlier.

        An image that is dropped here closes itself once its last reader is done.

        Raises:
            SlideError: If the file cannot be opened.
        """
        stamp = stamp_of(path)
        with self._lock:
            held = self._open.pop(path, None)
            image = held[1] if held is not None and held[0] == stamp else self._new(path)
            self._open[path] = (stamp, image)
            while len(self._open) > self._most:
                self._open.popitem(last=False)
        return image

    def drop(self, path: Path) -> None:
        """Forget an image: after an error OpenSlide refuses every further read of it."""
        with self._lock:
            self._open.pop(path, None)

    def _new(self, path: Path) -> SlideImage:
        image = SlideImage(path, self._slide_mpp)
        if self._cache is None:
            import openslide

            self._cache = openslide.OpenSlideCache(CACHE_BYTES)
        image.share_cache(self._cache)
        return image


def stamp_of(path: Path) -> Stamp:
    """Changes whenever the file does.

    Raises:
        SlideError: If there is no such file.
    """
    try:
        now = path.stat()
    except OSError:
        raise SlideError(path, "has vanished", "bring it back, then reload the page") from None
    return now.st_mtime_ns, now.st_size, now.st_ino


@dataclass(frozen=True)
class Pyramid:
    """The scanned part of a slide as square pictures, each level twice as fine as the one above.

    OpenSeadragon counts levels from a single pixel: level ``l`` of an image of width ``W`` has
    width :math:`W / 2^{L - l}`, where :math:`L` is the finest level.

    Attributes:
        bounds: Its place in level-0 pixels.
    """

    bounds: Box

    @property
    def finest(self) -> int:
        """The level that has the slide's own resolution."""
        return math.ceil(math.log2(max(self.bounds.width, self.bounds.height, 1)))

    @property
    def coarsest(self) -> int:
        """The last level that fits into one picture."""
        return min(self.finest, int(math.log2(SIDE)))

    def part(self, level: int, column: int, row: int) -> tuple[Box, tuple[int, int]] | None:
        """What a picture covers in level-0 pixels, and its own size; None outside the slide.

        >>> Pyramid(Box(100, 0, 1000, 700)).part(10, 1, 1)
        (Box(x=612, y=512, width=488, height=188), (488, 188))
        >>> Pyramid(Box(100, 0, 1000, 700)).part(9, 0, 0)
        (Box(x=100, y=0, width=1000, height=700), (500, 350))
        """
        if not (self.coarsest <= level <= self.finest and column >= 0 and row >= 0):
            return None
        down = 2 ** (self.finest - level)
        left, top = column * SIDE * down, row * SIDE * down
        width = min(SIDE * down, self.bounds.width - left)
        height = min(SIDE * down, self.bounds.height - top)
        if width <= 0 or height <= 0:
            return None
        box = Box(self.bounds.x + left, self.bounds.y + top, width, height)
        return box, (math.ceil(width / down), math.ceil(height / down))


class Pictures:
    """JPEG pictures of slides; safe for threads.

    Args:
        images: Opens the slides.
        cache_bytes: Bytes of finished pictures that are kept, those that were asked for last.
    """

    def __init__(self, images: OpenImages, cache_bytes: int = CACHE_BYTES) -> None:
        self.images = images
        self._cache_bytes, self._used = cache_bytes, 0
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

    def surroundings(self, path: Path, x: int, y: int, side: int) -> bytes:
        """One audited tile, :data:`LARGE` pixels wide, amid half a tile on every side."""
        edge = side // 2
        box = Box(x - edge, y - edge, side + 2 * edge, side + 2 * edge)
        return self._jpeg(path, box, (2 * LARGE, 2 * LARGE))

    def thumbnail(self, path: Path) -> bytes:
        """The whole slide in one picture."""
        pyramid = Pyramid(self.images.get(path).bounds)
        box, (width, height) = pyramid.bounds, fitted(pyramid.bounds, CROP)
        return self._jpeg(path, box, (width, height))

    def _jpeg(self, path: Path, box: Box, size: tuple[int, int]) -> bytes:
        key = path, stamp_of(path), box, size
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        with self._readers:
            try:
                content = _encoded(self.images.get(path).read(box, size))
            except SlideError:
                self.images.drop(path)
                raise
        with self._lock:
            self._used += len(content) - len(self._kept.pop(key, b""))
            self._kept[key] = content
            while self._used > self._cache_bytes:
                self._used -= len(self._kept.popitem(last=False)[1])
        return content


def _encoded(picture: Picture) -> bytes:
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=QUALITY)
    return content.getvalue()
