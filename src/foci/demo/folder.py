"""Make the demo folder, atomically."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from foci.bags.tables import write_csv
from foci.demo.cohort import (
    CLASSES,
    KINDS,
    PATCH_SIZE,
    SITES,
    TARGET_MAGNIFICATION,
    TUMOUR,
    Palette,
    PlannedSlide,
    PlantedSlide,
    mix_palette,
    plan_cohort,
    plant,
)
from foci.demo.painting import DISTRACTOR, HARD_WITNESS, VARIANTS, WITNESS, tile_picture
from foci.errors import FociError
from foci.files.atomic import sweep, whole_file, whole_folder
from foci.files.bounds import read_json
from foci.progress import Progress
from foci.slides.encode import write_trident

# Write the files of the demo: TRIDENT features, label table, answer key.


ENCODER = "foci-demo"

_TRUTH = pa.schema(
    [
        ("slide_id", pa.string()),
        ("tile", pa.int64()),
        ("x", pa.int64()),
        ("y", pa.int64()),
        ("tissue", pa.string()),
        ("witness", pa.bool_()),
    ]
)


def write_features(slide: PlantedSlide, path: Path) -> None:
    """One feature file as TRIDENT writes it: geometry as attributes of ``coords``."""
    write_trident(
        path,
        slide.features,
        slide.coords,
        slide_id=slide.plan.slide_id,
        encoder=ENCODER,
        tile=PATCH_SIZE,
        side=slide.patch_size,
        magnification=slide.plan.magnification,
        target_magnification=TARGET_MAGNIFICATION,
        size=slide.size,
    )


def write_cohort(plans: Sequence[PlannedSlide], path: Path) -> None:
    """The tidy table: ``slide_id, case_id, label, split, site``."""
    rows = [
        {
            "slide_id": plan.slide_id,
            "case_id": plan.case_id,
            "label": CLASSES[plan.label],
            "split": plan.split,
            "site": SITES[plan.site],
        }
        for plan in plans
    ]
    write_csv(path, list(rows[0]), rows)


def truth_rows(slide: PlantedSlide) -> pa.Table:
    """Answer key of one slide: what each tile of its feature file shows, in file order."""
    n = len(slide.coords)
    return pa.table(
        {
            "slide_id": [slide.plan.slide_id] * n,
            "tile": np.arange(n),
            "x": slide.coords[:, 0],
            "y": slide.coords[:, 1],
            "tissue": [KINDS[kind] for kind in slide.tissue.kind],
            "witness": slide.tissue.witness,
        },
        schema=_TRUTH,
    )


def write_truth(tables: Sequence[pa.Table], path: Path) -> None:
    """The answer key of the cohort."""
    pq.write_table(pa.concat_tables(tables).combine_chunks(), path, compression="zstd")


# The README.md of the demo folder.


_TEXT = """\
# FOCI demo cohort

**These data are synthetic.** No patient, no tissue and no image is behind them: tile positions,
features and labels were drawn at random by `foci.demo.make` (seed {seed}). They are meant for
trying the software and for testing it against a known answer, and say nothing about any disease.

{slides} slides of {cases} imaginary patients; {labels}; {splits}. No patient is in two splits.

## Files

- `cohort.csv`: `slide_id, case_id, label, split, site`
- `features_demo/<slide_id>.h5`: `features` [N, 64] and `coords` [N, 2] in TRIDENT's layout; level-0
  pixels, top-left corner. Tiles are 128 micrometres wide: 256 px, or 512 px on slides "scanned" at
  40x.
- `tile_truth.parquet`: `slide_id, tile, x, y, tissue, witness`; `tile` is the row in the file of
  features
- `demo.json`: the parameters

## What was planted

- Every slide has one to three pieces of tissue with coherent regions of stroma, fat, lymphoid
  tissue, necrosis, normal epithelium and tumour. A region has its own direction in feature space.
- The class is carried **only by the witnesses**: one connected cluster of 2 to 6 % of the tiles (at
  least 3) inside the tumour, whose features contain the direction of the slide's class.
- All other tumour tiles hold a little of every class's direction, and some of them (distractors)
  hold a moderate amount of one that is drawn at random, whatever the class of the slide.
- A few artefacts (pen, fold) have the largest features of the slide and no class information, so
  that ranking tiles by the size of their features is misleading.
- Every slide and each of the two sites shifts all features a little (stain, scanner). Sites are
  balanced over classes.
