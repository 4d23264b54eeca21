"""Alarms about answers to whole slides, on probabilities written down by hand."""

import numpy as np
import pytest

from foci.audits.alarms import below_chance, below_test_figure, constant_answer, single_class
from foci.audits.measure import ViewSlides
from foci.backbones.saved import ModelRecord

CLASSES = ("a", "b", "c")


def group(full: list[list[float]], labels: list[int], cases: list[str] | None = None) -> ViewSlides:
    table, true = np.array(full), np.array(labels)
    names = tuple(cases or [f"P{i}" for i in range(len(true))])
    rows = np.arange(len(true))
    return ViewSlides(rows, table.argmax(axis=1), true, table, np.full(len(true), 9), names)


def two(p: list[float], labels: list[int], cases: list[str] | None = None) -> ViewSlides:
    return group([[1 - v, v] for v in p], labels, cases)


def record(**metrics: float | None) -> ModelRecord:
    return ModelRecord(
        format=1,
        architecture="abmil",
        config={},
        fingerprint="0",
        parameters=1,
        metrics={"test": {**metrics}},
    )


WRONG = [0.9, 0.8, 0.7, 0.1, 0.2, 0.3]
LABELS = [0, 0, 0, 1, 1, 1]


def test_an_auc_of_zero_is_an_alarm_from_six_patients_on() -> None:
    alarm = below_chance(two(WRONG, LABELS), CLASSES[:2])
    assert alarm is not None
    assert alarm.numbers == {"auc": 0.0, "low": 0.0, "high": 0.0}
    assert alarm.sentence.startswith(
        "AUC is 0.000 (95% interval over patients 0.000 to 0.000), far"
    )
    five = ["P0", "P0", "P1", "P2", "P3", "P4"]
    assert below_chance(two(WRONG, LABELS, five), CLASSES[:2]) is None
    assert below_chance(None, CLASSES[:2]) is None


def test_chance_itself_is_no_alarm() -> None:
    rng = np.random.default_rng(0)
    raised = sum(
        below_chance(two(rng.random(40).tolist(), [0, 1] * 20), CLASSES[:2]) is not None
        for _ in range(60)
    )
    assert raised <= 5  # one end of a 95 % interval


def test_two_of_three_classes_in_the_wrong_order_are_named() -> None:
    sure = np.eye(3) * 0.8 + 0.2 / 3
    labels = [0, 1, 2] * 6
    swapped = [sure[[1, 0, 2][label]].tolist() for label in labels]
    alarm = below_chance(group(swapped, labels), CLASSES)
    assert alarm is not None
    assert alarm.sentence.startswith("AUC of a against the rest is 0.250")
    assert below_chance(group([sure[label].tolist() for label in labels], labels), CLASSES) is None


@pytest.mark.parametrize(
    ("test", "raised"),
    [(None, False), (0.6, False), (0.99, True), (0.5, False)],
)
def test_the_models_own_figure(test: float | None, raised: bool) -> None:
    p, labels = [0.4, 0.6] * 30, [0, 1, 1, 0] * 15  # AUC 0.5
    alarm = below_test_figure(two(p, labels), record(auc=test))
    assert (alarm is not None) == raised
    if alarm is not None:
        assert "AUC is 0.500" in alarm.sentence
        assert "clearly below 0.990" in alarm.sentence


def test_a_small_drop_is_no_alarm_however_many_slides() -> None:
    right = two([0.1, 0.9] * 2000 + [0.9, 0.1] * 60, [0, 1] * 2060)
    assert below_test_figure(right, record(auc=0.99)) is None  # 0.971: clearly less, but by 0.02
    assert below_test_figure(right, record(auc=1.03)) is not None


def test_accuracy_where_there_is_no_auc() -> None:
    wrong = two([0.9] * 10 + [0.2] * 2, [0] * 12)  # one class: no AUC
    alarm = below_test_figure(wrong, record(auc=0.95, accuracy=0.9))
    assert alarm is not None
    assert alarm.sentence.startswith("Accuracy is 0.167")
    assert below_test_figure(wrong, record(accuracy=0.2)) is None
    assert below_test_figure(wrong, None) is None


def test_the_same_answer() -> None:
    assert constant_answer(two([0.301, 0.302, 0.309], [0, 1, 1])) is not None
    assert constant_answer(two([0.30, 0.31], [0, 1])) is None
    assert constant_answer(two([0.3], [1])) is None
    assert constant_answer(two([0.999, 0.998], [1, 1])) is None, "right about all of them"
    assert constant_answer(two([0.999, 0.998], [-1, -1])) is not None


def test_one_class() -> None:
    p = [0.6, 0.7, 0.8, 0.6, 0.7, 0.8]
    both, ones = two(p, LABELS), two(p, [1] * 6)
    assert single_class(both, both, CLASSES[:2]) is not None
    assert single_class(ones, ones, CLASSES[:2]) is None, "they are all of that class"
    unlabelled = single_class(two(p, [-1] * 6), None, CLASSES[:2])
    assert unlabelled is not None
    assert "and no label says otherwise" in unlabelled.sentence
    assert single_class(two(p[:5], LABELS[:5]), both, CLASSES[:2]) is None, "five may be chance"
    assert single_class(two(WRONG, LABELS), both, CLASSES[:2]) is None
