"""Counts of several seeds, stacked."""

import numpy as np

from foci.audits.measure import CountsAt, Decisive


def decisive(count: float, *, exact: bool) -> Decisive:
    one = np.array([count, np.nan])
    marks = np.array([False, True])
    return Decisive(
        one, one + 1, np.array(["count", "none"]), marks, one + 2, np.array([exact] * 2)
    )


def test_seeds_are_rows() -> None:
    both = Decisive.over_seeds([decisive(3, exact=True), decisive(5, exact=True)])
    assert both.count[:, 0].tolist() == [3, 5]
    assert both.stable[:, 0].tolist() == [4, 6]
    assert both.paper[:, 0].tolist() == [5, 7]
    assert both.outcome.tolist() == [["count", "none"]] * 2
    assert both.flips_back.tolist() == [[False, True]] * 2
    assert np.isnan(both.count[:, 1]).all()


def test_one_seed_that_tried_fewer_counts_makes_all_of_them_a_bound() -> None:
    assert not Decisive.over_seeds([decisive(3, exact=True), decisive(3, exact=False)]).exact.all()
    assert Decisive.over_seeds([decisive(3, exact=True)]).exact.all()


def test_only_seeds_whose_tiles_were_deleted_have_a_decisive_k() -> None:
    msk = np.array([1.0, 2.0])
    both = CountsAt.over_seeds([CountsAt(msk, None), CountsAt(msk + 1, msk * 10)])
    assert both.msk.tolist() == [[1, 2], [2, 3]]
    assert both.decisive is not None
    assert both.decisive.tolist() == [[10, 20]]
    assert CountsAt.over_seeds([CountsAt(msk, None)]).decisive is None
