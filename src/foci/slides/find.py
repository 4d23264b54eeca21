"""Find the whole-slide images of a cohort, and keep small pictures of them for its report.

An image is found by its path in the table, or by name in a folder.
"""

from __future__ import annotations

import io
import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, field_validator

from foci.bags.bag import Skipped
from foci.bags.matching import Names
from foci.errors import SlideError
from foci.files.atomic import write_whole
from foci.files.bounds import read_text
from foci.progress import track
from foci.slides.image import Box, SlideImage, file_name, fitted

_LOG = logging.getLogger(__name__)

SUFFIXES = (
    ".svs", ".tif", ".tiff", ".ndpi", ".mrxs", ".scn", ".vms", ".vmu", ".bif", ".svslide",
    ".czi", ".dcm",
)  # fmt: skip
"""File endings of the formats that OpenSlide reads."""


@dataclass(frozen=True)
class FoundSlide:
    """A slide and its image.

    Attributes:
        slide_id: The slide.
        path: Its image.
        how: ``"slide_path"``, ``"name"``, or ``"short name"``: without ending and TCGA UUID.
    """

    slide_id: str
    path: Path
    how: str


@dataclass(frozen=True)
class Search:
    """Result of :func:`match_images`: slides with an image, and slides without, with the reason."""

    found: tuple[FoundSlide, ...]
    missing: tuple[Skipped, ...]


def find_images(folder: str | Path) -> dict[str, list[Path]]:
    """Images in a folder and below it, by file name without ending; a single file is its own."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        return {folder.stem: [folder]}
    if not folder.is_dir():
        raise SlideError(folder, "does not exist", "give the folder of the whole-slide images")
    images: dict[str, list[Path]] = defaultdict(list)
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                path = Path(root, name)
                images[path.stem].append(path)
    if not images:
        endings = ", ".join(SUFFIXES)
        raise SlideError(folder, f"holds no whole-slide images ({endings})", "check the path")
    return dict(images)


def every_image(folder: str | Path) -> Search:
    """Every image of a folder as a slide of its own; two files of one name are refused, both."""
    images = find_images(folder)
    return match_images([(name, None) for name in images], images)


def match_images(
    slides: Iterable[tuple[str, Path | None]], images: Mapping[str, Sequence[Path]]
) -> Search:
    """Give every slide its image.

    A path in the table is taken as it is. Otherwise the name matches exactly, or without file
    ending and TCGA UUID on either side.

    Args:
        slides: Slide and, if the cohort table names it, the path of its image.
        images: Of :func:`find_images`.
    """
    names = Names(images)
    found, missing = [], []
    for slide_id, given in slides:
        if given is not None:
            how, paths = "slide_path", [given]
        else:
            how = "name" if slide_id in names.exact else "short name"
            paths = [path for name in names.like(slide_id) for path in images[name]]
        if len(paths) == 1:
            found.append(FoundSlide(slide_id, paths[0], how))
        elif paths:
            several = ", ".join(map(str, paths[:3]))
            missing.append(Skipped(slide_id, f"fits several images ({several})"))
        else:
            missing.append(Skipped(slide_id, "no image of this name"))
    return Search(tuple(found), tuple(missing))


# Thumbnails: small pictures in an audit folder, which its report embeds

THUMBNAILS, INDEX = "thumbnails", "index.json"
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

    @field_validator("file")
    @classmethod
    def _check_file(cls, name: str) -> str:
        if name != Path(name).name:
            raise ValueError("it is not a file name")
        return name

    def jpeg(self, folder: Path) -> bytes | None:
        """The picture, out of the folder of thumbnails; None where there is none."""
        path = folder / self.file
        if path.is_symlink() or not path.is_file():  # the folder may be another person's
            return None
        content = path.read_bytes()
        return content if content.startswith(b"\xff\xd8") else None


_INDEX: TypeAdapter[dict[str, Thumbnail]] = TypeAdapter(dict[str, Thumbnail])


def write_thumbnails(
    slides: Search, audit: Path, *, slide_mpp: float | None = None
) -> dict[str, Thumbnail]:
    """Write the thumbnails of an audit's slides; a slide that cannot be read has none."""
    folder = audit / THUMBNAILS
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
        return _INDEX.validate_json(read_text(audit / THUMBNAILS / INDEX))
    except (OSError, ValueError):  # a ValidationError is one, too
        return {}


def _write(found: FoundSlide, folder: Path, slide_mpp: float | None) -> Thumbnail:
    with SlideImage(found.path, slide_mpp) as slide:
        box, mpp = slide.bounds, slide.mpp
        picture = slide.read(box, fitted(box, LONGEST))
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=QUALITY, optimize=True)
    name = f"{file_name(found.slide_id)}.jpg"
    write_whole(folder / name, content.getvalue(), durable=False)
    return Thumbnail(file=name, image=found.path.absolute(), how=found.how, box=box, mpp=mpp)
