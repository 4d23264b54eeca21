"""Embed small pictures of the slides, within a byte limit."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from foci.audits import StoredAudit
from foci.reports.data.models import SlideDetail, TissuePicture
from foci.slides.thumbnails import FOLDER, Thumbnail, read_thumbnails

PICTURE_BYTES = 3_800_000
"""Limit for all pictures, beside that for curves: a page with pictures stays below 6 MB."""

_FRAME = 60
"""Bytes of JSON around a picture."""


class TissuePictures:
    """The thumbnails of one audit.

    Args:
        audit: A finished audit.
    """

    def __init__(self, audit: StoredAudit) -> None:
        self._folder = audit.folder / FOLDER
        self._known: Mapping[str, Thumbnail] = read_thumbnails(audit.folder)

    def add(
        self, details: Mapping[int, SlideDetail], slide_ids: Mapping[int, str], room: int
    ) -> dict[int, SlideDetail]:
        """Give slides their picture, from the first on, while they fit.

        Args:
            details: Packed slides, the most interesting first.
            slide_ids: Their names.
            room: Bytes for all pictures.
        """
        pictured = dict(details)
        for row, detail in details.items():
            size = self._bytes_of(slide_ids[row])
            if 0 < size <= room and detail.placement is not None and detail.unit == "px":
                picture = self._picture(slide_ids[row])
                pictured[row] = detail.model_copy(update={"tissue": picture})
                room -= size
        return pictured

    def _bytes_of(self, slide_id: str) -> int:
        """Bytes of a picture on the page; 0 where there is none."""
        known = self._known.get(slide_id)
        path = None if known is None else self._folder / known.file
        if path is None or not path.is_file():
            return 0
        return -(-path.stat().st_size // 3) * 4 + _FRAME

    def _picture(self, slide_id: str) -> TissuePicture:
        known = self._known[slide_id]
        content = (self._folder / known.file).read_bytes()
        return TissuePicture(jpeg=base64.b64encode(content).decode("ascii"), box=known.box)
