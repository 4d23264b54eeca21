"""Find the whole-slide images of a cohort: by their path in the table, or by name in a folder."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from foci.bags.bag import Skipped
from foci.bags.matching import short
from foci.errors import SlideError

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
    if folder.is_file():
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
    slides: Iterable[tuple[str, Path | None]], images: Mapping[str, Sequence[Path]] | None
) -> Search:
    """Give every slide its image.

    A path in the table is taken as it is. Otherwise the name matches exactly, or without file
    ending and TCGA UUID on either side.

    Args:
        slides: Slide and, if the cohort table names it, the path of its image.
        images: Of :func:`find_images`; None if only paths are known.
    """
    shortened: dict[str, list[Path]] = defaultdict(list)
    for name, paths in (images or {}).items():
        shortened[short(name)] += paths
    found, missing = [], []
    for slide_id, given in slides:
        how, paths = "slide_path", [] if given is None else [given]
        if given is None:
            how, paths = "name", list((images or {}).get(slide_id, ()))
        if not paths:
            how, paths = "short name", shortened.get(short(slide_id), [])
        if len(paths) == 1:
            found.append(FoundSlide(slide_id, paths[0], how))
        elif paths:
            several = ", ".join(map(str, paths[:3]))
            missing.append(Skipped(slide_id, f"fits several images ({several})"))
        else:
            missing.append(Skipped(slide_id, "no image of this name"))
    return Search(tuple(found), tuple(missing))
