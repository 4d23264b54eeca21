"""The page is closed: names are text, nothing is fetched, equations are MathML."""

import base64
import hashlib
import html
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from foci.errors import FociError
from foci.metrics import CARDS
from foci.reports.html import CODE, STYLE, embedded, load_bundle, mathml
from tests.makers.synthetic import HOSTILE
from tests.reports.test_report import data_of


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
    assert '<script type="application/json" id="foci-data">' in text
    assert data_of(page)["slides"]["id"][:3] == list(HOSTILE)


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


def test_a_checkout_without_a_build_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / CODE).write_text("1")
    with pytest.raises(FociError) as error:
        load_bundle(tmp_path)
    assert str(error.value) == (
        f"{tmp_path / STYLE}: is not built; run python3 dev.py run ... , or npm ci and "
        "npm run build in web/"
    )


@pytest.mark.parametrize("text", ['"</script>"', '"</SCRIPT "', "'<!--'"])
def test_code_that_would_end_its_element_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / CODE).write_text(text)
    (tmp_path / STYLE).write_text("a{}")
    with pytest.raises(FociError, match=r"report\.js: would end its own element"):
        load_bundle(tmp_path)


def test_the_licence_of_what_is_bundled_is_there() -> None:
    assert "Leon Sorokin" in load_bundle()[0].split("*/")[0]


NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"


@pytest.mark.parametrize("name", list(CARDS))
def test_every_card_has_an_equation_without_latex(name: str) -> None:
    for source in (CARDS[name].equation, CARDS[name].symbol):
        root = ET.fromstring(mathml(source))
        shown = "".join(root.itertext())
        assert shown
        assert not re.search(r"[\\_$]", shown)
        counts = {"msub": 2, "msup": 2, "msubsup": 3, "mfrac": 2, "munder": 2, "munderover": 3}
        for element in root.iter():
            tag = element.tag.removeprefix(NAMESPACE)
            assert len(element) == counts.get(tag, len(element)), tag
            assert tag in {
                "math", "mrow", "mi", "mo", "mn", "mtext", "mspace", "mstyle", "msub", "msup",
                "msubsup", "munder", "mover", "munderover", "mfrac", "msqrt",
            }  # fmt: skip


def test_fractions_roots_and_accents() -> None:
    assert "<mfrac><mn>1</mn><mn>2</mn></mfrac>" in mathml(r"\tfrac12")
    assert "<msqrt><mrow><mi>x</mi></mrow></msqrt>" in mathml(r"\sqrt{x}")
    assert "<mover><mi>v</mi>" in mathml(r"\bar v")
    assert "<munderover><mo>&#x02211;</mo>" in mathml(r"\sum_{j=1}^{m}", display="block")


def test_argmax_is_known_and_nonsense_is_refused() -> None:
    assert "\\" not in mathml(r"\arg\max_c p_c")
    with pytest.raises(FociError, match="has a command that latex2mathml does not know"):
        mathml(r"\frob{x}")
