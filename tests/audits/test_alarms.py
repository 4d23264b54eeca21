"""Alarms: who is named, and who is not; on slides and probabilities written down by hand."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from foci.audits.alarms import (
    below_chance,
    below_test_figure,
    constant_answer,
    coordinate_order,
    duplicate_bags,
    feature_scale,
    mixed_encoders,
    not_compared,
    other_encoder,
    patient_spelling,
    repeated_tiles,
    single_class,
    training_slides,
    zero_tiles,
)
from foci.audits.folder import AuditedSlide
from foci.audits.measure import WholeSlides
from foci.backbones.saved import FeatureRange, ModelRecord, TrainingData
from foci.bags import Bag

CLASSES = ("a", "b", "c")


def slide(name: str, encoder: str | None = None, content: str = "", **more: object) -> AuditedSlide:
    facts = {"n_tiles": 10, "n_total": 10, **more}
    return AuditedSlide(name, name, encoder=encoder, fingerprint=content or name, **facts)


def data(*encoders: str, **slides: str) -> TrainingData:
    return TrainingData(width=8, encoders=dict.fromkeys(encoders, 3), fingerprints=slides)


def model(known: TrainingData | None = None, **metrics: float | None) -> ModelRecord:
    return ModelRecord(
        format=1,
        architecture="abmil",
        config={},
        fingerprint="0",
        parameters=1,
        metrics={"test": {**metrics}},
        data=known,
    )


def group(
    full: list[list[float]], labels: list[int], cases: list[str] | None = None
) -> WholeSlides:
    names = tuple(f"P{i}" for i in range(len(labels)))
    n = len(labels)
    sizes, unknown, unproven = np.full(n, 9), np.full(n, np.nan), np.zeros(n, bool)
    patients = tuple(cases or names)
    return WholeSlides(
        names, patients, np.array(labels), np.array(full), sizes, unknown, unproven, unproven,
        np.empty((n, 0)), np.empty((n, 0)),
    )  # fmt: skip


def two(p: list[float], labels: list[int], cases: list[str] | None = None) -> WholeSlides:
    return group([[1 - v, v] for v in p], labels, cases)


# Features


def test_an_encoder_is_known_by_its_letters_and_digits() -> None:
    slides = [slide("s0", "UNI-v2"), slide("s1", "uni_v2"), slide("s2", None)]
    assert other_encoder(slides, data("uni_v2")) is None
    assert mixed_encoders(slides, {}) is None
    alarm = other_encoder([*slides, slide("s3", "uni_v1")], data("uni_v2"))
    assert alarm.slides == ["s3"]


def test_nothing_to_compare_with_is_no_alarm() -> None:
    slides = [slide("s0", "conch")]
    assert other_encoder(slides, None) is None
    assert other_encoder(slides, data()) is None
    assert training_slides(slides, None, ()) is None


def test_what_could_not_be_compared_is_said() -> None:
    named, silent = slide("s0", "conch"), slide("s1")
    assert not_compared([named], None) == []
    assert not_compared([named], model(data("conch"))) == []
    assert not_compared([silent], model(data())) == []
    assert "does not say which features" in not_compared([named], model(None))[0]
    assert "name no encoder: it cannot be" in not_compared([named], model(data()))[0]
    (note,) = not_compared([named, silent], model(data("uni")))
    assert note.startswith("1 of 2 audited slides are of files that name no encoder: whether it is")


def encoded(kind: str, n: int, rng: np.random.Generator) -> list[Bag]:
    """Slides of one encoder: tiles and slides differ, and now and then one is nearly blank."""
    bags = []
    for i in range(n):
        tiles, width = int(rng.integers(5, 60)), 48
        x = rng.normal(size=(tiles, width)) + 0.3 * rng.normal(size=width)
        if kind == "rectified":
            x = np.maximum(x, 0) * rng.lognormal(0, 0.2)
        elif kind == "uneven":
            x *= rng.lognormal(0, 0.5, size=(tiles, 1)) * rng.lognormal(0, 0.4)
        elif kind == "shifted":
            x += 2 + 0.2 * rng.normal()
        elif kind == "unit":
            x /= np.linalg.norm(x, axis=1, keepdims=True)
        if rng.random() < 0.03:
            x *= 1e-3
        bags.append(Bag(f"s{i}", x.astype(np.float32)))
    return bags


def trained_on(bags: Sequence[Bag]) -> TrainingData:
    return TrainingData(
        width=bags[0].width,
        fingerprints={bag.slide_id: bag.slide_id for bag in bags},
        feature_norm=FeatureRange.of([bag.feature_norm for bag in bags]),
        feature_mean=FeatureRange.of([bag.feature_mean for bag in bags]),
    )


def changed(bags: Sequence[Bag], change: Callable[[Any], Any] = lambda x: x) -> list[AuditedSlide]:
    new = [Bag(bag.slide_id, change(bag.features)) for bag in bags]
    return [
        slide(bag.slide_id, feature_norm=bag.feature_norm, feature_mean=bag.feature_mean)
        for bag in new
    ]


@pytest.mark.parametrize("kind", ["plain", "rectified", "uneven", "shifted", "unit"])
def test_another_split_of_one_cohort_has_features_of_one_scale(kind: str) -> None:
    rng = np.random.default_rng(0)
    bags = encoded(kind, 60, rng)
    own, large, small = (changed(bags, lambda x, f=f: f * x) for f in (1, 10, 0.1))
    for n_train, n_test in ((6, 6), (12, 6), (30, 30), (45, 15), (40, 1), (3, 3)):
        for _ in range(100):
            order = rng.permutation(60)
            train, test = order[:n_train], order[-n_test:]
            known = trained_on([bags[i] for i in train])
            if n_test == 1 and bags[test[0]].feature_norm < 0.1:
                continue  # a blank slide alone is rightly named
            assert feature_scale([own[i] for i in test], known) is None
            if n_train >= 6 <= n_test:
                assert feature_scale([large[i] for i in test], known) is not None
                assert feature_scale([small[i] for i in test], known) is not None


def test_features_ten_times_too_large_are_named_with_both_norms() -> None:
    bags = [Bag(f"s{i}", np.full((3, 4), 1 + i / 100, dtype=np.float32)) for i in range(11)]
    alarm = feature_scale(changed(bags, lambda x: 10 * x), trained_on(bags))
    assert alarm.sentence.startswith(
        "The norm of a tile's features is 21 on the median slide and was 2.1 in training (2.05 to "
        "2.15 on the middle half of the slides), and the mean of all features is 10.5 on the "
        "median slide and was 1.05 in training (1.02 to 1.07 on the middle half of the slides): "
        "the features were scaled"
    )
    assert alarm.numbers["norm"] == pytest.approx(21)
    assert alarm.numbers["norm_in_training"] == pytest.approx(2.1)
    assert (alarm.numbers["slides"], alarm.numbers["audited"]) == (11, 11)
    assert alarm.slides == [bag.slide_id for bag in bags]
    assert feature_scale(changed(bags, lambda x: 3 * x), trained_on(bags)) is not None
    one = changed(bags[:1], lambda x: 10 * x), changed(bags[:1], lambda x: 3 * x)
    assert [feature_scale(slides, trained_on(bags)) is not None for slides in one] == [True, False]


def test_a_missing_normalisation_is_another_scale() -> None:
    raw = encoded("rectified", 30, np.random.default_rng(1))
    unit = [
        Bag(b.slide_id, b.features / (np.linalg.norm(b.features, axis=1, keepdims=True)))
        for b in raw
    ]
    assert feature_scale(changed(raw), trained_on(unit)) is not None
    assert feature_scale(changed(unit), trained_on(raw)) is not None
    every = np.concatenate([bag.features for bag in raw])
    mean, spread = every.mean(axis=0), every.std(axis=0)
    standard = [Bag(b.slide_id, (b.features - mean) / spread) for b in raw]
    assert feature_scale(changed(raw), trained_on(standard)) is not None
    assert feature_scale(changed(standard), trained_on(raw)) is not None


def test_another_mean_at_the_same_norm_is_another_scale() -> None:
    bags = encoded("shifted", 30, np.random.default_rng(2))
    alarm = feature_scale(changed(bags, lambda x: -x), trained_on(bags))
    assert alarm.sentence.startswith("The mean of all features is -")
    assert "norm of a tile" not in alarm.sentence


def test_features_without_numbers_on_one_side_are_not_compared() -> None:
    bags = encoded("plain", 8, np.random.default_rng(3))
    assert feature_scale(changed(bags, lambda x: 10 * x), None) is None
    assert feature_scale(changed(bags, lambda x: 10 * x), data("uni")) is None
    assert feature_scale([slide("s")], trained_on(bags)) is None


def test_training_slides_by_name_and_by_content() -> None:
    slides = [slide("s0"), slide("new", content="x"), slide("t1"), slide("s3")]
    alarm = training_slides(slides, data(old="x", t1="t1"), {"old", "t1"})
    assert alarm.slides == ["new", "t1"]
    assert alarm.numbers == {"slides": 2, "renamed": 1, "audited": 4}
    by_name = training_slides(slides, None, {"t1"})
    assert "under other names" not in by_name.sentence


# Bags


def test_different_bags_raise_no_alarm() -> None:
    assert duplicate_bags([]) is None
    assert duplicate_bags([slide("a"), slide("b")]) is None


def test_equal_bags_are_counted_and_named() -> None:
    found = duplicate_bags(
        [
            slide("a", None, "x"),
            slide("b"),
            *(slide(n, None, "x" if n == "c" else "y") for n in "cde"),
        ]
    )
    assert found.slides == ["a", "c", "d", "e"]
    assert found.numbers == {"slides": 4, "different": 3, "audited": 5}
    assert found.sentence.startswith("4 slides (a, c, d, ...) hold the same features as another")
    assert "5 audited slides are only 3 different ones" in found.sentence
    assert "labels" not in found.sentence


@pytest.mark.parametrize(
    ("labels", "torn"), [(("A", "B"), True), (("A", "A"), False), (("A", None), False)]
)
def test_equal_bags_with_different_labels_are_said(
    labels: tuple[str | None, ...], torn: bool
) -> None:
    bags = [slide(str(i), None, "same", label=one) for i, one in enumerate(labels)]
    found = duplicate_bags(bags)
    assert found.sentence.endswith("1 group of equal bags with different labels.") is torn


@pytest.mark.parametrize(("n_zero", "named"), [(None, False), (0, False), (4, False), (5, True)])
def test_a_bag_is_named_from_half_of_zero_tiles_on(n_zero: int | None, named: bool) -> None:
    assert (zero_tiles([slide("a", n_tiles=10, n_zero=n_zero)]) is not None) is named


def test_the_worst_bag_is_given_by_share_and_not_by_number() -> None:
    found = zero_tiles(
        [slide("many", n_tiles=100, n_zero=60), slide("most", n_tiles=10, n_zero=9), slide("fine")]
    )
    assert found.slides == ["many", "most"]
    assert "in most 9 of 10." in found.sentence
    assert found.numbers == {"slides": 2, "worst_share": 0.9}


@pytest.mark.parametrize(
    ("n_repeated", "n_zero", "named"),
    [(None, None, False), (0, 0, False), (17, 0, False), (18, 0, True), (9, 10, True)],
)
def test_a_bag_is_named_where_nine_of_ten_tiles_have_a_copy(
    n_repeated: int | None, n_zero: int | None, named: bool
) -> None:
    one = slide("a", n_tiles=20, n_repeated=n_repeated, n_zero=n_zero)
    assert (repeated_tiles([one]) is not None) is named
    nothing = slide("a", n_tiles=20, n_repeated=0, n_zero=20)
    assert repeated_tiles([nothing]) is None, "all tiles are zero, which is another alarm"


def test_repeated_tiles_are_named_and_counted() -> None:
    found = repeated_tiles(
        [
            slide("twice", n_tiles=18, n_repeated=18, n_zero=0),
            slide("more", n_tiles=100, n_repeated=95, n_zero=0),
            slide("fine", n_tiles=100, n_repeated=4, n_zero=0),
        ]
    )
    assert found.slides == ["twice", "more"]
    assert found.numbers == {"slides": 2, "audited": 3, "repeated": 113, "tiles": 118}
    assert found.sentence.startswith(
        "Almost every tile is there twice or more in 2 slides (twice, more); in more 95 of 100 "
        "tiles have the features of another one."
    )


def test_coordinates_of_another_order_are_named_with_a_reason() -> None:
    found = coordinate_order([slide("a"), slide("b", misplaced="b.h5 lists"), slide("c")])
    assert found.slides == ["b"]
    assert found.numbers == {"slides": 1, "audited": 3}
    assert "another order than features in 1 slide (b). In b, b.h5 lists. Write" in found.sentence
    assert coordinate_order([slide("a")]) is None


# Patients


def of_patients(*cases: str) -> list[AuditedSlide]:
    return [AuditedSlide(f"s{i}", case) for i, case in enumerate(cases)]


def test_patients_that_differ_only_in_case_or_blanks_are_named() -> None:
    slides = of_patients("P1", "p1", "P2", "P3 ", "P1", "p10")
    alarm = patient_spelling(slides, {"P3", "p4", "P4", "p1", "P1"})
    assert "('P1' and 'p1', 'P3' and 'P3 ') are counted as different ones" in alarm.sentence
    assert alarm.slides == ["s0", "s1", "s3", "s4"]
    assert alarm.numbers == {"slides": 4, "audited": 6, "patients": 2, "names": 4}


def test_other_patients_and_spellings_outside_of_the_audit_are_no_alarm() -> None:
    assert patient_spelling(of_patients("P1", "P1", "P2", "P-1"), ()) is None
    assert patient_spelling(of_patients("P1", "P2"), {"P1", "P2", "x", "X"}) is None


# Answers to whole slides


WRONG = [0.9, 0.8, 0.7, 0.1, 0.2, 0.3]
LABELS = [0, 0, 0, 1, 1, 1]


def test_an_auc_of_zero_is_an_alarm_from_six_patients_on() -> None:
    alarm = below_chance(two(WRONG, LABELS), CLASSES[:2])
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
    assert alarm.sentence.startswith("AUC of a against the rest is 0.250")
    assert below_chance(group([sure[label].tolist() for label in labels], labels), CLASSES) is None


@pytest.mark.parametrize(
    ("test", "raised"),
    [(None, False), (0.6, False), (0.99, True), (0.5, False)],
)
def test_the_models_own_figure(test: float | None, raised: bool) -> None:
    p, labels = [0.4, 0.6] * 30, [0, 1, 1, 0] * 15  # AUC 0.5
    alarm = below_test_figure(two(p, labels), model(auc=test))
    assert (alarm is not None) == raised
    if alarm is not None:
        assert "AUC is 0.500" in alarm.sentence
        assert "clearly below 0.990" in alarm.sentence


def test_a_small_drop_is_no_alarm_however_many_slides() -> None:
    right = two([0.1, 0.9] * 2000 + [0.9, 0.1] * 60, [0, 1] * 2060)
    assert below_test_figure(right, model(auc=0.99)) is None  # 0.971: clearly less, but by 0.02
    assert below_test_figure(right, model(auc=1.03)) is not None


def test_accuracy_where_there_is_no_auc() -> None:
    wrong = two([0.9] * 10 + [0.2] * 2, [0] * 12)  # one class: no AUC
    alarm = below_test_figure(wrong, model(auc=0.95, accuracy=0.9))
    assert alarm.sentence.startswith("Accuracy is 0.167")
    assert below_test_figure(wrong, model(accuracy=0.2)) is None
    assert below_test_figure(wrong, None) is None


def test_accuracy_falls_while_the_auc_does_not() -> None:
    shifted = two([0.6, 0.9] * 20, [0, 1] * 20)  # in the right order, and all beyond 0.5
    alarm = below_test_figure(shifted, model(auc=1.0, accuracy=0.9))
    assert alarm.sentence.startswith("Accuracy is 0.500 (95% interval over patients 0.")
    assert ", clearly below 0.900, the model's own on its test split" in alarm.sentence
    assert "AUC" not in alarm.sentence
    assert set(alarm.numbers) == {"accuracy", "accuracy_low", "accuracy_high", "accuracy_test"}
    assert (alarm.numbers["accuracy"], alarm.numbers["accuracy_test"]) == (0.5, 0.9)
    assert below_test_figure(shifted, model(auc=1.0, accuracy=0.54)) is None


def test_one_alarm_names_both_figures_where_both_fell() -> None:
    guessed = two([0.4, 0.6] * 30, [0, 1, 1, 0] * 15)
    alarm = below_test_figure(guessed, model(auc=0.99, accuracy=0.95))
    assert alarm.sentence.startswith("AUC is 0.500 (")
    assert "clearly below 0.990, and accuracy is 0.500 (" in alarm.sentence
    assert "clearly below 0.950, the model's own on its test split" in alarm.sentence
    assert (alarm.numbers["auc_test"], alarm.numbers["accuracy_test"]) == (0.99, 0.95)


def test_the_same_answer() -> None:
    assert constant_answer(two([0.301, 0.302, 0.309], [0, 1, 1])) is not None
    assert constant_answer(two([0.30, 0.31], [0, 1])) is None
    assert constant_answer(two([0.3], [1])) is None
    assert constant_answer(two([0.999, 0.998], [1, 1])) is None, "right about all of them"
    assert constant_answer(two([0.999, 0.998], [-1, -1])) is not None


def test_one_class() -> None:
    p = [0.6, 0.7, 0.8, 0.6, 0.7, 0.8]
    both, ones = two(p, LABELS), two(p, [1] * 6)
    assert single_class(both, CLASSES[:2]) is not None
    assert single_class(ones, CLASSES[:2]) is None, "they are all of that class"
    unlabelled = single_class(two(p, [-1] * 6), CLASSES[:2])
    assert "and no label says otherwise" in unlabelled.sentence
    assert single_class(two(p[:5], LABELS[:5]), CLASSES[:2]) is None, "five may be chance"
    assert single_class(two(WRONG, LABELS), CLASSES[:2]) is None
