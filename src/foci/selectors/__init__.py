"""Selectors: a small head that ranks the tiles of a frozen backbone, and how it is fitted.

Names that need torch are loaded on first use: settings of a stored audit are read without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from foci.registry import lazy_names

if TYPE_CHECKING:
    from foci.selectors.fitting import fit
    from foci.selectors.recipes import DEFAULT, RECIPES, SelectorRecipe, recipe, vary
    from foci.selectors.saved import check_free, load, save
    from foci.selectors.selector import FitEpoch, FittedSelector, Selector, SelectorHead

__all__ = [
    "DEFAULT",
    "RECIPES",
    "FitEpoch",
    "FittedSelector",
    "Selector",
    "SelectorHead",
    "SelectorRecipe",
    "check_free",
    "fit",
    "load",
    "recipe",
    "save",
    "vary",
]

Target = Literal["label", "prediction"]
"""The class that the kept tiles should support."""

ChooseBy = Literal["aukc", "loss", "decisive"]
"""Names of :data:`foci.selectors.criterion.CRITERIA`."""

_MODULES = {
    "fitting": ("fit",),
    "recipes": ("DEFAULT", "RECIPES", "SelectorRecipe", "recipe", "vary"),
    "saved": ("check_free", "load", "save"),
    "selector": ("FitEpoch", "FittedSelector", "Selector", "SelectorHead"),
}
_HOMES = {name: f"foci.selectors.{module}" for module, names in _MODULES.items() for name in names}

__getattr__, __dir__ = lazy_names("foci.selectors", _HOMES)
