from pathlib import Path

import numpy as np
import pytest

from foci import rankings
from foci.audits.compute.jobs import RankingJob, ranking_jobs
from foci.rankings import EmbeddedBag
from tests.makers.audits import model, settings
from tests.makers.cohorts import read


def test_columns_in_the_order_of_the_rankings() -> None:
    chosen = settings(rankings=("random", "selector", "leave-one-out"), seeds=(3, 1))
    fitted = {seed: object() for seed in (3, 1)}
    units = ranking_jobs(chosen, fitted)  # type: ignore[arg-type]
    assert [unit.column for unit in units] == [
        "random", "selector-3", "selector-1", "leave-one-out",
    ]  # fmt: skip
    assert [unit.stored for unit in units] == [False, True, True, True]
    assert [unit.selector for unit in units] == [None, fitted[3], fitted[1], None]


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
