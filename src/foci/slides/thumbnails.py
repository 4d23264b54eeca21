"""Small pictures of slides in an audit folder, which its report embeds."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from foci.errors import SlideError
from foci.files.atomic import write_whole
from foci.progress import track
from foci.slides.find import FoundSlide, Search
from foci.slides.image import Box, SlideImage, file_name

_LOG = logging.getLogger(__name__)

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
) -> dict[str, Thumbnail]:
    """Write the thumbnails of an audit's slides; a slide that cannot be read has none.

    Args:
        slides: The audited slides and their images.
        audit: The audit folder.
        slide_mpp: Micrometres per level-0 pixel of images that do not say.
    """
    folder = audit / FOLDER
    folder.mkdir(exist_ok=True)
    index: dict[str, Thumbnail] = {}
    for missing in slides.missing:
        _LOG.info("no picture of %s: %s", missing.slide_id, missing.reason)
    for found in track(slides.found, "thumbnails"):
        try:
            index[found.slide_id] = _write(found, folder, slide_mpp)
        except SlideError as error:
            _LOG.info("no picture of %s: %s", found.slide_id, error)
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
