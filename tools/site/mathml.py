"""Formulas between dollar signs as MathML, written when the site is built.

A browser draws MathML by itself, so a page needs no script and no font from elsewhere.
"""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.blockprocessors import BlockProcessor
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor

from foci.reports.html import mathml

INLINE = r"(?<![\\$\w])\$(?=[^\s$])((?:[^$\\]|\\.)+?)(?<!\s)\$(?![\w$])"
BLOCK = re.compile(r"^\$\$(.+?)\$\$\s*$", re.DOTALL)
_BEFORE_ESCAPES, _BEFORE_PARAGRAPHS = 185, 15
"""Priorities: after code spans, before backslashes; before paragraphs."""


class FormulaExtension(Extension):
    """Turns ``$...$`` and paragraphs of ``$$...$$`` into MathML."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        """Register both forms."""
        md.inlinePatterns.register(_Inline(INLINE, md), "formula", _BEFORE_ESCAPES)
        md.parser.blockprocessors.register(_Block(md.parser), "formulas", _BEFORE_PARAGRAPHS)


class _Inline(InlineProcessor):
    def handleMatch(  # type: ignore[override]  # noqa: N802
        self, m: re.Match[str], data: str
    ) -> tuple[str, int, int]:
        return self.md.htmlStash.store(mathml(m[1])), m.start(0), m.end(0)


class _Block(BlockProcessor):
    def test(self, parent: Element, block: str) -> bool:
        return bool(BLOCK.match(block))

    def run(self, parent: Element, blocks: list[str]) -> bool | None:
        if found := BLOCK.match(blocks.pop(0)):
            box = Element("div", {"class": "formula"})
            box.text = self.parser.md.htmlStash.store(mathml(found[1], display="block"))
            parent.append(box)
        return None


def makeExtension(**settings: Any) -> FormulaExtension:  # noqa: N802
    """What Markdown calls to load this module as an extension."""
    return FormulaExtension(**settings)
