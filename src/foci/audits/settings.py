"""Settings of an audit, validated before anything is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from foci.audits.profiles import FOCI, KAPPAS, PAPER, PROFILES, STORED, AnalysisSettings, View
from foci.errors import FociError
from foci.reveal import K_MAX, KAPPA
from foci.selectors.fitting import ChooseBy, Target

if TYPE_CHECKING:
    from foci.rankings import RequestedRanking
    from foci.selectors.recipes import SelectorRecipe

__all__ = [
    "AUTO",
    "NATIVE",
    "RELATIVE",
    "AnalysisSettings",
    "AuditSettings",
    "Kappa",
    "Seed",
    "Share",
    "View",
]

Kappa = float | Literal["relative"]
"""A confidence, or ``"relative"``: see :data:`RELATIVE`."""

RELATIVE: Literal["relative"] = "relative"
"""Given as kappa: keep kappa, and give the answers relative to each slide's confidence as well."""


NATIVE, AUTO = "native", "auto"
Seed = Annotated[int, Field(ge=0, lt=2**31)]
"""As the column ``seed`` of the stored curves holds it."""

Share = Annotated[float, Field(gt=0, lt=1)]


class AuditSettings(BaseModel):
    r"""All settings that decide the numbers of an audit, apart from model and cohort.

    Attributes:
        profile: A name of :data:`foci.audits.profiles.PROFILES`: default values of the other
            settings. Whatever is given wins over it.
        rankings: Names of :func:`foci.rankings.available`, or ``from-file=PATH``, in their order.
        map: ``from-file=PATH``: the map that takes the place of the native ranking; None for the
            classifier's own.
        recipe: How the selector is fitted: a name of :data:`foci.selectors.RECIPES`.
        recipe_settings: What replaces settings of the recipe, by dotted name.
        choose_by: What chooses the epoch of the selector, on the validation slides; None for what
            the recipe says. A run stores which it was.
        fit_target: The class that the selector is trained to support; None for the recipe's own,
            or the prediction where slides to fit on have no label. A run stores which it was.
        readout: The ranking that answers "which tiles?" where it is better than the native one:
            ``"auto"`` for the one that won on the validation slides, which a run stores.
        target: The view that stands first in tables. The answers always rest on the prediction.
        kappa: Operating confidence :math:`\kappa`; ``"relative"`` is ``relative=True`` instead.
        kappas: Confidences that tables may be read at; ``kappa`` is always among them.
            Probabilities close to one of them are computed in float64.
        relative: Whether the answers are also given at shares of each slide's own full-bag
            confidence; where fewer than a third of the slides are decided, they are in any case.
        k_max: Largest reveal count.
        deletion: Deletion counts with reported mean drops; a slide has those below its tiles.
        dense: Whether every count up to ``k_max`` is revealed and deleted under every order, and
            each selector seed is a ranking too. Otherwise :mod:`foci.audits.compute.counts` says
            which counts are computed for which classifier.
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
    rankings: tuple[str, ...] = (NATIVE, "evidence", "selector", "random")
    map: str | None = None
    recipe: str = "default"
    recipe_settings: dict[str, Any] = {}
    choose_by: ChooseBy | None = None
    fit_target: Target | None = None
    readout: str = AUTO
    target: View = "prediction"
    kappa: Share = KAPPA
    kappas: tuple[Share, ...] = Field(default=KAPPAS, validate_default=True)
    relative: bool = False
    k_max: PositiveInt = K_MAX
    deletion: tuple[PositiveInt, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    dense: bool = False
    seeds: tuple[Seed, ...] = (0, 1, 2)
    seeds_as: Literal["mean-rank", "each"] = "mean-rank"
    random_orders: Annotated[int, Field(ge=1, le=10_000)] = 10
    split: str = "test"
    block: PositiveInt = 32
    memory_gb: NonNegativeFloat = 1.0
    n_boot: Annotated[int, Field(ge=1, le=1_000_000)] = 2000
    level: Share = 0.95

    @property
    def fits_selectors(self) -> bool:
        """Whether the selector is among the rankings."""
        return "selector" in self.rankings

    @property
    def reveals_every_count(self) -> bool:
        """Whether no count is left out on insertion: if dense, and for the paper's tables."""
        return self.dense or self.profile == PAPER

    @property
    def requested(self) -> tuple[RequestedRanking, ...]:
        """The rankings, a file in the place of the native one if there is a map."""
        from foci.rankings import requested

        own = tuple(requested(text) for text in self.rankings)
        if self.map is None:
            return own
        chosen = replace(requested(self.map), name=NATIVE)
        return tuple(chosen if one.name == NATIVE else one for one in own)

    @property
    def map_files(self) -> dict[str, Path]:
        """Score files by the name of their ranking."""
        return {one.name: one.path for one in self.requested if one.path is not None}

    @property
    def plan(self) -> SelectorRecipe:
        """The selector's recipe, with ``recipe_settings`` applied."""
        from foci.selectors import recipe, vary

        return vary(recipe(self.recipe), self.recipe_settings)

    @property
    def fitted_for(self) -> Target:
        """The class that the selector is trained to support: given, or the recipe's own."""
        return self.fit_target or self.plan.target

    @property
    def chosen_by(self) -> ChooseBy:
        """What chooses the epoch of the selector: given, or the recipe's own."""
        return self.choose_by or self.plan.choose_by

    @model_validator(mode="before")
    @classmethod
    def _of_the_profile(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        name = values.get("profile", FOCI)
        if not isinstance(name, str):
            raise FociError("profile", f"cannot be {name!r}", f"choose {' or '.join(PROFILES)}")
        if values.get("kappa") == RELATIVE:
            rest = {name: value for name, value in values.items() if name != "kappa"}
            values = {**rest, "relative": True}
        return {**PROFILES[name], **values}

    @field_validator("kappas")
    @classmethod
    def _with_kappa(cls, kappas: tuple[float, ...], info: ValidationInfo) -> tuple[float, ...]:
        own = {info.data["kappa"]} if "kappa" in info.data else set()
        return tuple(sorted({*kappas} | own))

    @field_validator("rankings")
    @classmethod
    def _check_rankings(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.context == STORED:
            return names
        from foci.rankings import requested

        every = [requested(name) for name in names]
        _distinct("rankings", tuple(one.name for one in every))
        return tuple(one.text for one in every)

    @field_validator("map")
    @classmethod
    def _check_map(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is None or info.context == STORED:
            return text
        from foci.rankings import requested

        if requested(text).path is None:
            raise FociError("map", f"cannot be {text!r}", "give a file: from-file=PATH")
        return requested(text).text

    @field_validator("seeds")
    @classmethod
    def _check_seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        return _distinct("seeds", seeds)

    @field_validator("deletion")
    @classmethod
    def _check_deletion(cls, counts: tuple[int, ...]) -> tuple[int, ...]:
        if not counts or any(b <= a for a, b in pairwise(counts)):
            raise FociError("deletion", f"cannot be {list(counts)}", "give counts that increase")
        return counts

    @model_validator(mode="after")
    def _check_combination(self, info: ValidationInfo) -> AuditSettings:
        if info.context == STORED:
            return self
        if self.map is not None and NATIVE not in self.rankings:
            what = "takes the place of the native ranking, which is not among the rankings"
            raise FociError("map", what, "add native to the rankings")
        if self.readout not in (AUTO, *(one.name for one in self.requested)):
            raise FociError("readout", f"{self.readout!r} is not run", "add it to the rankings")
        if self.fits_selectors and self.split in ("train", "val"):
            what = f"{self.split!r} is what the selector is fitted on"
            raise FociError("split", what, "audit another split, or leave the selector out")
        _ = self.plan  # refuses settings that the recipe does not have
        return self


def _distinct(where: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise FociError(where, "are none", "give at least one")
    twice = [value for value in values if values.count(value) > 1]
    if twice:
        raise FociError(where, f"name {twice[0]!r} twice", "name each once")
    return values
