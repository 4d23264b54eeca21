"""Settings of an audit, validated before any file is read."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, Protocol

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from foci.errors import FociError
from foci.rankings import RANKINGS
from foci.reveal import K_MAX, KAPPA
from foci.selectors import recipe, vary
from foci.selectors.recipes import SelectorRecipe, Target

View = Literal["prediction", "label"]
"""Which class is the target: the one predicted on the full bag, or the label."""

VIEWS: tuple[View, ...] = ("prediction", "label")


class AnalysisSettings(Protocol):
    """Settings that turn stored curves into numbers."""

    @property
    def kappa(self) -> float:
        """Operating confidence."""

    @property
    def k_max(self) -> int:
        """Largest reveal count; a slide that never reaches ``kappa`` counts as ``k_max``."""

    @property
    def target(self) -> View:
        """The view that is shown first."""

    @property
    def deletion(self) -> tuple[int, ...]:
        """Deletion counts."""

    @property
    def n_boot(self) -> int:
        """Bootstrap draws."""

    @property
    def level(self) -> float:
        """Coverage of the intervals."""

    @property
    def margin(self) -> float:
        """Room for improvement, in tiles, that the verdict treats as none."""


Share = Annotated[float, Field(gt=0, lt=1)]
_GIVEN = ("selector", "seed")
"""Options of rankings that an audit provides itself."""


class AuditSettings(BaseModel):
    r"""All settings that decide the numbers of an audit, apart from model and cohort.

    Attributes:
        rankings: Names of :func:`foci.rankings.available`, in the order of the tables.
        recipe: How the selector is fitted: a name of :data:`foci.selectors.RECIPES`.
        recipe_settings: Settings of the recipe to replace, by dotted name.
        choose_by: Criterion that chooses the selector's epoch on the validation slides.
        target: The class that the selector is trained to support, and the view that comes first
            in tables. The verdict always rests on the prediction view.
        kappa: Operating confidence :math:`\kappa`.
        k_max: Largest reveal count.
        counts: Reveal counts; None for every count up to ``k_max``. The last count of a slide
            with fewer tiles is its number of tiles.
        deletion: Deletion counts; a slide has those below its number of tiles.
        seeds: One selector is fitted per seed.
        random_orders: Number of random orders in the control band.
        split: The split to audit.
        block: Slides per file of partial results; a killed run loses at most one block.
        memory_gb: Gigabytes of embedded bags to keep in memory while a selector is fitted.
        n_boot: Bootstrap draws.
        level: Coverage of the intervals.
        margin: Room for improvement, in tiles, that the verdict treats as none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rankings: tuple[str, ...] = ("native", "selector", "random")
    recipe: str = "default"
    recipe_settings: dict[str, Any] = {}
    choose_by: Literal["aukc", "loss"] = "aukc"
    target: Target = "prediction"
    kappa: Share = KAPPA
    k_max: PositiveInt = K_MAX
    counts: tuple[PositiveInt, ...] | None = None
    deletion: tuple[PositiveInt, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    seeds: tuple[NonNegativeInt, ...] = (0, 1, 2)
    random_orders: PositiveInt = 10
    split: str = "test"
    block: PositiveInt = 32
    memory_gb: NonNegativeFloat = 1.0
    n_boot: PositiveInt = 2000
    level: Share = 0.95
    margin: NonNegativeFloat = 0.5

    @property
    def fits_selectors(self) -> bool:
        """Whether the selector is among the rankings."""
        return "selector" in self.rankings

    @property
    def plan(self) -> SelectorRecipe:
        """The selector's recipe, with ``recipe_settings`` applied."""
        return vary(recipe(self.recipe), self.recipe_settings)

    @field_validator("rankings")
    @classmethod
    def _check_rankings(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        _distinct("rankings", names)
        for name in names:
            for option, parameter in RANKINGS[name].options.items():
                if parameter.default is parameter.empty and option not in _GIVEN:
                    what = f"needs the option {option!r}, which an audit does not give"
                    raise FociError(f"ranking {name!r}", what, "leave it out")
        return names

    @field_validator("seeds")
    @classmethod
    def _check_seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        _distinct("seeds", seeds)
        return seeds

    @field_validator("counts", "deletion")
    @classmethod
    def _check_counts(
        cls, counts: tuple[int, ...] | None, info: ValidationInfo
    ) -> tuple[int, ...] | None:
        if counts is not None and (not counts or any(b <= a for a, b in pairwise(counts))):
            what = f"cannot be {list(counts)}"
            raise FociError(str(info.field_name), what, "give counts that increase")
        return counts

    @model_validator(mode="after")
    def _check_combination(self) -> AuditSettings:
        if self.counts is not None and self.counts[-1] > self.k_max:
            what = f"{self.counts[-1]} is beyond k_max = {self.k_max}"
            raise FociError("counts", what, "raise k_max or leave the count out")
        if self.fits_selectors and self.split in ("train", "val"):
            what = f"{self.split!r} is what the selector is fitted on"
            raise FociError("split", what, "audit another split, or leave the selector out")
        _ = self.plan  # refuses settings that the recipe does not have
        return self


def _distinct(where: str, values: tuple[Any, ...]) -> None:
    if not values:
        raise FociError(where, "are none", "give at least one")
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise FociError(where, f"name {twice[0]!r} twice", "name each once")
