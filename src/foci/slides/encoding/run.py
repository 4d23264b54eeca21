"""Encode a folder of slides; a killed run goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from foci.bags.cohort.slide import Skipped
from foci.errors import SlideError
from foci.files.atomic import sweep, whole_file
from foci.progress import Progress
from foci.slides.encoders import Encoder
from foci.slides.encoding.record import (
    EncodedSlide,
    EncodingRun,
    check_folder,
    finished,
    write_manifest,
)
from foci.slides.encoding.slide import encode_slide
from foci.slides.find import FoundSlide, Search
from foci.slides.tiling import TilingSettings


@dataclass(frozen=True)
class EncodedFolder:
    """What a run of ``foci encode`` has made.

    Attributes:
        folder: The feature folder.
        slides: The encoded slides, those of earlier runs too.
        skipped: The others, each with its reason.
    """

    folder: Path
    slides: tuple[EncodedSlide, ...]
    skipped: tuple[Skipped, ...]


def feature_folder(out: Path, tiling: TilingSettings, encoder: Encoder) -> Path:
    """Folder of the features, named as TRIDENT names it."""
    geometry = f"{tiling.magnification}x_{tiling.tile}px_0px_overlap"
    return out / geometry / f"features_{encoder.name}"


def encode_slides(
    slides: Search,
    out: str | Path,
    encoder: Encoder,
    tiling: TilingSettings,
    *,
    slide_mpp: float | None = None,
    batch: int = 64,
    force: bool = False,
    progress: Progress = lambda items, what: items,
    say: Callable[[str], None] = lambda line: None,
) -> EncodedFolder:
    """Encode slides into one feature file each; a bad slide costs only itself.

    A feature file appears when it is whole. Files of an earlier run with the same settings are
    kept, unless the image has changed since.

    Args:
        slides: Of :func:`foci.slides.find.every_image`.
        out: Folder; the features go into TRIDENT's sub-folders of it.
        encoder: The tile encoder.
        tiling: Tile size, resolution and least tissue.
        slide_mpp: Micrometres per level-0 pixel, for slides that do not say.
        batch: Tiles that are encoded together.
        force: Encode everything again, also over features of other settings.
        progress: Wraps the loop over slides.
        say: Called with one line per skipped slide.
    """
    folder = feature_folder(Path(out), tiling, encoder)
    folder.mkdir(parents=True, exist_ok=True)
    sweep(folder)
    run = EncodingRun.of(encoder, tiling, slide_mpp)
    listed = check_folder(folder, run, force)
    write_manifest(folder, run, listed, ())
    done: list[EncodedSlide] = []
    skipped = list(slides.missing)
    for lost in skipped:
        say(f"skipped {lost.slide_id}: {lost.reason}")
    try:
        for found in progress(slides.found, "encoding"):
            try:
                done.append(_one(found, folder, encoder, run, batch, force))
            except SlideError as error:
                skipped.append(Skipped(found.slide_id, str(error)))
                say(f"skipped {found.slide_id}: {error}")
    finally:
        listed |= {slide.slide_id: slide for slide in done}
        write_manifest(folder, run, listed, skipped)
    return EncodedFolder(folder, tuple(done), tuple(skipped))


def _one(
    found: FoundSlide, folder: Path, encoder: Encoder, run: EncodingRun, batch: int, force: bool
) -> EncodedSlide:
    path = folder / f"{found.slide_id}.h5"
    kept = None if force else finished(path, found, run)
    if kept is not None:
        return kept
    with whole_file(path) as temporary:
        return encode_slide(found, temporary, encoder, run, batch)
