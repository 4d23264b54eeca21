"""Every table on a study whose curves are written down, against values computed by hand.

The slides and counts are those of :mod:`tests.makers.finished_study`: p is 0.6 before a count and
0.95 from there on; the last slide is misclassified, so that its label never comes first.
"""

from collections.abc import Sequence
from itertools import product

import pytest

from foci.metrics import shi
from foci.studies.paper_tables import main_table, shi_table
from foci.studies.published import COHORTS, FOCI, published
from foci.studies.read import SELECTOR, Measure, Place, StudyNumbers, Value
from foci.studies.study import BACKBONES
from foci.studies.table import Cell, Table
from foci.studies.tables import compared_pairs, joint_table

Tables = dict[str, Table]


def cell(table: Table, names: Sequence[str], column: str, group: str = "") -> Cell:
    wanted = tuple(names)
    (row,) = [r for r in table.rows if r.names == wanted and (not group or r.group == group)]
    return row.cells[column]


def mean(table: Table, names: Sequence[str], column: str, group: str = "") -> float | None:
    return cell(table, names, column, group).value.mean


def printed(table: Table, names: Sequence[str], column: str, group: str = "") -> float:
    found = cell(table, names, column, group).paper
    assert found is not None
    return found.mean


def area(count: int | None, k_max: int = 256, low: float = 0.6, high: float = 0.95) -> float:
    """Trapezoid of a step at ``count`` over 1..k_max, divided by k_max."""
    if count is None or count > k_max:
        return low * (k_max - 1) / k_max
    if count == 1:
        return high * (k_max - 1) / k_max
    return (low * (count - 2) + (low + high) / 2 + high * (k_max - count)) / k_max


def aukc(counts: Sequence[int | None], last: int, k_max: int = 256) -> float:
    """Three slides that follow their label, and the last, whose label has 1 - p."""
    wrong = area(last, k_max, low=0.4, high=0.05)
    return (sum(area(c, k_max) for c in counts) + wrong) / 4


def test_main(tables: Tables) -> None:
    table = tables["main_nsclc"]
    native = cell(table, ("TransMIL",), "msk_cond").value
    assert dict(native.seeds) == {"42": 8.0, "43": 6.0}
    assert (native.mean, native.std, native.n) == (7.0, 1.0, 2)
    reach = cell(table, ("TransMIL",), "reach").value
    assert (reach.mean, reach.std) == (62.5, 12.5)
    assert (
        mean(table, ["TransMIL"], "restricted")
        == ((8 + 4 + 12 + 256) / 4 + (6 + 6 + 256 + 256) / 4) / 2
    )
    expected = (aukc([8, 4, 12], 40) + aukc([6, 6, None], 40)) / 2
    assert mean(table, ["TransMIL"], "aukc") == pytest.approx(expected, abs=1e-12)
    assert mean(table, ["TransMIL + FOCI"], "msk_cond") == 2.0
    assert mean(table, ["TransMIL + FOCI"], "msk_cond_delta") == -5.0
    assert mean(table, ["TransMIL + FOCI"], "reach_delta") == 12.5
    assert mean(table, ["TransMIL random order (ours)"], "msk_cond") == (24 + 8) / 2
    decided = (sum([8, 4, 12, 40]) / 4 + sum([6, 6, 256, 40]) / 4) / 2
    assert mean(table, ["TransMIL"], "decided_k") == decided


def test_main_beside_the_paper(tables: Tables) -> None:
    found = cell(tables["main_nsclc"], ("TransMIL",), "reach")
    assert found.paper is not None
    assert (found.paper.mean, found.paper.std) == (91.7, 0.9)
    assert found.difference == pytest.approx(-29.2)
    assert found.z == pytest.approx(-29.2 / (12.5**2 + 0.9**2) ** 0.5)
    assert found.marked
    saturated = cell(tables["main_nsclc"], ("TransMIL + FOCI",), "reach")
    assert saturated.value.std == 0.0
    assert saturated.z is None


def test_a_failed_training_is_a_gap_with_its_reason(tables: Tables) -> None:
    value = cell(tables["main_nsclc"], ("ABMIL",), "msk_cond").value
    assert (value.mean, value.std, value.n) == (1.0, None, 1)
    assert value.gap == "seed 43: train failed: the loss is not finite; lower the rate"


