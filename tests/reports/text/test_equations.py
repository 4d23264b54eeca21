"""Equations of the metric cards as MathML."""

import re
import xml.etree.ElementTree as ET

import pytest

from foci.errors import FociError
from foci.metrics import CARDS
from foci.reports.html import mathml

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"


@pytest.mark.parametrize("name", list(CARDS))
def test_every_card_has_an_equation_without_latex(name: str) -> None:
    for source in (CARDS[name].equation, CARDS[name].symbol):
        root = ET.fromstring(mathml(source))
        shown = "".join(root.itertext())
        assert shown
        assert not re.search(r"[\\_$]", shown)
        counts = {"msub": 2, "msup": 2, "msubsup": 3, "mfrac": 2, "munder": 2, "munderover": 3}
        for element in root.iter():
            tag = element.tag.removeprefix(NAMESPACE)
            assert len(element) == counts.get(tag, len(element)), tag
            assert tag in {
                "math", "mrow", "mi", "mo", "mn", "mtext", "mspace", "mstyle", "msub", "msup",
                "msubsup", "munder", "mover", "munderover", "mfrac", "msqrt",
            }  # fmt: skip


def test_fractions_roots_and_accents() -> None:
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in mathml(r"\tfrac12")
    assert "<msqrt><mrow><mi>x</mi></mrow></msqrt>" in mathml(r"\sqrt{x}")
    assert "<mover><mi>v</mi>" in mathml(r"\bar v")
    assert "<munderover><mo>&#x02211;</mo>" in mathml(r"\sum_{j=1}^{m}", display="block")


def test_argmax_is_known_and_nonsense_is_refused() -> None:
    assert "\\" not in mathml(r"\arg\max_c p_c")
    with pytest.raises(FociError, match="has a command that latex2mathml does not know"):
        mathml(r"\frob{x}")
