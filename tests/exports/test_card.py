"""The audit card: the numbers of the summary, and Markdown that fits into any model card."""

import json
import re
from pathlib import Path

import pytest
import yaml

from foci.audits import StoredAudit
from foci.exports import export
from foci.exports.card import _plain, audit_card
from tests.makers.synthetic import Plan, make


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> StoredAudit:
    return make(tmp_path_factory.mktemp("audit"), Plan(n_slides=12, k_max=40))


def test_the_numbers_are_those_of_the_summary(audit: StoredAudit, tmp_path: Path) -> None:
    done = export(audit, tmp_path, ["card"], audit.curves.slide_ids)
    assert [path.name for path in done.files] == ["card.md", "card.json"]
    card = json.loads(done.files[1].read_text(encoding="utf-8"))
    assert card == audit_card(audit)
    found = audit.summary.answers
    assert card["answers"]["believe_the_map"]["answer"] == found.map.answer
    assert card["answers"]["tiles"]["answer"] == found.tiles.answer
    assert card["answers"]["better_order"]["answer"] == found.order.short
    assert card["sure"]["slides"] == found.n_decided
    assert card["sha256"]["features"] == audit.manifest.features_sha256
    assert card["sha256"]["model"] == audit.manifest.backbone.fingerprint
    axes = [] if found.map.comparison is None else found.map.comparison.axes
    assert [one["wins"] for one in card["answers"]["believe_the_map"]["against_random"]] == [
        axis.wins for axis in axes
    ]
    assert card["truth"]["rankings"]["native"]["precision8"]["estimate"] == 0.41


def test_the_page_is_a_section_of_a_model_card(audit: StoredAudit, tmp_path: Path) -> None:
    """A model card is YAML between two lines of dashes, then Markdown; a section adds neither."""
    page = export(audit, tmp_path, ["card"], []).files[0].read_text(encoding="utf-8")
    lines = page.splitlines()
    assert lines[0].startswith("## Heat map audit of ")
    assert not any(re.fullmatch(r"-{3,}|={3,}", line) for line in lines), "no front matter, no rule"
    assert all(line.startswith(("## ", "### ")) for line in lines if line.startswith("#"))
    assert not re.search(r"(?<!\\)<[a-zA-Z/!]", page), "no HTML"
    widths = [line.replace(r"\|", "").count("|") for line in lines]
    for above, own, line in zip(widths, widths[1:], lines[1:], strict=False):
        assert above in (0, own) or own == 0 or not line.startswith("|"), line
    whole = f"---\nlicense: mit\n---\n\n# A model\n\n{page}"
    front = re.match(r"^---\n(.*?)\n---\n", whole, re.DOTALL)
    assert front is not None
    assert yaml.safe_load(front[1]) == {"license": "mit"}
    assert str(audit.folder) not in page
    for alarm in audit.alarms:
        assert _plain(alarm.sentence) in page


def test_names_cannot_break_out_of_the_page() -> None:
    assert _plain("a|b <script>\n# *x*") == r"a\|b \<script\> \# \*x\*"
