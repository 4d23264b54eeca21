"""Keep whole-slide images open between requests, with one cache of pixels for all of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from foci.errors import SlideError
from foci.slides.image import SlideImage

MOST = 10
"""Images open at a time."""

CACHE_BYTES = 16 << 20
"""Decoded pixels that OpenSlide keeps, for all images together."""

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
