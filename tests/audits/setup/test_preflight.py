from typing import Any

import pytest

from foci.audits.prepare import admit
from foci.backbones import Backbone, CallableBackbone
from foci.bags import Cohort, Slide
from foci.errors import FociError
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN

LABELLED = Cohort((Slide("a", "p", "x"), Slide("b", "q", "y")), ("x", "y"))
BLANK = Cohort((Slide("a", "p"),))
PER_CLASS = {"class_conditional": True}


def function(differentiable: bool = True) -> Backbone:
    return CallableBackbone(lambda x: x.mean(0)[:2], D_IN, 2, differentiable=differentiable)


def test_native_is_left_out_where_there_is_none_and_nobody_asked() -> None:
    _, chosen, notes = admit(function(), LABELLED, settings())
    assert chosen.rankings == ("evidence", "selector", "random")
    assert notes == ("callable has no tile score of its own: there is no native ranking",)
    _, chosen, notes = admit(model(), LABELLED, settings())
    assert (chosen.rankings, notes) == (("native", "evidence", "selector", "random"), ())


@pytest.mark.parametrize(
    ("ranking", "says"),
    [
        ("native", "ranking 'native': callable has no tile score of its own; rankings that work"),
        ("attention-x-evidence", "is not a pooling classifier"),
    ],
)
def test_what_is_asked_for_and_impossible_is_refused(ranking: str, says: str) -> None:
    with pytest.raises(FociError, match=says):
        admit(function(), LABELLED, settings(rankings=(ranking,)))


def test_a_selector_needs_gradients() -> None:
    with pytest.raises(FociError, match="no selector can be fitted"):
        admit(function(differentiable=False), LABELLED, settings())


def test_labels_are_optional_but_not_as_a_target() -> None:
    cohort, _, _ = admit(model(), BLANK, settings())
    assert cohort.classes == ("class 0", "class 1")
    with pytest.raises(FociError, match="target: cannot be the label: the cohort has none; give"):
        admit(model(), BLANK, settings(target="label"))


def table(*rows: tuple[str | None, str | None]) -> Cohort:
    slides = (Slide(str(i), str(i), label, split) for i, (label, split) in enumerate(rows))
    return Cohort(tuple(slides), ("x", "y"))


WHOLE = table(("x", "train"), ("y", "train"), ("x", "val"), (None, "test"))
GAPS = table(("x", "train"), ("y", "train"), (None, "val"), ("x", "test"))
ONE = table(("x", "train"), ("x", "train"), ("y", "val"), ("y", "test"))


@pytest.mark.parametrize(
    ("cohort", "changes", "target", "says"),
    [
        (WHOLE, PER_CLASS, "label", None),
        (LABELLED, PER_CLASS, "label", None),
        (ONE, {}, "label", None),
        (BLANK, PER_CLASS, "prediction", "1 of 1 slide to fit on without a label"),
        (GAPS, {}, "prediction", "1 of 3 slides to fit on without a label"),
        (ONE, PER_CLASS, "prediction", "all slides to learn from are of class x"),
    ],
)
def test_a_selector_is_fitted_for_the_recipes_target_where_labels_allow_it(
    cohort: Cohort, changes: dict[str, Any], target: str, says: str | None
) -> None:
    plan: dict[str, Any] = {"recipe": "paper-ste", "recipe_settings": changes}
    _, chosen, notes = admit(model(), cohort, settings(**plan, fit_target=None))
    assert chosen.fit_target == chosen.fitted_for == target
    said = f"the selector is fitted for the model's own prediction: {says}"
    assert notes == (() if says is None else (said,))
    asked = settings(**plan, fit_target="label")
    if says is None:
        assert admit(model(), cohort, asked)[1].fit_target == "label"
    else:
        with pytest.raises(FociError, match=f"fit_target: cannot be the label: {says}; fill"):
            admit(model(), cohort, asked)


def test_without_a_selector_nothing_is_fitted_for_anything() -> None:
    bare = settings(rankings=("native",), fit_target=None, split="test")
    _, chosen, notes = admit(model(), BLANK, bare)
    assert (chosen.fit_target, notes) == (None, ())


def test_classes_have_to_match() -> None:
    with pytest.raises(FociError, match=r"labels: have 2 classes \(x, y\), the model has 3; give"):
        admit(model(n_classes=3), LABELLED, settings())
