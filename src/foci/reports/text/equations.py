"""Equations as MathML, which browsers render without a script and without a font."""

from __future__ import annotations

from typing import Literal

from latex2mathml.converter import convert

from foci.errors import FociError


def mathml(latex: str, display: Literal["inline", "block"] = "inline") -> str:
    r"""An equation in LaTeX as MathML; a command that is not known is an error.

    >>> mathml(r"p \ge \kappa").removeprefix('<math xmlns="http://www.w3.org/1998/Math/MathML" ')
    'display="inline"><mrow><mi>p</mi><mo>&#x02265;</mo><mi>&#x003BA;</mi></mrow></math>'
    """
    known = latex.strip().replace(r"\arg", r"\operatorname{arg}")
    written = str(convert(known, display=display))
    if "\\" in written:
        raise FociError(latex.strip(), "has a command that latex2mathml does not know", "fix it")
    return written
