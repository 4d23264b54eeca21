"""A table as CSV, Markdown and LaTeX: the same cells, the gaps with their reasons."""

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from foci.studies.read import PublishedNumber, Value
from foci.studies.table import Cell, Column, Row, Table, escaped, to_csv, to_latex, to_markdown
from foci.studies.tables import write

MSK = Column("msk_cond", "MSK_cond", 2, "lower")
SHI = Column("shi", "SHI", 3, "higher", signed=True)


def printed(mean: float, std: float | None, digits: int) -> PublishedNumber:
    return PublishedNumber(mean, std, 3, digits)


SMALL = Table(
    label="small",
    title="Small & 100 %",
    heads=("Method",),
    columns=(MSK, SHI),
    rows=(
        Row(
            ("A_1",),
            {
                "msk_cond": Cell(Value.over({"42": 7.0, "43": 9.0}), printed(3.0, 0.5, 2)),
                "shi": Cell(Value.over({"42": 0.5, "43": "it diverged"}), printed(0.25, None, 3)),
            },
            "Group",
        ),
        Row(("B",), {"msk_cond": Cell(Value.absent("not run yet"))}, "Group"),
    ),
    notes=("Read it.",),
)


def test_csv_has_every_seed_and_the_paper() -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(SMALL))))
    assert [(line["Method"], line["column"]) for line in lines] == [
        ("A_1", "msk_cond"), ("A_1", "shi"), ("B", "msk_cond"),
    ]  # fmt: skip
    first = lines[0]
    assert (first["mean"], first["std"], first["n"]) == ("8.0", "1.0", "2")
    assert (first["seed_42"], first["seed_43"]) == ("7.0", "9.0")
    assert (first["paper_mean"], first["paper_std"]) == ("3.0", "0.5")
    assert float(first["z"]) == pytest.approx(5.0 / 1.25**0.5)
    assert first["marked"] == "yes"
    assert lines[1]["gap"] == "seed 43: it diverged"
    assert (lines[1]["z"], lines[1]["marked"]) == ("", "")
    assert (lines[2]["mean"], lines[2]["gap"]) == ("", "not run yet")


def test_markdown() -> None:
    text = to_markdown(SMALL, ["Another encoder."])
    assert text.splitlines() == [
        "## Small & 100 %",
        "",
        "- Another encoder.",
        "",
        "| Method | MSK_cond ↓ | SHI ↑ |",
        "| --- | --- | --- |",
        "| *Group* |  |  |",
        "| A_1 | 8.00 ± 1.00<br>paper 3.00 ± 0.50<br>+5.00, **z = 4.5** "
        "| +0.500 (n = 1) [1]<br>paper +0.250<br>+0.250 |",
        "| B | - [2] |  |",
        "",
        "- Read it.",
        "- [1] seed 43: it diverged",
        "- [2] not run yet",
    ]


def test_latex() -> None:
    text = to_latex(SMALL, ["Another encoder, 50 % smaller."])
    assert text.startswith("% Another encoder, 50 % smaller.\n\\begin{table}[t]\n")
    assert r"\caption{Small \& 100 \%}" in text
    assert r"Method & MSK\_cond $\downarrow$ & SHI $\uparrow$ \\" in text
    assert r"A\_1 & 8.00 $\pm$ 1.00 & +0.500 (n = 1)\,[1] \\" in text
    assert r"{\scriptsize 3.00 $\pm$ 0.50 (+5.00, \textbf{$z=4.5$})}" in text
    assert r"[1] seed 43: it diverged. [2] not run yet." in text


def test_signs_that_latex_lacks() -> None:
    assert escaped("50 % of a_b & {κ} ≥ 1\\x\nnew é") == (
        r"50 \% of a\_b \& \{$\kappa$\} $\geq$ 1\textbackslash{}x new ?"
    )


@pytest.fixture(scope="module")
def folder(study: Path) -> Path:
    write(study)
    return study / "tables"


def test_files_of_a_study(study: Path, folder: Path, tables: dict[str, Table]) -> None:
    assert {"shi", "main_nsclc", "main_brca", "kmax32", "tests", "joint"} <= {*tables}
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert {*first} == {"all.tex"} | {
        f"{label}.{end}" for label in tables for end in ("csv", "md", "tex")
    }
    for name, content in first.items():
        assert b"reproduced" not in content.lower()
        if name.endswith(".md"):
            assert b"- Of the paper's cohorts, not in this study: PANDA." in content
    write(study)
    assert first == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_table_balances_its_braces(folder: Path) -> None:
    """Runs everywhere; the next test lets LaTeX itself judge, where it is installed."""
    for path in folder.glob("*.tex"):
        bare = re.sub(r"\\[\\{}%&_$#]", "", path.read_text(encoding="utf-8"))
        text = "\n".join(line for line in bare.splitlines() if not line.startswith("%"))
        assert text.count("{") == text.count("}"), path
        assert text.count("$") % 2 == 0, path
        opened = re.findall(r"\\begin\{(\w+)\}", text)
        assert sorted(opened) == sorted(re.findall(r"\\end\{(\w+)\}", text)), path


LATEX = shutil.which("tectonic") or shutil.which("pdflatex")


@pytest.mark.skipif(LATEX is None, reason="neither tectonic nor pdflatex is installed")
def test_latex_compiles_all_tables(folder: Path, tmp_path: Path) -> None:
    assert LATEX is not None
    copy = shutil.copytree(folder, tmp_path / "tables")
    quiet = [] if "tectonic" in LATEX else ["-interaction=nonstopmode", "-halt-on-error"]
    command = [LATEX, *quiet, "all.tex"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (copy / "all.pdf").stat().st_size > 10_000
