"""Planning, tissue and features of the synthetic cohort."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foci.demo.cohort import (
    FEWEST,
    FOLD,
    KINDS,
    MOST,
    PEN,
    TUMOUR,
    WIDTH,
    Layout,
    Palette,
    PlannedSlide,
    TissueMap,
    class_amounts,
    encode,
    grow,
    lay_out,
    map_tissue,
    mix_palette,
    neighbours,
    pieces,
    plan_cohort,
    plant,
    smooth_field,
)
from foci.errors import FociError


@given(st.sampled_from([2, 3]), st.integers(12, 90), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_any_size_gives_disjoint_patients_and_every_class_in_every_split(
    classes: int, slides: int, seed: int
) -> None:
    plans = plan_cohort(np.random.default_rng(seed), slides, classes)
    names = [p.slide_id for p in plans]
    assert len(names) == len(set(names)) == slides
    assert names == sorted(names)
    facts = {(p.case_id, p.label, p.split, p.site) for p in plans}
    assert len(facts) == len({p.case_id for p in plans})
    assert {(p.label, p.split) for p in plans} == {
        (label, split) for label in range(classes) for split in ("train", "val", "test")
    }
    assert len({(p.label, p.site) for p in plans}) == 2 * classes


def test_shares_of_the_default_cohort() -> None:
    plans = plan_cohort(np.random.default_rng(0), 240, 2)
    per_patient = Counter(Counter(p.case_id for p in plans).values())
    assert per_patient == {1: 160, 2: 40}
    of_patients = Counter(split for _, split in {(p.case_id, p.split) for p in plans})
    assert of_patients == {"train": 120, "val": 30, "test": 50}
    sites = Counter((p.label, p.site) for _, p in {p.case_id: p for p in plans}.items())
    assert set(sites.values()) == {50}
    for label in (0, 1):
        assert sum(p.hard for p in plans if p.label == label) / 120 == pytest.approx(0.15, abs=0.02)
    assert sum(p.magnification == 40 for p in plans) / 240 == pytest.approx(0.1, abs=0.02)
    assert {p.magnification for p in plans} == {20, 40}


def test_names_do_not_give_the_class_away() -> None:
    plans = plan_cohort(np.random.default_rng(0), 240, 2)
    labels = np.array([p.label for p in plans])
    assert abs(np.corrcoef(labels, np.arange(240))[0, 1]) < 0.2


@pytest.mark.parametrize(
    ("slides", "classes", "says"),
    [
        (7, 2, "slides=7: is too few for 2 classes in three splits; choose at least 8"),
        (11, 3, "slides=11: is too few for 3 classes in three splits; choose at least 12"),
        (99, 1, "classes=1: is not possible in the demo; choose 2 or 3"),
    ],
)
def test_impossible_cohorts_are_refused(slides: int, classes: int, says: str) -> None:
    with pytest.raises(FociError) as refusal:
        plan_cohort(np.random.default_rng(0), slides, classes)
    assert str(refusal.value) == says


Cells = list[tuple[int, int]]


some_cells = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=40, unique=True
)


def touch(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a != b and max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1


def reachable(cells: Cells, first: int) -> set[int]:
    """Every tile that a chain of touching tiles links to ``first``."""
    reached = {first}
    while True:
        more = {
            j for i in reached for j in range(len(cells)) if touch(cells[i], cells[j])
        } - reached
        if not more:
            return reached
        reached |= more


@given(some_cells)
def test_neighbours_touch_by_side_or_corner(cells: Cells) -> None:
    found = neighbours(np.array(cells))
    for tile, own in enumerate(found):
        assert sorted(own) == [j for j, c in enumerate(cells) if touch(cells[tile], c)]


@given(some_cells)
def test_pieces_are_what_chains_of_neighbours_link(cells: Cells) -> None:
    piece = pieces(neighbours(np.array(cells)))
    for tile in range(len(cells)):
        assert set(np.flatnonzero(piece == piece[tile])) == reachable(cells, tile)
    firsts = [int(np.flatnonzero(piece == number)[0]) for number in range(piece.max() + 1)]
    assert firsts == sorted(firsts)


@given(some_cells, st.integers(1, 40), st.randoms(use_true_random=False))
def test_a_region_is_connected_and_as_large_as_there_is_room(
    cells: Cells, size: int, random: Random
) -> None:
    appeal = np.array([random.random() for _ in cells])
    region = grow(neighbours(np.array(cells)), 0, appeal, size, np.ones(len(cells), dtype=bool))
    inside = [c for c, own in zip(cells, region, strict=True) if own]
    assert region[0]
    assert len(reachable(inside, 0)) == len(inside) == min(size, len(reachable(cells, 0)))


def test_the_most_appealing_neighbour_joins_first_and_borders_hold() -> None:
    cells = np.array([[x, 0] for x in range(6)])
    appeal = np.array([0.0, 1.0, 0.0, 2.0, 9.0, 9.0])
    within = np.array([True, True, True, True, False, True])
    region = grow(neighbours(cells), 2, appeal, 3, within)
    assert np.flatnonzero(region).tolist() == [1, 2, 3]
    everything = grow(neighbours(cells), 2, appeal, 6, within)
    assert np.flatnonzero(everything).tolist() == [0, 1, 2, 3]


def test_mean_variance_and_covariance_follow_the_kernel() -> None:
    r"""k_m ~ N(0, I/4) gives E[f(0) f(r)] = exp(-(2 pi r / wavelength)^2 / 8)."""
    rng = np.random.default_rng(0)
    places = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 5.0], [60.0, 60.0]])
    draws = np.stack([smooth_field(rng, places, wavelength=10.0) for _ in range(8000)])
    distance = np.hypot(*places.T)
    expected = np.exp(-((2 * np.pi * distance / 10) ** 2) / 8)
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=0.05)
    np.testing.assert_allclose(draws.var(axis=0), 1, atol=0.05)
    np.testing.assert_allclose((draws[:, :1] * draws).mean(axis=0), expected, atol=0.05)


def test_it_depends_on_the_place_in_wavelengths() -> None:
    places = np.random.default_rng(1).uniform(0, 9, size=(20, 2))
    near, far = (
        smooth_field(np.random.default_rng(2), scale * places, wavelength=3.0 * scale)
        for scale in (1.0, 7.0)
    )
    np.testing.assert_allclose(near, far, atol=1e-10)


@pytest.fixture(scope="module")
def layouts() -> list[Layout]:
    return [lay_out(np.random.default_rng(seed)) for seed in range(60)]


def test_tiles_lie_inside_the_canvas_once_and_row_by_row(layouts: list[Layout]) -> None:
    for layout in layouts:
        columns, rows = layout.cells.T
        assert columns.min() >= 1
        assert rows.min() >= 1
        assert columns.max() <= layout.columns - 2
        assert rows.max() <= layout.rows - 2
        assert (np.diff(rows * layout.columns + columns) > 0).all()


def test_slides_differ_in_size_and_in_the_number_of_pieces(layouts: list[Layout]) -> None:
    sizes = [len(layout) for layout in layouts]
    assert FEWEST <= min(sizes) < 180
    assert 400 < max(sizes) <= MOST
    assert 230 < np.mean(sizes) < 310
    counts = [layout.piece.max() + 1 for layout in layouts]
    assert {1, 2, 3} <= set(counts)


def test_islands_are_dropped(layouts: list[Layout]) -> None:
    smallest = [np.bincount(layout.piece).min() for layout in layouts if len(layout) > FEWEST]
    assert min(smallest) >= 8


Mapped = tuple[Layout, TissueMap]


@pytest.fixture(scope="module")
def mapped() -> list[Mapped]:
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        layout = lay_out(rng)
        found.append((layout, map_tissue(rng, layout)))
    return found


def test_witnesses_are_two_to_six_percent_in_one_cluster_of_tumour(mapped: list[Mapped]) -> None:
    for layout, tissue in mapped:
        chosen = np.flatnonzero(tissue.witness)
        place = {tile: number for number, tile in enumerate(chosen)}
        inside = [[place[j] for j in layout.touching[i] if j in place] for i in chosen]
        assert pieces(inside).max() == 0
        assert max(3, 0.02 * len(layout)) <= len(chosen) <= 0.06 * len(layout)
        assert (tissue.kind[chosen] == TUMOUR).all()


def test_distractors_and_artefacts_spare_the_witnesses(mapped: list[Mapped]) -> None:
    for _, tissue in mapped:
        artefact = np.isin(tissue.kind, [PEN, FOLD])
        assert 2 <= artefact.sum() <= 6
        assert not (artefact & (tissue.witness | tissue.distractor)).any()
        assert not (tissue.distractor & tissue.witness).any()
        assert tissue.distractor.any()
        assert (tissue.kind[tissue.distractor] == TUMOUR).all()


def test_neighbours_mostly_show_the_same_tissue(mapped: list[Mapped]) -> None:
    alike, at_random = [], []
    for layout, tissue in mapped:
        pairs = [(i, j) for i, own in enumerate(layout.touching) for j in own]
        first, second = np.array(pairs).T
        alike.append(np.mean(tissue.kind[first] == tissue.kind[second]))
        at_random.append(((np.bincount(tissue.kind) / len(layout)) ** 2).sum())
    assert np.mean(alike) > 0.6
    assert np.mean(alike) > 2 * np.mean(at_random)


def test_every_kind_occurs_and_stroma_is_the_commonest_benign_one(mapped: list[Mapped]) -> None:
    total = sum(np.bincount(tissue.kind, minlength=len(KINDS)) for _, tissue in mapped)
    assert (total > 0).all()
    assert KINDS[int(np.argmax(total[:TUMOUR]))] == "stroma"
    assert 0.15 < total[TUMOUR] / total.sum() < 0.4


@pytest.fixture(scope="module")
def palette() -> Palette:
    return mix_palette(np.random.default_rng(0), classes=3)


def tissue() -> TissueMap:
    """A quarter tumour, with 20 witnesses and 20 distractors."""
    index = np.arange(400)
    kind = index % (len(KINDS) - 2)
    kind[:100] = TUMOUR
    return TissueMap(kind, index < 20, (index >= 20) & (index < 40))


def test_prototypes_and_class_directions_are_orthogonal(palette: Palette) -> None:
    directions = np.concatenate([palette.kinds, palette.classes])
    gram = directions @ directions.T
    np.testing.assert_allclose(gram - np.diag(np.diag(gram)), 0, atol=1e-10)
    np.testing.assert_allclose(np.linalg.norm(palette.classes, axis=1), 1)
    lengths = dict(zip(KINDS, np.linalg.norm(palette.kinds, axis=1), strict=True))
    assert min(lengths["pen"], lengths["fold"]) > 1.5 * max(
        length for kind, length in lengths.items() if kind not in ("pen", "fold")
    )


@pytest.mark.parametrize("hard", [False, True])
def test_features_are_prototype_amounts_shift_and_noise(palette: Palette, hard: bool) -> None:
    shown = tissue()
    amounts = class_amounts(np.random.default_rng(5), shown, label=1, classes=3, hard=hard)
    plan = PlannedSlide("s", "c", label=1, split="train", site=1, hard=hard)
    x = encode(np.random.default_rng(5), palette, shown, plan)
    assert x.dtype == np.float32
    assert x.shape == (len(shown.kind), WIDTH)
    rest = x - palette.kinds[shown.kind] - amounts @ palette.classes
    shift = rest.mean(axis=0)
    assert np.std(rest - shift) == pytest.approx(0.5, rel=0.02)
    assert np.std(shift - palette.sites[1]) == pytest.approx(0.1, rel=0.3)


def planted(seed: int, hard: bool) -> np.ndarray:
    """What the class of a slide adds to its witnesses, and to no other tile."""
    shown = tissue()
    as_a, as_b = (
        class_amounts(np.random.default_rng(seed), shown, label=label, classes=2, hard=hard)
        for label in (0, 1)
    )
    np.testing.assert_array_equal(as_a[~shown.witness], as_b[~shown.witness])
    return (as_a - as_b)[shown.witness]


def test_only_the_witnesses_depend_on_the_class() -> None:
    found = planted(7, hard=False)
    np.testing.assert_allclose(found[:, 0], -found[:, 1])
    assert (found[:, 0] > 2.6).all()
    assert (found[:, 0] < 4.2).all()


def test_distractors_hint_at_any_class_and_less_than_witnesses_tell() -> None:
    shown = tissue()
    hinted = []
    for seed in range(40):
        amounts = class_amounts(np.random.default_rng(seed), shown, label=0, classes=2, hard=False)
        ordinary = (shown.kind == TUMOUR) & ~shown.witness & ~shown.distractor
        extra = amounts[shown.distractor].mean(axis=0) - amounts[ordinary].mean(axis=0)
        hinted.append(int(np.argmax(extra)))
        assert 1.4 < extra.max() < 2.8
        assert abs(extra.min()) < 0.3
    assert 8 <= sum(hinted) <= 32


def test_hard_slides_carry_less() -> None:
    hard, others = (
        [float(planted(seed, hard)[:, 0].mean()) for seed in range(20)] for hard in (True, False)
    )
    assert max(hard) < min(others)


def test_a_slide_at_40x_is_the_same_tissue_in_pixels_half_as_large() -> None:
    palette = mix_palette(np.random.default_rng(0), classes=2)
    plan = PlannedSlide("s", "c", label=0, split="train", site=0, hard=False, magnification=20)
    at_20 = plant(np.random.default_rng(1), plan, palette)
    at_40 = plant(np.random.default_rng(1), replace(plan, magnification=40), palette)
    assert (at_20.patch_size, at_40.patch_size) == (256, 512)
    np.testing.assert_array_equal(2 * at_20.coords, at_40.coords)
    np.testing.assert_array_equal(at_20.features, at_40.features)
    for slide in (at_20, at_40):
        assert (slide.coords % slide.patch_size == 0).all()
        assert (slide.coords.max(axis=0) + slide.patch_size <= slide.size).all()
