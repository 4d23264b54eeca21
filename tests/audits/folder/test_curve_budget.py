"""A smaller budget cut out of stored curves."""

import pytest

from foci.audits import CurveTable
from foci.errors import FociError
from tests.makers.curves import curve, table


def test_insertion_ends_at_the_budget_and_deletion_stays() -> None:
    curves = table({"native": [[3, 9]], "random": [[1, 2]] * 2}, n_tiles=[4, 500])
    cut = curves.up_to(8)
    assert [len(c.ks) for c in cut.get("native")] == [4, 8]
    assert cut.get("random", 1)[1].probs.shape == (8, 2)
    assert (cut.rankings, cut.seeds("random")) == (("native", "random"), (0, 1))
    assert cut.deletions("native", None) == curves.deletions("native", None)
    assert curves.up_to(256).get("native") == curves.get("native")


def test_a_ranking_without_deletion() -> None:
    alone = CurveTable.of([curve("s0", "native", None, 3)])
    assert alone.deletions("native", None) == ()
    assert len(alone.up_to(2).get("native")[0].ks) == 2


def test_a_budget_below_the_first_count_is_refused() -> None:
    grid = CurveTable.of([curve("s0", "native", None, 3)])
    with pytest.raises(FociError, match="k_max"):
        grid.up_to(0)
