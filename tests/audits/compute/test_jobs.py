from pathlib import Path

import numpy as np
import pytest

from foci import rankings
from foci.audits.jobs import RankingJob, mean_rank, ranking_jobs
from foci.rankings import EmbeddedBag
from tests.makers.audits import model, settings
from tests.makers.cohorts import read


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
    assert [unit.selector for unit in units] == [None, fitted[3], fitted[1], None]


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
    assert merged.order.tolist() == [0, 2, 1, 3]  # ties by tile index


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
