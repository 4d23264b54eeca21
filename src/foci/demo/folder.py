"""Make the demo folder, atomically."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from foci.demo.features import Palette, mix_palette
from foci.demo.files import truth_rows, write_cohort, write_features, write_truth
from foci.demo.patients import SITES, PlannedSlide, plan_cohort
from foci.demo.planted import PlantedSlide, plant
from foci.demo.readme import readme
from foci.errors import FociError
from foci.files.atomic import whole_folder
from foci.files.bounded import read_json

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
