"""Settings of an audit, validated before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import yaml
from numpy.typing import ArrayLike, NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from foci.bags import N_CAP
from foci.bags.cohort import CohortOptions
from foci.configuration import configure
from foci.errors import FociError
from foci.files.bounds import read_text, yaml_value
from foci.metrics.inputs import Integers
from foci.outputs import Output, logit
from foci.registry import Registry
from foci.reveal import K_MAX, KAPPA
from foci.selectors import ChooseBy, Target

if TYPE_CHECKING:
    from foci.rankings import RequestedRanking
    from foci.selectors.recipes import SelectorRecipe


# Defaults of settings: of FOCI and of the paper.


FOCI, PAPER = "foci", "paper"

View = Literal["prediction", "label", "class"]
"""Which class is the target: the one predicted on the full bag, or the label."""

KEPT = 32
"""Tiles that are kept for the selected-only AUC, as in the paper."""

KAPPAS = (0.7, 0.8, 0.9, 0.95)
"""Confidences of the paper's sensitivity table."""

SHARES = (0.8, 0.9, 0.95, 0.99)
"""Shares of a slide's own full-bag confidence at which the relative form is given."""

SHARE = 0.95
"""The one of them whose counts stand in every table."""


def null_counts(n_tiles: ArrayLike) -> Integers:
    """Deletion counts ``[..., 3]`` at which a ranking of N tiles meets content-free maps.

    One tile, a tenth of the tiles (of few tiles 8 or a quarter), and the geometric middle; 0 where
    there are fewer than 8.

    >>> null_counts([5, 8, 60, 200, 30_000]).tolist()
    [[0, 0, 0], [1, 1, 2], [1, 3, 8], [1, 4, 20], [1, 55, 3000]]
    """
    n = np.asarray(n_tiles, dtype=np.int64)
    last = np.maximum(n // 10, np.minimum(n // 4, 8))
    counts = np.stack([np.ones_like(last), np.rint(last**0.5).astype(int), last], axis=-1)
    return np.where(last[..., None] >= 2, counts, 0)


PROFILES: Registry[Mapping[str, Any]] = Registry("profile")
"""Settings by profile; each replaces a default, and gives way to whatever is given."""

PROFILES.add(FOCI, MappingProxyType({}))
PROFILES.add(
    PAPER,
    MappingProxyType(
        {
            "rankings": ("native", "selector", "random"),
            "recipe": "paper-ste",
            "fit_target": "label",
            "target": "label",
            "seeds": (0, 1, 2),
            "seeds_as": "each",
            "kappa": 0.9,
            "kappas": KAPPAS,
            "k_max": 256,
            "deletion": (16, 32, 64, 128, 256),
        }
    ),
)


STORED = {"stored": True}
"""Context to validate settings with that a run has stored. Their names were checked before the run,
and rankings and recipes stay unloaded: an audit folder is read without torch."""


Kappa = float | Literal["relative"]
"""A confidence, or ``"relative"``: see :data:`RELATIVE`."""

RELATIVE: Literal["relative"] = "relative"
"""Given as kappa: keep kappa, and give the answers relative to each slide's confidence as well."""


NATIVE, AUTO = "native", "auto"
RANDOM, EVIDENCE, SELECTOR, MINIMAL = "random", "evidence", "selector", "minimal"
FITTING_SETTINGS = ("recipe", "recipe_settings", "choose_by", "fit_target", "seeds", "seeds_as")
"""Settings of the selector: whoever gives one wants a selector."""

Seed = Annotated[int, Field(ge=0, lt=2**31)]
"""As the column ``seed`` of the stored curves holds it."""

Share = Annotated[float, Field(gt=0, lt=1)]


class AuditSettings(BaseModel):
    r"""All settings that decide the numbers of an audit, apart from model and cohort.

    Attributes:
        profile: A name of :data:`foci.audits.settings.PROFILES`: default values of the other
            settings. Whatever is given wins over it.
        rankings: Names of :func:`foci.rankings.available`, or ``from-file=PATH``, in their order.
        map: ``NAME=from-file:PATH``, or ``from-file=PATH`` for the file's own name: the map that
            takes the place of the native ranking; None for the classifier's own.
        fit: Fit a selector by default even where ``minimal`` is proven to be the best order.
        recipe: How the selector is fitted: a name of :data:`foci.selectors.RECIPES`.
        recipe_settings: What replaces settings of the recipe, by dotted name.
        choose_by: What chooses the epoch of the selector, on the validation slides; None for what
            the recipe says. A run stores which it was.
        fit_target: The class that the selector is trained to support; None for the recipe's own,
            or the prediction where slides to fit on have no label. A run stores which it was.
        readout: The ranking that answers "which tiles?" where it is better than the native one:
            ``"auto"`` for ``minimal`` where it is proven to be the best, else for the one that won
            on the validation slides; a run stores which it was.
        target: The view that stands first in tables. The answers always rest on the prediction.
        output: What the model's outputs are, see :mod:`foci.outputs`; None for what its file says,
            and else for classes.
        cut: Where a risk or a number is cut into two sides; None for the median of the validation
            slides. A run stores which it was.
        tau: Distance from the cut that counts as clear; None for half the interquartile range of
            the validation slides. A run stores which it was.
        scale: Spread of a risk or a number, which areas without a threshold are measured in; None
            for the interquartile range of the validation slides. A run stores which it was.
        label_names: Of a model of labels. A run stores which they were.
        target_class: The label that is followed, where outputs are independent labels; of classes
            one that is followed on every slide, whatever is predicted. The answers then rest on
            the slides of which the model predicts it.
        kappa: Operating confidence :math:`\kappa`; ``"relative"`` is ``relative=True`` instead.
        kappas: Confidences that tables may be read at; ``kappa`` is always among them.
            Probabilities close to one of them are computed in float64.
        relative: Whether the answers are also given at shares of each slide's own full-bag
            confidence; where fewer than 70 % of the slides are decided, they are in any case.
        k_max: Largest reveal count: of MSK and the areas. Deletion and decisive K follow the slide
            to its last tile but one; by the profile of the paper, they end here too.
        deletion: Deletion counts with reported mean drops; a slide has those below its tiles.
        dense: Whether every count up to ``k_max`` is revealed and deleted under every order, and
            each selector seed is a ranking too. Otherwise :mod:`foci.audits.jobs` says
            which counts are computed for which classifier.
        seeds: One selector is fitted per seed.
        seeds_as: What the ranking ``selector`` is: the mean rank of a tile over the seeds, or each
            seed on its own, with numbers averaged over the seeds as in the paper.
        random_orders: Number of random orders in the control band.
        null_maps: Number of content-free maps that a believable map has to beat; for a classifier
            without a closed form at most 19, on a sample of the slides. Without any, no map is
            believed.
        split: The split to audit.
        block: Slides per file of partial results; a killed run loses at most one block.
        memory_gb: Gigabytes of embedded bags to keep in memory while a selector is fitted.
        n_boot: Bootstrap draws.
        level: Coverage of the intervals.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    profile: str = FOCI
    rankings: tuple[str, ...] = (NATIVE, EVIDENCE, SELECTOR, RANDOM)
    map: str | None = None
    fit: bool = False
    recipe: str = "default"
    recipe_settings: dict[str, Any] = {}
    choose_by: ChooseBy | None = None
    fit_target: Target | None = None
    readout: str = AUTO
    target: View = "prediction"
    output: Output | None = None
    cut: float | None = None
    tau: PositiveFloat | None = None
    scale: PositiveFloat | None = None
    label_names: tuple[str, ...] = ()
    target_class: str | None = None
    kappa: Share = KAPPA
    kappas: tuple[Share, ...] = Field(default=KAPPAS, validate_default=True)
    relative: bool = False
    k_max: PositiveInt = K_MAX
    deletion: tuple[PositiveInt, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    dense: bool = False
    seeds: tuple[Seed, ...] = (0, 1, 2)
    seeds_as: Literal["mean-rank", "each"] = "mean-rank"
    random_orders: Annotated[int, Field(ge=1, le=10_000)] = 10
    null_maps: Annotated[int, Field(ge=0, le=999)] = 139
    split: str = "test"
    block: PositiveInt = 32
    memory_gb: NonNegativeFloat = 1.0
    n_boot: Annotated[int, Field(ge=1, le=1_000_000)] = 2000
    level: Share = 0.95

    @property
    def fits_selectors(self) -> bool:
        """Whether the selector is among the rankings."""
        return SELECTOR in self.rankings

    def asked(self, classes: Sequence[str]) -> int | None:
        """Index of the class that answers are asked about; None for whatever is predicted."""
        if self.target_class is None:
            return None
        return classes.index(self.target_class)

    def followed(self, classes: Sequence[str]) -> int | None:
        """Index of the class that is followed on every slide; None for whatever is predicted."""
        return self.asked(classes) if self.output in (None, "class") else None

    @property
    def per_log_odds(self) -> float:
        """What a unit of log-odds is worth: 1 of classes, so many spreads of a risk or a number."""
        if self.tau is None:
            return 1.0
        return self.tau / logit(self.kappa) / (self.scale or 1.0)

    @property
    def drawn(self) -> dict[str, Any]:
        """How every interval over patients is drawn: arguments of :mod:`foci.metrics.stats`."""
        return {"n_boot": self.n_boot, "level": self.level}

    @property
    def tile_cap(self) -> int | None:
        """Most tiles per bag, where neither the model nor the cohort has a cap; None for all."""
        return N_CAP if self.profile == PAPER else None

    def last_deletion(self, n_tiles: int | NDArray[np.int64]) -> NDArray[np.int64]:
        """Largest count of tiles that may be deleted, and of decisive K.

        >>> [int(AuditSettings(profile=p).last_deletion(1000)) for p in (FOCI, PAPER)]
        [999, 256]
        """
        left = np.asarray(n_tiles) - 1
        return np.minimum(left, self.k_max) if self.profile == PAPER else left

    @property
    def reveals_every_count(self) -> bool:
        """Whether no count is left out on insertion: if dense, and for the paper's tables."""
        return self.dense or self.profile == PAPER

    @property
    def requested(self) -> tuple[RequestedRanking, ...]:
        """The rankings, a file in the place of the native one if there is a map."""
        from foci.rankings import requested, requested_map

        own = tuple(requested(text) for text in self.rankings)
        if self.map is None:
            return own
        chosen = requested_map(self.map)
        return tuple(chosen if one.name == NATIVE else one for one in own)

    @property
    def map_name(self) -> str:
        """Name of the map that is judged: ``native``, or what its file is called."""
        return NATIVE if self.map is None else self.map.partition("=")[0]

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
        from foci.rankings import requested_map

        return requested_map(text).map_text

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
        if self.map is not None:
            _distinct("rankings", tuple(one.name for one in self.requested))
        if self.target == "class" and self.target_class is None:
            raise FociError("target", "names no class", "give --target-class")
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


# Read the configuration of an audit from a YAML file, options and single settings.


class ModelOptions(BaseModel):
    """The classifier to load.

    Attributes:
        model: Folder of ``foci train``, or a checkpoint file.
        model_options: Constructor arguments that a checkpoint's tensors do not show (``aligned``).
        expect: Table of answers of the user's own code, which decide the options left open.
        expect_tolerance: Largest difference from them; None for the usual one.
    """

    model: Path
    model_options: dict[str, Any] = {}
    expect: Path | None = None
    expect_tolerance: PositiveFloat | None = None


class Inputs(CohortOptions, ModelOptions):
    """The classifier to load, and the cohort to read.

    Attributes:
        split_seed: Seed of the patient split, if no table gives one; None for the model's.
    """

    split_seed: NonNegativeInt | None = None

    @property
    def opening(self) -> dict[str, Any]:
        """Arguments of :func:`foci.audits.sources.open_sources` besides model and cohort."""
        names = ("model_options", "expect", "expect_tolerance", "split_seed")
        return {name: getattr(self, name) for name in names}


class AuditConfiguration(AuditSettings, Inputs):
    """Everything that ``foci audit`` needs: settings, model, cohort, output folder and device.

    Attributes:
        out: The audit folder.
        device: Device to run on.
    """

    out: Path
    device: str = "auto"

    @property
    def settings(self) -> AuditSettings:
        """The settings alone, without paths and device; fields that were not set stay unset."""
        own = {name: getattr(self, name) for name in AuditSettings.model_fields}
        return AuditSettings(**{k: v for k, v in own.items() if k in self.model_fields_set})


def read_configuration(
    file: Path | None, given: Mapping[str, Any], changes: Mapping[str, Any]
) -> AuditConfiguration:
    """Merge a YAML file, command-line options and single settings; later ones win.

    Args:
        file: YAML file, or None.
        given: Values of options; None means that the option was not given.
        changes: Settings by dotted name, such as ``recipe_settings.budget.k_max``.

    >>> given = {"model": "m", "features": "f", "out": "o", "kappa": None}
    >>> read_configuration(None, given, {"recipe_settings.schedule.epochs": 2}).recipe_settings
    {'schedule.epochs': 2}
    >>> read_configuration(None, given, {"kapa": 0.8})
    Traceback (most recent call last):
    foci.errors.FociError: kapa: is not a setting of AuditConfiguration; did you mean 'kappa'?
    """
    values = {} if file is None else read_yaml(file)
    values |= {name: value for name, value in given.items() if value is not None}
    for key, value in changes.items():
        branch, dot, leaf = key.partition(".")
        if dot and branch in ("recipe_settings", "model_options"):
            values[branch] = {**(values.get(branch) or {}), leaf: value}
        else:
            values[key] = value
    return configure(AuditConfiguration, values)


class _TwiceError(ValueError):
    """A setting is given twice."""


class _Once(yaml.SafeLoader):
    """YAML loader that refuses duplicate keys; PyYAML itself keeps the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                raise _TwiceError(f"gives {name} twice (lines {lines[name]} and {line})")
            lines[name] = line
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> dict[str, Any]:
    """Settings of a YAML file, each given once."""
    try:
        content = yaml_value(read_text(file), _Once)
    except _TwiceError as error:
        raise FociError(file, str(error), "keep one of them") from None
    except OSError as error:
        why = error.strerror or str(error)
        raise FociError(file, f"cannot be read ({why})", "check the path of --config") from None
    except ValueError as error:
        raise FociError(file, f"is not YAML ({error})", "write one setting per line") from None
    if not isinstance(content, dict):
        raise FociError(file, "holds no settings", "write one setting per line: kappa: 0.9")
    return {str(key): value for key, value in content.items()}
