"""Everything that ``foci train`` needs: classifier, cohort, hyperparameters, output folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from foci.backbones.training.recipe import TrainingRecipe
from foci.bags.cohort.options import CohortOptions


class TrainingConfiguration(TrainingRecipe, CohortOptions):
    """A training run, from options or from a file.

    Attributes:
        backbone: Architecture, one of :func:`foci.backbones.available`.
        labels: Label table; a classifier needs labels to learn from.
        out: Folder for the trained backbone.
        preset: Widths of the classifier.
        widths: Constructor arguments that replace the preset's.
        device: Device to train on.
    """

    backbone: str
    labels: Path
    out: Path
    preset: str = "paper"
    widths: dict[str, Any] = Field(default_factory=dict)
    device: str = "auto"

    @property
    def recipe_settings(self) -> dict[str, Any]:
        """The hyperparameters that were given; all others are the training preset's."""
        own = TrainingRecipe.model_fields.keys() & self.model_fields_set
        return {name: getattr(self, name) for name in sorted(own)}
