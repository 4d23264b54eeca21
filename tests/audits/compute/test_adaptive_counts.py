"""Adaptive counts change no MSK, no crossing and no reported drop: against every count."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foci.audits import StoredAudit, jobs
from foci.audits.jobs import counts_beyond
from foci.audits.measure import Threshold
from foci.audits.run import run
from foci.audits.settings import SHARE, SHARES
from foci.audits.sources import Sources
from foci.bags import Cohort
from foci.metrics.inputs import Floats
from tests.makers.audits import model, settings
from tests.makers.cohorts import D_IN, planted

RANKINGS = ("native", "evidence", "selector", "random")


CHOSEN = {"seeds": (0, 1, 2), "random_orders": 4, "k_max": 40,
          "deletion": (1, 2, 4, 8, 16, 32)}  # fmt: skip
BACKBONE = model("transmil", depth=2, heads=2)


def planted_tests(folder: Path) -> Cohort:
    """8 slides of any split, and 16 to audit."""
    cohort = planted(folder, slides=24, d=D_IN, tiles=(100, 140))
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
                msk, exact = (own.at(own.msk_at, threshold)[:, decided] for own in (a, b))
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
            assert same(a.at(a.msk_at, threshold), b.at(b.msk_at, threshold))
            # small bags: every count is deleted
            found, exact = (one.at(one.decisive_at, threshold)[deleted] for one in (a, b))
            assert same(found, exact)
        assert same(a.decisive[deleted], b.decisive[deleted])
    assert not any("Relative to the slide" in note for note in asked.summary.notes)


def test_summary_says_which_numbers_are_dense(both: tuple[StoredAudit, StoredAudit]) -> None:
    few_counts, dense = both
    assert dense.summary.rankings == ["native", "evidence", "selector", "selector-seed", "random"]
    assert few_counts.summary.rankings == ["native", "evidence", "selector", "random"]
    for own in dense.summary.views["prediction"].values():
        assert own.counts is not None
        assert (own.counts.insertion, own.counts.deletion) == ("dense", "dense")
        assert (own.counts.aukc_error, own.counts.n_bounds) == (0.0, 0)
    assert len(dense.summary.views["prediction"]["selector-seed"].aukc_seeds) == 3
    behind = {name: own.counts for name, own in few_counts.summary.views["prediction"].items()}
    assert {own.insertion for own in behind.values() if own} == {"grid"}
    assert {own.n_bounds for own in behind.values() if own} == {0}
    assert behind["random"] is not None
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