def test_shi(tables: Tables) -> None:
    table = tables["shi"]
    transmil = ("Transformer", "TransMIL")
    assert mean(table, transmil, "nsclc") == pytest.approx((7 - 2) / 7)
    seeds = cell(table, transmil, "nsclc").value.seeds
    assert dict(seeds) == pytest.approx({"42": 5 / 8, "43": 5 / 6})
    brca = 55 / 3  # the mean of 10 and 80 / 3
    assert mean(table, transmil, "brca") == pytest.approx((brca - 5) / brca)
    both = ((7 - 2) / 7 + (brca - 5) / brca) / 2
    assert mean(table, transmil, "mean") == pytest.approx(both)
    assert mean(table, transmil, "nsclc_random") == pytest.approx((16 - 2) / 16)
    assert mean(table, ("Attention pool", "ABMIL"), "nsclc") == pytest.approx(-2.0)
    assert printed(table, transmil, "nsclc") == 0.562
    assert cell(table, transmil, "mean").paper is None  # the paper's is over three cohorts


def test_within_32_tiles(tables: Tables) -> None:
    table = tables["kmax32"]
    assert mean(table, ["TransMIL"], "msk_cond", "BRCA") == (10 + 20) / 2
    assert mean(table, ["TransMIL"], "reach", "BRCA") == (75 + 50) / 2
    expected = (aukc([10, 10, 10], 40, 32) + aukc([20, 20, 40], 40, 32)) / 2
    assert mean(table, ["TransMIL"], "aukc", "BRCA") == pytest.approx(expected, abs=1e-12)
    assert mean(table, ["TransMIL"], "share_32", "BRCA") == pytest.approx(100 * 32 / 500)
    censored = ((10 + 10 + 10 + 32) / 4 + (20 + 20 + 32 + 32) / 4) / 2
    assert mean(table, ["TransMIL"], "restricted", "BRCA") == censored


def test_kappa(tables: Tables) -> None:
    table = tables["kappa_sensitivity"]
    assert mean(table, ["TransMIL + FOCI", "0.55"], "msk_cond", "NSCLC") == 1.0
    assert mean(table, ["TransMIL + FOCI", "0.9"], "msk_cond", "NSCLC") == 2.0
    assert mean(table, ["TransMIL", "0.55"], "reach", "NSCLC") == 75.0
    low, high = (mean(table, ["TransMIL", k], "aukc", "NSCLC") for k in ("0.55", "0.9"))
    assert low == high
    assert cell(table, ["TransMIL + FOCI", "0.9"], "reach", "NSCLC").paper is not None
    assert cell(table, ["TransMIL", "0.9"], "reach", "NSCLC").paper is None


def test_tile_caps(tables: Tables) -> None:
    table = tables["ncap_sensitivity"]
    assert [row.names[1] for row in table.rows] == ["256", "1024"]
    assert mean(table, ["TransMIL + FOCI", "256"], "msk_cond") == 4.0
    assert mean(table, ["TransMIL + FOCI", "1024"], "msk_cond") == 2.0
    assert printed(table, ["TransMIL + FOCI", "256"], "msk_cond") == 3.24


def test_adaptive(tables: Tables) -> None:
    table = tables["adaptive_k_settings"]
    default, single = (["NSCLC", "TransMIL", alpha, "16"] for alpha in ("0.03", "0.05"))
    assert mean(table, default, "val_aukc") == pytest.approx(0.85)  # 0.8 and 0.9
    assert mean(table, default, "val_aukc_32") == pytest.approx(0.6)  # 0.55 and 0.65
    assert printed(table, default, "val_aukc") == printed(table, default, "val_aukc_32") == 0.854
    assert mean(table, single, "val_aukc") == pytest.approx(0.9)
    paper = cell(table, single, "val_aukc").paper
    assert paper is not None
    assert (paper.mean, paper.seeds) == (0.863, 1)
    missing = cell(table, single, "val_aukc_32").value
    assert missing.gap == "seed 42: not measured when the selector was fitted"


def test_selected_only(tables: Tables) -> None:
    """All tiles: two positives at 0.95 against negatives at 0.05 and 0.95. Within 32 tiles the
    native order leaves the wrong slide at 0.6, below both positives."""
    compact = tables["selected_only_compact"]
    assert mean(compact, ["NSCLC"], "full") == 0.75
    assert mean(compact, ["NSCLC"], "native_32") == 1.0
    assert mean(compact, ["NSCLC"], "selector_32") == 0.75
    assert mean(compact, ["NSCLC"], "random_32") == 0.75
    assert mean(compact, ["NSCLC"], "adaptive") == 0.75
    whole = tables["selected_only"]
    assert mean(whole, ["TransMIL"], "native_32_delta", "NSCLC") == 0.25
    assert cell(whole, ["ABMIL"], "adaptive", "NSCLC").value.gap == "not part of this study"
    by_count = tables["selected_only_k"]
    # brca, seed 42: after 8 tiles nothing has crossed: 0.6, 0.6 against 0.4, 0.6; seed 43 alike
    assert mean(by_count, ["TransMIL"], "k8", "BRCA") == 0.75
    # after 16, seed 42: 0.95 twice against 0.05 and 0.6; seed 43 as before
    assert mean(by_count, ["TransMIL"], "k16", "BRCA") == (1.0 + 0.75) / 2