- In about 15 % of the slides the witnesses carry less, so that a good classifier is not perfect.
"""


def readme(seed: int, plans: Sequence[PlannedSlide]) -> str:
    """The text of ``README.md`` for a planned cohort."""
    return _TEXT.format(
        seed=seed,
        slides=len(plans),
        cases=len({plan.case_id for plan in plans}),
        labels=_counts([CLASSES[plan.label] for plan in plans], sorted(CLASSES)),
        splits=_counts([plan.split for plan in plans], ["train", "val", "test"]),
    )


def _counts(values: Sequence[str], order: Sequence[str]) -> str:
    count = Counter(values)
    return ", ".join(f"{count[name]} {name}" for name in order if count[name])


FEATURES, COHORT, TRUTH = "features_demo", "cohort.csv", "tile_truth.parquet"
README, FACTS = "README.md", "demo.json"

_VERSION = 1
"""Raised whenever the same parameters would give other data."""

_COHORT_STREAM, _PALETTE_STREAM, _SLIDE_STREAM = range(3)


@dataclass(frozen=True)
class Parameters:
    """Everything a demo cohort depends on."""

    seed: int
    slides: int
    classes: int
    version: int = _VERSION

    def stream(self, *key: int) -> np.random.Generator:
        """An independent source of randomness for one part of the cohort."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def plans(self) -> list[PlannedSlide]:
        """The slides, before any tile is drawn."""
        return plan_cohort(self.stream(_COHORT_STREAM), self.slides, self.classes)

    def palette(self) -> Palette:
        """The directions in feature space that the cohort shares."""
        return mix_palette(self.stream(_PALETTE_STREAM), self.classes, len(SITES))

    def planted(self, plans: Sequence[PlannedSlide]) -> Iterator[PlantedSlide]:
        """Draw the tiles of the planned slides, one slide after the other."""
        palette = self.palette()
        for number, plan in enumerate(plans):
            yield plant(self.stream(_SLIDE_STREAM, number), plan, palette)


def make(out: str | Path, *, seed: int = 0, slides: int = 240, classes: int = 2) -> Path:
    """Make the demo cohort: synthetic slides whose rationale is known.

    The same parameters always give the same data. The folder appears under its name only when it
    is complete; if it already holds this very cohort it is left alone.

    Args:
        out: Folder to make.
        seed: Another seed gives another cohort.
        slides: Number of slides.
        classes: 2 or 3 types of tumour.

    Returns:
        The folder, with ``features_demo/<slide>.h5`` in TRIDENT's layout, ``cohort.csv``,
        ``tile_truth.parquet`` (the answer key), ``README.md`` and ``demo.json``.

    Raises:
        FociError: If ``out`` holds something else, or a parameter is impossible.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     demo = make(Path(folder) / "demo", slides=8)
    ...     print(*sorted(path.name for path in demo.iterdir()))
    README.md cohort.csv demo.json features_demo tile_truth.parquet
    """
    out = Path(out)
    if seed < 0:
        raise FociError(f"seed={seed}", "is negative", "choose 0 or a positive integer")
    parameters = Parameters(seed=seed, slides=slides, classes=classes)
    plans = parameters.plans()
    if _is_made(out, parameters, plans):
        return out
    try:
        with whole_folder(out) as folder:
            _write(folder, parameters, plans)
    except OSError as error:
        # another process may have made the same cohort meanwhile
        if not _is_made(out, parameters, plans):
            why = error.strerror or str(error)
            raise FociError(out, f"cannot be written ({why})", "choose another place") from error
    return out


def _write(folder: Path, parameters: Parameters, plans: list[PlannedSlide]) -> None:
    features = folder / FEATURES
    features.mkdir()
    answers = []
    for slide in parameters.planted(plans):
        write_features(slide, features / f"{slide.plan.slide_id}.h5")
        answers.append(truth_rows(slide))
    write_truth(answers, folder / TRUTH)
    write_cohort(plans, folder / COHORT)
    (folder / README).write_text(readme(parameters.seed, plans), encoding="utf-8")
    facts = json.dumps(asdict(parameters), indent=2) + "\n"
    (folder / FACTS).write_text(facts, encoding="utf-8")


