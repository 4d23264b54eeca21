"""Tables of results on the pages are those of the files in docs/appendix."""

import pytest
from tools.results import DOCS, PAGES, PLACE, TABLES, page_of


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_files_hold(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert page_of(text) == text, "run: python -m tools.results"


def test_every_table_is_on_a_page() -> None:
    texts = [(DOCS / name).read_text(encoding="utf-8") for name in PAGES]
    assert sorted(name for text in texts for name, _ in PLACE.findall(text)) == sorted(TABLES)
