"""Training hyperparameters: defaults, and checks; a classifier's objective may depart from them."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Mapping, Sequence
from functools import reduce
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveInt,
    create_model,
)
from torch import nn

from foci.backbones.base import PRESETS, Backbone
from foci.configuration import configure
from foci.errors import FociError
from foci.outputs import Output


class TrainingRecipe(BaseModel):
    """Hyperparameters that decide the trained weights, besides data and architecture.

    Attributes:
        epochs: Passes over the training slides, in every stage of the objective (the paper: 20).
        lr: Peak learning rate of AdamW.
        weight_decay: Of AdamW.
        schedule: ``"cosine"`` to zero over a stage, or ``"constant"``.
        batch_size: Bags per step, padded to the longest.
        clip: Largest gradient norm; 0 for none.
        balanced: Draw slides with replacement so that every class is seen equally often.
        objective: Settings of the classifier's own objective.
        seed: Of initialisation, order, dropout and masking.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: PositiveInt = 20
    lr: Annotated[float, Field(gt=0, le=1e6)] = 2e-4  # far beyond, AdamW leaves single precision
    weight_decay: NonNegativeFloat = 1e-5
    schedule: Literal["cosine", "constant"] = "cosine"
    batch_size: PositiveInt = 1
    clip: NonNegativeFloat = 5.0
    balanced: bool = False
    objective: dict[str, Any] = Field(default_factory=dict)
    seed: Annotated[int, Field(ge=0, lt=2**64)] = 0


def _departures(name: str, classes: Sequence[str], output: Output) -> tuple[dict[str, Any], str]:
    """Settings of a classifier that replace the shared defaults, by dotted name, and the reason."""
    if output == "cox":
        why = "a risk is learned by comparing the slides of one step"
        return {"batch_size": 16, "lr": 1e-3}, why
    (chosen, *_) = PRESETS[name].values()
    return chosen.architecture.objective_type.departures(classes, output)


def training_recipe(
    name: str,
    classes: Sequence[str],
    given: Mapping[str, Any] | None = None,
    output: Output = "class",
) -> tuple[TrainingRecipe, str]:
    """The recipe that a classifier is trained with, and one line about its preset.

    All but ``attrimil``, ``clam-sb``, ``clam-mb`` and ``dsmil`` have the shared defaults; risks of
    Cox are learned from 16 slides at a time. Settings that are ``given`` win over the preset;
    ``objective`` holds its own.

    >>> recipe, line = training_recipe("clam-sb", ["A", "B"], {"objective": {"bag_weight": 0.5}})
    >>> recipe.objective
    {'subtyping': True, 'bag_weight': 0.5}
    >>> training_recipe("attrimil", ["A", "B"], {"lr": 2e-4})[1]
    'training preset of attrimil: lr=0.0002 as given, not 0.001'
    """
    settings, why = _departures(name, classes, output)
    wanted = dict(given or {})
    wanted |= {f"objective.{k}": v for k, v in wanted.pop("objective", {}).items()}
    flat = {**settings, **wanted}
    objective = {k.partition(".")[2]: v for k, v in flat.items() if "." in k}
    plain = {k: v for k, v in flat.items() if "." not in k}
    recipe = configure(TrainingRecipe, {**plain, "objective": objective})
    shown = [
        f"{key}={wanted[key]} as given, not {value}" if key in wanted else f"{key}={value} ({why})"
        for key, value in settings.items()
    ]
    return recipe, f"training preset of {name}: {', '.join(shown) or 'the shared defaults'}"


def checked_widths(name: str, preset: str, widths: Mapping[str, Any]) -> dict[str, Any]:
    """Validate constructor arguments that replace a preset's: names, types and ranges.

    Integers count something and are at least 1; a dropout lies in [0, 1).

    >>> checked_widths("transmil", "paper", {"heads": 0})
    Traceback (most recent call last):
    foci.errors.FociError: heads: cannot be 0; Input should be greater than 0
    """
    chosen = PRESETS[name].get(preset)
    if chosen is None:  # refused, with the presets there are, where the classifier is created
        return dict(widths)
    hints = _hints(chosen.architecture)
    for key, hint in hints.items():
        number = _Share if key.endswith("dropout") else _Number
        hints[key] = _replaced(hint, {int: PositiveInt, float: number})
    return _checked(f"{name} ({preset})", hints, widths)


def checked_objective(backbone: Backbone, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Validate settings of the classifier's own objective: names and types."""
    if not settings:
        return {}
    hints = _hints(type(backbone.make_objective()))
    typed = {key: _replaced(hint, {float: _Number}) for key, hint in hints.items()}
    return _checked(f"the objective of {backbone.architecture}", typed, settings)


def _hints(cls: type) -> dict[str, Any]:
    """Type hints of a constructor's settings, including those that it passes on to its bases."""
    found: dict[str, Any] = {}
    for owner in cls.__mro__[: cls.__mro__.index(nn.Module)]:
        init = vars(owner).get("__init__")
        if init is None:
            continue
        parameters = inspect.signature(init).parameters.values()
        own = {
            p.name: Any if p.annotation is p.empty else p.annotation
            for p in parameters
            if p.name not in ("self", "d_in", "n_classes", "backbone")
            and p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
        }
        # One by one: the backbone's own type is often known to the type checker alone.
        hints = get_type_hints(SimpleNamespace(__annotations__=own), init.__globals__)
        found = {**hints, **found}
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    return found


def _checked(what: str, hints: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the hints have them; refuses names without a hint and values that do not fit."""
    if values and not hints:
        raise FociError(what, "has no settings", f"leave out {', '.join(values)}")
    fields: dict[str, Any] = {name: (hint, None) for name, hint in hints.items()}
    strict = ConfigDict(
        strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=(), frozen=True
    )
    model = create_model(what, __config__=strict, **fields)
    checked: dict[str, Any] = configure(model, dict(values)).model_dump(exclude_unset=True)
    return checked


def _from_text(value: Any) -> Any:
    """Number from text, because YAML reads 1e-3, which has no dot, as a string."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


_Number = Annotated[float, BeforeValidator(_from_text)]
_Share = Annotated[_Number, Field(ge=0, lt=1)]


def _replaced(hint: Any, types: Mapping[Any, Any]) -> Any:
    """The hint, or each type of a union, replaced by what ``types`` has for it."""
    if get_origin(hint) in (Union, UnionType):
        return reduce(operator.or_, (types.get(one, one) for one in get_args(hint)))
    return types.get(hint, hint)
