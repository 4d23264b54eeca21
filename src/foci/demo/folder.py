"""The demo folder: TRIDENT features, label table, answer key and README, written atomically."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from foci.bags.tables import write_csv
from foci.demo.cohort import (
    CLASSES,
    COLUMNS,
    KINDS,
    NOTES,
    PATCH_SIZE,
    SITES,
    TARGET_MAGNIFICATION,
    TISSUE,
    Outcome,
    Palette,
    PlannedSlide,
    PlantedSlide,
    draw_outcomes,
    mix_palette,
    plan_cohort,
    plant,
    plant_labels,
)
from foci.errors import FociError
from foci.files.atomic import whole_folder
from foci.files.bounds import read_json
from foci.outputs import Output
from foci.slides.encode import write_trident

FEATURES, COHORT, TRUTH = "features_demo", "cohort.csv", "tile_truth.parquet"
README, RECORD = "README.md", "demo.json"
ENCODER = "foci-demo"

_VERSION = 1
"""Raised whenever the same parameters would give other data."""

_COHORT_STREAM, _PALETTE_STREAM, _SLIDE_STREAM, _OUTCOME_STREAM = range(4)

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


@dataclass(frozen=True)
class Parameters:
    """Everything a demo cohort depends on."""

    seed: int
    slides: int
    classes: int
    version: int = _VERSION
    output: Output = "class"

    @property
    def record(self) -> dict[str, Any]:
        """Content of ``demo.json``."""
        own = asdict(self)
        if self.output == "class":
            del own["output"]
        return own

    def stream(self, *key: int) -> np.random.Generator:
        """An independent source of randomness for one part of the cohort."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=key))

    def plans(self) -> list[PlannedSlide]:
        """The slides, before any tile is drawn."""
        return plan_cohort(self.stream(_COHORT_STREAM), self.slides, self.classes)

    def outcomes(self, plans: Sequence[PlannedSlide]) -> dict[str, Outcome]:
        """What is known of every patient besides the class; nothing in a cohort of classes."""
        if self.output == "class":
            return {}
        return draw_outcomes(self.stream(_OUTCOME_STREAM), plans, self.output)

    def palette(self) -> Palette:
        """The directions in feature space that the cohort shares."""
        labels = len(TISSUE) if self.output == "multilabel" else self.classes
        return mix_palette(self.stream(_PALETTE_STREAM), labels)

    def planted(self, plans: Sequence[PlannedSlide]) -> Iterator[PlantedSlide]:
        """Draw the tiles of the planned slides, one slide after the other."""
        palette, known = self.palette(), self.outcomes(plans)
        for number, plan in enumerate(plans):
            rng = self.stream(_SLIDE_STREAM, number)
            if self.output == "multilabel":
                yield plant_labels(rng, plan, palette)
                continue
            strength = known[plan.case_id].strength if known else None
            yield plant(rng, replace(plan, strength=strength), palette)


def make(
    out: str | Path,
    *,
    seed: int = 0,
    slides: int = 240,
    classes: int = 2,
    output: Output = "class",
) -> Path:
    """Make the demo cohort: synthetic slides whose rationale is known.

    The same parameters always give the same data. The folder appears under its name only when it
    is complete; if it already holds this very cohort it is left alone.

    Args:
        out: Folder to make.
        seed: Another seed gives another cohort.
        slides: Number of slides.
        classes: 2 or 3 types of tumour.
        output: What the table holds: a class, a time and an event, a score, or three labels.

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
    if output != "class" and classes != 2:
        fix = "leave out --classes, or --output"
        raise FociError(f"classes={classes}", f"mean nothing for output {output}", fix)
    parameters = Parameters(seed=seed, slides=slides, classes=classes, output=output)
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
    (folder / FEATURES).mkdir()
    truth: list[pa.Table] = []
    own_truth: dict[str, list[pa.Table]] = {}
    present: dict[str, dict[str, str]] = {}
    for slide in parameters.planted(plans):
        write_trident(
            folder / FEATURES / f"{slide.plan.slide_id}.h5",
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
        n = len(slide.coords)
        columns = {
            "slide_id": [slide.plan.slide_id] * n,
            "tile": np.arange(n),
            "x": slide.coords[:, 0],
            "y": slide.coords[:, 1],
            "tissue": [KINDS[kind] for kind in slide.tissue.kind],
            "witness": slide.tissue.witness,
        }
        truth.append(pa.table(columns))
        for label, own in zip(TISSUE, () if slide.marks is None else slide.marks.T, strict=False):
            own_truth.setdefault(label, []).append(pa.table(columns | {"witness": own}))
            present.setdefault(slide.plan.slide_id, {})[label] = str(int(own.any()))
    for name, tables in ((TRUTH, truth), *((truth_of(one), t) for one, t in own_truth.items())):
        pq.write_table(pa.concat_tables(tables).combine_chunks(), folder / name, compression="zstd")
    known = parameters.outcomes(plans)
    rows = []
    for plan in plans:
        row = {"slide_id": plan.slide_id, "case_id": plan.case_id}
        if parameters.output == "class":
            row["label"] = CLASSES[plan.label]
        else:
            row |= present.get(plan.slide_id, known[plan.case_id].columns)
        rows.append(row | {"split": plan.split, "site": SITES[plan.site]})
    write_csv(folder / COHORT, list(rows[0]), rows)
    text = _TEXT.format(
        seed=parameters.seed,
        slides=len(plans),
        cases=len({plan.case_id for plan in plans}),
        labels=_counts([CLASSES[plan.label] for plan in plans], CLASSES),
        splits=_counts([row["split"] for row in rows], ["train", "val", "test"]),
    )
    if parameters.output != "class":
        columns_of = f"`slide_id, case_id, {', '.join(COLUMNS[parameters.output])}, split, site`"
        text = text.replace("`slide_id, case_id, label, split, site`", columns_of)
        text += f"\n## What the table says\n\n{NOTES[parameters.output]}\n"
    (folder / README).write_text(text, encoding="utf-8")
    record = json.dumps(parameters.record, indent=2) + "\n"
    (folder / RECORD).write_text(record, encoding="utf-8")


def truth_of(label: str) -> str:
    """File with the tiles that carry one of the labels."""
    return f"tile_truth_{label}.parquet"


def _counts(values: Sequence[str], order: Sequence[str]) -> str:
    count = Counter(values)
    return ", ".join(f"{count[name]} {name}" for name in order if count[name])


def _is_made(out: Path, parameters: Parameters, plans: list[PlannedSlide]) -> bool:
    """Whether ``out`` holds this cohort; raises an error if it holds anything else."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    elsewhere = "choose another folder, or delete this one"
    try:
        found = read_json(out / RECORD)
    except (OSError, ValueError):
        raise FociError(out, "exists and is not a FOCI demo", elsewhere) from None
    if found != parameters.record:
        raise FociError(out, f"holds a demo with other parameters ({found})", elsewhere)
    names = [COHORT, TRUTH, README, *(f"{FEATURES}/{plan.slide_id}.h5" for plan in plans)]
    missing = [name for name in names if not (out / name).is_file()]
    if missing:
        what = f"is a demo with {len(missing)} missing files (first: {missing[0]})"
        raise FociError(out, what, "delete the folder and make it again")
    return True
