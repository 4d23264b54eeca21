"""Open a whole-slide image with OpenSlide: its size, its resolution, regions at any resolution."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from foci.errors import FociError, SlideError
from foci.files.bounds import check_regular

if TYPE_CHECKING:
    from openslide import OpenSlide, OpenSlideCache
    from PIL.Image import Image as PILImage

Picture = NDArray[np.uint8]
"""``[H, W, 3]``, red, green and blue."""

PLAUSIBLE = (0.05, 20.0)
"""Micrometres per pixel that a scanner can have; other values in a file mean nothing."""

_AGAIN = "copy it again, or leave it out"
_MOST_AT_ONCE = 4096
_THREADS, _AHEAD = 2, 32
"""Threads that read regions, and regions that they read ahead of the one that is used."""


class Box(NamedTuple):
    """A rectangle in level-0 pixels: top-left corner, width and height."""

    x: int
    y: int
    width: int
    height: int


class SlideImage:
    """A whole-slide image, opened for reading; close it, or use it in a ``with`` block.

    Coordinates are level-0 pixels of the whole image, also where the scan covers only a part of
    it (MIRAX, Leica): that part is :attr:`bounds`.

    Args:
        path: File that OpenSlide reads.
        mpp: Micrometres per level-0 pixel, used where the file does not say.

    Attributes:
        size: Width and height of level 0.
        bounds: The scanned part of it.
        mpp: Micrometres per level-0 pixel, or None.
        mpp_from: ``"slide"``, ``"given"``, or None where the resolution is unknown.

    Raises:
        SlideError: If the file cannot be opened.
    """

    def __init__(self, path: str | Path, mpp: float | None = None) -> None:
        self.path = Path(path)
        self._slide = _open(self.path)
        self.size: tuple[int, int] = self._slide.dimensions
        stored = self._stored_mpp()
        self.mpp = mpp if stored is None else stored
        self.mpp_from = "slide" if stored is not None else None if mpp is None else "given"
        self.bounds = self._bounds()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._slide.close()

    def share_cache(self, cache: OpenSlideCache) -> None:
        """Keep decoded pixels in a cache that several images share, not in one of its own."""
        self._slide.set_cache(cache)

    def known_mpp(self) -> float:
        """Micrometres per level-0 pixel; an error if neither the file nor the caller knows."""
        if self.mpp is None:
            power = self._slide.properties.get("openslide.objective-power")
            usual = _usual_mpp(power)
            hint = "" if usual is None else f" (its objective, {power}x, suggests {usual:g})"
            fix = f"give micrometres per level-0 pixel with --slide-mpp{hint}"
            raise SlideError(self.path, "does not say its resolution", fix)
        return self.mpp

    def read(self, box: Box, size: tuple[int, int]) -> PILImage:
        """A region as an RGB picture of ``size`` pixels; what lies outside the scan is white.

        It is read from the coarsest level that is at least as fine as the picture, and scaled
        down if that level is finer.
        """
        import openslide
        from PIL import Image

        scale = min(box.width / size[0], box.height / size[1])
        try:  # after an error, of another thread too, every call raises it
            level = self._slide.get_best_level_for_downsample(scale * 1.001)  # 3.9998 is meant as 4
            down = self._slide.level_downsamples[level]
            wanted = (max(1, round(box.width / down)), max(1, round(box.height / down)))
            if max(wanted) > _MOST_AT_ONCE and min(size) > 1:
                return self._in_quarters(box, size)
            region = self._slide.read_region((box.x, box.y), level, wanted)
        except openslide.OpenSlideError as error:
            gone = not self.path.exists()
            what = "has vanished" if gone else f"is cut short or damaged ({first_line(error)})"
            raise SlideError(self.path, what, _AGAIN) from error
        if region.getchannel("A").getextrema() != (255, 255):
            white = Image.new("RGBA", region.size, "white")
            region = Image.alpha_composite(white, region)
        picture = region.convert("RGB")
        if wanted == size:
            return picture
        return picture.resize(size, Image.Resampling.BOX if scale > down else None)

    def _in_quarters(self, box: Box, size: tuple[int, int]) -> PILImage:
        """Read a region in four parts: a large slide of one level does not fit into memory."""
        from PIL import Image

        picture = Image.new("RGB", size)
        cuts = [(0, length // 2, length) for length in size]
        for left, right in itertools.pairwise(cuts[0]):
            for top, bottom in itertools.pairwise(cuts[1]):
                x, far = (round(box.width * at / size[0]) for at in (left, right))
                y, low = (round(box.height * at / size[1]) for at in (top, bottom))
                part = Box(box.x + x, box.y + y, far - x, low - y)
                picture.paste(self.read(part, (right - left, bottom - top)), (left, top))
        return picture

    def _stored_mpp(self) -> float | None:
        """The geometric mean of both axes, if the file holds plausible numbers."""
        found = [self._slide.properties.get(f"openslide.mpp-{axis}") for axis in "xy"]
        try:
            x, y = (float(value or "nan") for value in found)
        except ValueError:
            return None
        mpp = math.sqrt(x * y) if x > 0 and y > 0 else math.nan
        return mpp if PLAUSIBLE[0] <= mpp <= PLAUSIBLE[1] else None

    def _bounds(self) -> Box:
        names = ("x", "y", "width", "height")
        found = [self._slide.properties.get(f"openslide.bounds-{name}") for name in names]
        if None in found:
            return Box(0, 0, *self.size)
        return Box(*(int(value or 0) for value in found))


def fitted(box: Box, longest: int) -> tuple[int, int]:
    """Size of a picture of ``box`` whose longer side has at most ``longest`` pixels.

    >>> fitted(Box(0, 0, 4000, 2000), 100), fitted(Box(0, 0, 30, 20), 100)
    ((100, 50), (30, 20))
    """
    scale = min(1.0, longest / max(box.width, box.height))
    return max(1, round(box.width * scale)), max(1, round(box.height * scale))


def read_boxes(slide: SlideImage, boxes: Iterable[Box], pixels: int) -> Iterator[Picture]:
    """Pictures of square regions, ``pixels`` wide, in order.

    They are read ahead by threads; OpenSlide is safe for them.
    """
    left = iter(boxes)
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="tiles")

    def submit(box: Box) -> Future[Picture]:
        return pool.submit(lambda: np.asarray(slide.read(box, (pixels, pixels))))

    try:
        waiting = deque(submit(box) for box in itertools.islice(left, _AHEAD))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(submit(box) for box in itertools.islice(left, 1))
    finally:
        pool.shutdown(cancel_futures=True)


def _open(path: Path) -> OpenSlide:
    try:
        import openslide
    except ImportError as error:
        fix = "pip install 'foci-mil[slides]'"
        raise FociError("openslide", f"cannot be loaded ({error})", fix) from error
    try:
        check_regular(path)
        with path.open("rb") as file:
            empty = not file.read(1)
    except ValueError as error:
        raise SlideError(path, f"cannot be opened ({error})", "leave it out") from None
    except OSError as error:
        what = os.strerror(error.errno or 0).lower()
        raise SlideError(path, f"cannot be opened ({what})", "check path and permissions") from None
    if empty:
        raise SlideError(path, "is empty", _AGAIN)
    try:
        return openslide.OpenSlide(path)
    except openslide.OpenSlideUnsupportedFormatError:
        what = "is no whole-slide image that OpenSlide reads, or is cut short"
        raise SlideError(path, what, _AGAIN) from None
    except openslide.OpenSlideError as error:
        raise SlideError(path, f"is cut short or damaged ({first_line(error)})", _AGAIN) from error


def first_line(error: Exception) -> str:
    """What an error of a library says, without the lines that follow."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def _usual_mpp(power: str | None) -> float | None:
    """What an objective usually resolves: 20x is about 0.5 micrometres per pixel."""
    try:
        return 10 / float(power or "nan") if float(power or 0) > 0 else None
    except ValueError:
        return None


def file_name(slide_id: str) -> str:
    """A slide's name as a file name; where characters are replaced, a digest keeps it apart.

    >>> file_name("TCGA-05-4244-01Z-00-DX1"), file_name("a/b")
    ('TCGA-05-4244-01Z-00-DX1', 'a_b-c14cddc0')
    """
    safe = re.sub(r"[^\w.+=@-]", "_", slide_id).lstrip(".") or "_"
    if safe == slide_id and len(safe) <= 180:
        return safe
    return f"{safe[:180]}-{hashlib.sha256(slide_id.encode()).hexdigest()[:8]}"
