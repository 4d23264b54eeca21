"""Which slides a view holds, and which class it follows."""

import pytest

from foci.audits.measure import slides_by_view
from foci.errors import FociError
from tests.makers.curves import CLASSES, slides, table

COUNTS = {"native": [[1, 2, 3]], "random": [[1, 2, 3]] * 2}


def test_prediction_holds_all_slides_and_label_those_that_have_one() -> None:
    curves = table(COUNTS, targets=[1, 0, 1])
    views = slides_by_view(curves, slides(["A", "B", "B"], ["benign", None, "tumour"]), CLASSES)
    everyone, labelled = views["prediction"], views["label"]
    assert everyone.rows.tolist() == [0, 1, 2]
    assert everyone.targets.tolist() == everyone.predictions.tolist() == [1, 0, 1]
    assert everyone.labels.tolist() == [0, -1, 1]
    assert everyone.cases == ("A", "B", "B")
    assert labelled.rows.tolist() == [0, 2]
    assert labelled.targets.tolist() == [0, 1]
    assert labelled.predictions.tolist() == [1, 1]
    assert labelled.cases == ("A", "B")
    chosen = labelled.of(curves.get("random", 1))
    assert [curve.slide_id for curve in chosen] == ["s0", "s2"]


def test_slides_are_found_by_name_in_any_order() -> None:
    known = slides(["A", "B", "C"], ["benign", "tumour", None])
    views = slides_by_view(table(COUNTS), [known[2], known[0], known[1]], CLASSES)
    assert views["prediction"].cases == ("A", "B", "C")
    assert views["prediction"].labels.tolist() == [0, 1, -1]


def test_no_label_no_label_view() -> None:
    views = slides_by_view(table(COUNTS), slides(["A", "B", "C"], [None] * 3), CLASSES)
    assert list(views) == ["prediction"]


def test_a_label_outside_the_classes_is_refused() -> None:
    with pytest.raises(FociError) as refused:
        slides_by_view(table(COUNTS), slides(["A", "B", "C"], [None, "cyst", None]), CLASSES)
    assert str(refused.value) == (
        "s1: has the label 'cyst', which is no class of the model; classes: benign, tumour"
    )


def test_curves_without_a_slide_are_refused() -> None:
    with pytest.raises(FociError, match=r"^s2: has curves but is not among the slides"):
        slides_by_view(table(COUNTS), slides(["A", "B"], [None] * 2), CLASSES)