def test_ablations(tables: Tables) -> None:
    gates = tables["ablation"]
    assert [row.names[1] for row in gates.rows] == [
        "own ranking", "paper-soft", "freeze-only", "paper-ste",
    ]  # fmt: skip
    assert mean(gates, ["TransMIL", "own ranking"], "msk_cond") == 7.0
    assert mean(gates, ["TransMIL", "paper-soft"], "msk_cond") == 9.0
    assert mean(gates, ["TransMIL", "paper-ste"], "msk_cond") == 2.0
    assert printed(gates, ["TransMIL", "paper-soft"], "msk_cond") == 8.03
    losses = tables["lambda_ablation"]
    assert mean(losses, ["TransMIL", "no-suff"], "msk_cond") == 1.0
    assert mean(losses, ["TransMIL", "no-suff"], "reach") == 25.0
    assert mean(losses, ["TransMIL", "no-suff"], "restricted") == (1 + 3 * 256) / 4


def test_faithfulness(tables: Tables) -> None:
    """Three slides lose d K / 256 and the misclassified one gains it: d / 2 K / 256 on average."""
    table = tables["faithfulness"]
    for method, d in (("TransMIL", 0.1), ("TransMIL + FOCI", 0.3)):
        for k in (16, 32, 64, 128, 256):
            found = mean(table, [method], f"drop_{k}", "NSCLC")
            assert found == pytest.approx(d / 2 * k / 256, abs=1e-12)
        expected = d / 2 * (256**2 - 16**2) / (2 * 256**2)
        assert mean(table, [method], "faithfulness", "NSCLC") == pytest.approx(expected, abs=1e-12)
    assert mean(table, ["TransMIL"], "drop_slides", "NSCLC") == 4.0
    across = tables["faithfulness_xds"]
    same = mean(table, ["TransMIL"], "faithfulness", "BRCA")
    assert mean(across, ["TransMIL"], "brca") == same
    assert printed(across, ["TransMIL"], "brca") == 0.0010


def test_predicted_class(tables: Tables) -> None:
    table = tables["predicted_class_srp"]
    native = (sum([8, 4, 12, 40]) / 4 + sum([6, 6, 40]) / 3) / 2
    assert mean(table, ["TransMIL"], "msk_cond", "NSCLC") == pytest.approx(native)
    assert mean(table, ["TransMIL"], "reach", "NSCLC") == (1.0 + 0.75) / 2
    assert printed(table, ["TransMIL"], "reach", "NSCLC") == 0.984


def test_efficiency(tables: Tables) -> None:
    table = tables["efficiency"]
    assert mean(table, ["TransMIL"], "srp_ratio") == 25.0
    assert mean(table, ["TransMIL + FOCI"], "srp_ratio") == 22.0
    assert mean(table, ["ABMIL + FOCI"], "parameters_m") == pytest.approx(0.622609)
    assert printed(table, ["TransMIL"], "srp_ratio") == 91.0
    assert cell(table, ["TransMIL"], "inference_ms").paper is None  # another device
    assert cell(table, ["TransMIL + FOCI"], "memory_mb").value.gap == "cannot be read here"
    assert table.title.endswith(" on cpu (x86_64, 1 thread)")


def test_paired_tests(tables: Tables) -> None:
    """TransMIL: -5, -5, -5 and -65/3, all of one sign: p = 2 / 2^4."""
    table = tables["tests"]
    assert mean(table, ["TransMIL"], "msk_pvalue") == 0.125
    assert mean(table, ["TransMIL"], "msk_statistic") == 0.0
    assert mean(table, ["TransMIL"], "msk_median_difference") == -5.0
    assert mean(table, ["ABMIL"], "msk_pairs") == 1.0  # two of its three pairs are equal
    assert mean(table, ["all backbones"], "msk_pairs") == 5.0
    assert printed(table, ["TransMIL"], "msk_pvalue") == 0.008


