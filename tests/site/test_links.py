"""The link checker finds what is broken, and nothing else."""

from pathlib import Path

import pytest
from tools.site.links import problems

GOOD = '<h1 id="top">T</h1><a href="b.html#here">b</a><a href="https://example.org">x</a>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text(GOOD)
    (tmp_path / "b.html").write_text(
        '<p id="here"><a href="index.html">a</a> <a href="#here">h</a>'
    )
    return tmp_path


def test_a_sound_site(site: Path) -> None:
    (site / "404.html").write_text('<a href="/b.html">from the root</a>')
    (site / "deep").mkdir()
    (site / "deep" / "index.html").write_text('<a href="../b.html">up</a>')
    (site / "c.html").write_text('<a href="deep/">a folder</a><link rel="canonical" href="//x/y">')
    assert problems(site) == []


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ('<a href="gone.html">', "bad.html: gone.html is missing"),
        ('<a href="b.html#gone">', "bad.html: b.html#gone has no such heading"),
        ('<a href="#gone">', "bad.html: #gone has no such heading"),
        ('<img src="gone.png">', "bad.html: gone.png is missing"),
        ('<script src="https://cdn.example/x.js">', "bad.html: loads https://cdn.example/x.js"),
        ('<link rel="stylesheet" href="//f.example/f">', "bad.html: loads //f.example/f"),
    ],
)
def test_what_is_broken(site: Path, html: str, said: str) -> None:
    (site / "bad.html").write_text(html)
    assert problems(site) == [said]


def test_a_style_sheet_that_loads_from_elsewhere(site: Path) -> None:
    (site / "a.css").write_text("p { background: url('https://example.org/a.png') }")
    assert problems(site) == ["a.css: loads https://example.org/a.png"]


def test_live_reports_are_not_read_but_have_to_be_there(site: Path) -> None:
    (site / "gallery").mkdir()
    (site / "gallery" / "r.html").write_text('<a href="built-by-script.html">')
    (site / "c.html").write_text('<a href="gallery/r.html#slide">')
    assert problems(site) == []
