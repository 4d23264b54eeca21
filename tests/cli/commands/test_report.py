"""``foci report``: other settings from stored curves, and nothing of the audit touched."""

from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.audits.audit import recompute
from foci.cli.text import audit_text
from tests.cli.invoke import Foci
from tests.makers.curves import Counts
from tests.makers.folders import write_folder

COUNTS: Counts = {"native": [[9, 8]], "selector": [[2, 2], [4, 2]], "random": [[6, 6]] * 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path / "audit", COUNTS, ["A", "B"], ["tumour", None]).folder


def test_the_stored_settings_give_report_html(foci: Foci, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = foci.done("report", folder)
    page = folder / "report.html"
    assert done.out.splitlines()[-3:] == [
        f"wrote {page}",
        f"open {page.resolve().as_uri()}",
        f"next foci view {folder}",
    ]
    assert (folder / "report.html").read_text().lstrip().lower().startswith("<!doctype html>")
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    "options",
    [["--kappa", "0.8"], ["--kappa", "relative"], ["--k-max", "5"], ["--view", "label"]],
)
def test_other_settings_get_a_page_of_their_own(
    foci: Foci, folder: Path, options: list[str]
) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = foci.done("report", folder, *options)
    (page,) = [path for path in folder.iterdir() if path.is_file() and path not in before]
    assert page.name.startswith("report-")
    assert str(page) in done.out
    assert {path: path.read_bytes() for path in before} == before
    again = foci("report", folder, *options, "--out", folder.parent / "mine.html")
    assert (folder.parent / "mine.html").read_bytes() == page.read_bytes(), again.err


def test_it_prints_what_the_audit_prints(foci: Foci, folder: Path) -> None:
    """Table, legend and answers: those of the audit, or of an audit at the asked threshold."""
    audit = StoredAudit.load(folder)
    said, told = audit_text(audit), audit_text(audit, summary=recompute(audit, kappa=0.8))
    assert foci("report", folder).out.startswith(said)
    assert told != said
    assert "median tiles until 0.8 sure" in told
    assert foci("report", folder, "--kappa", "0.8").out.startswith(told)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--k-max", "300"], "--k-max: is 300, but curves were stored up to 256 tiles"),
        (
            ["--kappa", "sure"],
            "--kappa: cannot be 'sure'; give a confidence between 0 and 1, or rel",
        ),
        (["--out", "summary.json"], "--out summary.json: is not an HTML file"),
    ],
)
def test_refusals(foci: Foci, folder: Path, options: list[str], says: str) -> None:
    assert says in foci.refused("report", folder, *options)
    assert not (folder / "report.html").exists()


def test_relative_answers_are_on_the_page(foci: Foci, folder: Path) -> None:
    foci.done("report", folder, "--kappa", "relative")
    text = (folder / "report-relative.html").read_text()
    assert "slides, sure or not</summary>" in text
    for share in ("0.8", "0.9", "0.95", "0.99"):
        assert f'<tr><th scope="row">{share} p</th>' in text
    foci.done("report", folder)
    assert "slides, sure or not</summary>" not in (folder / "report.html").read_text()
