"""Names that try to break out of the page."""

import base64
import hashlib
import html
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from foci.reports.html import embedded
from tests.makers.synthetic import HOSTILE


class Named(BaseModel):
    name: str
    counts: dict[str, int]


@given(st.text() | st.sampled_from(["</script>", "<!--", "]]>", "\u2028", "&lt;"]))
def test_embedded_json_cannot_end_its_element(name: str) -> None:
    text = embedded(Named(name=name, counts={name: 1}))
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"name": name, "counts": {name: 1}}


def test_hostile_names_are_text(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in (*HOSTILE, "<b>empty</b>", "abmil <demo> & co"):
        assert name not in text
    assert "<b>empty" not in text
    assert html.escape("abmil <demo> & co") in text
    block = re.search(r'<script type="application/json" id="foci-data">(.*?)</script>', text, re.S)
    assert block is not None
    assert json.loads(block[1])["slides"]["id"][:3] == list(HOSTILE)


def test_two_scripts_and_no_more(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert len(re.findall(r"<script[ >]", text)) == 2
    assert " onerror=" not in re.sub(r"<script.*?</script>", "", text, flags=re.S).replace(
        html.escape(HOSTILE[1]), ""
    )


def test_the_policy_forbids_the_network_and_names_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    assert found is not None
    policy = html.unescape(found[1])
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag, pattern in (
        ("script-src", r"<script>(.*?)</script>"),
        ("style-src", r"<style>(.*?)</style>"),
    ):
        content = re.search(pattern, text, re.S)
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"{tag} 'sha256-{digest}'" in policy


def test_nothing_is_fetched(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r"\b(src|href)\s*=\s*[\"']?(https?:)?//", outside)
    assert "@import" not in outside
    assert "url(http" not in outside


@pytest.mark.parametrize("word", ["undefined", "NaN", "None"])
def test_nothing_undefined_is_shown(page: Path, word: str) -> None:
    above_cards = page.read_text(encoding="utf-8").split('<section id="cards"')[0]
    text = re.sub(r"<(script|style).*?</\1>", "", above_cards, flags=re.S)
    shown = html.unescape(re.sub(r"<[^>]+>", " ", text))
    assert not re.search(rf"(?<![\w-]){word}(?![\w-])", shown)
