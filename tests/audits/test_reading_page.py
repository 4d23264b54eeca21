"""The pages about reports name every number, and their links lead somewhere."""

import re
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from foci.audits import Manifest, Summary
from foci.audits.records import AlarmKind, Answers, DecidedNumbers, RankingNumbers
from foci.metrics.answers import Belief, BetterOrder

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reading-a-report.md").read_text(encoding="utf-8")


def test_every_number_of_a_summary_is_explained() -> None:
    keys = {key for key in RankingNumbers.model_fields if not key.endswith("_seeds")}
    assert [key for key in sorted(keys | {"agreement"}) if f"`{key}`" not in PAGE] == []


@pytest.mark.parametrize("model", [Summary, RankingNumbers, Manifest, Answers, DecidedNumbers])
def test_every_field_of_a_file_is_documented(model: type[BaseModel]) -> None:
    page = (DOCS / "audit-folder.md").read_text(encoding="utf-8")
    fields = [name for name in model.model_fields if not name.endswith("_seeds")]
    assert [name for name in fields if f"`{name}`" not in page] == []


def test_every_kind_of_alarm_is_explained() -> None:
    _, _, rest = (DOCS / "trust.md").read_text(encoding="utf-8").partition("| alarm | raised if |")
    table = re.match(r"\n(?:\|.*\n)+", rest)
    assert re.findall(r"^\| `(.+?)` \|", table[0], re.M) == list(get_args(AlarmKind))


QUESTIONS = {
    "**Can I believe the map?** native": get_args(Belief),
    "**Is there a better order?** the": get_args(BetterOrder),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_answer_has_a_row_below_its_question(question: str) -> None:
    _, found, rest = PAGE.partition(question)
    assert found
    table = re.search(r"(?:^\|.*\n)+", rest, re.M)
    assert re.findall(r"^\| `(.+?)` \|", table[0], re.M) == list(QUESTIONS[question])


@pytest.mark.parametrize("page", ["reading-a-report.md", "report.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w-]+\.md)(?:#([\w-]+))?\)", text)
    assert links
    for target, anchor in links:
        heads = re.findall(r"^#+ (.+)$", (DOCS / target).read_text(encoding="utf-8"), re.M)
        anchors = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}
        assert not anchor or anchor in anchors, (target, anchor)
