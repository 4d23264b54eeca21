"""The README.md of the demo folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from foci.demo.patients import CLASSES, PlannedSlide

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