def test_hypotheses(tables: Tables) -> None:
    """SHI rises with the native count on all four pairs: -2, 0, 0.714, 0.727."""
    table = tables["hypotheses"]
    assert mean(table, ["H2", "native MSK and SHI"], "number") == pytest.approx(1.0)
    assert mean(table, ["H2", "native MSK and SHI"], "pairs") == 4.0
    constant = cell(table, ["H1", "AUC and SHI"], "number").value
    assert constant.gap == "one of them is constant"
    soft = "MSK_cond, STE - Soft, TransMIL on NSCLC"
    assert mean(table, ["H4", soft], "number") == (3 - 9 + 1 - 9) / 2


def test_preservation(tables: Tables) -> None:
    table = tables["preservation"]
    assert mean(table, ["TransMIL"], "trained_auc", "NSCLC") == 0.75
    assert mean(table, ["TransMIL"], "difference", "NSCLC") == 0.0
    assert mean(table, ["TransMIL"], "audits", "NSCLC") == 2 * 5  # main and four variants
    assert mean(table, ["TransMIL"], "largest", "NSCLC") == 0.0


def test_joint(tables: Tables) -> None:
    row = ["NSCLC", "TransMIL"]
    found = [mean(tables["joint"], row, c) for c in ("before", "epoch_1", "epoch_2", "points")]
    assert found == pytest.approx([0.9, 0.8, 0.7, 20.0])


def test_joint_training_of_one_seed_failed() -> None:
    runs = {Place("nsclc", "transmil"): {"1": (0.9, 0.8), "2": "joint failed: no memory"}}
    table = joint_table(StudyNumbers(("nsclc",), BACKBONES, {}, joint=runs))
    assert [column.key for column in table.columns] == ["before", "epoch_1", "points"]
    value = cell(table, ["NSCLC", "TransMIL"], "epoch_1").value
    assert (value.mean, value.gap) == (0.8, "seed 2: joint failed: no memory")


# The paper's own numbers, fed through the code that makes tables


PAPER = published()


class Printed(StudyNumbers):
    """What the paper prints in its main tables, as if a study had measured it."""

    def value(self, place: Place, measure: Measure) -> Value:
        row = place.backbone + (FOCI if measure.ranking == SELECTOR else "")
        if measure.view == "label" and measure.ranking in ("native", SELECTOR):
            found = PAPER.get(("main", place.cohort, row, measure.metric))
            if found is not None:
                return Value(found.mean, found.std, 3)
        return Value.absent("not printed")


PRINTED = Printed(COHORTS, BACKBONES, {}, paper=PAPER)


@pytest.mark.parametrize("cohort", COHORTS)
def test_deltas_and_means_of_the_main_tables(cohort: str) -> None:
    table = main_table(PRINTED, cohort)
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
    table = shi_table(PRINTED)
    rows = {row.names[1].lower(): row for row in table.rows}
    exact = 0
    for cohort, backbone in product(COHORTS, BACKBONES):
        cell = rows[backbone].cells[cohort]
        base = PAPER["main", cohort, backbone, "msk_cond"]
        foci = PAPER["main", cohort, backbone + FOCI, "msk_cond"]
        assert cell.paper is not None
        assert cell.value.mean == pytest.approx(shi(base.mean, foci.mean))
        low = shi(base.mean - base.rounding, foci.mean + foci.rounding) - cell.paper.rounding
        high = shi(base.mean + base.rounding, foci.mean - foci.rounding) + cell.paper.rounding
        assert low <= cell.paper.mean <= high
        exact += round(cell.value.mean, 3) == cell.paper.mean
    assert exact == 7  # agree to the last digit; the others were made of unrounded counts


def test_mean_shi_is_printed_too() -> None:
    for row in shi_table(PRINTED).rows:
        cell = row.cells["mean"]
        assert cell.paper is not None
        assert cell.value.mean == pytest.approx(cell.paper.mean, abs=0.01)


def test_nine_pairs_with_one_small_rank_against_eight() -> None:
    """W = 1: eight savings and the smallest difference of the nine the other way."""
    base = [7.0, 8.0, 7.5, 5.0, 9.0, 3.0, 16.0, 15.0, 18.0]
    saved = [4.0, 4.5, 4.14, -0.1, 3.0, 1.0, 5.0, 6.0, 7.0]
    found = compared_pairs(base, [b - s for b, s in zip(base, saved, strict=True)])
    assert (found["statistic"].mean, found["pairs"].mean) == (1.0, 9.0)
    assert found["pvalue"].mean == 0.0078125
    said = PAPER["tests", "all", "transmil", "msk_pvalue"]
    assert round(0.0078125, said.digits) == said.mean
    assert found["median_difference"].mean == pytest.approx(-4.14)
