"""The paper's numbers agree with each other: what it derives follows from what it prints.

Its SHI, differences and p-value are derived by the code of the tables: see test_tables.
"""

from collections import Counter

import pytest

from foci.metrics import faithfulness_auc
from foci.metrics.deletion import PAPER_COUNTS
from foci.studies.read import COHORTS, PublishedNumber, published
from foci.studies.study import BACKBONES

PAPER = published()


def rounding(printed: PublishedNumber) -> float:
    """Half a unit of the last printed digit: the true mean is within this of the printed."""
    return float(0.5 * 10.0**-printed.digits)


def test_every_cell_of_every_table_is_there_once() -> None:
    assert Counter(label for label, *_ in PAPER) == {
        "main": 3 * 7 * 9,  # two rows of three numbers, and three deltas
        "shi": 7 * 4,
        "kmax32": 7 * 2 * 9,
        "kappa_sensitivity": 4 * 9,
        "ncap_sensitivity": 4 * 9,
        "adaptive_k_settings": 6,
        "selected_only_compact": 3 * 4,
        "selected_only": 3 * (5 + 3) + 1,  # one of them is in the text: K = 16 on BRCA
        "ablation": 4 * 3,
        "lambda_ablation": 5 * 3,
        "faithfulness": 7 * 6,
        "faithfulness_xds": 3 * 3,
        "predicted_class_srp": 3 * 2 * 3,
        "efficiency": 10 * 5,
        "tests": 3,
    }


def test_a_cell_keeps_what_was_printed() -> None:
    cell = PAPER["main", "nsclc", "acmil+foci", "msk_cond"]
    assert (cell.mean, cell.std, cell.seeds) == (1.79, 0.02, 3)
    assert cell.digits == 2
    assert PAPER["ablation", "nsclc", "freeze-only", "reach"].seeds == 2
    assert PAPER["selected_only_compact", "brca", "transmil", "adaptive"].std is None


@pytest.mark.parametrize("backbone", BACKBONES)
def test_mean_shi_is_the_mean_of_the_cohorts(backbone: str) -> None:
    three = [PAPER["shi", cohort, backbone, "shi"].mean for cohort in COHORTS]
    assert PAPER["shi", "mean", backbone, "shi"].mean == pytest.approx(sum(three) / 3, abs=1.1e-3)


@pytest.mark.parametrize(
    "row", ["transmil", "asmil", "transmil+foci", "attrimil", "mhim-mil", "clam-sb", "abmil"]
)
def test_faithfulness_follows_from_the_drops(row: str) -> None:
    """The drops are rounded to three digits: the area moves by at most 240 / 256 of that."""
    drops = [PAPER["faithfulness", "nsclc", row, f"drop_{k}"] for k in PAPER_COUNTS]
    said = PAPER["faithfulness", "nsclc", row, "faithfulness"]
    found = faithfulness_auc(PAPER_COUNTS, [drop.mean for drop in drops])
    slack = rounding(drops[0]) * 240 / 256 + rounding(said)
    assert found == pytest.approx(said.mean, abs=slack)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("ablation", "paper-ste"), ("main", "transmil+foci")),
        (("ablation", "transmil"), ("main", "transmil")),
        (("lambda_ablation", "paper-ste"), ("main", "transmil+foci")),
        (("lambda_ablation", "freeze-only"), ("ablation", "freeze-only")),
        (("kappa_sensitivity", "0.9"), ("main", "transmil+foci")),
        (("ncap_sensitivity", "1024"), ("main", "transmil+foci")),
    ],
)
def test_a_number_printed_twice_is_the_same(
    first: tuple[str, str], second: tuple[str, str]
) -> None:
    for column in ("msk_cond", "reach", "aukc"):
        a, b = (PAPER[label, "nsclc", row, column] for label, row in (first, second))
        assert (a.mean, a.std) == (b.mean, b.std)


def test_selected_only_is_printed_twice() -> None:
    for (label, *place), cell in PAPER.items():
        if label == "selected_only_compact":
            assert PAPER["selected_only", *place].mean == cell.mean


def test_aukc_does_not_depend_on_kappa() -> None:
    for cohort in COHORTS:
        rows = ("0.7", "0.8", "0.9", "0.95")
        assert len({PAPER["kappa_sensitivity", cohort, k, "aukc"].mean for k in rows}) == 1
