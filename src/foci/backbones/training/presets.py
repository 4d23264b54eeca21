"""Training presets: default hyperparameters of each classifier, and the reasons for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foci.backbones.training.recipe import TrainingRecipe
from foci.configuration import configure


@dataclass(frozen=True)
class TrainingPreset:
    """Where a classifier's training departs from the defaults of :class:`TrainingRecipe`.

    Attributes:
        settings: What replaces the defaults, by dotted name.
        why: The reason.
    """

    settings: Mapping[str, Any]
    why: str


_ATTRIMIL = TrainingPreset(
    {"lr": 1e-3}, "at 2e-4 the ranking constraint drives all scores to zero first"
)
_DSMIL = TrainingPreset(
    {"lr": 1e-3}, "at 2e-4 it has not learned enough after 20 epochs: it has no projection"
)
_SUBTYPES = TrainingPreset(
    {"objective.subtyping": True}, "the classes are taken for subtypes, which exclude each other"
)
_TUMOUR_OR_NOT = TrainingPreset(
    {"objective.subtyping": False}, "one class is taken for the absence of the other"
)
_SHARED = TrainingPreset({}, "")

_ABSENCE = re.compile(
    r"(?i)(^|[\W_])(benign|control|healthy|negative|no|non|none|normal|not|without)([\W_]|$)"
)
"""A word in the name of a class that is the absence of the other one."""


def are_subtypes(classes: Sequence[str]) -> bool:
    """Whether classes exclude each other, so that a tile of one is no evidence for another.

    As in the CLAM authors' tasks: subtypes of a tumour do; tumour and normal tissue do not, because
    a tumour slide has normal tissue too. Two classes count as subtypes unless the name of one says
    that it is an absence; more than two always do.

    >>> are_subtypes(["LUAD", "LUSC"]), are_subtypes(["normal", "tumour"])
    (True, False)
    >>> are_subtypes(["benign", "malignant"]), are_subtypes(["normal", "LUAD", "LUSC"])
    (False, True)
    """
    return len(classes) > 2 or not any(_ABSENCE.search(name) for name in classes)


def training_preset(name: str, classes: Sequence[str]) -> TrainingPreset:
    """The preset of a classifier, for a cohort with these classes.

    All but ``attrimil``, ``clam-sb``, ``clam-mb`` and ``dsmil`` have the shared defaults.
    """
    if name.startswith("clam-"):
        return _SUBTYPES if are_subtypes(classes) else _TUMOUR_OR_NOT
    return {"attrimil": _ATTRIMIL, "dsmil": _DSMIL}.get(name, _SHARED)


def training_recipe(
    name: str, classes: Sequence[str], given: Mapping[str, Any] | None = None
) -> tuple[TrainingRecipe, str]:
    """The recipe that a classifier is trained with, and one line about its preset.

    Args:
        name: As in :func:`foci.backbones.create`.
        classes: Class names of the cohort.
        given: Settings that win over the preset, by name; ``objective`` holds its own.

    >>> recipe, line = training_recipe("clam-sb", ["A", "B"], {"objective": {"bag_weight": 0.5}})
    >>> recipe.objective
    {'subtyping': True, 'bag_weight': 0.5}
    >>> training_recipe("attrimil", ["A", "B"], {"lr": 2e-4})[1]
    'training preset of attrimil: lr=0.0002 as given, not 0.001'
    """
    preset, given = training_preset(name, classes), dict(given or {})
    wanted = _flat(given)
    flat = {**preset.settings, **wanted}
    objective = {k.partition(".")[2]: v for k, v in flat.items() if "." in k}
    plain = {k: v for k, v in flat.items() if "." not in k}
    recipe = configure(TrainingRecipe, {**plain, "objective": objective})
    shown = [
        f"{key}={wanted[key]} as given, not {value}"
        if key in wanted
        else f"{key}={value} ({preset.why})"
        for key, value in preset.settings.items()
    ]
    return recipe, f"training preset of {name}: {', '.join(shown) or 'the shared defaults'}"


def _flat(given: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in given.items() if name != "objective"}
    return plain | {f"objective.{k}": v for k, v in given.get("objective", {}).items()}
