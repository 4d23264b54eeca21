"""Blocks of ``study.yaml``: a cohort, a backbone, a sweep, what is read, cost, overlays."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    field_validator,
    model_validator,
)

from foci.audits.profiles import KAPPAS
from foci.audits.settings import Seed, Share
from foci.bags.cohort.options import CohortOptions
from foci.errors import FociError


def check_names(what: str, values: Any, known: Any) -> Any:
    """Refuse names that are unknown, with the nearest known one.

    >>> check_names("a sweep", {"recips": []}, ["recipes", "vary"])
    Traceback (most recent call last):
    foci.errors.FociError: recips: is not a setting of a sweep; did you mean 'recipes'?
    """
    for name in values if isinstance(values, dict) else ():
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise FociError(str(name), f"is not a setting of {what}", fix)
    return values


class CohortEntry(CohortOptions):
    """A cohort: where its slides are, as for ``foci audit``, and what is particular to it.

    Attributes:
        folds: Folds of a ``splits/`` folder: a list, or ``"all"``, which is also what None means
            where the folder has several. Their results are pooled as those of seeds are.
        split_seed: Seed of the patient split, if no table gives one; the same for all seeds.
        objective: Settings of a backbone's own objective on this cohort, by backbone.
    """

    folds: tuple[NonNegativeInt, ...] | Literal["all"] | None = None
    split_seed: NonNegativeInt = 0
    objective: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("n_cap") is not None:
            raise FociError("n_cap", "is given for one cohort", "give it once, for the study")
        return check_names("a cohort", values, list(cls.model_fields))


class BackboneEntry(BaseModel):
    """A classifier to train, or checkpoints that are ready.

    Attributes:
        architecture: One of :func:`foci.backbones.available`; None for the entry's own name.
        family: Shown in tables, ``group/kind``.
        preset: Widths of the classifier.
        widths: Constructor arguments that replace the preset's.
        training: Hyperparameters that replace those of its training preset.
        models: Ready-made checkpoints by cohort and seed; ``{fold}`` in a path is the fold.
        model_options: What the tensors of a checkpoint do not show.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    architecture: str | None = None
    family: str = ""
    preset: str = "paper"
    widths: dict[str, Any] = {}
    training: dict[str, Any] = {}
    models: dict[str, dict[Seed, Path]] = {}
    model_options: dict[str, Any] = {}

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        return check_names("a backbone", values, list(cls.model_fields))

    @field_validator("training")
    @classmethod
    def _no_seed(cls, training: dict[str, Any]) -> dict[str, Any]:
        if "seed" in training:
            raise FociError("training.seed", "is given", "give the seeds of the study instead")
        return training


class Adaptive(BaseModel):
    r"""The adaptive count :math:`K_s = \max(K_\mathrm{min}, \lfloor \alpha N_s \rfloor)`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    alpha: Share = 0.03
    k_min: PositiveInt = 16


class ReadBlock(BaseModel):
    """At what thresholds and counts tables are read from stored curves.

    Attributes:
        kappas: Confidences; probabilities close to one of them are computed in float64.
        budgets: Largest reveal counts.
        selected_k: Counts of the selected-only tables.
        adaptive: The adaptive count beside them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kappas: tuple[Share, ...] = KAPPAS
    budgets: tuple[PositiveInt, ...] = (32, 256)
    selected_k: tuple[PositiveInt, ...] = (8, 16, 32, 64, 128)
    adaptive: Adaptive = Adaptive()

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        return check_names("read", values, list(cls.model_fields))


class Sweep(BaseModel):
    """Variants of the main audits: other recipes, other settings of one, other tile caps, or joint.

    Exactly one of ``recipes``, ``vary``, ``values`` and ``epochs`` is given.

    Attributes:
        recipes: Names of selector recipes; each is a variant with its own fit.
        vary: Values of the recipe's settings by dotted name; each value is a variant.
        recipe: The recipe that ``vary`` changes; None for the study's.
        values: Other tile caps (``n_cap``) for the audit of the main selector.
        refit: Whether the selector is fitted with the other cap, too.
        epochs: Epochs of joint training of selector and classifier.
        audit: Whether the variants are audited, or only fitted.
        cohorts: Where; None for all.
        backbones: Of which; None for all.
        seeds: With which; None for all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipes: tuple[str, ...] = ()
    vary: dict[str, tuple[Any, ...]] = {}
    recipe: str | None = None
    values: tuple[PositiveInt, ...] = ()
    refit: bool = False
    epochs: PositiveInt | None = None
    audit: bool = True
    cohorts: tuple[str, ...] | None = None
    backbones: tuple[str, ...] | None = None
    seeds: tuple[Seed, ...] | None = None

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        return check_names("a sweep", values, list(cls.model_fields))

    @model_validator(mode="after")
    def _one_kind(self) -> Sweep:
        given = [n for n in ("recipes", "vary", "values", "epochs") if getattr(self, n)]
        if len(given) != 1:
            what = f"gives {' and '.join(given) or 'none of recipes, vary, values and epochs'}"
            raise FociError("sweep", what, "give exactly one of them")
        return self


class Efficiency(BaseModel):
    """What the cost of every backbone is measured on.

    Attributes:
        cohort: Its test slides; None for the first cohort.
        slides: How many.
        repeats: Repetitions; the median counts.
        device: Where; ``"auto"`` is a GPU if there is one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cohort: str | None = None
    slides: PositiveInt = 20
    repeats: PositiveInt = 9
    device: str = "auto"

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        return check_names("efficiency", values, list(cls.model_fields))


class Overlays(BaseModel):
    """Slides of the figure that shows the first tiles of several rankings.

    Attributes:
        cohort: Where they are.
        slides: Their names.
        top: Number of tiles.
        rankings: ``backbone/ranking``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cohort: str
    slides: tuple[str, ...]
    top: PositiveInt = 32
    rankings: Annotated[tuple[str, ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _known(cls, values: Any) -> Any:
        return check_names("overlays", values, list(cls.model_fields))
