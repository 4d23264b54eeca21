"""Selectors: a small head that ranks the tiles of a frozen backbone, and how it is fitted."""

from foci.selectors.fitting.criterion import CRITERIA, Criterion
from foci.selectors.fitting.fit import fit
from foci.selectors.head import SelectorHead
from foci.selectors.recipes import DEFAULT, RECIPES, SelectorRecipe, recipe, vary
from foci.selectors.saved import check_free, load, save
from foci.selectors.selector import FitEpoch, FittedSelector, Selector

__all__ = [
    "CRITERIA",
    "DEFAULT",
    "RECIPES",
    "Criterion",
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
