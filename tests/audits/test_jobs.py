"""Ranking jobs, the counts of each, and what adaptive counts change."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foci import rankings
from foci.audits import StoredAudit, jobs
from foci.audits.jobs import (
    FINE,
    RankingJob,
    counts_beyond,
    decisive_grid,
    deletion_counts,
    doubtful_steps,
    first_decisive,
    mean_rank,
    ranking_jobs,
    reveal_counts,
)
from foci.audits.measure import Threshold
from foci.audits.reveal import SlideReveal
from foci.audits.run import run
from foci.audits.settings import SHARE, SHARES, AuditSettings, null_counts
from foci.audits.sources import Sources
from foci.bags import Cohort
from foci.metrics.inputs import Floats
from foci.rankings import EmbeddedBag, uniform_scores
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, planted, read


def test_columns_in_the_order_of_the_rankings() -> None:
    chosen = settings(
        rankings=("random", "selector", "leave-one-out"), seeds=(3, 1), seeds_as="each"
    )
    fitted = {seed: object() for seed in (3, 1)}
    units = ranking_jobs(chosen, fitted)  # type: ignore[arg-type]
    assert [unit.column for unit in units] == [
        "random", "selector-3", "selector-1", "leave-one-out",
    ]  # fmt: skip
    assert [unit.stored for unit in units] == [False, True, True, True]
    assert [unit.selectors for unit in units] == [(), (fitted[3],), (fitted[1],), ()]


@pytest.mark.parametrize(
    ("changes", "columns"),
    [
        ({}, ["selector"]),
        ({"dense": True}, ["selector", "selector-seed-3", "selector-seed-1"]),
        ({"seeds": (3,), "dense": True}, ["selector-3"]),
    ],
)
def test_the_selector_is_the_mean_rank_of_its_seeds(
    changes: dict[str, object], columns: list[str]
) -> None:
    chosen = settings(**{"rankings": ("selector",), "seeds": (3, 1), **changes})
    fitted = {seed: object() for seed in (3, 1)}
    jobs = ranking_jobs(chosen, fitted)  # type: ignore[arg-type]
    assert [job.column for job in jobs] == columns
    assert all(job.stored for job in jobs)
    if len(columns) != 1 or columns == ["selector"]:
        assert jobs[0].selectors == (fitted[3], fitted[1])


def test_mean_rank_by_hand() -> None:
    rows = np.array([[0.9, 0.1, 0.5, 0.2], [0.3, 0.2, 0.8, 0.1]])  # ranks 0 3 1 2 and 1 2 0 3
    merged = mean_rank([rankings.Ranking("selector", "s", row) for row in rows])
    assert merged.scores.tolist() == [-0.5, -2.5, -0.5, -2.5]
    drawn = uniform_scores("s", 4, -1)  # ties by a draw of the slide
    assert merged.order.tolist() == [
        *sorted((0, 2), key=lambda i: drawn[i]), *sorted((1, 3), key=lambda i: drawn[i]),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["native", "leave-one-out", "greedy-insertion"])
def test_a_unit_ranks_as_the_registry_does(files: Path, name: str) -> None:
    backbone, bag = model(), read(files).bag("s00")
    ((seed, got),) = RankingJob(name).rank(EmbeddedBag(backbone, bag))
    assert seed is None
    np.testing.assert_array_equal(got.scores, rankings.score(name, backbone, bag).scores)


def test_all_random_orders_are_one_unit(files: Path) -> None:
    backbone, bag = model(), read(files).bag("s00")
    found = RankingJob("random", orders=3).rank(EmbeddedBag(backbone, bag))
    assert [seed for seed, _ in found] == [0, 1, 2]
    for (_, got), want in zip(found, rankings.random_controls(bag, 3), strict=True):
        np.testing.assert_array_equal(got.scores, want.scores)


TILES = st.integers(2, 400)
BUDGETS = st.integers(1, 300)


@pytest.mark.parametrize(
    ("dense", "name", "expected"),
    [(False, "abmil", False), (False, "transmil", True), (True, "transmil", False)],
)
def test_counts_are_adaptive_without_a_closed_form(dense: bool, name: str, expected: bool) -> None:
    assert SlideReveal(model(name), AuditSettings(dense=dense)).adaptive is expected


def test_the_paper_and_dense_reveal_every_count() -> None:
    assert not AuditSettings().reveals_every_count
    assert AuditSettings(dense=True).reveals_every_count
    assert AuditSettings(profile="paper").reveals_every_count


def test_the_fine_grid_steps_by_an_eighth_of_the_count_at_most() -> None:
    assert FINE[0] == 1
    assert FINE[-1] == 256
    assert all(b - a <= max(1, a / 8) for a, b in pairwise(FINE))


@given(n_tiles=TILES, k_max=BUDGETS)
def test_every_count_is_revealed_and_deleted_where_all_are_dense(n_tiles: int, k_max: int) -> None:
    settings = AuditSettings(k_max=k_max, deletion=(1,), null_maps=0)
    last = min(k_max, n_tiles)
    assert reveal_counts(settings, n_tiles).tolist() == [*range(1, last + 1)]
    deleted = deletion_counts(settings, n_tiles, dense=True).tolist()
    assert deleted == [*range(1, min(k_max, n_tiles - 1) + 1)], "one tile stays"
    assert deletion_counts(settings, n_tiles, dense=False).tolist() == [1]
    compared = settings.model_copy(update={"null_maps": 9})  # at counts of their own, too
    for dense, own in ((True, deleted), (False, [1])):
        wanted = sorted({*own, *(k for k in np.unique(null_counts(n_tiles)).tolist() if k)})
        assert deletion_counts(compared, n_tiles, dense=dense).tolist() == wanted


@given(n_tiles=TILES, k_max=BUDGETS, control=st.booleans())
def test_counts_beyond_the_crossing_end_at_the_last_one(
    n_tiles: int, k_max: int, control: bool
) -> None:
    settings = AuditSettings(k_max=k_max, deletion=(3, 500))
    found = counts_beyond(settings, n_tiles, control=control)
    last = min(k_max, n_tiles)
    assert (found[0], found[-1]) == (1, last)
    assert found == sorted(set(found))
    assert (3 in found) == (last >= 3)
    assert control or {k for k in FINE if k <= last} <= set(found)


@given(n_tiles=TILES, k_max=BUDGETS)
def test_the_first_grid_of_decisive_k_steps_by_a_sixteenth(n_tiles: int, k_max: int) -> None:
    found = decisive_grid(AuditSettings(k_max=k_max, deletion=(2, 1000)), n_tiles)
    last = min(k_max, n_tiles - 1)
    step = max(1, n_tiles // 16)
    assert found[-1] == max(last, n_tiles // 2 if n_tiles > 1 else 0)
    assert all(b - a <= step for a, b in pairwise([0, *found]) if b <= last)
    assert all(b <= max(a + 1, 1.5 * a + 1) for a, b in pairwise(found) if a >= last)
    assert (2 in found) == (found[-1] >= 2)


RANKINGS = ("native", "evidence", "selector", "random")


CHOSEN = {"seeds": (0, 1, 2), "random_orders": 4, "k_max": 40,
          "deletion": (1, 2, 4, 8, 16, 32, 64, 128)}  # fmt: skip
BACKBONE = model("transmil", depth=2, heads=2)


def planted_tests(folder: Path) -> Cohort:
    """8 slides of any split, and 16 to audit."""
    cohort = planted(folder, slides=24, d=D_IN, tiles=(70, 100))
    rest = [replace(slide, split="test") for slide in cohort.slides[8:]]
    return replace(cohort, slides=(*cohort.slides[:8], *rest))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoredAudit, StoredAudit]:
    """The same slides, with every count and with few."""
    folder = tmp_path_factory.mktemp("adaptive")
    cohort, chosen = planted_tests(folder), {**CHOSEN, "rankings": RANKINGS}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "EVERY_COUNT_UP_TO", 64)
        few_counts, dense = (
            run(Sources(BACKBONE, cohort), settings(**chosen, dense=dense), folder / str(dense))
            for dense in (False, True)
        )
    return few_counts, dense


def same(a: Floats, b: Floats) -> bool:
    return bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())


@pytest.mark.parametrize("ranking", RANKINGS)
def test_crossings_and_drops_are_exact(both: tuple[StoredAudit, StoredAudit], ranking: str) -> None:
    few_counts, dense = both
    few, every = few_counts.measured(), dense.measured()
    for view in few.tables:
        a, b = few.of(ranking, view), every.of(ranking, view)
        assert same(a.msk, b.msk)
        assert same(a.specific, b.specific)
        deleted = a.deleted.any(axis=1)
        assert deleted.any()
        np.testing.assert_allclose(
            a.faithfulness[deleted], b.faithfulness[deleted], rtol=0, atol=1e-5
        )
        assert (np.abs(a.aukc - b.aukc) <= a.aukc_error + 1e-5).all()
        if view == "prediction":
            assert Threshold(SHARE, relative=True) in a.thresholds
            for threshold in a.thresholds:
                decided = threshold.decided(few.slides)
                msk, exact = (own.at("msk_at", threshold)[:, decided] for own in (a, b))
                assert same(msk, exact)
        assert a.both_ways[deleted].all()
        assert b.both_ways.all()
        assert not (a.decisive[deleted] < b.decisive[deleted]).any()  # an upper bound


def test_relative_crossings_and_decisive_counts_of_small_bags_are_exact(
    both: tuple[StoredAudit, StoredAudit], tmp_path: Path
) -> None:
    _, dense = both
    chosen = settings(**CHOSEN, rankings=("native", "random"), relative=True)
    cohort = planted_tests(tmp_path)
    asked = run(Sources(BACKBONE, cohort), chosen, tmp_path / "relative")
    few, every = asked.measured(), dense.measured(chosen)
    for ranking in ("native", "random"):
        a, b = few.of(ranking), every.of(ranking)
        deleted = a.deleted.any(axis=1)
        assert deleted.any()
        for share in SHARES:
            threshold = Threshold(share, relative=True)
            assert same(a.at("msk_at", threshold), b.at("msk_at", threshold))
            # small bags: every count is deleted
            found, exact = (one.at("decisive_at", threshold)[deleted] for one in (a, b))
            assert same(found, exact)
        assert same(a.decisive[deleted], b.decisive[deleted])
    assert not any("Relative to the slide" in note for note in asked.summary.notes)


def test_summary_says_which_numbers_are_dense(both: tuple[StoredAudit, StoredAudit]) -> None:
    few_counts, dense = both
    assert dense.summary.rankings == ["native", "evidence", "selector", "selector-seed", "random"]
    assert few_counts.summary.rankings == ["native", "evidence", "selector", "random"]
    for own in dense.summary.views["prediction"].values():
        assert (own.counts.insertion, own.counts.deletion) == ("dense", "dense")
        assert (own.counts.aukc_error, own.counts.n_bounds) == (0.0, 0)
    assert len(dense.summary.views["prediction"]["selector-seed"].aukc_seeds) == 3
    behind = {name: own.counts for name, own in few_counts.summary.views["prediction"].items()}
    assert {own.insertion for own in behind.values() if own} == {"grid"}
    assert {own.n_bounds for own in behind.values() if own} == {0}
    assert (behind["random"].n_deleted, behind["random"].deletion) == (3, "grid")
    told = " ".join(few_counts.summary.notes)
    assert "MSK and Reach are exact" in told
    assert "decisive K is an upper bound" in told
    assert "under 3 of 4 random orders" in told
    assert "grid" not in " ".join(dense.summary.notes)


def test_fewer_counts_are_computed(both: tuple[StoredAudit, StoredAudit]) -> None:
    deleted = [sum(len(c.ks) for c in audit.curves.deletions("native", None)) for audit in both]
    assert deleted[0] < deleted[1] / 2


def test_counts_beyond_the_crossing() -> None:
    found = counts_beyond(settings(k_max=256, deletion=(5, 300)), 2000, control=True)
    assert found == [1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 60, 64, 96, 128, 192, 256]
    fine = counts_beyond(settings(k_max=256, deletion=(5,)), 2000, control=False)
    assert set(found) - {3} <= {*fine, 3}
    assert len(fine) == 48
    assert counts_beyond(settings(k_max=256), 1, control=True) == [1]


@given(st.integers(0, 10_000), st.integers(2, 4))
def test_only_doubtful_steps_have_to_be_exact(seed: int, n_classes: int) -> None:
    """Curves that stay near ties and thresholds, seen with errors up to the margin."""
    rng, margin, needed = np.random.default_rng(seed), 0.01, (0.5, 0.6)
    exact = []
    for _ in range(2):
        rest = rng.dirichlet(np.ones(n_classes - 1), size=40)
        own = rng.choice([0.1, 0.5, 0.6], size=(40, 1)) + rng.uniform(-0.02, 0.02, (40, 1))
        exact.append(np.concatenate([rest * (1 - own), own], axis=1))
    kept, left = (one + rng.uniform(-margin, margin, one.shape) for one in exact)
    target = n_classes - 1
    again = doubtful_steps(kept, left, target, needed, margin)
    for one, true in zip((kept, left), exact, strict=True):
        one[again] = true[again]
    assert first_decisive(kept, left, target, needed) == first_decisive(*exact, target, needed)
