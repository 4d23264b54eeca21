"""Every table on a study whose curves are written down, against values computed by hand.

The slides and counts are those of :mod:`tests.makers.finished_study`: p is 0.6 before a count and
0.95 from there on; the last slide is misclassified, so that its label never comes first.
"""

from collections.abc import Sequence
from itertools import product

import pytest

from foci.audits.settings import SELECTOR
from foci.metrics import shi
from foci.studies.paper_tables import main_table, shi_table
from foci.studies.read import COHORTS, FOCI, Measure, Place, StudyNumbers, Value, published
from foci.studies.study import BACKBONES
from foci.studies.table import Cell, Table
from foci.studies.tables import compared_pairs, joint_table
from tests.studies.test_published import rounding

Tables = dict[str, Table]


def cell(table: Table, names: Sequence[str], column: str, group: str = "") -> Cell:
    wanted = tuple(names)
    (row,) = [r for r in table.rows if r.names == wanted and (not group or r.group == group)]
    return row.cells[column]


def mean(table: Table, names: Sequence[str], column: str, group: str = "") -> float | None:
    return cell(table, names, column, group).value.mean


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


NATIVE, WITH = "TransMIL", "TransMIL + FOCI"
BRCA_MSK = 55 / 3  # the mean of 10 and 80 / 3
DECIDED = (sum([8, 4, 12, 40]) / 4 + sum([6, 6, 256, 40]) / 4) / 2
SOFT = "H4 | MSK_cond, STE - Soft, TransMIL on NSCLC"
SINGLE, DEFAULT_ALPHA = "NSCLC | TransMIL | 0.05 | 16", "NSCLC | TransMIL | 0.03 | 16"


