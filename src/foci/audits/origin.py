"""Where a model and its cohort are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveFloat, PositiveInt


class Origin(BaseModel):
    """What has to be known to load a classifier and read its slides.

    Attributes:
        model: Folder of ``foci train``, or a checkpoint file.
        model_options: What the tensors of a checkpoint do not show: ``aligned``, ...
        features: Folder of feature files.
        labels: Label table, if there is one.
        splits: CLAM's ``splits_k.csv``.
        slide_table: STAMP's slide table.
        label_column: Column that holds the label.
        fold: Fold of a Patho-Bench table.
        classes: Class names in the model's order; default is what the model folder says.
        layout: Feature layout.
        mpp: Micrometres per level-0 pixel.
        n_cap: Most tiles per bag; None for the model's own, or 1024.
        split_seed: Of the patient split, if the table has none; None for the model's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Path
    model_options: dict[str, Any] = {}
    features: Path
    labels: Path | None = None
    splits: Path | None = None
    slide_table: Path | None = None
    label_column: str | None = None
    fold: NonNegativeInt | None = None
    classes: tuple[str, ...] | None = None
    layout: str = "auto"
    mpp: PositiveFloat | None = None
    n_cap: PositiveInt | None = None
    split_seed: NonNegativeInt | None = None
