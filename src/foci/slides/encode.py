"""Encode a folder of slides into feature files in TRIDENT's layout; a killed run resumes.

Every file holds the key of the settings and the record of the slide that it was made from, so that
a later run knows which files it may keep.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from foci._version import __version__
from foci.bags.bag import Skipped
from foci.bags.layouts.hdf5 import attribute, open_file
from foci.errors import BagError, FociError, SlideError
from foci.files.atomic import sweep, whole_file, write_whole
from foci.files.hashes import check_format, digest, stamp
from foci.progress import track
from foci.slides.encoders import Encoder
from foci.slides.find import FoundSlide, Search
from foci.slides.image import SlideImage
from foci.slides.tiling import TilingSettings, batched, lay_tiles, magnification, tile_pictures

_LOG = logging.getLogger(__name__)

MANIFEST = "encode.json"
_FORMAT = 1
_KEY, _RECORD = "foci_key", "foci_slide"


class EncodingRun(BaseModel):
    """Everything but the slides that decides the features, as given to :func:`encode_slides`."""

    model_config = ConfigDict(frozen=True)

    encoder: str
    width: int
    weights_sha256: str | None
    tiling: TilingSettings
    slide_mpp: float | None

    @property
    def key(self) -> str:
        """Digest of the settings."""
        return digest(self.model_dump(mode="json"))


class EncodedSlide(BaseModel):
    """One encoded slide; ``path``, ``bytes`` and ``mtime_ns`` are those of its image.

    Attributes:
        how: How the image was found.
        mpp: Micrometres per level-0 pixel.
        mpp_from: ``"slide"`` or ``"given"``.
    """

    model_config = ConfigDict(frozen=True)

    slide_id: str
    path: str
    how: str
    tiles: int
    mpp: float
    mpp_from: str
    bytes: int
    mtime_ns: int


@dataclass(frozen=True)
class EncodedFolder:
    """Feature folder of ``foci encode``: its slides, and those skipped, each with its reason."""

    folder: Path
    slides: tuple[EncodedSlide, ...]
    skipped: tuple[Skipped, ...]


def encode_slides(
    slides: Search,
    out: str | Path,
    encoder: Encoder,
    tiling: TilingSettings,
    *,
    slide_mpp: float | None = None,
    batch: int = 64,
    force: bool = False,
) -> EncodedFolder:
    """Encode slides into one feature file each; a bad slide costs only itself.

    A feature file appears when it is whole. Files of an earlier run with the same settings are
    kept, unless the image has changed since.

    Args:
        slides: Of :func:`foci.slides.find.every_image`.
        out: Folder; the features go into sub-folders of it, named as TRIDENT names them.
        encoder: The tile encoder.
        tiling: Tile size, resolution and least tissue.
        slide_mpp: Micrometres per level-0 pixel, for slides that do not say.
        batch: Tiles that are encoded together.
        force: Encode everything again, also over features of other settings.
    """
    geometry = f"{magnification(tiling.mpp)}x_{tiling.tile}px_0px_overlap"
    folder = Path(out) / geometry / f"features_{encoder.name}"
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    run = EncodingRun(
        encoder=encoder.name,
        width=encoder.width,
        weights_sha256=encoder.weights_sha256,
        tiling=tiling,
        slide_mpp=slide_mpp,
    )
    listed = {} if force else _read_manifest(folder, run)
    _write_manifest(folder, run, listed, ())
    done: list[EncodedSlide] = []
    skipped = list(slides.missing)
    for missing in skipped:
        _LOG.info("skipped %s: %s", missing.slide_id, missing.reason)
    try:
        for found in track(slides.found, "encoding"):
            path = folder / f"{found.slide_id}.h5"
            try:
                encoded = None if force else _finished(path, found, run)
                if encoded is None:
                    with whole_file(path) as temporary:
                        encoded = encode_slide(found, temporary, encoder, run, batch)
                done.append(encoded)
            except SlideError as error:
                skipped.append(Skipped(found.slide_id, str(error)))
                _LOG.info("skipped %s: %s", found.slide_id, error)
    finally:
        listed |= {slide.slide_id: slide for slide in done}
        _write_manifest(folder, run, listed, skipped)
    return EncodedFolder(folder, tuple(done), tuple(skipped))


def encode_slide(
    found: FoundSlide, path: Path, encoder: Encoder, run: EncodingRun, batch: int
) -> EncodedSlide:
    """Encode the tissue tiles of one slide into a feature file.

    Raises:
        SlideError: If the image cannot be read to the end, or holds no tissue.
    """
    _, size, changed = stamp(found.path)
    with SlideImage(found.path, run.slide_mpp) as slide:
        grid = lay_tiles(slide, run.tiling)
        pictures = batched(tile_pictures(slide, grid), batch)
        features = np.concatenate([encoder.encode(tiles) for tiles in pictures])
        mpp = slide.known_mpp()
    if features.shape != (len(grid), encoder.width) or not np.isfinite(features).all():
        what = f"gave no {len(grid)} x {encoder.width} finite features"
        raise SlideError(found.path, f"the encoder {encoder.name} {what}", "check its weights")
    encoded = EncodedSlide(
        slide_id=found.slide_id,
        path=str(found.path),
        how=found.how,
        tiles=len(grid),
        mpp=mpp,
        mpp_from=slide.mpp_from or "",
        bytes=size,
        mtime_ns=changed,
    )
    write_trident(
        path,
        features,
        grid.coords,
        slide_id=found.slide_id,
        encoder=encoder.name,
        tile=run.tiling.tile,
        side=grid.side,
        magnification=magnification(mpp),
        target_magnification=magnification(run.tiling.mpp),
        size=slide.size,
        more={_KEY: run.key, _RECORD: encoded.model_dump_json()},
    )
    return encoded


def write_trident(
    path: Path,
    features: NDArray[Any],
    coords: NDArray[Any],
    *,
    slide_id: str,
    encoder: str,
    tile: int,
    side: int,
    magnification: int,
    target_magnification: int,
    size: tuple[int, int],
    more: Mapping[str, str] | None = None,
) -> None:
    """Write features ``[N, D]`` as TRIDENT does; the geometry becomes attributes of ``coords``.

    Corners of tiles ``[N, 2]``, their ``side``, the ``magnification`` and the ``size`` (width and
    height) are those of level 0; ``tile`` is the side in pixels at the target magnification.
    """
    origin = {"name": slide_id, "savetodir": "."}
    geometry = {
        "patch_size": tile,
        "patch_size_level0": side,
        "level0_magnification": magnification,
        "target_magnification": target_magnification,
        "overlap": 0,
        "level0_width": size[0],
        "level0_height": size[1],
    }
    with h5py.File(path, "w", locking=False) as file:
        for name, rows, attributes in (
            ("features", features, {**origin, "encoder": encoder}),
            ("coords", coords, {**origin, **geometry, **(more or {})}),
        ):
            width = rows.shape[1]
            shape: dict[str, Any] = {"chunks": (1, width), "maxshape": (None, width)}
            # a dataset that stays open would move the next one in the file
            file.create_dataset(name, data=rows, **shape).attrs.update(attributes)


def _finished(path: Path, found: FoundSlide, run: EncodingRun) -> EncodedSlide | None:
    """The record of a feature file, if it was made by this run from this image."""
    if not path.is_file():
        return None
    try:
        with open_file(path) as file:
            coords, features = file["coords"], file["features"]
            same = attribute(coords, _KEY) == run.key
            record = EncodedSlide.model_validate_json(attribute(coords, _RECORD) or "{}")
            shapes = coords.shape, features.shape
    except (BagError, KeyError, ValidationError):
        return None
    whole = shapes == ((record.tiles, 2), (record.tiles, run.width))
    unchanged = stamp(found.path)[1:] == [record.bytes, record.mtime_ns]
    return record if same and whole and unchanged else None


def _read_manifest(folder: Path, run: EncodingRun) -> dict[str, EncodedSlide]:
    """Slides that the manifest of a folder lists; features of other settings are refused."""
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    fix = "choose another --out, or --force"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        check_format(path, stored, _FORMAT, fix)
        other = EncodingRun.model_validate(stored["run"])
        listed = [EncodedSlide.model_validate(slide) for slide in stored["slides"]]
    except FociError:
        raise
    except (AttributeError, ValueError, KeyError, TypeError):
        raise FociError(path, "cannot be read", "delete it, or choose another --out") from None
    if other.key != run.key:
        old, new = other.model_dump(mode="json"), run.model_dump(mode="json")
        differs = ", ".join(f"{name} {old[name]}" for name in old if old[name] != new[name])
        raise FociError(folder, f"holds features of other settings ({differs})", fix)
    return {slide.slide_id: slide for slide in listed}


def _write_manifest(
    folder: Path, run: EncodingRun, slides: Mapping[str, EncodedSlide], skipped: Sequence[Skipped]
) -> None:
    """Write ``encode.json``: settings, encoded slides, slides skipped by the last run."""
    content: dict[str, Any] = {
        "format": _FORMAT,
        "foci": __version__,
        "run": run.model_dump(mode="json"),
        "slides": [slide.model_dump(mode="json") for slide in slides.values()],
        "skipped": {slide.slide_id: slide.reason for slide in skipped},
    }
    write_whole(folder / MANIFEST, json.dumps(content, indent=2) + "\n")
