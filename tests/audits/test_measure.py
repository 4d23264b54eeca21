"""Slides measured under every order: by hand, block by block, and in every view."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci.audits import Curve, CurveTable
from foci.audits import measure as module
from foci.audits.measure import (
    COLUMNS,
    Measured,
    MeasuredSlides,
    Threshold,
    WholeSlides,
    absolute,
    counts_shared,
    few_decided,
    mean_curve,
    measure,
    measure_slides,
    relative,
    whole_slides,
)
from foci.errors import FociError
from foci.files import spill
from foci.metrics import decisive_points, drops_on_grid, operating_points, stack
from foci.metrics.curve import followed
from tests.makers.curves import CLASSES, Settings, curve, random_table, slides, table, two

B, T = CLASSES
COUNTS = {"native": [[2, 4]], "random": [[1, None], [3, 8]]}
THREE = {"native": [[1, 2, 3]], "random": [[1, 2, 3]] * 2}
SIZES = [40, 300, 40, 7, 1]


# Slides and views


def test_slides_are_found_by_name_in_any_order() -> None:
    known = slides(["A", "B", "C"], [B, T, None])
    whole = whole_slides(table(THREE), [known[2], known[0], known[1]], CLASSES)
    assert whole.cases == ("A", "B", "C")
    assert whole.labels.tolist() == [0, 1, -1]
    labelled = whole.labelled
    assert (labelled.ids, labelled.cases) == (("s0", "s1"), ("A", "B"))
    assert whole_slides(table(THREE), slides(["A", "B", "C"], [None] * 3), CLASSES).labelled is None


def test_a_label_outside_the_classes_is_refused() -> None:
    with pytest.raises(FociError) as refused:
        whole_slides(table(THREE), slides(["A", "B", "C"], [None, "cyst", None]), CLASSES)
    assert str(refused.value) == (
        "s1: has the label 'cyst', which is no class of the model; classes: benign, tumour"
    )


def test_curves_without_a_slide_are_refused() -> None:
    with pytest.raises(FociError, match=r"^s2: has curves but is not among the slides"):
        whole_slides(table(THREE), slides(["A", "B"], [None] * 2), CLASSES)


def test_prediction_follows_all_slides_and_label_those_that_have_one() -> None:
    curves = table(THREE, targets=[1, 0, 1])
    found = measure_slides(curves, slides(["A", "B", "B"], [B, None, T]), CLASSES, Settings())
    assert found.targets["prediction"].tolist() == found.slides.predictions.tolist() == [1, 0, 1]
    assert found.targets["label"].tolist() == [0, -1, 1]
    assert found.rows("prediction").tolist() == [0, 1, 2]
    assert found.rows("label").tolist() == [0, 2]
    assert found.slides_of("label").cases == ("A", "B")
    # the first slide never reaches its label
    np.testing.assert_array_equal(found.of("random", "label").msk, [[np.nan, 3]] * 2)


def test_views_and_rankings() -> None:
    found = measure_slides(table(COUNTS), slides(["A", "B"], [T, None]), CLASSES, Settings())
    assert list(found.tables) == ["prediction", "label"]
    assert found.tables["label"].orders == (("native", None), ("random", 0), ("random", 1))
    np.testing.assert_array_equal(found.of("native").msk, [[2, 4]])
    np.testing.assert_array_equal(found.of("random", "label").msk, [[1], [3]])
    without = measure_slides(table(COUNTS), slides(["A", "B"], [None] * 2), CLASSES, Settings())
    assert list(without.tables) == list(without.targets) == ["prediction"]


@pytest.mark.parametrize(("k_max", "reached"), [(256, 4), (3, 2)])
def test_curves_end_at_the_budget(k_max: int, reached: int) -> None:
    known, settings = slides(["A", "B"], [None] * 2), Settings(k_max=k_max)
    found = measure_slides(table(COUNTS), known, CLASSES, settings)
    assert found.curves.get("native")[0].ks[-1] == k_max
    assert np.nanmax(found.of("native").msk) == reached


# Thresholds


def sure_of(*sure: float) -> WholeSlides:
    full, n = np.array([[1 - p, p] for p in sure]), len(sure)
    names = tuple(f"P{i}" for i in range(n))
    unknown, unproven = np.full(n, np.nan), np.zeros(n, bool)
    return WholeSlides(
        names, names, np.full(n, -1), full, np.full(n, 9), unknown, unproven, unproven,
        np.empty((n, 0)), np.empty((n, 0)),
    )  # fmt: skip


def test_an_absolute_threshold_asks_the_same_of_every_slide() -> None:
    whole = sure_of(0.95, 0.2, 0.7)
    assert Threshold(0.8).needed(whole.sure).tolist() == [0.8, 0.8, 0.8]
    assert Threshold(0.8).decided(whole).tolist() == [True, True, False]


def test_a_share_follows_the_predicted_class_and_decides_every_slide() -> None:
    whole = sure_of(0.95, 0.2, 0.7)
    half = Threshold(0.5, relative=True)
    assert half.needed(whole.sure).tolist() == pytest.approx([0.475, 0.4, 0.35])
    assert half.decided(whole).all()


def test_the_own_threshold_is_among_those_of_the_sensitivity() -> None:
    found = absolute(Settings(kappa=0.6, kappas=(0.9, 0.7)))
    assert found == (Threshold(0.6), Threshold(0.7), Threshold(0.9))


@pytest.mark.parametrize(
    ("sure", "few"), [((*[0.95] * 7, *[0.5] * 3), False), ((*[0.95] * 2, 0.5), True)]
)
def test_shares_where_fewer_than_70_percent_are_decided(sure: tuple[float, ...], few: bool) -> None:
    assert few_decided(sure_of(*sure), Settings()) is few
    assert bool(relative(sure_of(*sure), Settings())) is few
    assert len(relative(sure_of(*sure), Settings(relative=True))) == 4


# Columns


def test_one_number_per_seed_and_slide() -> None:
    curves = table({"selector": [[1, 3, None], [2, None, None]]})
    measured = measure_slides(curves, slides(["A", "B", "C"], [None] * 3), CLASSES, Settings())
    found = measured.of("selector")
    np.testing.assert_array_equal(found.msk, [[1, 3, np.nan], [2, np.nan, np.nan]])
    np.testing.assert_array_equal(found.restricted, [[1, 3, 256], [2, 256, 256]])
    np.testing.assert_array_equal(found.reached, [[1, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(found.stable, found.msk)  # these curves never fall back
    # 0.6 before the count, 0.95 from there on; 255 steps, divided by the last count 256
    assert found.aukc[0, 0] == pytest.approx(0.95 * 255 / 256)
    assert found.aukc[0, 2] == pytest.approx(0.6 * 255 / 256)
    # between K = 2 and 3 the trapezoid stands half on either level: 1.5 steps are low
    assert found.aukc[0, 1] == pytest.approx((1.5 * 0.6 + 253.5 * 0.95) / 256)
    band = measured.mean_curves["prediction"]["selector"]
    assert band.ks == list(range(1, 257))
    assert band.mean[0] == pytest.approx((0.95 + 5 * 0.6) / 6)


def two_way(ks: list[int], kept: list[float], gone: list[int], left: list[float]) -> Measured:
    """One slide of nine tiles, from the tumour's probability at some counts."""
    full = np.array([0.05, 0.95])
    pairs = [np.array([[1 - p, p] for p in own]) for own in (kept, left)]
    curves = CurveTable.of(
        Curve("s0", "native", None, direction, 9, np.array(counts), probs, full)
        for direction, counts, probs in zip(("insert", "delete"), (ks, gone), pairs, strict=True)
    )
    known = slides(["A"], [None], [9])
    return measure_slides(curves, known, CLASSES, Settings(kappas=(0.7,))).of("native")