@pytest.mark.parametrize(
    ("label", "row", "column", "wanted"),
    [
        ("main_nsclc", NATIVE, "reach", 62.5),
        ("main_nsclc", NATIVE, "restricted",
         ((8 + 4 + 12 + 256) / 4 + (6 + 6 + 256 + 256) / 4) / 2),
        ("main_nsclc", NATIVE, "aukc", (aukc([8, 4, 12], 40) + aukc([6, 6, None], 40)) / 2),
        ("main_nsclc", WITH, "msk_cond", 2.0),
        ("main_nsclc", WITH, "msk_cond_delta", -5.0),
        ("main_nsclc", WITH, "reach_delta", 12.5),
        ("main_nsclc", "TransMIL random order (ours)", "msk_cond", (24 + 8) / 2),
        ("main_nsclc", NATIVE, "decided_k", DECIDED),
        ("shi", "Transformer | TransMIL", "nsclc", (7 - 2) / 7),
        ("shi", "Transformer | TransMIL", "brca", (BRCA_MSK - 5) / BRCA_MSK),
        ("shi", "Transformer | TransMIL", "mean", ((7 - 2) / 7 + (BRCA_MSK - 5) / BRCA_MSK) / 2),
        ("shi", "Transformer | TransMIL", "nsclc_random", (16 - 2) / 16),
        ("shi", "Attention pool | ABMIL", "nsclc", -2.0),
        ("kmax32 BRCA", NATIVE, "msk_cond", (10 + 20) / 2),
        ("kmax32 BRCA", NATIVE, "reach", (75 + 50) / 2),
        ("kmax32 BRCA", NATIVE, "aukc",
         (aukc([10, 10, 10], 40, 32) + aukc([20, 20, 40], 40, 32)) / 2),
        ("kmax32 BRCA", NATIVE, "share_32", 100 * 32 / 500),
        ("kmax32 BRCA", NATIVE, "restricted",
         ((10 + 10 + 10 + 32) / 4 + (20 + 20 + 32 + 32) / 4) / 2),
        ("kappa_sensitivity NSCLC", f"{WITH} | 0.55", "msk_cond", 1.0),
        ("kappa_sensitivity NSCLC", f"{WITH} | 0.9", "msk_cond", 2.0),
        ("kappa_sensitivity NSCLC", f"{NATIVE} | 0.55", "reach", 75.0),
        ("ncap_sensitivity", f"{WITH} | 256", "msk_cond", 4.0),
        ("ncap_sensitivity", f"{WITH} | 1024", "msk_cond", 2.0),
        ("adaptive_k_settings", DEFAULT_ALPHA, "val_aukc", 0.85),  # 0.8 and 0.9
        ("adaptive_k_settings", DEFAULT_ALPHA, "val_aukc_32", 0.6),  # 0.55 and 0.65
        ("adaptive_k_settings", SINGLE, "val_aukc", 0.9),
        # all tiles: two positives at 0.95 against negatives at 0.05 and 0.95; within 32 tiles the
        # native order leaves the wrong slide at 0.6, below both positives
        ("selected_only_compact", "NSCLC", "full", 0.75),
        ("selected_only_compact", "NSCLC", "native_32", 1.0),
        ("selected_only_compact", "NSCLC", "selector_32", 0.75),
        ("selected_only_compact", "NSCLC", "random_32", 0.75),
        ("selected_only_compact", "NSCLC", "adaptive", 0.75),
        ("selected_only NSCLC", NATIVE, "native_32_delta", 0.25),
        # seed 42: after 8 tiles nothing has crossed: 0.6, 0.6 against 0.4, 0.6; seed 43 alike
        ("selected_only_k BRCA", NATIVE, "k8", 0.75),
        # after 16, seed 42: 0.95 twice against 0.05 and 0.6; seed 43 as before
        ("selected_only_k BRCA", NATIVE, "k16", (1.0 + 0.75) / 2),
        ("ablation", f"{NATIVE} | own ranking", "msk_cond", 7.0),
        ("ablation", f"{NATIVE} | paper-soft", "msk_cond", 9.0),
        ("ablation", f"{NATIVE} | paper-ste", "msk_cond", 2.0),
        ("lambda_ablation", f"{NATIVE} | no-suff", "msk_cond", 1.0),
        ("lambda_ablation", f"{NATIVE} | no-suff", "reach", 25.0),
        ("lambda_ablation", f"{NATIVE} | no-suff", "restricted", (1 + 3 * 256) / 4),
        ("faithfulness NSCLC", NATIVE, "drop_slides", 4.0),
        ("predicted_class_srp NSCLC", NATIVE, "msk_cond",
         (sum([8, 4, 12, 40]) / 4 + sum([6, 6, 40]) / 3) / 2),
        ("predicted_class_srp NSCLC", NATIVE, "reach", (1.0 + 0.75) / 2),
        ("efficiency", NATIVE, "srp_ratio", 25.0),
        ("efficiency", WITH, "srp_ratio", 22.0),
        ("efficiency", "ABMIL + FOCI", "parameters_m", 0.622609),
        # -5, -5, -5 and -65/3, all of one sign: p = 2 / 2^4
        ("tests", NATIVE, "msk_pvalue", 0.125),
        ("tests", NATIVE, "msk_statistic", 0.0),
        ("tests", NATIVE, "msk_median_difference", -5.0),
        ("tests", "ABMIL", "msk_pairs", 1.0),  # two of its three pairs are equal
        ("tests", "all backbones", "msk_pairs", 5.0),
        # SHI rises with the native count on all four pairs: -2, 0, 0.714, 0.727
        ("hypotheses", "H2 | native MSK and SHI", "number", 1.0),
        ("hypotheses", "H2 | native MSK and SHI", "pairs", 4.0),
        ("hypotheses", SOFT, "number", (3 - 9 + 1 - 9) / 2),
        ("preservation NSCLC", NATIVE, "trained_auc", 0.75),
        ("preservation NSCLC", NATIVE, "difference", 0.0),
        ("preservation NSCLC", NATIVE, "audits", 2 * 5),  # main and four variants
        ("preservation NSCLC", NATIVE, "largest", 0.0),
        ("joint", "NSCLC | TransMIL", "before", 0.9),
        ("joint", "NSCLC | TransMIL", "epoch_1", 0.8),
        ("joint", "NSCLC | TransMIL", "epoch_2", 0.7),
        ("joint", "NSCLC | TransMIL", "points", 20.0),
    ],
)  # fmt: skip
def test_means(tables: Tables, label: str, row: str, column: str, wanted: float) -> None:
    table, _, group = label.partition(" ")
    found = mean(tables[table], row.split(" | "), column, group)
    # SHI adds a small number to its denominator
    assert found == pytest.approx(wanted, rel=1e-6 if table == "shi" else 1e-12, abs=1e-12)


@pytest.mark.parametrize(
    ("label", "row", "column", "wanted"),
    [
        ("shi", "Transformer | TransMIL", "nsclc", 0.562),
        ("shi", "Transformer | TransMIL", "mean", None),  # the paper's is over three cohorts
        ("kappa_sensitivity NSCLC", f"{NATIVE} | 0.9", "reach", None),
        ("kappa_sensitivity NSCLC", f"{WITH} | 0.9", "reach", 90.1),
        ("ncap_sensitivity", f"{WITH} | 256", "msk_cond", 3.24),
        ("adaptive_k_settings", DEFAULT_ALPHA, "val_aukc", 0.854),
        ("adaptive_k_settings", DEFAULT_ALPHA, "val_aukc_32", 0.854),
        ("ablation", f"{NATIVE} | paper-soft", "msk_cond", 8.03),
        ("faithfulness_xds", NATIVE, "brca", 0.0010),
        ("predicted_class_srp NSCLC", NATIVE, "reach", 0.984),
        ("efficiency", NATIVE, "srp_ratio", 91.0),
        ("efficiency", NATIVE, "inference_ms", None),  # another device
        ("tests", NATIVE, "msk_pvalue", 0.008),
    ],
)
def test_what_the_paper_prints_there(
    tables: Tables, label: str, row: str, column: str, wanted: float | None
) -> None:
    table, _, group = label.partition(" ")
    found = cell(tables[table], row.split(" | "), column, group).paper
    assert (None if found is None else found.mean) == wanted


