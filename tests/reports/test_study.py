"""The page of a study: every table, every figure, a link to every report."""

import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ViewportSize
from typer.testing import CliRunner

from foci.audits import StoredAudit
from foci.cli.commands.study import app
from foci.reports.first_screen import counted_tiles, first_screen
from foci.studies.figures import write
from foci.studies.plan import MAIN, StudyFolder
from foci.studies.read import audit_folders
from foci.studies.tables import build
from tests.makers.finished_study import finished
from tests.reports.browser import THEMES, Watched, findings
from tests.reports.test_report import text_of
from tests.studies.test_figures import LABELS


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    finished(folder, name="a <study> & more")
    done = CliRunner().invoke(app, ["tables", str(folder)])
    assert done.exit_code == 0, done.output
    link, following = done.output.splitlines()[-2:]
    assert link == f"open {(folder / 'study.html').resolve().as_uri()}"
    assert following.startswith(f"next foci view {folder / 'cells'}")
    return folder / "study.html"


def test_all_tables_figures_and_reports_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    labels = re.findall(r'<div class="study-block" id="([\w-]+)">', text)
    assert labels == [
        "shi", "selected_only_compact", "main_nsclc", "main_brca", "kmax32", "kappa_sensitivity",
        "ncap_sensitivity", "adaptive_k_settings", "selected_only", "selected_only_k", "ablation",
        "lambda_ablation", "faithfulness", "faithfulness_xds", "predicted_class_srp", "efficiency",
        "tests", "hypotheses", "preservation", "joint",
    ]  # fmt: skip
    assert len(re.findall(r'<img src="data:image/svg\+xml;base64,', text)) == 5
    assert text.index('id="answers"') < text.index('id="figures"') < text.index('id="tables"')
    head, rest = text.split('id="figures"')
    assert set(re.findall(r'href="(cells/[^"]+/report.html)"', head)) <= set(
        re.findall(r'href="(cells/[^"]+/report.html)"', rest)
    )
    links = re.findall(r'href="(cells/[^"]+/report.html)"', rest)
    study = StudyFolder(page.parent)
    done = [c for c in study.plan().select(kind="audit") if study.result(c) is not None]
    assert len(links) == len(done) == 19
    local = re.findall(r'href="((?:cells|tables|figures)/[^"]+)"', text)
    assert [link for link in local if not (page.parent / link).is_file()] == []


def test_figures_have_the_same_bytes_every_time(page: Path) -> None:
    def content() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (page.parent / "figures").iterdir()}

    study, first = StudyFolder(page.parent), content()
    write(study, build(study).numbers)
    assert content() == first
    assert {*first} == {f"{name}.{end}" for name in LABELS for end in ("svg", "pdf", "csv")}


def test_cells_hold_numbers_gaps_and_the_paper(page: Path) -> None:
    text = text_of(page)
    assert "7.00 ± 1.00 paper 7.33 ± 0.39 -0.33, z = -0.3" in text
    assert "[1] seed 43: train failed: the loss is not finite; lower the rate" in text
    assert "19 audits finished of 20." in text
    assert "reproduced" not in text.lower()


def test_names_are_escaped_and_nothing_is_asked_for(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<study>" not in text
    assert "a &lt;study&gt; &amp; more" in text
    assert "img-src data:" in text


@pytest.mark.parametrize(("width", "dark"), THEMES)
def test_the_page_is_quiet_fits_and_has_no_serious_findings(
    browser: Browser, page: Path, width: int, dark: bool
) -> None:
    scheme: Literal["dark", "light"] = "dark" if dark else "light"
    size: ViewportSize = {"width": width, "height": 900}
    watched = Watched(browser.new_page(viewport=size, color_scheme=scheme))
    watched.page.goto(page.as_uri())
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert findings(watched.page) == []
    assert watched.page.evaluate("[...document.images].every(i => i.naturalWidth > 0)")
    watched.asked = [url for url in watched.asked if not url.startswith("data:")]
    watched.assert_quiet(page.as_uri())
    watched.page.close()


def test_the_answers_are_those_of_the_audits(page: Path) -> None:
    """Cohorts down, backbones across, a word and a number of tiles for every audit."""
    study, text = StudyFolder(page.parent), text_of(page)
    found, relative = 0, 0
    for place, audits in audit_folders(study).items():
        for seed, folder in audits.items() if place.variant == MAIN and not place.n_cap else ():
            audit = StoredAudit.load(folder)
            first, chart = first_screen(audit.summary, audit.manifest), audit.summary.carried
            typical = None if chart is None else chart.typical
            tiles = "" if typical is None else f"{counted_tiles(typical)}; "
            own = chart is not None and chart.relative is not None
            assert f"{first.word} {tiles}{own * 'relative; '}seed {seed}" in text
            found, relative = found + 1, relative + own
    assert found > 5
    assert ("judged by its own confidence" in text) == (relative > 0)