def test_decisive_k_needs_both_conditions_at_a_count_known_in_both_directions() -> None:
    found = two_way([1, 2, 4, 5, 6], [0.95] * 5, [1, 3, 4, 5, 6], [0.6, 0.1, 0.4, 0.6, 0.1])
    assert found.both_ways.all()
    assert found.decisive.item() == 4, "3 was never revealed"
    assert found.decisive_paper.item() == 6
    assert found.flips_back.item(), "at 5 the decision is the old one"
    assert not found.deleted_all.any()
    steady = two_way([1, 2, 3, 4], [0.8, 0.95, 0.95, 0.95], [1, 2, 3], [0.3, 0.3, 0.3])
    assert (steady.decisive.item(), steady.flips_back.item()) == (2, False)
    assert steady.at("decisive_at", Threshold(0.7)).item() == 1
    assert steady.at("msk_at", Threshold(0.7)).item() == 1
    with pytest.raises(FociError, match=r"threshold 0\.4: was not measured"):
        steady.at("msk_at", Threshold(0.4))


def test_a_curve_holds_its_value_between_its_counts_and_has_its_first_before_them() -> None:
    ks = [np.array([2, 4]), np.array([3])]
    p = [np.array([0.6, 0.8]), np.array([0.7])]
    curves = CurveTable.of(
        Curve(f"s{i}", "native", None, "insert", 9, ks[i], two(p[i], 1), two(0.9, 1))
        for i in range(2)
    )
    whole = whole_slides(curves, slides(["A", "B"], [None] * 2, [9, 9]), CLASSES)
    rows, grid = np.arange(2), np.arange(1, 6)
    at = (Threshold(0.9),)
    _, held = measure(curves, whole, rows, whole.predictions, at, grid, Settings())
    np.testing.assert_array_equal(held, [[[0.6, 0.6, 0.6, 0.8, 0.8], [0.7] * 5]])


