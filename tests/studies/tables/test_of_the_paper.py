"""The paper's own numbers, fed through the code that makes tables, give back its printed cells."""

from collections.abc import Mapping
from itertools import product

import pytest

from foci.metrics import shi
from foci.studies.our_tables import compared_pairs
from foci.studies.paper_tables import main_table, shi_table
from foci.studies.published import COHORTS, FOCI, published
from foci.studies.read import SELECTOR, Measure, Place, Value

PAPER = published()
FAMILIES = {
    "transmil": "Soft-aggregation/Transformer", "acmil": "Soft-aggregation/Multi-branch attention",
    "abmil": "Attention pooling/Attention pool", "clam-sb": "Attention pooling/Attention pool",
    "attrimil": "Attention pooling/Attribution-based", "asmil": "Hard selection/Hard selection",
    "mhim-mil": "Hard selection/Hard instance mining",
}  # fmt: skip


class Printed:
    """What the paper prints in its main tables, as if a study had measured it."""

    cohorts: tuple[str, ...] = COHORTS
    backbones: Mapping[str, str] = FAMILIES

    def value(self, place: Place, measure: Measure) -> Value:
        row = place.backbone + (FOCI if measure.ranking == SELECTOR else "")
        if measure.view == "label" and measure.ranking in ("native", SELECTOR):
            found = PAPER.get("main", place.cohort, row, measure.metric)
            if found is not None:
                return Value(found.mean, found.std, 3)
        return Value.absent("not printed")


@pytest.mark.parametrize("cohort", COHORTS)
def test_deltas_and_means_of_the_main_tables(cohort: str) -> None:
    table = main_table(Printed(), cohort, PAPER)
    checked = 0
    for row in table.rows:
        for column in table.columns:
            cell = row.cells.get(column.key)
            if cell is not None and cell.paper is not None:
                assert cell.value.mean is not None
                assert round(cell.value.mean, cell.paper.digits) == cell.paper.mean
                assert cell.difference == pytest.approx(0.0, abs=1e-9)
                checked += 1
    assert checked == 7 * 9


def test_the_21_shi() -> None:
    """Each is the printed one to within the rounding of the two printed counts it is made of."""
    table = shi_table(Printed(), PAPER)
    rows = {row.names[1].lower(): row for row in table.rows}
    exact = 0
    for cohort, backbone in product(COHORTS, FAMILIES):
        cell = rows[backbone].cells[cohort]
        base = PAPER.get("main", cohort, backbone, "msk_cond")
        foci = PAPER.get("main", cohort, backbone + FOCI, "msk_cond")
        assert cell.paper is not None
        assert base is not None
        assert foci is not None
        assert cell.value.mean == pytest.approx(shi(base.mean, foci.mean))
        low = shi(base.mean - base.rounding, foci.mean + foci.rounding) - cell.paper.rounding
        high = shi(base.mean + base.rounding, foci.mean - foci.rounding) + cell.paper.rounding
        assert low <= cell.paper.mean <= high
        exact += round(cell.value.mean, 3) == cell.paper.mean
    assert exact == 7  # agree to the last digit; the others were made of unrounded counts


def test_mean_shi_is_printed_too() -> None:
    for row in shi_table(Printed(), PAPER).rows:
        cell = row.cells["mean"]
        assert cell.paper is not None
        assert cell.value.mean == pytest.approx(cell.paper.mean, abs=0.01)


def test_nine_pairs_with_one_small_rank_against_eight() -> None:
    """W = 1: eight savings and the smallest difference of the nine the other way."""
    base = [7.0, 8.0, 7.5, 5.0, 9.0, 3.0, 16.0, 15.0, 18.0]
    saved = [4.0, 4.5, 4.14, -0.1, 3.0, 1.0, 5.0, 6.0, 7.0]
    cells = compared_pairs("msk", base, [b - s for b, s in zip(base, saved, strict=True)])
    assert cells["msk_statistic"].value.mean == 1.0
    assert cells["msk_pvalue"].value.mean == 0.0078125
    assert cells["msk_median_difference"].value.mean == pytest.approx(-4.14)
