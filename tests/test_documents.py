"""What the documents show works as shown."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tools.architecture_picture import PICTURE, names_and_purposes, picture

from tests.cli.invoke import Foci

ROOT = Path(__file__).resolve().parent.parent


def blocks(page: str, language: str, tab: str = "") -> list[str]:
    """Code of a page in one language, within its tabs too, or within one of them only."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if tab:
        text = text.split(f'\n=== "{tab}"\n')[1]
        text = re.split(r"^(?=\S)", text, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, flags=re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(code) for _, code in found]


def test_the_readme_from_demo_to_answers(foci: Foci, capsys: pytest.CaptureFixture[str]) -> None:
    assert blocks("README.md", "console")[1] == "$ foci demo foci-demo\n"
    assert foci("demo", "foci-demo", "--number", "40", "--cohort-only").code == 0
    quick = ("--epochs", "1", "--out", "foci-demo/models/abmil")
    places = ("--features", "foci-demo/features_demo", "--labels", "foci-demo/cohort.csv")
    assert foci("train", "abmil", *places, *quick).code == 0
    (example,) = blocks("README.md", "python")
    assert len([line for line in example.splitlines() if line.strip()]) <= 10
    exec(example, {})
    lines = capsys.readouterr().out.splitlines()
    answers, rankings = lines[:3], lines[3:]
    assert [line.split(":")[0] for line in answers] == ["map", "tiles", "order"]
    assert all(re.fullmatch(r"\w+: .+ - .+\.\)?", line) for line in answers)
    known = ["native", "evidence", "selector", "random"]
    assert [line.split(":")[0] for line in rankings] == known
    assert Path("report.html").stat().st_size > 100_000


def test_the_curves_of_the_metrics_page_run() -> None:
    examples = blocks("docs/metrics.md", "python")
    first, *others = (code for code in examples if not code.startswith(">>>"))
    scope: dict[str, Any] = {"rankings": []}
    exec(first, scope)
    assert scope["inserted"].shape == (256, 2)
    assert scope["deleted"].shape == (257, 2)
    assert len(others) == 3
    for block in others:
        exec(block, scope)
    ks = scope["ks"].tolist()
    assert (ks[0], ks[-1], len(ks)) == (1, 256, len(scope["probabilities"]))
    assert set(scope["kept"]) == set(range(1, 257))
    assert set(scope["left"]) <= set(scope["kept"])


PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("page", ["README.md", *PAGES])
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_all_pages_together_can_be_read() -> None:
    """A word has a letter or a digit; pages made from code do not count."""
    texts = {page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    words = {page: sum(bool(re.search(r"\w", word)) for word in text.split())
             for page, text in texts.items()}  # fmt: skip
    assert len(words) > 20
    assert sum(words.values()) <= 35_000, sorted(words.items(), key=lambda one: -one[1])[:8]


ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!## ).*\n)+)", ARCHITECTURE, flags=re.MULTILINE))
WAY = "One bag, from file to report"
CLASSES = {
    name
    for path in (ROOT / "src" / "foci").rglob("*.py")
    for name in re.findall(r"^class (\w+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
}


def items(section: str) -> list[str]:
    """The numbered items of a section of the architecture page."""
    return re.findall(r"^\d+\. (.+)", SECTIONS[section], flags=re.MULTILINE)


def test_the_architecture_page_has_its_six_lists() -> None:
    assert len(SECTIONS) == 6
    assert 0 < len(items(WAY)) <= 12
    assert all(0 < len(items(name)) <= 6 for name in SECTIONS if name != WAY)


@pytest.mark.parametrize("item", [item for name in SECTIONS for item in items(name)])
def test_every_item_of_the_architecture_page_opens_with_a_file(item: str) -> None:
    (path,) = re.findall(r"^`((?:src/foci|tests)/[\w/]+\.py)`", item)
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"(?:src/)?foci/[\w/]+\.py", ARCHITECTURE))))
def test_files_of_the_architecture_page_exist(path: str) -> None:
    assert (ROOT / "src" / path.removeprefix("src/")).is_file()


@pytest.mark.parametrize("step", items(WAY))
def test_every_step_of_a_bag_names_the_type_that_moves_on(step: str) -> None:
    (moved,) = re.findall(r"^`[^`]+` → `(\w+)`: ", step)
    assert moved in {*CLASSES, "Tensor", "Path"}


def test_files_that_contributing_names_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|tests|docs|tools)/[\w./-]+)`", text)
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_picture_in_the_repository_shows_every_package() -> None:
    kept, now = (
        names_and_purposes(svg) for svg in (PICTURE.read_text(encoding="utf-8"), picture())
    )
    assert {"bags/", "audits/", "api.py", "cli/"} <= set(now)
    assert kept == now, "run: python -m tools.architecture_picture"
