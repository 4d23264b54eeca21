"""Everything that decides a selector decides its key."""

import dataclasses
import functools
from typing import Any

import pytest

from foci.bags import Cohort
from foci.selectors import Selector, recipe, vary
from foci.selectors.fitting.run_key import judge, run_key
from foci.selectors.frozen import Identity

IDENTITY = Identity("abmil", "00ff", (0.5, -0.5))
PLAN = recipe("centred")


def constant(value: float) -> Any:
    return lambda selector: value


def key(cohort: Cohort, **changes: Any) -> str:
    given: dict[str, Any] = {
        "identity": IDENTITY,
        "recipe": PLAN,
        "seed": 0,
        "target": "label",
        "site": "attention",
        "train": cohort.split("train"),
        "val": cohort.split("val"),
        "criterion": None,
    }
    return run_key(**{**given, **changes})


def test_another_fit_has_another_key(cohort: Cohort) -> None:
    train, val = cohort.split("train"), cohort.split("val")
    fewer = dataclasses.replace(train, slides=train.slides[1:])
    first = dataclasses.replace(val.slides[0], label="b")
    relabelled = dataclasses.replace(val, slides=(first, *val.slides[1:]))
    keys = [
        key(cohort),
        key(cohort, identity=dataclasses.replace(IDENTITY, fingerprint="00fe")),
        key(cohort, identity=dataclasses.replace(IDENTITY, probe=(0.5, 0.5))),
        key(cohort, recipe=vary(PLAN, {"weights.suff": 0.25})),
        key(cohort, seed=1),
        key(cohort, target="prediction"),
        key(cohort, site="feature"),
        key(cohort, train=fewer),
        key(cohort, train=dataclasses.replace(train, classes=("b", "a"))),
        key(cohort, val=relabelled),
        key(cohort, criterion=constant(1.0)),
        key(cohort, criterion=constant(2.0)),
    ]
    assert len(set(keys)) == len(keys)
    assert key(cohort) == keys[0]
    assert key(cohort, criterion=constant(2.0)) == keys[-1]


class Threshold:
    def __init__(self, least: float) -> None:
        self.least = least

    def __call__(self, selector: Selector) -> float:
        return self.least


class Named(Threshold):
    name = "threshold"


def at(selector: Selector, least: float = 0.0) -> float:
    return least


@pytest.mark.parametrize("make", [constant, Threshold, lambda v: functools.partial(at, least=v)])
def test_a_criterion_is_known_by_its_content(make: Any) -> None:
    assert judge(make(1.0)) == judge(make(1.0)) != judge(make(2.0))
    assert judge(None) not in (judge(make(1.0)), judge(make(None)))


def test_a_criterion_with_a_name_is_known_by_it() -> None:
    assert judge(Named(1.0)) == judge(Named(2.0)) == ["name", "threshold"]
    other = Named(1.0)
    other.name = "other"
    assert judge(other) != judge(Named(1.0))
    nameless = Named(1.0)
    nameless.name = None  # type: ignore[assignment]
    assert judge(nameless) != judge(Named(1.0))
