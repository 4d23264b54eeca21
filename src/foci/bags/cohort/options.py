"""The options that say which slides a command reads: one set for all commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveFloat, PositiveInt

from foci.bags.cohort.cohort import Cohort
from foci.bags.prefilter import N_CAP


class CohortOptions(BaseModel):
    """Where the slides of a cohort are, and how to read them.

    Attributes:
        features: Folder of feature files.
        labels: Label table, if there is one.
        splits: CLAM's ``splits_k.csv``, a folder of these, or a table of ``slide_id`` and
            ``split``.
        slide_table: STAMP's slide table.
        label_column: Column that holds the label.
        fold: Fold of a folder of splits, or of a Patho-Bench table.
        only_classes: Classes whose slides are kept.
        exclude_class: Classes whose slides are left out.
        allow_patient_overlap: Go on where a patient is in two splits.
        classes: Class names in the model's order; None for the model's own, or alphabetical order.
        layout: Feature layout, or ``"auto"``.
        mpp: Micrometres per level-0 pixel.
        n_cap: Most tiles per bag; None for the model's own, or 1024.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    features: Path
    labels: Path | None = None
    splits: Path | None = None
    slide_table: Path | None = None
    label_column: str | None = None
    fold: NonNegativeInt | None = None
    only_classes: tuple[str, ...] | None = None
    exclude_class: tuple[str, ...] | None = None
    allow_patient_overlap: bool | None = None
    classes: tuple[str, ...] | None = None
    layout: str = "auto"
    mpp: PositiveFloat | None = None
    n_cap: PositiveInt | None = None

    def read(self, *, n_cap: int | None = N_CAP, classes: Sequence[str] = ()) -> Cohort:
        """Read the cohort; see :meth:`foci.bags.Cohort.read`.

        Args:
            n_cap: Most tiles per bag if the options do not say: what the model was trained with.
            classes: Class names if the options do not give them: those of the model.
        """
        cohort = Cohort.read(
            self.features,
            self.labels,
            splits=self.splits,
            slide_table=self.slide_table,
            label_column=self.label_column,
            fold=self.fold,
            only_classes=self.only_classes,
            exclude_class=self.exclude_class,
            allow_patient_overlap=bool(self.allow_patient_overlap),
            layout=self.layout,
            n_cap=self.n_cap or n_cap,
            mpp=self.mpp,
        )
        names = self.classes or classes
        return cohort.with_classes(names) if names else cohort
