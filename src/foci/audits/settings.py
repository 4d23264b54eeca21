"""Settings of an audit, validated before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
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

from foci.audits.profiles import FOCI, PROFILES
from foci.errors import FociError
from foci.rankings import RANKINGS
from foci.reveal import K_MAX, KAPPA
from foci.selectors import recipe, vary
from foci.selectors.recipes import SelectorRecipe, Target

View = Literal["prediction", "label"]
"""Which class is the target: the one predicted on the full bag, or the label."""

KAPPAS = (0.7, 0.8, 0.9, 0.95)
"""Confidences of the paper's sensitivity table."""

RELATIVE = 0.95
"""Share of the full bag's own confidence that the relative form of MSK asks for."""


class AnalysisSettings(Protocol):
    """Settings that turn stored curves into numbers."""

    @property
    def kappa(self) -> float:
        """Operating confidence."""

    @property
    def kappas(self) -> tuple[float, ...]:
        """Thresholds at which the answers are repeated."""

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


Share = Annotated[float, Field(gt=0, lt=1)]
_GIVEN = ("selector", "seed")
"""Options of rankings that an audit provides itself."""


class AuditSettings(BaseModel):
    r"""All settings that decide the numbers of an audit, apart from model and cohort.

    Attributes:
        profile: A name of :data:`foci.audits.profiles.PROFILES`: default values of the other
            settings. Whatever is given wins over it.
        rankings: Names of :func:`foci.rankings.available`, in the order of the tables.
        recipe: How the selector is fitted: a name of :data:`foci.selectors.RECIPES`.
        recipe_settings: What replaces settings of the recipe, by dotted name.
        choose_by: What chooses the epoch of the selector, on the validation slides.
        fit_target: The class that the selector is trained to support; None for the recipe's own,
            or the prediction where slides to fit on have no label. A run stores which it was.
        target: The view that stands first in tables. The answers always rest on the prediction.
        kappa: Operating confidence :math:`\kappa`.
        kappas: Confidences that tables may be read at; ``kappa`` is always among them.
            Probabilities close to one of them are computed in float64.
        k_max: Largest reveal count.
        counts: Reveal counts; None for every count up to ``k_max``. A slide with fewer tiles ends
            at all of them.
        deletion: Deletion counts whose mean drops are reported; a slide has those below its number
            of tiles.
        dense: Whether every count up to ``k_max`` is revealed and deleted under every ranking, and
            each selector seed is a ranking too. False spends counts where they change an answer;
            None does so for classifiers without a closed form.
        every_count: Whether every count is revealed (not deleted) also where counts are spared.
        deletion_orders: Number of random orders whose tiles are deleted too; all if dense.
        seeds: One selector is fitted per seed.
        seeds_as: What the ranking ``selector`` is: the mean rank of a tile over the seeds, or each
            seed on its own, with numbers averaged over the seeds as in the paper.
        random_orders: Number of random orders in the control band.
        split: The split to audit.
        block: Slides per file of partial results; a killed run loses at most one block.
        memory_gb: Gigabytes of embedded bags to keep in memory while a selector is fitted.
        n_boot: Bootstrap draws.
        level: Coverage of the intervals.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    profile: str = FOCI
    rankings: tuple[str, ...] = ("native", "evidence", "selector", "random")
    recipe: str = "default"
    recipe_settings: dict[str, Any] = {}
    choose_by: Literal["aukc", "loss"] = "aukc"
    fit_target: Target | None = None
    target: View = "prediction"
    kappa: Share = KAPPA
    kappas: tuple[Share, ...] = Field(default=KAPPAS, validate_default=True)
    k_max: PositiveInt = K_MAX
    counts: tuple[PositiveInt, ...] | None = None
    deletion: tuple[PositiveInt, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    dense: bool | None = None
    every_count: bool = False
    deletion_orders: NonNegativeInt = 3
    seeds: tuple[NonNegativeInt, ...] = (0, 1, 2)
    seeds_as: Literal["mean-rank", "each"] = "mean-rank"
    random_orders: PositiveInt = 10
    split: str = "test"
    block: PositiveInt = 32
    memory_gb: NonNegativeFloat = 1.0
    n_boot: PositiveInt = 2000
    level: Share = 0.95

    @property
    def fits_selectors(self) -> bool:
        """Whether the selector is among the rankings."""
        return "selector" in self.rankings

    @property
    def plan(self) -> SelectorRecipe:
        """The selector's recipe, with ``recipe_settings`` applied."""
        return vary(recipe(self.recipe), self.recipe_settings)

    @property
    def fitted_for(self) -> Target:
        """The class that the selector is trained to support: given, or the recipe's own."""
        return self.fit_target or self.plan.target

    @model_validator(mode="before")
    @classmethod
    def _of_the_profile(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        name = values.get("profile", FOCI)
        if not isinstance(name, str):
            raise FociError("profile", f"cannot be {name!r}", f"choose {' or '.join(PROFILES)}")
        return {**PROFILES[name], **values}

    @field_validator("kappas")
    @classmethod
    def _with_kappa(cls, kappas: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        own = {info.data["kappa"]} if "kappa" in info.data else set()
        return tuple(sorted({*kappas} | own))

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


def as_stored(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as read from a folder; what an earlier FOCI did not store is what it did.

    It fitted the selector for the view that stands first, settled one confidence in float64,
    revealed every count and ranked by each selector seed.
    Its ``margin`` belonged to a verdict that is gone.

    >>> as_stored({"target": "label", "kappa": 0.8})
    {'fit_target': 'label', 'kappas': (0.8,), 'seeds_as': 'each', 'every_count': True, ...}
    """
    then = {
        "fit_target": values.get("target"),
        "kappas": (values.get("kappa", KAPPA),),
        "seeds_as": "each",
        "every_count": values.get("counts") is None,
    }
    return {**then, **{name: value for name, value in values.items() if name != "margin"}}


def _distinct(where: str, values: tuple[Any, ...]) -> None:
    if not values:
        raise FociError(where, "are none", "give at least one")
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise FociError(where, f"name {twice[0]!r} twice", "name each once")
