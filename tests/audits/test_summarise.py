"""Every number of an audit: by hand, by a slow loop, and where it is not defined."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foci import metrics
from foci.audits import AuditedSlide, Curve, CurveTable
from foci.audits.records import Summary, plain
from tests.makers.curves import (
    CLASSES,
    DELETION,
    Counts,
    Settings,
    random_table,
    slides,
    summarised,
    summary_of,
    tiles,
    two,
)

HAND: Counts = {
    "native": [[4, 8, None, 12]],
    "selector": [[2, 2, 4, None], [2, 4, None, 6]],
    "random": [[6, 10, None, None], [2, 6, 8, 20]],
}
CASES = ["P1", "P1", "P2", "P3"]
LABELS: list[str | None] = ["tumour", "tumour", "tumour", "benign"]


@pytest.fixture(scope="module")
def by_hand() -> Summary:
    """Four slides of three patients, all called tumour; the last one is benign."""
    return summary_of(HAND, CASES, LABELS, drops={"native": 0.256, "selector": 0.512})


def test_facts(by_hand: Summary) -> None:
    assert (by_hand.format, by_hand.classes) == (1, ["benign", "tumour"])
    assert (by_hand.n_slides, by_hand.n_cases, by_hand.n_skipped) == (4, 3, 0)
    assert (by_hand.kappa, by_hand.k_max, by_hand.level) == (0.9, 256, 0.95)
    assert by_hand.first_view == "prediction"
    assert by_hand.rankings == ["native", "selector", "random"]
    assert list(by_hand.views) == ["prediction", "label"]
    assert (by_hand.full_bag.auc, by_hand.full_bag.accuracy) == (0.5, 0.75)  # four ties at 0.95


def test_counts_by_hand(by_hand: Summary) -> None:
    native, selector = (by_hand.views["prediction"][n] for n in ("native", "selector"))
    assert native.msk_cond.estimate == 8  # (4 + 8 + 12) / 3
    assert native.msk_cond_seeds == [8]
    assert native.restricted.estimate == 70  # (4 + 8 + 256 + 12) / 4
    assert native.reach.estimate == 0.75
    assert selector.msk_cond_seeds == pytest.approx([8 / 3, 4])
    assert selector.msk_cond.estimate == pytest.approx(10 / 3)
    assert selector.restricted_seeds == [66, 67]  # 2 2 4 256 and 2 4 256 6
    assert selector.restricted.estimate == 66.5
    assert selector.reach_seeds == [0.75, 0.75]
    assert native.reach_correct == pytest.approx(2 / 3)
    assert native.reach_wrong == 1
    assert selector.reach_correct == pytest.approx((1 + 2 / 3) / 2)
    assert selector.reach_wrong == 0.5


def test_headroom_by_hand(by_hand: Summary) -> None:
    view = by_hand.views["prediction"]
    selector = view["selector"].shi_native
    assert selector.estimate == pytest.approx((8 - 10 / 3) / 8)
    assert selector.seeds == pytest.approx([(8 - 8 / 3) / 8, 0.5])
    assert selector.low <= selector.estimate <= selector.high
    chance = (8 + 9) / 2  # (6 + 10) / 2 and (2 + 6 + 8 + 20) / 4
    assert view["random"].msk_cond.estimate == chance
    assert view["selector"].shi_random.estimate == pytest.approx((chance - 10 / 3) / chance)
    assert view["native"].shi_random.estimate == pytest.approx((chance - 8) / chance)
    assert view["native"].shi_native is None
    assert view["random"].shi_random is None
    assert view["random"].shi_native.seeds == pytest.approx([0, -1 / 8])


def test_paired_and_test_by_hand(by_hand: Summary) -> None:
    view = by_hand.views["prediction"]
    assert view["native"].paired is None
    assert view["native"].wilcoxon is None
    assert view["selector"].paired.model_dump() == {
        "base": 6.0,  # slides 0 and 1, reached by native and by both seeds
        "foci": 2.5,  # (2 + 2) / 2 and (2 + 4) / 2
        "n_both": 2,
        "n_base_only": 1,
        "n_foci_only": 0,
        "n_neither": 1,
    }
    # patients: P1 6 and 2.5, P2 256 and 130, P3 12 and 131: ranks 1, 3, 2 with signs - - +
    want = metrics.wilcoxon(base=[6, 256, 12], foci=[2.5, 130, 131])
    assert view["selector"].wilcoxon.model_dump() == {
        "statistic": 2.0,
        "pvalue": want.pvalue,
        "n_pairs": 3,
    }


def test_survival_curve_and_area_by_hand(by_hand: Summary) -> None:
    view = by_hand.views["prediction"]
    native = view["native"].km
    assert (native.ks, native.survival) == ([0, 4, 8, 12], [1, 0.75, 0.5, 0.25])
    # P1 has the slides 4 and 8, P2 one that never reaches, P3 12; three draws of one patient are
    # one in 27, more than the 2.5 % beyond either end
    assert native.low[:3] == [1.0, 0.5, 0.0]
    assert native.high[:3] == [1.0, 1.0, 1.0]
    assert native.low[3] == 0.0 < native.survival[3] < native.high[3]
    pooled = view["selector"].km  # 2 2 4 - 2 4 - 6
    assert (pooled.ks, pooled.survival) == ([0, 2, 4, 6], [1, 5 / 8, 3 / 8, 2 / 8])

    # 0.6 up to K - 1, 0.95 from K to 256, a trapezoid between them
    def area(count: int | None) -> float:
        if count is None:
            return 0.6 * 255 / 256
        return (0.6 * (count - 2) + (0.6 + 0.95) / 2 + 0.95 * (256 - count)) / 256

    want = np.mean([area(count) for count in (4, 8, None, 12)])
    assert view["native"].aukc.estimate == pytest.approx(want)


def test_mean_curve_by_hand(by_hand: Summary) -> None:
    view = by_hand.views["prediction"]
    curve = view["native"].mean_curve
    assert curve.ks == list(range(1, 257))
    assert curve.mean[:4] == pytest.approx([0.6, 0.6, 0.6, 0.6 + 0.35 / 4])
    assert (curve.low[7], curve.high[7]) == pytest.approx((0.6, 0.95))  # two of four
    selector = view["selector"].mean_curve.mean
    assert selector[1] == pytest.approx(0.6 + 0.35 * 3 / 8)  # three of the eight at K = 2
    random = view["random"].mean_curve
    # at K = 6 one of four under the first order, two of four under the second
    assert random.low[5] == pytest.approx(0.6 + 0.35 / 4)
    assert random.high[5] == pytest.approx(0.6 + 0.35 / 2)
    assert random.mean[5] == pytest.approx(0.6 + 0.35 * 3 / 8)


def test_deletion_by_hand(by_hand: Summary) -> None:
    native = by_hand.views["prediction"]["native"]
    assert native.drops.ks == list(DELETION)
    assert native.drops.mean == pytest.approx([0.001 * k for k in DELETION])
    assert native.drops.low == pytest.approx(native.drops.mean), "all slides lose the same"
    assert native.drops.high == pytest.approx(native.drops.mean)
    want = 0.001 * (256**2 - 16**2) / 2 / 256  # a straight line from 16 to 256
    assert native.faithfulness.estimate == pytest.approx(want)
    both = by_hand.views["prediction"]["selector"].faithfulness_seeds
    assert both == pytest.approx([2 * want] * 2)


def test_label_view_follows_the_label(by_hand: Summary) -> None:
    native = by_hand.views["label"]["native"]
    assert native.reach.estimate == 0.5  # benign is never reached on the last slide
    assert native.msk_cond.estimate == 6
    assert native.reach_wrong == 0
    assert by_hand.views["prediction"]["native"].reach_wrong == 1


def test_selected_only_by_hand(by_hand: Summary) -> None:
    # with 32 tiles the tumour's probability is 0.95 where reached, else 0.6; the benign slide
    # is reached with 12: two pairs tie, one pair is lost
    kept = by_hand.views["prediction"]["native"].selected_only
    assert (kept.k, kept.auc, kept.adaptive_auc) == (32, *[pytest.approx(1 / 3)] * 2)
    assert (kept.n_whole, kept.n_slides) == (0, 4)
    # seed 0 does not reach the benign slide: all three pairs are won; seed 1: as above
    kept = by_hand.views["label"]["selector"].selected_only
    assert kept.auc == pytest.approx((1 + 1 / 3) / 2)


def test_specific_stable_and_fallback() -> None:
    ks = np.arange(1, 7)
    rows = {
        "steady": [0.5, 0.95, 0.95, 0.95, 0.95, 0.95],
        "falls": [0.95, 0.5, 0.95, 0.95, 0.5, 0.95],
        "rival": [0.05, 0.5, 0.95, 0.95, 0.95, 0.95],
        "never": [0.5] * 6,
    }
    curves = CurveTable.of(
        Curve(name, "native", None, "insert", 6, ks, two(np.array(p), 1), two(0.8, 1))
        for name, p in rows.items()
    )
    known = [AuditedSlide(name, name) for name in rows]
    found = summarised(curves, known, CLASSES, Settings(k_max=6), [])
    native = found.views["prediction"]["native"]
    assert native.msk_cond.estimate == 2  # 2, 1, 3
    assert native.stable_restricted == (2 + 6 + 3 + 6) / 4
    assert native.fallback == pytest.approx(1 / 3)
    assert native.specific == 0.5
    assert native.faithfulness.model_dump() == {"estimate": None, "low": None, "high": None}
    assert native.drops.mean == native.drops.low == native.drops.high == [None] * 9


def test_intervals_are_those_of_the_metrics_for_rankings_without_seeds() -> None:
    rng = np.random.default_rng(0)
    native, other = (rng.integers(1, 40, 30).tolist() for _ in range(2))
    native[4] = other[9] = None
    cases = [f"P{i // 2}" for i in range(30)]
    chosen = Settings(n_boot=300)
    found = summary_of(
        {"native": [native], "leave-one-out": [other]}, cases, [None] * 30, settings=chosen
    ).views["prediction"]
    both = np.array([native, other], dtype=float).T
    draws = [metrics.shi(*pair) for pair in metrics.case_means(both, cases, 300)]
    estimate = metrics.shi(*np.nanmean(both, axis=0))
    want = metrics.percentile_interval(estimate, np.array(draws))
    got = found["leave-one-out"].shi_native
    assert (got.estimate, got.low, got.high) == pytest.approx((want.estimate, want.low, want.high))
    own = metrics.restricted(native, 256)
    means = metrics.case_means(own[:, None], cases, 300)[:, 0]
    want = metrics.percentile_interval(float(own.mean()), means)
    got = found["native"].restricted
    assert (got.estimate, got.low, got.high) == pytest.approx((want.estimate, want.low, want.high))


def test_nobody_reaches_anything() -> None:
    never: Counts = {name: [[None] * 3] * len(seeds) for name, seeds in HAND.items()}
    found = summary_of(never, ["A", "B", "C"], [None] * 3)
    native, selector = (found.views["prediction"][n] for n in ("native", "selector"))
    assert native.msk_cond.model_dump() == {"estimate": None, "low": None, "high": None}
    assert native.restricted.model_dump() == {"estimate": 256, "low": 256, "high": 256}
    assert native.reach.estimate == 0
    assert native.fallback is None
    assert (native.km.ks, native.km.survival) == ([0], [1])
    assert selector.shi_native.model_dump() == {
        "estimate": None, "low": None, "high": None, "seeds": [None, None],
    }  # fmt: skip
    assert selector.paired.base is None
    assert selector.paired.n_neither == 3
    assert selector.wilcoxon.pvalue == 1
    assert "native reaches 0.9 on no slide within 256 tiles" in " ".join(found.notes)
    assert "2 of 2 orders of random reach 0.9 on no slide" in " ".join(found.notes)


def test_a_seed_that_reaches_nothing_is_left_out_of_the_conditional_mean() -> None:
    counts: Counts = {"native": [[8, 8]], "selector": [[None, None], [2, 4]]}
    found = summary_of(counts, ["A", "B"], [None] * 2).views["prediction"]["selector"]
    assert found.msk_cond_seeds == [None, 3]
    assert found.msk_cond.estimate == 3
    assert found.shi_native.estimate == pytest.approx(5 / 8)
    assert found.shi_native.seeds == [None, pytest.approx(5 / 8)]
    assert found.restricted_seeds == [256, 3]


def test_one_slide() -> None:
    one: Counts = {name: [seeds[:1] for seeds in rows] for name, rows in HAND.items()}
    found = summary_of(one, ["P1"], ["tumour"])
    native = found.views["prediction"]["native"]
    assert native.msk_cond.model_dump() == {"estimate": 4, "low": None, "high": None}
    assert (found.answers.map.answer, found.answers.order.answer) == ("not assessable",) * 2
    notes = " ".join(found.notes)
    assert "One slide was audited: there are no intervals" in notes
    assert "No audited slide is of class benign: AUC is undefined." in notes
    assert (found.full_bag.auc, found.full_bag.accuracy) == (None, 1)
    kept = native.selected_only
    assert (kept.k, kept.auc, kept.adaptive_auc) == (32, None, None)
    assert native.reach_wrong is None


def test_without_labels() -> None:
    found = summary_of(HAND, CASES, [None] * 4, settings=Settings(target="label"))
    assert list(found.views) == ["prediction"]
    assert found.first_view == "prediction"
    assert (found.full_bag.auc, found.full_bag.accuracy) == (None, None)
    native = found.views["prediction"]["native"]
    assert (native.reach_correct, native.reach_wrong) == (None, None)
    assert native.selected_only is None
    notes = " ".join(found.notes)
    assert "No audited slide has a label" in notes
    assert "The label view cannot come first" in notes


def test_labels_of_some_slides() -> None:
    found = summary_of(HAND, CASES, ["tumour", None, "benign", None])
    assert (found.full_bag.auc, found.full_bag.accuracy) == (0.5, 0.5)
    label = found.views["label"]["native"]
    assert label.restricted.estimate == (4 + 256) / 2
    prediction = found.views["prediction"]["native"]
    assert prediction.restricted.estimate == 70  # all four slides
    assert (prediction.reach_correct, prediction.reach_wrong) == (1, 0)
    assert any("2 of 4 slides have no label" in note for note in found.notes)


def test_slides_with_few_tiles_and_with_one() -> None:
    counts: Counts = {"native": [[1, 2, None, 3]], "selector": [[1, 1, None, 1]]}
    sizes = [1, 20, 20, 100]
    found = summary_of(
        counts, CASES, LABELS, n_tiles=sizes, drops={"native": 0.256, "selector": 0.0}
    )
    native = found.views["prediction"]["native"]
    assert native.restricted.estimate == (1 + 2 + 256 + 3) / 4
    assert native.mean_curve.ks == list(range(1, 101))
    # at K = 100 the small slides keep their last value
    assert native.mean_curve.mean[-1] == pytest.approx((0.95 * 3 + 0.6) / 4)
    # only the slide of 100 tiles has two counts below N: 16, 32 and 64
    want = 0.001 * (64**2 - 16**2) / 2 / 64
    assert native.faithfulness.estimate == pytest.approx(want)
    assert native.drops.mean == pytest.approx(
        [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, None, None]
    )
    assert any("3 slides with 32 tiles or fewer" in note for note in found.notes)
    assert native.selected_only.n_whole == 3
    # tumour 0.95, 0.95 and 0.6 with all tiles, benign 0.95: two ties and a loss
    assert native.selected_only.auc == pytest.approx(1 / 3)
    overlap = found.agreement[0]
    assert overlap.jaccard32 is not None
    single = summary_of({"native": [[1]]}, ["P"], [None], n_tiles=[1])
    assert single.views["prediction"]["native"].aukc.estimate == 0.95


def test_a_smaller_budget_and_another_threshold() -> None:
    found = summary_of(HAND, CASES, LABELS, settings=Settings(k_max=5))
    native = found.views["prediction"]["native"]
    assert native.restricted.estimate == (4 + 5 + 5 + 5) / 4
    assert native.reach.estimate == 0.25
    assert native.mean_curve.ks == [1, 2, 3, 4, 5]
    assert native.selected_only.auc == pytest.approx(1 / 3)  # 32 tiles, whatever the budget
    strict = summary_of(HAND, CASES, LABELS, settings=Settings(kappa=0.96))
    assert strict.views["prediction"]["native"].reach.estimate == 0
    assert strict.kappa == 0.96
    easy = summary_of(HAND, CASES, LABELS, settings=Settings(kappa=0.5))
    assert easy.views["prediction"]["native"].msk_cond.estimate == 1


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(2, 3))
def test_any_cohort_becomes_the_same_json_twice(seed: int, n_slides: int, n_classes: int) -> None:
    names = [f"class {c}" for c in range(n_classes)]
    rng = np.random.default_rng(seed)
    curves = random_table(seed, n_slides, n_classes)
    drawn = rng.integers(-1, n_classes, n_slides)
    labels = [None if c < 0 else names[c] for c in drawn]
    sizes = [c.n_tiles for c in curves.get("native")]
    known = slides([f"P{c}" for c in rng.integers(0, 4, n_slides)], labels, sizes)
    texts = [
        summarised(curves, known, names, Settings(k_max=60, n_boot=50), tiles(curves), 2).to_json()
        for _ in range(2)
    ]
    assert texts[0] == texts[1]
    found = Summary.model_validate_json(texts[0])
    assert found.n_skipped == 2
    for view in found.views.values():
        for numbers in view.values():
            assert 1 <= numbers.restricted.estimate <= 60
            assert numbers.stable_restricted >= numbers.restricted.estimate - 1e-9
            ends = (numbers.reach.low, numbers.reach.high)
            if len({s.case_id for s in known if view is found.views["prediction"] or s.label}) > 1:
                assert 0 <= ends[0] <= ends[1] <= 1  # type: ignore[operator]
            else:
                assert ends == (None, None)
            curve = numbers.mean_curve
            assert len(curve.ks) == len(curve.mean) == len(curve.low)
            km = numbers.km
            area = np.dot(km.survival, np.diff(km.ks, append=60))
            assert area == pytest.approx(numbers.restricted.estimate)


def test_plain_values() -> None:
    assert plain(np.float64(math.nan)) is None
    assert plain((np.int64(3), math.inf)) == [3, None]
    assert plain(np.array([[1.5]])) == [[1.5]]
    assert plain(True) is True
    assert isinstance(plain(np.int64(3)), int)


def test_text_of_a_summary(by_hand: Summary) -> None:
    named = by_hand.model_copy(update={"classes": ["ä"]})
    assert '"classes": [\n    "ä"\n  ],' in named.to_json()
    assert Summary.model_validate_json(by_hand.to_json()) == by_hand
    with pytest.raises(ValueError, match="not JSON compliant"):
        by_hand.model_copy(update={"kappa": math.nan}).to_json()


def test_median_is_read_off_the_survival_curve(by_hand: Summary) -> None:
    assert by_hand.views["prediction"]["native"].median_k == 8  # half of the slides are left
