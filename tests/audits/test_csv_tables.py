"""The tables of an audit, read back."""

import csv
from pathlib import Path
from typing import Any

import pytest

from foci.audits import AuditedSlide
from foci.audits.folder import TABLE_FILES
from foci.audits.measure import measure_slides
from foci.audits.numbers import GREEDY, summarise
from foci.audits.tables import as_csv, write_tables
from foci.words import from_csv_cell
from tests.makers.curves import CLASSES, Counts, Settings, agreement, slides, table, tiles
from tests.makers.folders import SKIPPED

KEYS = ("msk", "reach", "aukc", "faithfulness", "relevance_gain", "decisive", "decisive_found")
COUNTS: Counts = {
    "native": [[4, None, 8]],
    "selector": [[2, 2, None], [4, 6, 4]],
    "random": [[6, 10, None], [2, 6, 8]],
}


def written(folder: Path, counts: Counts = COUNTS, **how: Any) -> dict[str, list[dict[str, str]]]:
    settings = how.pop("settings", Settings())
    labels = how.pop("labels", ["tumour", None, "benign"])
    curves = table(counts, **how)
    known = slides(["P1", "P1", "P2"], labels, how.get("n_tiles"))
    measured = measure_slides(curves, known, CLASSES, settings)
    summary = summarise(measured, curves, CLASSES, settings, agreement(curves, tiles(curves)), 1)
    write_tables(folder, summary, measured, known, [SKIPPED])
    paths = [folder / name for name in TABLE_FILES]
    return {path.stem: list(csv.DictReader(path.open(newline=""))) for path in paths}


def test_slides_hold_means_over_the_seeds(tmp_path: Path) -> None:
    rows = written(tmp_path / "tables", n_tiles=[500, 500, 20], drops={"native": 0.256})["slides"]
    assert list(rows[0]) == [
        "slide_id", "case_id", "label", "predicted", "p_predicted", "n_tiles",
        "k_star", "k_star_kind",
        *(f"{key}:{name}" for name in COUNTS for key in KEYS),
    ]  # fmt: skip
    assert [row["slide_id"] for row in rows] == ["s0", "s1", "s2"]
    assert [row["label"] for row in rows] == ["tumour", "", "benign"]
    assert [row["predicted"] for row in rows] == ["tumour"] * 3
    assert [float(row["p_predicted"]) for row in rows] == [0.95] * 3
    assert [float(row["msk:native"]) for row in rows] == [4, 256, 8]
    assert [float(row["msk:selector"]) for row in rows] == [3, 4, (256 + 4) / 2]
    assert [float(row["reach:selector"]) for row in rows] == [1, 1, 0.5]
    assert float(rows[0]["faithfulness:native"]) == pytest.approx(0.001 * (256 - 1) / 2)
    assert rows[2]["faithfulness:native"] == ""  # 20 tiles


def test_rankings_hold_the_headline_numbers(tmp_path: Path) -> None:
    rows = written(tmp_path, settings=Settings(target="label"))["rankings"]
    assert [(row["view"], row["ranking"]) for row in rows] == [
        (view, name) for view in ("label", "prediction") for name in COUNTS
    ]
    native = rows[3]
    assert (float(native["msk_cond"]), float(native["restricted"])) == (6, 268 / 3)
    assert native["shi_native"] == native["wilcoxon_pvalue"] == ""
    selector = rows[4]
    assert float(selector["shi_native"]) == pytest.approx((6 - (2 + 14 / 3) / 2) / 6)
    assert float(selector["msk_cond_std"]) == pytest.approx((14 / 3 - 2) / 2)  # of 2 and 14 / 3
    assert float(selector["reach_std"]) == pytest.approx(1 / 6)
    assert native["msk_cond_std"] == ""  # one order has no spread
    assert float(selector["paired_n_both"]) == 1
    assert float(selector["shi_native_low"]) <= float(selector["shi_native_high"])
    assert "captured" not in native
    more = written(tmp_path, {**COUNTS, GREEDY: [[1, 1, 1]]})["rankings"]
    assert float(more[1]["captured"]) > 0


def test_comparisons_hold_every_axis_with_its_size(tmp_path: Path) -> None:
    rows = written(tmp_path)["comparisons"]
    assert [(row["first"], row["second"], row["axis"], row["measure"]) for row in rows] == [
        (*pair, "sufficiency", "MSK")  # no order finds deciding tiles
        for pair in (("native", "random"), ("selector", "native"), ("selector", "random"))
    ]
    found = rows[0]
    assert (found["wins"], found["losses"], found["n_slides"], found["n_cases"]) == (
        "1", "1", "3", "2",
    )  # fmt: skip
    assert (float(found["first_median"]), found["second_median"]) == (8, "7.0")
    assert float(found["first_share"]) == pytest.approx(2 / 3)
    assert float(rows[1]["ratio"]) == pytest.approx(((2 * 4) ** 0.5 / 4 * 4 / 8) ** 0.5)


def test_deletion_agreement_and_skipped(tmp_path: Path) -> None:
    found = written(tmp_path, drops={"native": 0.256})
    first = found["deletion"][0]
    assert first == {
        "view": "prediction",
        "ranking": "native",
        "k": "1",
        "mean_drop": first["mean_drop"],
        "n_slides": "3",
    }
    assert float(first["mean_drop"]) == pytest.approx(0.001)
    assert len(found["deletion"]) == 2 * 3 * 9
    assert [(row["first"], row["second"]) for row in found["agreement"]] == [("native", "selector")]
    assert found["skipped"] == [{"slide_id": "torn", "reason": SKIPPED.skipped}]


def test_headers_stay_where_there_is_nothing_to_say(tmp_path: Path) -> None:
    curves = table({"native": [[1]]})
    known = [AuditedSlide("s0", "P")]
    measured = measure_slides(curves, known, CLASSES, Settings())
    summary = summarise(measured, curves, CLASSES, Settings(), agreement(curves, tiles(curves)))
    write_tables(tmp_path, summary, measured, known, [])
    assert (tmp_path / "skipped.csv").read_text() == "slide_id,reason\n"
    assert (
        tmp_path / "agreement.csv"
    ).read_text() == "first,second,spearman,jaccard8,jaccard32,chance8,chance32\n"


def test_the_same_numbers_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        written(tmp_path / folder)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_hostile_names_survive(tmp_path: Path) -> None:
    names = ["a,b", 'c"d', "e\nf", "ü", "=1+1", "+a", "-a", "@a", "\ta", "\ra", "'a"]
    text = as_csv([{"slide": name, "x": 0.1 + 0.2} for name in names])
    (tmp_path / "x.csv").write_text(text, newline="")
    rows = list(csv.DictReader((tmp_path / "x.csv").open(newline="")))
    assert [from_csv_cell(row["slide"]) for row in rows] == names
    assert not any(row["slide"].startswith(("=", "+", "-", "@", "\t", "\r")) for row in rows)
    assert float(rows[0]["x"]) == 0.1 + 0.2
