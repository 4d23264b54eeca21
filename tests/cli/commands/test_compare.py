"""``foci compare``."""

import csv
import re
from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.compare import compare
from foci.cli.commands.compare import comparison_text
from tests.cli.invoke import Foci
from tests.makers.curves import Counts
from tests.makers.folders import write_folder

COUNTS: Counts = {"native": [[9, 8]], "selector": [[2, 2], [4, 2]], "random": [[6, 6]] * 2}


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    labels = ["tumour", "benign"]
    for name in ("abmil", "a-model-with-a-rather-long-name"):
        write_folder(tmp_path / name, COUNTS, ["A", "B"], labels, name=name, targets=[1, 0])
    return [tmp_path / "abmil", tmp_path / "a-model-with-a-rather-long-name"]


def shown(audits: list[StoredAudit], width: int) -> str:
    return comparison_text(compare(audits), width=width)


def answers_of(text: str) -> list[list[str]]:
    """Cells of the table of answers, which comes before everything else, its head first."""
    lines = text[text.index("model ") :].strip().splitlines()
    return [re.split(r" {2,}", line) for line in lines[: lines.index("")]]


def numbers_of(text: str) -> str:
    """The table of numbers."""
    return text[text.index("Prediction view") : text.index("\nK:")]


def test_prints_a_table(foci: Foci, folders: list[Path]) -> None:
    done = foci.done("compare", *folders)
    (line,) = [line for line in numbers_of(done.out).splitlines() if line.startswith("abmil")]
    assert line.split()[1:5] == ["1.000", "8.5", "2.5", "6.0"]
    assert "model-sufficient" in done.out
    heads, first, *_ = answers_of(done.out)
    told = StoredAudit.load(folders[0]).answers
    assert heads == ["model", "believe the map?", "decision hangs on", "better order?"]
    assert first == ["abmil", told.map.answer, told.tiles.answer, told.order.answer]
    assert "wrote" not in done.out
    assert done.out.endswith(f"next foci view {folders[0]}\n")


def test_writes_a_page_and_the_table_beside_it(foci: Foci, folders: list[Path]) -> None:
    out = folders[0].parent / "pages" / "both.html"
    done = foci.done("compare", *folders, "--out", out)
    assert "a-model-with-a-rather-long-name" in out.read_text()
    assert f"\nopen {out.resolve().as_uri()}\n" in done.out
    rows = list(csv.DictReader((out.parent / "compare.csv").open(newline="")))
    assert [float(row["restricted:native"]) for row in rows] == [8.5, 8.5]


@pytest.mark.parametrize("width", [80, 100, 120])
def test_fits_the_terminal(folders: list[Path], width: int) -> None:
    text = shown([StoredAudit.load(folder) for folder in folders], width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    heads, *rows = answers_of(text)
    assert len(heads) == 4
    assert [row[0] for row in rows if len(row) == 4] == ["abmil", "a-model-with-a-rather-"]


MORE = ("minimal", "integrated-gradients", "leave-one-out", "greedy-insertion")


@pytest.mark.parametrize(("width", "measures"), [(80, 4), (56, 3), (50, 1)])
def test_many_rankings_get_a_row_each_and_no_number_is_cut(
    tmp_path: Path, width: int, measures: int
) -> None:
    counts: Counts = {**COUNTS, **{name: [[100, 256]] for name in MORE}}
    audits = [
        write_folder(tmp_path / name, counts, ["A", "B"], ["tumour", "benign"], name=name,
                     targets=[1, 0], drops={"native": 0.256}, change={"rankings": tuple(COUNTS)})
        for name in ("abmil", "a-model-with-a-rather-long-name")
    ]  # fmt: skip
    text = shown(audits, width)
    assert max(map(len, text.splitlines())) <= width
    table = [line.split() for line in numbers_of(text).splitlines()]
    rows = {name: [cells[1:] for cells in table if cells[:1] == [name]] for name in counts}
    for name in counts:
        assert len(rows[name]) == 2, "one per audit"
        assert all(len(cells) == measures for cells in rows[name])
    assert rows["native"][0] == ["8.5", "-", "-0.42", "0.128"][:measures]
    assert rows["integrated-gradients"][1][0] == "178.0"
    (model,) = [cells for cells in table if cells[:1] == ["abmil"]]
    assert model[1] == "1.000"


def test_a_ranking_that_was_not_run_has_no_row(tmp_path: Path) -> None:
    less: Counts = {"native": COUNTS["native"]}
    more: Counts = {**COUNTS, **{name: [[100, 256]] for name in MORE}}
    audits = [
        write_folder(tmp_path / name, counts, ["A", "B"], ["tumour", "benign"], name=name,
                     change={"rankings": ("native",)})
        for name, counts in (("less", less), ("more", more))
    ]  # fmt: skip
    lines = numbers_of(shown(audits, 80)).splitlines()
    firsts = [line.split()[0] for line in lines if line.split()]
    assert [firsts.count(name) for name in ("native", "leave-one-out")] == [2, 1]
    assert firsts.index("native") == firsts.index("less") + 1
    assert firsts.index("more") == firsts.index("native") + 1


def test_refusals(foci: Foci, folders: list[Path]) -> None:
    line = foci.refused("compare", *folders, "--out", "table.csv")
    assert "--out table.csv: is not an HTML file; give a name" in line
    line = foci.refused("compare", *folders, "nowhere")
    assert "nowhere: has no manifest.json; give the folder" in line
    assert "needs two or more audits" in foci.refused("compare", folders[0])
