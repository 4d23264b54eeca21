"""Formulas become MathML, and nothing else does."""

import pytest
from markdown import Markdown
from tools.site.mathml import FormulaExtension


def rendered(text: str) -> str:
    return Markdown(extensions=[FormulaExtension(), "fenced_code"]).convert(text)


def test_a_formula_in_a_sentence() -> None:
    html = rendered("at least $\\kappa_s = 0.9$ of it")
    assert html.startswith('<p>at least <math xmlns="http://www.w3.org/1998/Math/MathML"')
    assert "<msub><mi>&#x003BA;</mi><mi>s</mi></msub>" in html
    assert html.endswith("</math> of it</p>")


def test_a_formula_of_its_own() -> None:
    html = rendered("before\n\n$$\\sum_s p_s\n= 1$$\n\nafter")
    assert '<div class="formula"><math' in html
    assert 'display="block"' in html
    assert "$" not in html


@pytest.mark.parametrize("text", ["`$x$`", "```\n$x$\n```", "costs $5 or $6", "$ x $", "\\$x\\$"])
def test_what_is_no_formula_stays(text: str) -> None:
    assert "<math" not in rendered(text)


def test_markup_inside_a_formula_is_no_markup() -> None:
    html = rendered("$a_i$ and $b_i$, $\\{x*y*z\\}$")
    assert "<em>" not in html
    assert html.count("<math") == 3


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match="latex2mathml does not know"):
        rendered("$\\nonsense x$")
