"""What a feature file was made from, so that a run knows which files it may keep."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from foci._version import __version__
from foci.bags.cohort.slide import Skipped
from foci.bags.layouts.hdf5 import attribute, open_hdf5
from foci.errors import BagError, FociError, SlideError
from foci.files.atomic import write_whole
from foci.files.digest import digest
from foci.files.hashes import check_format
from foci.slides.encoders import Encoder
from foci.slides.find import FoundSlide
from foci.slides.tiling import TilingSettings

MANIFEST = "encode.json"
_FORMAT = 1
_KEY, _RECORD = "foci_key", "foci_slide"


class EncodingRun(BaseModel):
    """Everything but the slides that decides the features.

    Attributes:
        encoder: Its name.
        width: Feature width.
        weights_sha256: Of its file of weights.
        tiling: Tile size, resolution and least tissue.
        slide_mpp: Resolution of slides that do not say theirs.
    """

    model_config = ConfigDict(frozen=True)

    encoder: str
    width: int
    weights_sha256: str | None
    tiling: TilingSettings
    slide_mpp: float | None

    @classmethod
    def of(cls, encoder: Encoder, tiling: TilingSettings, slide_mpp: float | None) -> EncodingRun:
        """The run of an encoder."""
        return cls(
            encoder=encoder.name,
            width=encoder.width,
            weights_sha256=encoder.weights_sha256,
            tiling=tiling,
            slide_mpp=slide_mpp,
        )

    @property
    def key(self) -> str:
        """Digest of the settings."""
        return digest(self.model_dump(mode="json"))


class EncodedSlide(BaseModel):
    """One encoded slide.

    Attributes:
        slide_id: The slide.
        path: Its image.
        how: How the image was found.
        tiles: Number of tiles.
        mpp: Micrometres per level-0 pixel.
        mpp_from: ``"slide"`` or ``"given"``.
        bytes: Size of the image file.
        mtime_ns: When it was last changed.
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

    def attributes(self, run: EncodingRun) -> dict[str, str]:
        """Attributes of ``coords`` by which :func:`finished` recognises the file."""
        return {_KEY: run.key, _RECORD: self.model_dump_json()}


def finished(path: Path, found: FoundSlide, run: EncodingRun) -> EncodedSlide | None:
    """The record of a feature file, if it was made by this run from this image."""
    if not path.is_file():
        return None
    try:
        with open_hdf5(path) as file:
            coords, features = file["coords"], file["features"]
            stored = attribute(coords, _RECORD)
            same = attribute(coords, _KEY) == run.key
            record = EncodedSlide.model_validate_json(stored or "{}")
            whole = coords.shape == (record.tiles, 2) and features.shape == (
                record.tiles,
                run.width,
            )
    except (BagError, KeyError, ValidationError):
        return None
    current = file_state(found.path)
    unchanged = all(getattr(record, name) == value for name, value in current.items())
    return record if same and whole and unchanged else None


def file_state(path: Path) -> dict[str, int]:
    """Size and time of change of an image."""
    try:
        state = path.stat()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SlideError(path, f"cannot be opened ({why})", "check path and permissions") from None
    return {"bytes": state.st_size, "mtime_ns": state.st_mtime_ns}


def check_folder(folder: Path, run: EncodingRun, force: bool) -> dict[str, EncodedSlide]:
    """Slides that the manifest of a folder lists; features of other settings are refused."""
    path = folder / MANIFEST
    if force or not path.is_file():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        check_format(path, stored, _FORMAT, "choose another --out, or --force")
        other = EncodingRun.model_validate(stored["run"])
        listed = [EncodedSlide.model_validate(slide) for slide in stored["slides"]]
    except FociError:
        raise
    except (AttributeError, ValueError, KeyError, TypeError):
        raise FociError(path, "cannot be read", "delete it, or choose another --out") from None
    if other.key != run.key:
        old, new = other.model_dump(mode="json"), run.model_dump(mode="json")
        differs = ", ".join(f"{name} {old[name]}" for name in old if old[name] != new[name])
        fix = "choose another --out, or --force"
        raise FociError(folder, f"holds features of other settings ({differs})", fix)
    return {slide.slide_id: slide for slide in listed}


def write_manifest(
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
