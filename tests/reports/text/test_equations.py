"""Equations of the metric cards as MathML."""

import re
import xml.etree.ElementTree as ET

import pytest

from foci.errors import FociError
from foci.metrics import CARDS
from foci.reports.text.equations import as_mathml


@pytest.mark.parametrize("name", list(CARDS))
def test_every_card_has_an_equation_without_latex(name: str) -> None:
    for source in (CARDS[name].equation, CARDS[name].symbol):
        root = ET.fromstring(as_mathml(source))
        shown = "".join(root.itertext())
        assert shown
        assert not re.search(r"[\\_^$]", shown)
        tags = {element.tag for element in root.iter()}
        counts = {"msub": 2, "msup": 2, "msubsup": 3, "mfrac": 2, "munder": 2, "munderover": 3}
        for element in root.iter():
            assert len(element) == counts.get(element.tag, len(element)), element.tag
        assert tags <= {
            "math", "mrow", "mi", "mo", "mn", "mtext", "mspace", "msub", "msup", "msubsup",
            "munder", "mover", "munderover", "mfrac", "msqrt",
        }  # fmt: skip


def test_fractions_roots_and_accents() -> None:
    assert as_mathml(r"\tfrac12") == (
        "<math><mrow><mfrac><mrow><mn>1</mn></mrow><mrow><mn>2</mn></mrow></mfrac></mrow></math>"
    )
    assert "<msqrt><mrow><mi>x</mi></mrow></msqrt>" in as_mathml(r"\sqrt{x}")
    assert "<mover><mi>v</mi><mo>¯</mo></mover>" in as_mathml(r"\bar v")
    assert "<mtext>a &lt; b</mtext>" in as_mathml(r"\text{a < b}")
    assert as_mathml(r"\sum_{j=1}^{m}").startswith("<math><mrow><munderover><mo>∑</mo>")


def test_what_it_does_not_know_is_refused() -> None:
    with pytest.raises(FociError, match=r"unknown command \\frob; mend the metric card"):
        as_mathml(r"\frob{x}")
    with pytest.raises(FociError, match="has no closing }"):
        as_mathml("{x")
