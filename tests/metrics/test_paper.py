"""The paper's own tables, digit by digit as printed, follow from these functions."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foci.metrics import faithfulness_auc, shi, wilcoxon

TABLES: dict[str, Any] = json.loads((Path(__file__).parent / "paper_tables.json").read_text())
DATASETS = ("NSCLC", "BRCA", "PANDA")
BACKBONES = tuple(TABLES["tab:shi"]["rows"])
FAMILIES = (("TransMIL", "ACMIL"), ("ABMIL", "CLAM-SB", "AttriMIL"), ("ASMIL", "MHIM-MIL"))

Range = tuple[float, float]


def cell(table: str, row: str, column: str) -> str:
    text: str = TABLES[table]["rows"][row][TABLES[table]["columns"].index(column)]
    return text


def printed(text: str) -> str:
    """The number before its spread and its difference to the row above."""
    match = re.fullmatch(r"([+-]?[\d.]+)(±[\d.]+)?( \([+±-][\d.]+\))?", text)
    assert match, text
    return match[1]


def behind(number: str) -> Range:
    """Everything that rounds to these digits."""
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    return float(number) - half, float(number) + half


def meets(a: Range, b: Range) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


def msk_range(dataset: str, row: str) -> Range:
    return behind(printed(cell(f"tab:main_{dataset.lower()}", row, "MSK_cond")))


def shi_range(dataset: str, backbone: str) -> Range:
    """SHI falls with the selector's tiles and rises with the native ranking's."""
    base, foci = msk_range(dataset, backbone), msk_range(dataset, f"{backbone} + FOCI")
    return shi(base[0], foci[1]), shi(base[1], foci[0])


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("dataset", DATASETS)
def test_shi_follows_from_the_printed_msk(dataset: str, backbone: str) -> None:
    assert meets(shi_range(dataset, backbone), behind(cell("tab:shi", backbone, dataset)))


@pytest.mark.parametrize("backbone", BACKBONES)
def test_mean_shi_follows_from_both_tables(backbone: str) -> None:
    per_dataset = []
    for dataset in DATASETS:
        from_msk, as_printed = (
            shi_range(dataset, backbone),
            behind(cell("tab:shi", backbone, dataset)),
        )
        per_dataset.append((max(from_msk[0], as_printed[0]), min(from_msk[1], as_printed[1])))
    low, high = np.mean(per_dataset, axis=0)
    assert meets((low, high), behind(cell("tab:shi", backbone, "Mean")))


def test_best_backbone_of_each_family() -> None:
    best = [
        max(family, key=lambda backbone: float(cell("tab:shi", backbone, "Mean")))
        for family in FAMILIES
    ]
    assert best == ["ACMIL", "AttriMIL", "MHIM-MIL"]


@pytest.mark.parametrize("row", TABLES["tab:faithfulness"]["rows"])
def test_faithfulness_auc_follows_from_the_printed_drops(row: str) -> None:
    ks = TABLES["tab:faithfulness"]["columns"][1:]
    drops = [float(cell("tab:faithfulness", row, k)) for k in ks]
    got = faithfulness_auc([int(k) for k in ks], drops)
    assert got == pytest.approx(
        float(printed(cell("tab:faithfulness", row, "Faith. AUC"))), abs=5e-4
    )


def test_wilcoxon_of_nine_pairs_prints_as_in_the_paper() -> None:
    """Of all outcomes of nine pairs only W = 1 prints 0.008, and only W = 9 prints 0.13."""
    sizes = np.arange(1.0, 10.0)
    p_of: dict[float, float] = {}
    for statistic in range(23):
        left, differences = statistic, -sizes
        for rank in range(9, 0, -1):
            if rank <= left:
                left, differences[rank - 1] = left - rank, rank
        result = wilcoxon(np.zeros(9), differences)
        assert result.statistic == statistic
        p_of[statistic] = result.pvalue
    text = TABLES["text:wilcoxon"]["rows"]["TransMIL"]
    assert p_of[1] == 0.0078125
    assert [w for w, p in p_of.items() if f"{p:.3f}" == text[1]] == [1]
    assert [w for w, p in p_of.items() if f"{p:.2f}" == text[3]] == [9]
    assert min(p_of.values()) == pytest.approx(0.0039, abs=5e-5)


@pytest.mark.parametrize("dataset", DATASETS)
def test_printed_differences_are_those_of_the_printed_values(dataset: str) -> None:
    rows = TABLES[f"tab:main_{dataset.lower()}"]["rows"]
    for backbone in BACKBONES:
        for before, after in zip(rows[backbone], rows[f"{backbone} + FOCI"], strict=True):
            difference = float(re.findall(r"\(([+-][\d.]+)\)", after)[0])
            assert float(printed(after)) - float(printed(before)) == pytest.approx(difference)


@pytest.mark.parametrize("dataset", DATASETS)
def test_selected_only_differences_and_the_compact_table(dataset: str) -> None:
    full = cell("tab:selected_only", f"{dataset} full bag", "Top-K AUC")
    assert printed(full) == cell("tab:selected_only_compact", dataset, "full bag")
    for column in TABLES["tab:selected_only_compact"]["columns"][1:]:
        text = cell("tab:selected_only", f"{dataset} {column}", "Top-K AUC")
        assert printed(text) == cell("tab:selected_only_compact", dataset, column)
        difference = float(re.findall(r"\(±?([+-]?[\d.]+)\)", text)[0])
        assert float(printed(text)) - float(printed(full)) == pytest.approx(difference)


@pytest.mark.parametrize("dataset", DATASETS)
def test_threshold_table_holds_the_main_result_and_behaves(dataset: str) -> None:
    table = "tab:kappa_sensitivity"
    rows = list(TABLES[table]["rows"])
    for column in ("MSK_cond", "Reach (%)", "AUKC"):
        main = cell(f"tab:main_{dataset.lower()}", "TransMIL + FOCI", column)
        assert main.startswith(cell(table, "0.90", f"{dataset} {column}"))
    reaches = [float(printed(cell(table, row, f"{dataset} Reach (%)"))) for row in rows]
    assert reaches == sorted(reaches, reverse=True)
    assert len({cell(table, row, f"{dataset} AUKC") for row in rows}) == 1


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_smaller_budget_reaches_no_more_slides(dataset: str) -> None:
    for row in TABLES["tab:kmax32"]["rows"]:
        small = behind(printed(cell("tab:kmax32", row, f"{dataset} Reach (%)")))
        large = behind(printed(cell(f"tab:main_{dataset.lower()}", row, "Reach (%)")))
        assert small[0] <= large[1]


def test_ablation_repeats_the_main_rows_and_shows_what_conditioning_rewards() -> None:
    main = TABLES["tab:main_nsclc"]["rows"]
    ablation, losses = TABLES["tab:ablation"]["rows"], TABLES["tab:lambda_ablation"]["rows"]
    assert ablation["TransMIL"] == main["TransMIL"]
    assert ablation["FOCI-STE"] == losses["Full FOCI-STE"]
    assert [text.split(" ")[0] for text in main["TransMIL + FOCI"]] == ablation["FOCI-STE"]
    without = losses["lambda_suff=0"]
    assert float(printed(without[0])) < float(printed(ablation["FOCI-STE"][0]))
    assert float(printed(without[1])) < 35


@pytest.mark.parametrize("dataset", DATASETS)
def test_predicted_class_view_keeps_the_sign_and_reaches_more(dataset: str) -> None:
    table = "tab:predicted_class_srp"
    rows = [f"{dataset} TransMIL", f"{dataset} TransMIL + FOCI"]
    base, foci = (float(printed(cell(table, row, "MSK_cond"))) for row in rows)
    assert shi(base, foci) > 0
    for row in rows:
        label = cell(f"tab:main_{dataset.lower()}", row.removeprefix(f"{dataset} "), "Reach (%)")
        assert 100 * float(cell(table, row, "Reach")) > float(printed(label))
