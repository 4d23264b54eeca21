"""Equations of the metric cards as MathML, which browsers render without a script."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from markupsafe import Markup

from foci.errors import FociError
from foci.reports.text.wording import MINUS

_SIGNS = {
    "Delta": "Δ", "kappa": "κ", "rho": "\N{GREEK SMALL LETTER RHO}", "epsilon": "ε", "pi": "π",
    "sigma": "\N{GREEK SMALL LETTER SIGMA}", "tau": "τ", "infty": "∞",
}  # fmt: skip
_OPERATORS = {
    "in": "∈", "le": "≤", "ge": "≥", "ne": "≠", "pm": "±", "wedge": "∧", "forall": "∀",
    "cap": "∩", "cup": "\N{UNION}", "subseteq": "⊆", "dots": "…", "{": "{", "}": "}", "lfloor": "⌊",
    "rfloor": "⌋", "#": "#",
}  # fmt: skip
_LARGE = {"sum": "∑", "prod": "∏", "int": "∫"}
_NAMES = {"arg", "exp", "ln", "log", "max", "min", "Pr"}
_SPACES = {" ": "0.3em", ",": "0.17em", "quad": "1em"}
_ACCENTS = {"overline": "¯", "bar": "¯", "hat": "\u02c6"}
_VARIANTS = {"mathrm": "normal", "mathbf": "bold"}
_HALF = re.compile(r"\\t?frac(\d)(\d)")
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[0-9]+(?:\.[0-9]+)?|\s+|.")


def as_mathml(equation: str) -> Markup:
    r"""Translate the LaTeX of a metric card to MathML.

    >>> print(as_mathml(r"K_j \ge \kappa"))
    <math><mrow><msub><mi>K</mi><mi>j</mi></msub><mo>≥</mo><mi>κ</mi></mrow></math>
    """
    parser = _Parser(equation)
    return Markup(f"<math>{parser.row('')}</math>")  # noqa: S704 - every piece is escaped


class _Parser:
    """Recursive descent over the tokens of one equation."""

    def __init__(self, equation: str) -> None:
        self.equation = equation
        self.tokens = _TOKEN.findall(_HALF.sub(r"\\frac{\1}{\2}", equation))
        self.at = 0

    def row(self, end: str) -> str:
        """Everything up to a token, in one row."""
        return f"<mrow>{''.join(self._items(end))}</mrow>"

    def _items(self, end: str) -> Iterator[str]:
        while self.at < len(self.tokens):
            if self.tokens[self.at] == end:
                self.at += 1
                return
            if self.tokens[self.at].isspace():
                self.at += 1
            else:
                yield self._scripted()
        if end:
            raise FociError(self.equation, f"has no closing {end}", "mend the metric card")

    def _scripted(self) -> str:
        """One item with its subscript and superscript, in either order."""
        large = self.tokens[self.at].lstrip("\\") in {*_LARGE, "max", "min"}
        base, scripts = self._item(), {}
        while self.at < len(self.tokens) and self.tokens[self.at] in "_^":
            sign = self.tokens[self.at]
            self.at += 1
            scripts[sign] = self._item()
        below, above = scripts.get("_"), scripts.get("^")
        tags = ("munder", "mover", "munderover") if large else ("msub", "msup", "msubsup")
        if below and above:
            return f"<{tags[2]}>{base}{below}{above}</{tags[2]}>"
        if below or above:
            tag = tags[0] if below else tags[1]
            return f"<{tag}>{base}{below or above}</{tag}>"
        return base

    def _item(self) -> str:
        piece = self.tokens[self.at]
        self.at += 1
        if piece == "{":
            return self.row("}")
        if piece.startswith("\\"):
            return self._command(piece[1:])
        if piece[0].isdigit():
            return f"<mn>{piece}</mn>"
        if piece.isalpha():
            return f"<mi>{piece}</mi>"
        if piece == "'":
            return "<mo>\N{PRIME}</mo>"
        return f"<mo>{escape(piece.replace('-', MINUS))}</mo>"

    def _command(self, name: str) -> str:
        if name in _SIGNS:
            return f"<mi>{_SIGNS[name]}</mi>"
        if name in _OPERATORS:
            return f"<mo>{_OPERATORS[name]}</mo>"
        if name in _LARGE:
            return f"<mo>{_LARGE[name]}</mo>"
        if name in _NAMES:
            return f"<mi>{name}</mi>"
        if name in _SPACES:
            return f'<mspace width="{_SPACES[name]}"/>'
        if name == "frac":
            return f"<mfrac>{self._item()}{self._item()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self._item()}</msqrt>"
        if name == "big":
            return self._item()
        if name in _ACCENTS:
            return f"<mover>{self._next()}<mo>{_ACCENTS[name]}</mo></mover>"
        if name == "text":
            return f"<mtext>{escape(self._verbatim())}</mtext>"
        if name in _VARIANTS:
            return f'<mi mathvariant="{_VARIANTS[name]}">{escape(self._verbatim())}</mi>'
        raise FociError(self.equation, f"has the unknown command \\{name}", "mend the metric card")

    def _next(self) -> str:
        while self.tokens[self.at].isspace():
            self.at += 1
        return self._item()

    def _verbatim(self) -> str:
        """The letters of a braced group, as they are written."""
        start, self.at = self.at + 1, self.tokens.index("}", self.at) + 1
        return "".join(" " if one == "\\," else one for one in self.tokens[start : self.at - 1])
