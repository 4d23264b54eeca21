"""The pages about reports name every number, and their links lead somewhere."""

import re
from pathlib import Path
from typing import get_args

import pytest

from foci.audits.analysis.per_ranking import GREEDY
from foci.metrics import VerdictName
from tests.makers.curves import summary_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reading-a-report.md").read_text(encoding="utf-8")


def test_every_number_of_a_summary_is_explained() -> None:
    counts = {"native": [[1, 2]], "selector": [[1, 2]], "random": [[1, 2]], GREEDY: [[1, 2]]}
    found = summary_of(counts, ["A", "B"], ["tumour", "benign"])
    keys = {key for key in found["views"]["prediction"]["selector"] if not key.endswith("_seeds")}
    assert [key for key in sorted(keys | {"agreement"}) if f"`{key}`" not in PAGE] == []


@pytest.mark.parametrize("name", get_args(VerdictName))
def test_every_verdict_has_a_row(name: str) -> None:
    assert f"\n| `{name}` |" in PAGE


@pytest.mark.parametrize("page", ["reading-a-report.md", "compare.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w-]+\.md)(?:#([\w-]+))?\)", text)
    assert links
    for target, anchor in links:
        heads = re.findall(r"^#+ (.+)$", (DOCS / target).read_text(encoding="utf-8"), re.M)
        anchors = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}
        assert not anchor or anchor in anchors, (target, anchor)