@pytest.mark.parametrize("seed", range(4))
def test_columns_are_the_metrics_of_every_order(seed: int) -> None:
    """Against the metrics of a cohort, order by order, at every threshold."""
    n, k_max, names = 12, 50, ["a", "b", "c"]
    curves = random_table(seed, n, len(names))
    labels = [names[i] for i in np.random.default_rng(seed).integers(0, 3, n)]
    sizes = [c.n_tiles for c in curves.get("native")]
    settings = Settings(kappa=0.5, kappas=(0.4, 0.7), k_max=k_max, relative=True)
    found = measure_slides(curves, slides(list("ABCDEFGHIJKL"), labels, sizes), names, settings)
    full = found.slides.full
    for view, table_ in found.tables.items():
        target = found.targets[view]
        for row, order in enumerate(table_.orders):
            kept, gone = found.curves.get(*order), found.curves.deletions(*order)
            insert = stack([c.probs for c in kept], [c.ks for c in kept])
            delete = stack([c.probs for c in gone], [c.ks for c in gone], lowest=0)
            points = operating_points(insert, full, target, 0.5)
            for name in ("msk", "stable", "aukc", "specific"):
                np.testing.assert_array_equal(getattr(table_, name)[row], getattr(points, name))
            flips = decisive_points(insert, delete, target, sizes, 0.5, k_max)
            np.testing.assert_array_equal(table_.decisive[row], flips.count)
            np.testing.assert_array_equal(table_.flips_back[row], flips.flips_back)
            paper = decisive_points(insert, delete, target, sizes, 0.5, k_max, beta=0.2)
            np.testing.assert_array_equal(table_.decisive_paper[row], paper.count)
            drops = drops_on_grid(delete, full, target, settings.deletion)
            np.testing.assert_array_equal(table_.drops[row], drops)
            for threshold in table_.thresholds:
                needed = threshold.needed(followed(full, target).confidence)
                first = operating_points(insert, full, target, needed).msk
                np.testing.assert_array_equal(table_.at("msk_at", threshold)[row], first)
                both = decisive_points(insert, delete, target, sizes, needed, k_max).count
                np.testing.assert_array_equal(table_.at("decisive_at", threshold)[row], both)


# Blocks and orders


def made(n_deleted: int, *, meeting: bool = True) -> CurveTable:
    """Five random orders of five slides; tiles are deleted under the first of them only."""
    rng = np.random.default_rng(3)
    full = {n: rng.dirichlet([1, 3]) for n in range(len(SIZES))}
    curves = []
    for seed in range(5):
        for n, size in enumerate(SIZES):
            last = min(size, 256)
            every, grid = np.arange(1, last + 1), np.array([k for k in (1, 2, 4, 32) if k <= last])
            ks = every if seed % 2 else grid
            gone = np.array([k for k in ((1, 3, 16) if meeting or seed else (3, 5)) if k < size])
            for direction, counts in (("insert", ks), ("delete", gone)):
                if direction == "delete" and seed >= n_deleted:
                    continue
                probs = rng.dirichlet([0.2, 0.5], size=len(counts)).reshape(-1, 2)
                curves.append(
                    Curve(f"s{n}", "random", seed, direction, size, counts, probs, full[n])
                )
    return CurveTable.of(curves)


def same(a: Measured, b: Measured) -> bool:
    """Bit by bit."""
    names = (*COLUMNS, "orders", "thresholds", "k_max")
    pairs = [(getattr(a, name), getattr(b, name)) for name in names]
    return all(
        x.dtype == y.dtype and x.tobytes() == y.tobytes() if isinstance(x, np.ndarray) else x == y
        for x, y in pairs
    )


def both_the_same(a: MeasuredSlides, b: MeasuredSlides) -> bool:
    tables = all(same(a.tables[view], b.tables[view]) for view in b.tables)
    return tables and all(a.mean_curves[view] == b.mean_curves[view] for view in b.tables)


