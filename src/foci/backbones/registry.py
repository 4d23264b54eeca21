"""Registries of backbone classes (by stored name) and of presets (by the name to create)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from foci.backbones.base import Backbone, Objective
from foci.errors import FociError
from foci.registry import Registry

B = TypeVar("B", bound=type[Backbone])
Loss = TypeVar("Loss", bound=type[Objective])

ARCHITECTURES: Registry[type[Backbone]] = Registry("backbone architecture")
"""Classes by the name that ``backbone.json`` stores."""


@dataclass(frozen=True)
class Preset:
    """A backbone class with constructor arguments."""

    architecture: type[Backbone]
    widths: dict[str, Any]


PRESETS: Registry[dict[str, Preset]] = Registry("backbone")
"""Presets by classifier name, then by preset name."""


def architecture(name: str) -> Callable[[B], B]:
    """Class decorator that registers a backbone under the name stored with its weights."""

    def decorate(cls: B) -> B:
        ARCHITECTURES.add(name, cls)
        cls.architecture = name
        return cls

    return decorate


def objective_of(*classes: type[Backbone]) -> Callable[[Loss], Loss]:
    """Class decorator that makes an objective the one that these backbones are trained with."""

    def decorate(objective: Loss) -> Loss:
        for cls in classes:
            cls.objective_type = objective
        return objective

    return decorate


def preset(name: str, preset_name: str, cls: type[Backbone], **widths: Any) -> None:
    """Register what ``create(name, preset=preset_name)`` makes."""
    if name not in PRESETS:
        PRESETS.add(name, {})
    PRESETS[name][preset_name] = Preset(cls, widths)


def available() -> tuple[str, ...]:
    """Names of all classifiers that :func:`create` can make, sorted."""
    return tuple(sorted(PRESETS))


def presets(name: str) -> tuple[str, ...]:
    """Names of a classifier's presets."""
    return tuple(PRESETS[name])


def create(
    name: str, preset: str = "paper", *, d_in: int, n_classes: int, **widths: Any
) -> Backbone:
    """Create a classifier with random weights, one of :func:`available`.

    The preset is ``"paper"`` (widths that reproduce the paper's parameter counts) or
    ``"official"`` (the authors' published architecture); some have more. ``widths`` are constructor
    arguments that replace the preset's.

    >>> from foci import backbones
    >>> model = backbones.create("abmil", d_in=1536, n_classes=2)
    >>> sum(p.numel() for p in model.parameters())
    492291
    """
    table = PRESETS[name]
    if preset not in table:
        raise FociError(name, f"has no preset {preset!r}", f"choose one of {', '.join(table)}")
    if n_classes < 2:
        what, fix = f"is {n_classes}", "give 2 or more: one logit u is the two [0, u]"
        raise FociError("n_classes", what, fix)
    chosen = table[preset]
    try:
        return chosen.architecture(d_in=d_in, n_classes=n_classes, **{**chosen.widths, **widths})
    except TypeError as error:
        raise FociError(f"{name} ({preset})", str(error), "see its documented widths") from error