def _is_made(out: Path, parameters: Parameters, plans: list[PlannedSlide]) -> bool:
    """Whether ``out`` holds this cohort; raises an error if it holds anything else."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    elsewhere = "choose another folder, or delete this one"
    try:
        found = read_json(out / FACTS)
    except (OSError, ValueError):
        raise FociError(out, "exists and is not a FOCI demo", elsewhere) from None
    if found != asdict(parameters):
        raise FociError(out, f"holds a demo with other parameters ({found})", elsewhere)
    names = [COHORT, TRUTH, README, *(f"{FEATURES}/{plan.slide_id}.h5" for plan in plans)]
    missing = [name for name in names if not (out / name).is_file()]
    if missing:
        what = f"is a demo with {len(missing)} missing files (first: {missing[0]})"
        raise FociError(out, what, "delete the folder and make it again")
    return True


# Write the slides of the demo as pyramidal TIFF files: the cohort's own tiles, painted.


SLIDES = "slides"
"""Folder of the images in the demo folder."""

_MPP_AT_20 = 0.5
_DOWN = (4, 16)
_WHITE = 244
_BLOCK = 256

Look = tuple[int, int, int, int]
"""Arguments of :func:`foci.demo.painting.tile_picture`."""


def paint_slides(
    folder: Path,
    parameters: Parameters,
    progress: Progress = lambda items, what: items,
) -> Path:
    """Paint every slide of a demo cohort; images that are already there are kept.

    Args:
        folder: The demo folder.
        parameters: Of the cohort in it.
        progress: Wraps the loop over slides.

    Returns:
        The folder of the images.
    """
    out = folder / SLIDES
    out.mkdir(exist_ok=True)
    sweep(out)
    plans, palette = parameters.plans(), parameters.palette()
    drawn = parameters.planted(plans)
    for plan in progress(plans, "painting slides"):
        slide, path = next(drawn), out / f"{plan.slide_id}.tiff"
        if not path.exists():
            with whole_file(path, durable=False) as temporary:
                write_slide(slide, looks(slide, palette), temporary)
    return out


def looks(slide: PlantedSlide, palette: Palette) -> list[Look]:
    """What each tile looks like: its tissue, and the class of witnesses and distractors."""
    tissue, plan = slide.tissue, slide.plan
    glands = np.where(tissue.witness, HARD_WITNESS if plan.hard else WITNESS, 0)
    glands[tissue.distractor] = DISTRACTOR
    label = np.where(tissue.distractor, _distracting_class(slide, palette), plan.label)
    label[glands == 0] = 0
    variant = np.arange(len(tissue.kind)) % VARIANTS
    rows = zip(tissue.kind, label, glands, variant, strict=True)
    return [(int(a), int(b), int(c), int(d)) for a, b, c, d in rows]


def write_slide(slide: PlantedSlide, looks: list[Look], path: Path) -> None:
    """Write one slide: level 0 tile by tile, then two reduced levels."""
    import tifffile

    side, (width, height) = slide.patch_size, slide.size
    mpp = _MPP_AT_20 * TARGET_MAGNIFICATION / slide.plan.magnification
    cells = {(int(x), int(y)): i for i, (x, y) in enumerate(slide.coords // side)}
    common: dict[str, Any] = {
        "dtype": np.uint8,
        "photometric": "rgb",
        "compression": "zlib",
        "metadata": None,
    }
    with tifffile.TiffWriter(path, bigtiff=True) as file:
        file.write(
            _level_0(slide, looks, cells),
            shape=(height, width, 3),
            tile=(side, side),
            resolution=(1e4 / mpp, 1e4 / mpp),
            resolutionunit="CENTIMETER",
            **common,
        )
        for down in _DOWN:
            canvas = _reduced(slide, looks, down)
            blocks = _blocks(canvas)
            file.write(blocks, shape=canvas.shape, tile=(_BLOCK, _BLOCK), subfiletype=1, **common)


def _distracting_class(slide: PlantedSlide, palette: Palette) -> int:
    """The class that the distractors hint at: the one of which they hold more than other tumour."""
    tissue = slide.tissue
    amounts = slide.features @ palette.classes.T
    others = (tissue.kind == TUMOUR) & ~tissue.distractor & ~tissue.witness
    more = amounts[tissue.distractor].mean(axis=0) - amounts[others].mean(axis=0)
    return int(np.argmax(more))


def _level_0(
    slide: PlantedSlide, looks: list[Look], cells: dict[tuple[int, int], int]
) -> Iterator[bytes]:
    """Compressed tiles of the file, row by row: each is one tile of the cohort, or glass."""
    side, (width, height) = slide.patch_size, slide.size
    for row in range(-(-height // side)):
        for column in range(-(-width // side)):
            tile = cells.get((column, row))
            yield _glass(side) if tile is None else _compressed(looks[tile], side)


@cache
def _compressed(look: Look, side: int) -> bytes:
    return zlib.compress(_scaled(look, side).tobytes(), 6)


@cache
def _glass(side: int) -> bytes:
    return zlib.compress(bytes([_WHITE]) * (side * side * 3), 6)


@cache
def _scaled(look: Look, side: int) -> NDArray[np.uint8]:
    """A tile's picture at another size: repeated pixels, or means of blocks."""
    picture = tile_picture(*look)
    if side >= PATCH_SIZE:
        times = side // PATCH_SIZE
        larger: NDArray[np.uint8] = picture.repeat(times, axis=0).repeat(times, axis=1)
        return larger
    by = PATCH_SIZE // side
    means = picture.reshape(side, by, side, by, 3).mean(axis=(1, 3))
    smaller: NDArray[np.uint8] = np.rint(means).astype(np.uint8)
    return smaller


def _reduced(slide: PlantedSlide, looks: list[Look], down: int) -> NDArray[np.uint8]:
    """The whole slide, ``down`` times smaller."""
    width, height = (-(-length // down) for length in slide.size)
    canvas = np.full((height, width, 3), _WHITE, dtype=np.uint8)
    side = slide.patch_size // down
    for (x, y), look in zip(slide.coords // down, looks, strict=True):
        canvas[y : y + side, x : x + side] = _scaled(look, side)
    return canvas


def _blocks(canvas: NDArray[np.uint8]) -> Iterator[bytes]:
    """Compressed blocks of a level, row by row, padded with glass."""
    height, width = canvas.shape[:2]
    for top in range(0, height, _BLOCK):
        for left in range(0, width, _BLOCK):
            block = np.full((_BLOCK, _BLOCK, 3), _WHITE, dtype=np.uint8)
            part = canvas[top : top + _BLOCK, left : left + _BLOCK]
            block[: part.shape[0], : part.shape[1]] = part
            yield zlib.compress(block.tobytes(), 1)  # four times as fast, a few kilobytes more