LABELS: list[list[str | None]] = [
    [B, T, B, T, B], [T] * 5, [B, None, T, T, None], [None, None, B, None, None], [None] * 5,
]  # fmt: skip


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("n_deleted", [0, 2, 5])
def test_blocks_of_slides_give_the_bits_of_all_slides_together(
    labels: list[str | None], relative: bool, n_deleted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves, known = made(n_deleted), slides(list("ABCDE"), labels, SIZES)
    settings = Settings(kappas=(0.6, 0.8), relative=relative)
    together = measure_slides(curves, known, CLASSES, settings)
    for most in (1, 11):
        monkeypatch.setattr(module, "_TOGETHER", most)
        assert both_the_same(measure_slides(curves, known, CLASSES, settings), together)
    own = together.of("random")
    assert own.deleted.any(axis=1).tolist() == [True] * n_deleted + [False] * (5 - n_deleted)
    assert len(own.with_deletions.orders) == (n_deleted or 5)


def test_rankings_together_and_alone() -> None:
    """Two rankings whose tiles were deleted at every count, and one on a grid."""
    rng, size = np.random.default_rng(5), 6
    deleted = {"native": range(1, size), "evidence": range(1, size), "random": (1, 4)}
    curves = []
    for ranking, gone in deleted.items():
        for n in range(4):
            for direction, counts in (("insert", range(1, size + 1)), ("delete", gone)):
                ks = np.array(counts)
                probs = rng.dirichlet([0.2, 0.5], size=len(ks))
                seed = 0 if ranking == "random" else None
                full = np.array([0.1, 0.9])
                curves.append(Curve(f"s{n}", ranking, seed, direction, size, ks, probs, full))
    known = slides(list("ABCD"), [B, T, B, T], [size] * 4)
    found = measure_slides(CurveTable.of(curves), known, CLASSES, Settings())
    for name in deleted:
        one = CurveTable.of([curve for curve in curves if curve.ranking == name])
        alone = measure_slides(one, known, CLASSES, Settings())
        for view in found.tables:
            assert same(found.of(name, view), alone.tables[view])
            assert found.mean_curves[view][name] == alone.mean_curves[view][name]
        decisive = found.of(name).with_decisive
        assert decisive.deleted_all.all() == (name != "random")


def test_one_seed_without_shared_counts_leaves_the_others() -> None:
    curves, known = made(5, meeting=False), slides(list("ABCDE"), [None] * 5, SIZES)
    found = measure_slides(curves, known, CLASSES, Settings()).of("random")
    assert found.both_ways.all(axis=1).tolist() == [False, True, True, True, True]
    assert [seed for _, seed in found.with_decisive.orders] == [1, 2, 3, 4]
    nothing = measure_slides(made(0), known, CLASSES, Settings()).of("random")
    assert nothing.with_decisive is None


# Mean curve


def test_bands() -> None:
    ks = np.array([1, 2])
    both = np.array([[[0.0, 0.5], [1.0, 0.5]], [[0.5, 0.5], [0.5, 1.0]]])
    by_slide = mean_curve(ks, [both], over_orders=False)
    assert by_slide.mean == [0.5, 0.625]
    assert by_slide.low == [0.375, 0.5625]  # quartiles of (0.25, 0.75) and (0.5, 0.75)
    by_order = mean_curve(ks, [both], over_orders=True)
    assert by_order.mean == [0.5, 0.625]
    assert (by_order.low, by_order.high) == ([0.5, 0.5], [0.5, 0.75])
    band = mean_curve(ks[:1], [np.array([[[0.97]], [[0.93]], [[0.98]]])], over_orders=True)
    assert (band.low, band.high) == ([0.93], [0.98])
    assert band.mean == pytest.approx([0.96])


def test_what_does_not_fit_into_memory_is_measured_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    curves, known = made(2), slides(list("ABCDE"), [B, T, None, T, B], SIZES)
    whole = measure_slides(curves, known, CLASSES, Settings())
    monkeypatch.setattr(spill, "LARGE", 1)
    monkeypatch.setattr(module, "_NUMBERS_AT_ONCE", 16)
    found = measure_slides(curves, known, CLASSES, Settings())
    assert isinstance(found.kept, spill.Spilled)
    assert found.mean_curves == whole.mean_curves
    for view, own in whole.tables.items():
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(found.tables[view], name), getattr(own, name))
        again, threshold = found.of("random", view), own.thresholds[0]
        expected = whole.of("random", view).at("decisive_at", threshold)
        np.testing.assert_array_equal(again.at("decisive_at", threshold), expected)


def test_the_largest_slide_gives_the_counts() -> None:
    curves = [curve(f"s{n}", "native", None, 1, n_tiles=n) for n in (3, 9, 5)]
    shared, reaching = counts_shared(curves)
    assert (shared.tolist(), reaching.tolist()) == (
        [0, *[3] * 3, *[2] * 2, *[1] * 4],
        [*[3] * 4, *[2] * 2, *[1] * 4],
    )


@given(
    st.lists(
        st.lists(st.integers(1, 12), min_size=1, unique=True).map(sorted), min_size=1, max_size=8
    )
)
def test_common_counts_by_loop(counts: list[list[int]]) -> None:
    curves = [
        replace(curve(f"s{n}", "native", None, 1), ks=np.array(ks)) for n, ks in enumerate(counts)
    ]
    every = sorted({k for ks in counts for k in ks})
    expected = [k for k in every if all(k in ks for ks in counts if ks[-1] >= k)]
    shared, reaching = counts_shared(curves)
    assert np.flatnonzero((shared == reaching) & (shared > 0)).tolist() == expected
