"""Fits that take no time, and what came out of them."""

from collections.abc import Callable
from typing import Any, get_args

import pytest

from foci.backbones import fingerprint
from foci.selectors import ChooseBy, Selector, SelectorRecipe, recipe, vary

PER_CLASS: dict[str, Any] = {
    "class_conditional": True,
    "width": 256,
    "sites": ("attention", "feature"),
    "budget.kind": "octaves",
    "budget.k_max": 32,
    "weights.budget": 0.0,
}


def short(name: str, epochs: int = 2, **changes: Any) -> SelectorRecipe:
    settings = {"schedule.epochs": epochs, "schedule.warmup": 1}
    return vary(recipe(name), {**settings, **changes})


def same(a: Selector, b: Selector) -> bool:
    return fingerprint(a.head) == fingerprint(b.head)


def per_class(epochs: int = 2, **changes: Any) -> SelectorRecipe:
    """The paper's losses on a head with one score per class, at the attention where there is one.

    K is drawn, so that bags of a few tiles drop some.
    """
    return short("paper-ste", epochs, **{**PER_CLASS, **changes})


def judge_by(patch: pytest.MonkeyPatch, function: Callable[[Selector], float]) -> None:
    """Let a function choose the epoch, whatever criterion is named."""
    made = dict.fromkeys(get_args(ChooseBy), lambda bags, val: function)
    patch.setattr("foci.selectors.fitting.CRITERIA", made)