@pytest.mark.parametrize(
    ("label", "row", "column", "gap"),
    [
        ("main_nsclc", "ABMIL", "msk_cond",
         "seed 43: train failed: the loss is not finite; lower the rate"),
        ("adaptive_k_settings", SINGLE, "val_aukc_32",
         "seed 42: not measured when the selector was fitted"),
        ("selected_only NSCLC", "ABMIL", "adaptive", "not part of this study"),
        ("efficiency", WITH, "memory_mb", "cannot be read here"),
        ("hypotheses", "H1 | AUC and SHI", "number", "one of them is constant"),
    ],
)  # fmt: skip
def test_gaps_have_a_reason(tables: Tables, label: str, row: str, column: str, gap: str) -> None:
    table, _, group = label.partition(" ")
    assert cell(tables[table], row.split(" | "), column, group).value.gap == gap


def test_numbers_of_seeds(tables: Tables) -> None:
    native = cell(tables["main_nsclc"], [NATIVE], "msk_cond").value
    assert dict(native.seeds) == {"42": 8.0, "43": 6.0}
    assert (native.mean, native.std, native.n) == (7.0, 1.0, 2)
    assert cell(tables["main_nsclc"], [NATIVE], "reach").value.std == 12.5
    one = cell(tables["main_nsclc"], ["ABMIL"], "msk_cond").value
    assert (one.mean, one.std, one.n) == (1.0, None, 1)
    seeds = cell(tables["shi"], ("Transformer", "TransMIL"), "nsclc").value.seeds
    assert dict(seeds) == pytest.approx({"42": 5 / 8, "43": 5 / 6})
    paper = cell(tables["adaptive_k_settings"], SINGLE.split(" | "), "val_aukc").paper
    assert paper is not None
    assert (paper.mean, paper.seeds) == (0.863, 1)


def test_main_beside_the_paper(tables: Tables) -> None:
    found = cell(tables["main_nsclc"], [NATIVE], "reach")
    assert found.paper is not None
    assert (found.paper.mean, found.paper.std) == (91.7, 0.9)
    assert found.difference == pytest.approx(-29.2)
    assert found.z == pytest.approx(-29.2 / (12.5**2 + 0.9**2) ** 0.5)
    assert found.marked
    saturated = cell(tables["main_nsclc"], [WITH], "reach")
    assert saturated.value.std == 0.0
    assert saturated.z is None


def test_aukc_is_the_same_at_every_kappa(tables: Tables) -> None:
    low, high = (
        mean(tables["kappa_sensitivity"], [NATIVE, k], "aukc", "NSCLC") for k in ("0.55", "0.9")
    )
    assert low == high


def test_names(tables: Tables) -> None:
    assert [row.names[1] for row in tables["ncap_sensitivity"].rows] == ["256", "1024"]
    assert [row.names[1] for row in tables["ablation"].rows] == [
        "own ranking", "paper-soft", "freeze-only", "paper-ste",
    ]  # fmt: skip
    assert tables["efficiency"].title.endswith(" on cpu (x86_64, 1 thread)")


def test_faithfulness(tables: Tables) -> None:
    """Three slides lose d K / 256 and the misclassified one gains it: d / 2 K / 256 on average."""
    table = tables["faithfulness"]
    for method, d in ((NATIVE, 0.1), (WITH, 0.3)):
        for k in (16, 32, 64, 128, 256):
            found = mean(table, [method], f"drop_{k}", "NSCLC")
            assert found == pytest.approx(d / 2 * k / 256, abs=1e-12)
        expected = d / 2 * (256**2 - 16**2) / (2 * 256**2)
        assert mean(table, [method], "faithfulness", "NSCLC") == pytest.approx(expected, abs=1e-12)
    same = mean(table, [NATIVE], "faithfulness", "BRCA")
    assert mean(tables["faithfulness_xds"], [NATIVE], "brca") == same


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
        up, down, slack = map(rounding, (base, foci, cell.paper))
        low = shi(base.mean - up, foci.mean + down) - slack
        high = shi(base.mean + up, foci.mean - down) + slack
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
