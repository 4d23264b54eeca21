"""Tables of results on the pages are those of the files in docs/appendix."""

import math
import re

import pytest
from tools.results import DOCS, PAGES, PLACE, TABLES, holds, number, page_of


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_files_hold(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert page_of(text) == text, "run: python -m tools.results"


def test_every_table_is_on_a_page() -> None:
    texts = [(DOCS / name).read_text(encoding="utf-8") for name in PAGES]
    assert sorted(name for text in texts for name, _ in PLACE.findall(text)) == sorted(TABLES)


def test_numbers_about_the_study_are_written_from_its_files() -> None:
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    own = text[text.index("## What agrees") : text.index("## Which method")]
    own = re.sub(r"<!-- table: .*?<!-- end -->", "", own, flags=re.DOTALL)
    own = re.sub(r"^(!|\*[^*]).*(\n\S.*)*", "", own, flags=re.MULTILINE)  # figures and captions
    assert not re.findall(r"(?<![\w.])\d[\d.]*", own)


def test_a_sentence_that_the_files_do_not_bear_out_stops() -> None:
    assert holds(True, "agrees") == "agrees"
    with pytest.raises(ValueError, match="no longer bear out: agrees"):
        holds(False, "agrees")


@pytest.mark.parametrize(
    ("cell", "mean"), [("2.41 ± 0.58", 2.41), ("-0.017", -0.017), ("85.3 (2)", 85.3), ("", None)]
)
def test_the_mean_of_a_cell(cell: str, mean: float | None) -> None:
    assert number(cell) == mean or (mean is None and math.isnan(number(cell)))
