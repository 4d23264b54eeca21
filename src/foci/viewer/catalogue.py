"""What a viewer shows: one audit, its slides by number, and the image of each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from pathlib import Path

from foci.audits import RankedTiles, StoredAudit
from foci.errors import FociError, SlideError
from foci.reports.data.details import SlideDetails
from foci.reports.data.payload import longest_counts
from foci.slides.find import find_images, match_images
from foci.slides.thumbnails import read_thumbnails
from foci.viewer.tissue.open_images import OpenImages
from foci.viewer.tissue.pictures import Pictures

_TILES_KEPT = 12


class NoSuchSlideError(FociError):
    """A number that no slide of the audit has."""


class Catalogue:
    """One audit with its slides; a slide is known by its number in the audit, never by a path.

    Args:
        audit: A finished audit.
        images: Image of every slide that has one.
        slide_mpp: Micrometres per level-0 pixel of images that do not say.
    """

    def __init__(
        self,
        audit: StoredAudit,
        images: Mapping[str, Path] | None = None,
        slide_mpp: float | None = None,
    ) -> None:
        self.audit = audit
        self.paths = dict(images or {})
        self.slide_mpp = slide_mpp
        self.images = OpenImages(slide_mpp)
        self.pictures = Pictures(self.images)
        self.tiles = lru_cache(maxsize=_TILES_KEPT)(self._tiles)
        self._by_id = {slide.slide_id: slide for slide in audit.slides}

    @cached_property
    def details(self) -> SlideDetails:
        """Packs single slides, with all their tiles."""
        measured, kappa = self.audit.measured(), self.audit.manifest.settings.kappa
        counts = longest_counts(measured)
        return SlideDetails(measured, self.audit.slides, counts, kappa, whole=True)

    def slide_id(self, number: int) -> str:
        """Name of a slide.

        Raises:
            NoSuchSlideError: If the audit has no slide of this number.
        """
        known = self.audit.curves.slide_ids
        if not 0 <= number < len(known):
            raise NoSuchSlideError(f"slide {number}", "is not in this audit", "choose another")
        return known[number]

    def image(self, number: int) -> Path | None:
        """Image of a slide; None where there is none."""
        return self.paths.get(self.slide_id(number))

    def corner(self, number: int, tile: int) -> tuple[int, int, int]:
        """Top-left corner and side of a tile in level-0 pixels.

        Args:
            number: The slide.
            tile: Position of the tile in the slide's bag.
        """
        tiles, slide = self.tiles(number), self._by_id[self.slide_id(number)]
        if not 0 <= tile < len(tiles):
            raise NoSuchSlideError(f"tile {tile}", "is not on this slide", "choose another")
        if tiles.coords is None or slide.unit != "px" or slide.patch_size is None:
            what = "has no tile positions in level-0 pixels"
            raise SlideError(slide.slide_id, what, "audit features that store coordinates")
        x, y = tiles.coords[tile].tolist()
        return x, y, slide.patch_size

    def _tiles(self, number: int) -> RankedTiles:
        return next(iter(self.audit.tiles([self.slide_id(number)])))


def images_of(audit: StoredAudit, folder: Path | None) -> dict[str, Path]:
    """Images of an audit's slides: those in a folder, by name, or those that it was shown.

    Args:
        audit: A finished audit.
        folder: Folder of images; None for those whose thumbnails lie in the audit folder.
    """
    if folder is None:
        return {name: one.image for name, one in read_thumbnails(audit.folder).items()}
    wanted = [(slide.slide_id, None) for slide in audit.slides]
    return {found.slide_id: found.path for found in match_images(wanted, find_images(folder)).found}
