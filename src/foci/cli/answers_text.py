"""The three answers of an audit as coloured text, wrapped to the width of the terminal."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from foci.audits.analysis.answers.record import Answers

COLOUR = {"good": "bold green", "part": "bold yellow", "bad": "bold red", "none": "bold"}
"""By the tone of an answer."""


def answers_text(told: Answers, width: int) -> Text:
    """Every question with its answer, and its sentences below it, indented."""
    from rich.text import Text

    from foci.reports.text.answers import MAP, ORDER, TILES, tone_of

    text = Text()
    for question, one in ((MAP, told.map), (TILES, told.tiles), (ORDER, told.order)):
        text.append(f"{question} ", style="bold")
        text.append(f"{one.answer}\n", style=COLOUR[tone_of(one.answer)])
        text.append("".join(f"{_indented(line, width)}\n" for line in one.sentences))
    if told.sensitive:
        text.append("The answers depend on the threshold: see the report.\n")
    text.rstrip()
    return text


def _indented(sentence: str, width: int) -> str:
    """Wrap a sentence; its further lines are indented more than its first."""
    lines = wrap(
        sentence, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
    return "\n".join(lines)
