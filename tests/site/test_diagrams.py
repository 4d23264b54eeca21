"""Diagrams are sound SVG and show the numbers that they are given."""

from xml.etree import ElementTree

import numpy as np
import pytest
from tools.site.diagrams import MINUS, TERMS, Example, both_ways, chain, decided, minimum
from tools.site.pages import DOCS
from tools.site.svg import STYLE, Plot, text

SVG = "{http://www.w3.org/2000/svg}"
GRID = np.array([[x * 256, y * 256] for x in range(5) for y in range(4)])
SLIDE = Example(GRID, [1, 2, 3, 4], [0.5, 0.8, 0.95, 0.97], [0.9, 0.7, 0.6, 0.3], 3, 4)


def words(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_a_point_lies_where_the_axes_say() -> None:
    plot = Plot(left=10, top=20, width=100, height=50, last=40)
    assert plot.at(0, 0) == (10, 70)
    assert plot.at(40, 1) == (110, 20)
    assert plot.at(10, 0.5) == (35, 45)


def test_words_are_escaped() -> None:
    assert "a &lt; b" in text(0, 0, "a < b")


def test_the_chain_ends_in_the_count() -> None:
    said = words(chain(SLIDE))
    assert "20 tiles of one slide" in said
    assert said[said.index("tiles suffice") - 1] == "3"


def test_both_counts_are_named() -> None:
    said = words(both_ways(SLIDE))
    assert "3 tiles suffice: MSK is 3." in said
    assert "Decisive K is 4" in said


def test_decided_slides_are_counted() -> None:
    picture = decided([0.55, 0.9, 0.93, 0.99])
    assert "1 slides undecided: no decision to recover" in words(picture)
    assert "3 decided" in words(picture)
    dots = [e.get("class") for e in ElementTree.fromstring(picture).iter(f"{SVG}circle")]
    assert (dots.count("in-dot"), dots.count("off-dot")) == (3, 1)


def test_the_smallest_set_is_the_theorems() -> None:
    """17 in total; 8, 1 and -5 without one, two and three of the largest."""
    picture = minimum(TERMS)
    said = words(picture)
    assert "All tiles: +17" in said
    assert f"Without the 3 largest: {MINUS}5" in said
    assert "Without the 2 largest: +1" in said
    bars = [e.get("class") for e in ElementTree.fromstring(picture).iter(f"{SVG}rect")]
    assert (bars.count("out-dot"), bars.count("in-dot")) == (3, len(TERMS) - 3)
    assert (DOCS / "images" / "concept-minimum.svg").read_text(encoding="utf-8") == picture


@pytest.mark.parametrize("name", ["chain", "sufficient-necessary", "decided", "minimum"])
def test_the_pictures_of_the_page_are_drawn_in_this_style(name: str) -> None:
    picture = (DOCS / "images" / f"concept-{name}.svg").read_text(encoding="utf-8")
    assert STYLE in picture, "run: python3 dev.py pictures"
