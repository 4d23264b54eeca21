"""An audit in the output of a notebook cell."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from foci.audits import StoredAudit
from foci.reports.report import MOST_BYTES, framed, in_words, notebook_html

HOSTILE = "a'b\"c&d<e></iframe><script>alert(1)</script>&amp;&#39;'/><p onclick='x'>"


class Frames(HTMLParser):
    """Attributes of every frame, as a browser would read them, and the other tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.frames: list[dict[str, str | None]] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "iframe":
            self.frames.append(dict(attrs))


@pytest.mark.parametrize("page", ["", "<p>plain</p>", HOSTILE, HOSTILE * 1000])
def test_the_frame_holds_the_page_to_the_byte(page: str) -> None:
    read = Frames(framed(page, HOSTILE))
    assert read.tags == {"iframe"}
    assert [(one["srcdoc"], one["title"]) for one in read.frames] == [(page, HOSTILE)]
    assert read.frames[0]["sandbox"] == "allow-scripts", "no origin, no forms, no windows"


def test_a_page_that_jupyter_would_drop_is_named_instead() -> None:
    around = len(framed("", "report")) + 2  # the quotes of JSON
    assert framed("x" * (MOST_BYTES - around), "report").startswith("<iframe")
    assert framed("x" * (MOST_BYTES - around + 1), "report") == (
        "<p>The page is 2.5 MB, too large for a notebook; write it with "
        '<code>.to_html("report.html")</code>.</p>'
    )
    assert framed("\n" * (MOST_BYTES // 2), "report").startswith("<p>"), "sent as two characters"


def test_the_page_is_the_report_and_the_words_stand_alone(audit: StoredAudit, page: Path) -> None:
    shown = notebook_html(audit)
    words = in_words(audit)
    assert shown.startswith(words)
    plain = {"p", "b", "code", "table", "thead", "tbody", "tr", "th", "td"}
    assert Frames(words).tags == plain
    assert [one["srcdoc"] for one in Frames(shown).frames] == [page.read_text(encoding="utf-8")]
